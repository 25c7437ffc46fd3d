package operator

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// TestLosses pins what is counted of each kind of entry, role and block: all that operator has no words for, and
// nothing of what comes back.
func TestLosses(t *testing.T) {
	const at = `"timestamp":1`
	const usage = `"usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`
	model := `"api":"a","provider":"p","model":"m",` + usage + `,"stopReason":"stop",` + at
	message := func(fields string) string { return `"type":"message","message":{` + fields + `}` }
	for _, tt := range []struct {
		name, entry string
		want        interop.Losses
	}{
		{"user", message(`"role":"user","content":"q",` + at), nil},
		{"field of a message", message(`"role":"user","content":"q","unknown":1,` + at), interop.Losses{LostField: 1}},
		{"fields that say nothing", message(`"role":"user","content":"q","a":null,"b":[],"c":false,` + at), nil},
		{"blocks", message(`"role":"user","content":[{"type":"text","text":"a","textSignature":"s"},{"type":"text","text":"b"},{"type":"image","data":"AA==","mimeType":"image/bmp"}],` + at), interop.Losses{LostField: 1}},
		{"system", message(`"role":"system","content":"s","sections":{"a":"b"},` + at), interop.Losses{LostField: 1}},
		{"model", message(`"role":"assistant","content":[{"type":"thinking","thinking":"h","thinkingSignature":"s","redacted":true},{"type":"toolCall","id":"k","name":"n","arguments":{},"thoughtSignature":"t"}],` + model), interop.Losses{LostField: 2}},
		{"model, plain", message(`"role":"assistant","content":[{"type":"thinking","thinking":"h"},{"type":"toolCall","id":"k","name":"n","arguments":{},"kind":"read"}],"errorMessage":"e",` + model), nil},
		{"account", message(`"role":"assistant","content":[],` + strings.Replace(model, `"input":1`, `"input":1,"reasoning":5`, 1)), interop.Losses{LostField: 1}},
		{"not at its end", message(`"role":"assistant","content":[],` + strings.Replace(model, `"stop"`, `"pending"`, 1)), interop.Losses{LostStop: 1}},
		{"result", message(`"role":"toolResult","toolCallId":"k","toolName":"n","content":[{"type":"text","text":"r"}],"isError":true,"details":{"a":1},` + at), nil},
		{"result, more", message(`"role":"toolResult","toolCallId":"k","toolName":"n","content":[{"type":"image","data":"AA==","mimeType":"image/png"}],"isError":false,"nestedCalls":[1],` + at), interop.Losses{LostField: 1, LostImage: 1}},
		{"command", message(`"role":"bashExecution","command":"ls","output":"","cancelled":false,"truncated":false,` + at), interop.Losses{piwriter.LostRole: 1}},
		{"hidden command", message(`"role":"bashExecution","command":"ls","output":"","cancelled":false,"truncated":false,"excludeFromContext":true,` + at), interop.Losses{LostHidden: 1}},
		{"custom", message(`"role":"custom","customType":"c","content":"x","display":true,` + at), nil},
		{"custom, not shown", message(`"role":"custom","customType":"c","content":"x","display":false,` + at), interop.Losses{LostField: 1}},
		{"anthropic", message(`"role":"user","content":[{"type":"tool_result","tool_use_id":"k","content":"r","cache_control":{"type":"ephemeral"}}]`), interop.Losses{piwriter.LostShape: 1}},
		{"openai", message(`"role":"developer","content":"d"`), interop.Losses{piwriter.LostRole: 1}},
		{"level", `"type":"thinking_level_change","thinkingLevel":"auto"`, interop.Losses{LostLevel: 1}},
		{"level, more", `"type":"thinking_level_change","thinkingLevel":"high","configured":"auto"`, interop.Losses{LostField: 1}},
		{"model of a role", `"type":"model_change","model":"p/m","role":"smol"`, interop.Losses{piwriter.LostModel: 1}},
		{"model change", `"type":"model_change","model":"p/m","role":"default","resolvedModelIsFallback":true`, interop.Losses{LostField: 1}},
		{"compaction", `"type":"compaction","summary":"s","firstKeptEntryId":"a","tokensBefore":1,"details":{},"fromHook":true`, nil},
		{"compaction, more", `"type":"compaction","summary":"s","tokensBefore":1,"shortSummary":"s","usage":{"input":1}`, interop.Losses{LostField: 1}},
		{"summary", `"type":"branch_summary","fromId":"a","summary":"s","usage":{"input":1}`, interop.Losses{LostField: 1}},
		{"label", `"type":"label","targetId":"a","label":"x"`, nil},
		{"custom message", `"type":"custom_message","customType":"c","content":"x","display":false,"attribution":"agent"`, interop.Losses{LostField: 1}},
		{"usage", `"type":"usage","kind":"k","provider":"p","model":"m","usage":{}`, interop.Losses{piwriter.LostType: 1}},
		{"edit", `"type":"context_edit","targetId":"a","replacement":null`, interop.Losses{piwriter.LostEdit: 1}},
		{"mode", `"type":"mode_change","mode":"plan"`, interop.Losses{piwriter.LostType: 1}},
		{"summary of the session", `"type":"session_summary","summary":"s","summarizedThroughId":"a"`, interop.Losses{piwriter.LostType: 1}},
		{"artifacts", message(`"role":"user","content":"q",`+at) + `,"artifacts":[{"name":"0.log","text":"x"}]`, interop.Losses{LostField: 1}},
		{"stub", `"type":"message","stub":{"bytes":1,"limit":2}`, interop.Losses{piwriter.LostStub: 1, piwriter.LostNobody: 1}},
		{"metadata", message(`"role":"user","content":"q",`+at) + `,"meta":{"reply_to":7}`, interop.Losses{LostField: 1}},
	} {
		line := `{"id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z",` + tt.entry + `}`
		seq := func(yield func(transcript.Draft, error) bool) { yield(transcript.Draft{Raw: []byte(line)}, nil) }
		var out bytes.Buffer
		losses, err := Write(&out, interop.Header{ID: "s"}, seq, "a")
		if err != nil {
			t.Fatal(err)
		}
		if tt.want == nil {
			tt.want = interop.Losses{}
		}
		if diff := cmp.Diff(tt.want, losses); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", tt.name, diff, out.String())
		}
	}
	raw := []byte(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","title":"T","additionalDirectories":["/x"],"metadata":{"a":1}}`)
	losses, err := Write(&bytes.Buffer{}, interop.Header{ID: "s", Title: "T", Raw: raw}, func(func(transcript.Draft, error) bool) {}, "")
	if err != nil || losses[piwriter.LostHeader] != 2 {
		t.Errorf("header: %v, %v", losses, err)
	}
}
