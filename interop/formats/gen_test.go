package formats

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/interop"
)

// schema is one type of line of a format: fields as name=value, name?=value where it may be absent.
type schema struct {
	typ    string
	fields []string
}

const (
	usagePi = `{"input":12,"output":3,"cacheRead":4,"cacheWrite":0,"cacheWrite1h":0,"reasoning":2,"totalTokens":19,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.30000000000000004}}`
	stamp   = `"timestamp":1767225600123`
)

// messages of the pi family by role. The ids of calls are put in for %c.
var (
	piMessages = []string{
		`{"role":"user","content":"plain text é \u00e9",` + stamp + `}`,
		`{"role":"user","content":[{"type":"text","text":"blocks","textSignature":"s"},{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ","mimeType":"image/png"}],` + stamp + `,"unknown":{"a":[1.50,null]}}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"sig","redacted":false},{"type":"text","text":"said"},{"type":"toolCall","id":"%c","name":"read","arguments":{"path":"a\nb"},"thoughtSignature":"t","namespace":"n","partialJson":"{"}],"api":"a","provider":"prov","model":"mod","usage":` + usagePi + `,"stopReason":"toolUse","responseModel":"m2","responseId":"r","diagnostics":[],"rawStopReason":"x","endTurn":true,"durationMs":5,` + stamp + `}`,
		`{"role":"assistant","content":[],"api":"a","provider":"prov","model":"mod","usage":` + usagePi + `,"stopReason":"error","errorMessage":"no",` + stamp + `}`,
		`{"role":"assistant","content":[{"type":"text","text":"cut"}],"api":"a","provider":"prov","model":"mod","usage":` + usagePi + `,"stopReason":"aborted",` + stamp + `}`,
		`{"role":"toolResult","toolCallId":"%c","toolName":"read","content":[{"type":"text","text":"result"}],"details":{"lines":[1,2]},"isError":false,"nestedCalls":[],` + stamp + `}`,
		`{"role":"bashExecution","command":"ls","output":"a\nb","exitCode":0,"cancelled":false,"truncated":false,"fullOutputPath":"/tmp/x","excludeFromContext":false,` + stamp + `}`,
		`{"role":"bashExecution","command":"secret","output":"","cancelled":true,"truncated":true,"excludeFromContext":true,` + stamp + `}`,
		`{"role":"custom","customType":"note","content":[{"type":"text","text":"c"}],"display":true,"details":7,` + stamp + `}`,
		`{"role":"system","content":"be good","sections":{"a":"b","c":null},"toolsAdded":["x"],"toolsRemoved":[],` + stamp + `}`,
	}
	ompMessages = []string{
		`{"role":"developer","content":"dev",` + stamp + `}`,
		`{"role":"pythonExecution","code":"1+1","output":"2","cancelled":false,"truncated":false,` + stamp + `}`,
		`{"role":"fileMention","files":[{"path":"a.go","content":"package a","lineCount":1}],` + stamp + `}`,
		`{"role":"hookMessage","customType":"h","content":"old","display":true,` + stamp + `}`,
		`{"role":"assistant","content":[{"type":"redactedThinking","data":"xx"},{"type":"anthropicServerTool","block":{"type":"web_search"}},{"type":"text","text":"ok"}],"api":"a","provider":"p","model":"m","usage":` + usagePi + `,"stopReason":"stop",` + stamp + `}`,
	}
)

// piTypes are the entries of pi 1.5 except messages, and those of the harness.
var piTypes = []schema{
	{"thinking_level_change", []string{`thinkingLevel="high"`}},
	{"model_change", []string{`provider="openai"`, `modelId="gpt-4o"`}},
	{"compaction", []string{`summary="SUM"`, `firstKeptEntryId=%k`, `tokensBefore=1000`, `details?={"readFiles":["a"]}`, `fromHook?=true`, `usage?=` + usagePi, `systemMessage?={"role":"system","content":"s","timestamp":1}`}},
	{"branch_summary", []string{`fromId=%k`, `summary="BRANCH"`, `details?={}`, `fromHook?=false`, `usage?=` + usagePi}},
	{"custom", []string{`customType="ext"`, `data?={"n":1.0,"deep":[[{}]]}`}},
	{"custom_message", []string{`customType="ext"`, `content="injected"`, `display=false`, `details?=[1]`}},
	{"custom_message", []string{`customType="ext"`, `content=[{"type":"text","text":"i"},{"type":"image","data":"R0lGODlhAQABAAAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==","mimeType":"image/gif"}]`, `display=true`}},
	{"label", []string{`targetId=%k`, `label?="here"`}},
	{"session_info", []string{`name?="A name"`}},
	{"usage", []string{`kind="title"`, `provider="p"`, `model="m"`, `usage=` + usagePi, `note?="n"`}},
	{"context_edit", []string{`targetId=%k`, `replacement=null`}},
	{"context_edit", []string{`targetId=%k`, `replacement={"content":"edited"}`}},
	{"active_tools_change", []string{`activeToolNames=["read"]`}},
	{"leaf", []string{`targetId=%k`}},
	{"from_the_future", []string{`what?={"ever":true}`}},
}

// ompTypes are the entries that omp has in addition to pi's, or in another form.
var ompTypes = []schema{
	{"thinking_level_change", []string{`thinkingLevel?=null`, `configured?="auto"`}},
	{"model_change", []string{`model="anthropic/claude-x"`, `role?="default"`, `resolvedModelIsFallback?=true`}},
	{"model_change", []string{`model="anthropic/claude-small"`, `role="smol"`}},
	{"compaction", []string{`summary="SUM"`, `firstKeptEntryId=%k`, `tokensBefore=9`, `shortSummary?="S"`, `tokensAfter?=3`, `method?="full"`, `providerReplayThroughEntryId?=%k`, `preserveData?={"hook":1}`, `fromExtension?=true`, `warning?="w"`}},
	{"branch_summary", []string{`fromId="root"`, `summary="B"`, `fromExtension?=false`}},
	{"custom_message", []string{`customType="e"`, `content="c"`, `display=true`, `attribution?="agent"`}},
	{"service_tier_change", []string{`serviceTier=null`}},
	{"service_tier_change", []string{`serviceTier={"openai":"flex"}`}},
	{"mode_change", []string{`mode="plan"`, `data?={"planFile":"/p"}`}},
	{"ttsr_injection", []string{`injectedRules=["a","b"]`}},
	{"session_init", []string{`systemPrompt="s"`, `task="t"`, `tools=["read"]`, `agent?="scout"`, `modelRole?="smol"`, `resolvedModel?="p/m"`, `readOnly?=true`, `outputSchema?={"type":"object"}`, `outputSchemaMode?="strict"`, `restrictToolNames?=false`, `spawns?="*"`, `readSummarize?=false`, `advisor?="on"`, `compactionThreshold?={"thresholdPercent":80,"thresholdTokens":1}`, `isolated?=true`}},
	{"model_usage", []string{`purpose="title"`, `role?="tiny"`, `api="a"`, `provider="p"`, `model="m"`, `usage=` + usagePi, `stopReason="stop"`, `errorMessage?="e"`}},
	{"title_change", []string{`title="New"`, `previousTitle?="Old"`, `source="user"`, `trigger?="rename"`}},
	{"credential_pin", []string{`provider="anthropic"`, `hash="abc"`}},
	{"reset_boundary", nil},
}

var atomicTypes = []schema{
	{"compaction", []string{`summary="kept lines"`, `firstKeptEntryId=null`, `tokensBefore=5`, `details={"strategy":"verbatim-lines","promptVersion":1,"rung":2,"parameters":{"compression_ratio":0.5,"preserve_recent":3,"query":"q"},"stats":{},"backupPath":"/b"}`}},
	{"compaction", []string{`summary="inert"`, `firstKeptEntryId=%k`, `tokensBefore=5`}},
	{"context_compaction", []string{`promptVersion=1`, `deletedTargets=["x"]`, `protectedEntryIds=[]`, `stats={}`, `backupPath?="/b"`}},
	{"session_summary", []string{`summary="s"`, `summarizedThroughId=%k`, `usage?=` + usagePi}},
	{"branch_summary", []string{`fromId=%k`, `summary="b"`, `usage?=` + usagePi}},
	{"custom_message", []string{`customType="c"`, `content="x"`, `display=true`, `excludeFromContext?=true`, `stageAdmissionKey?="k"`, `protectedReconciliation?={"delivery":"d"}`}},
	{"session_info", []string{`name=""`}},
}

// operatorTypes: what else than messages operator writes. A time is put in for %t.
var operatorTypes = []schema{
	{"thinking_level_change", []string{`thinking_level="high"`}},
	{"model_change", []string{`model_id="gpt-4o"`, `provider_id="openai"`}},
	{"compaction", []string{`summary="SUM"`, `first_kept_entry_id=%k`, `tokens_before=77`, `details?={"a":1}`, `from_hook=false`}},
	{"compaction", []string{`summary="SUM"`, `first_kept_entry_id=%k`, `tokens_before=77`, `details=null`, `from_hook=true`}},
	{"branch_summary", []string{`from_id=%k`, `summary=""`, `details?=null`, `from_hook=false`}},
	{"label", []string{`label?="mark"`, `target_id=%k`}},
	{"label", []string{`label=null`, `target_id=%k`}},
	{"leaf", []string{`target_id?=%k`}},
	{"leaf", []string{`target_id=null`}},
	{"custom", []string{`custom_type="x"`, `data?={"k":[1.5]}`}},
	{"custom_message", []string{`custom_type="x"`, `content=[{"type":"text","content":"seen"},{"type":"image","images":["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"]}]`, `display=true`, `details?=null`}},
	{"session_info", []string{`name?="N"`}},
	{"channel", []string{`name="telegram"`, `chat_id?="1"`, `user_id?=null`}},
	{"later_type", []string{`some_field=1`}},
}

var operatorMessages = []string{
	`{"contents":[{"type":"text","content":"hi"},{"type":"image","images":["https://x/y.png","R0lGODlhAQABAAAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw=="]},{"type":"audio","audio":["AAAA"]}],"id":"u-1","timestamp":%t,"role":"user"}`,
	`{"contents":[{"type":"thinking","content":"hm","signature":""},{"type":"text","content":"ok"},{"type":"tool_call","id":"%c","name":"read","kind":"read","args":{"p":1},"metadata":{}}],"id":"a-1","timestamp":%t,"role":"assistant","usage":{"input_tokens":5,"output_tokens":6,"cache_read_tokens":1,"cache_write_tokens":0,"cost":{"input":0.5,"output":0.0,"cache_read":0.0,"cache_write":0.0,"total":0.5}},"stop_reason":"tool_calls","error":""}`,
	`{"contents":[{"type":"tool_result","id":"%c","content":"done","is_error":false,"metadata":{},"terminate":false,"terminate_message":null}],"id":"t-1","timestamp":%t,"role":"tool"}`,
	`{"contents":[{"type":"tool_result","id":"%c","content":"one","is_error":false,"metadata":{"a":1},"terminate":true,"terminate_message":"bye"},{"type":"tool_result","id":"%c2","content":"two","is_error":true,"metadata":{},"terminate":false,"terminate_message":null}],"id":"t-2","timestamp":%t,"role":"tool"}`,
	`{"contents":[{"type":"text","content":"rules"}],"id":"s-1","timestamp":%t,"role":"system"}`,
	`{"contents":[],"id":"a-2","timestamp":%t,"role":"assistant","usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"cost":{}},"stop_reason":"content_filter","error":"refused"}`,
	`{"role":"custom","custom_type":"c","timestamp":%t,"contents":[{"type":"text","content":"custom"}],"details":null}`,
	`{"role":"branch_summary","summary":"bs","from_id":"x","timestamp":%t}`,
	`{"role":"compaction_summary","summary":"cs","tokens_before":3,"timestamp":%t}`,
}

var headers = map[interop.Format][]string{
	interop.Pi:       {`{"type":"session","version":3,"id":"01941f29-7c00-7000-8000-000000000001","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`, `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","parentSession":"/old.jsonl","metadata":{"a":1}}`},
	interop.Omp:      {`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","title":"T","titleSource":"auto","additionalDirectories":["/x"],"previousSessionFiles":["/y"],"providerPromptCacheKey":"k","parentSession":"id"}`},
	interop.Atomic:   {`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","internal":true,"workflow":{"runId":"r","stageId":"s","stageName":"n"}}`},
	interop.Operator: {`{"type":"session","version":3,"id":"s","timestamp":1767225600.123456,"cwd":"/w"}`, `{"type":"session","version":3,"id":"s","timestamp":1767225600.5,"cwd":"/w","parent_session":"/old.jsonl"}`},
}

// shapeOf returns the types of lines and messages of a format.
func shapeOf(f interop.Format) (types []schema, messages []string) {
	switch f {
	case interop.Omp:
		own := slices.DeleteFunc(slices.Clone(piTypes), func(s schema) bool { return s.typ == "model_change" || s.typ == "session_info" })
		return append(own, ompTypes...), append(append([]string{}, piMessages...), ompMessages...)
	case interop.Atomic:
		return append(append([]schema{}, piTypes...), atomicTypes...), piMessages
	case interop.Operator:
		return operatorTypes, operatorMessages
	default:
		return piTypes, piMessages
	}
}

// draw is where choices come from: rapid, or one of every kind in turn.
type draw interface {
	n(name string, most int) int // 0 to most-1
}

type rapidDraw struct{ t *rapid.T }

func (d rapidDraw) n(name string, most int) int { return rapid.IntRange(0, most-1).Draw(d.t, name) }

// turns makes the choices for a file that has every type, with all optional fields or none.
type turns struct{ full bool }

func (d turns) n(name string, most int) int {
	if name == "optional" && d.full {
		return 1
	}
	return 0
}

// oneLine writes one line of a schema (messages have the type message).
func oneLine(f interop.Format, s schema, d draw, id, parent, kept string, i int) string {
	base := fmt.Sprintf(`{"type":%q,"id":%q,"parentId":%s,"timestamp":"2026-01-01T00:%02d:%02d.000Z"`, s.typ, id, parent, i/60%60, i%60)
	at := fmt.Sprintf("%d.%d", 1767225600+i, 1234567%(10+i*7))
	if f == interop.Operator {
		base = fmt.Sprintf(`{"type":%q,"id":%q,"timestamp":%s,"parent_id":%s`, s.typ, id, at, parent)
	}
	for _, field := range s.fields {
		name, value, _ := strings.Cut(field, "=")
		if cut, ok := strings.CutSuffix(name, "?"); ok {
			if name = cut; d.n("optional", 2) == 0 {
				continue
			}
		}
		base += fmt.Sprintf(",%q:%s", name, value)
	}
	call := fmt.Sprintf("call%d", i/2)
	return strings.NewReplacer("%k", kept, "%t", at, "%c", call).Replace(base) + "}"
}

// genFile returns the lines of a file of a format: a header and n entries, each below an earlier one.
func genFile(f interop.Format, d draw, n int) []string {
	types, messages := shapeOf(f)
	lines := []string{headers[f][d.n("header", len(headers[f]))]}
	quoted := []string{"null"}
	for i := range n {
		var s schema
		switch pick := d.n("type", 2*len(types)); {
		case pick < len(types):
			s = types[pick]
		default:
			s = schema{"message", []string{"message=" + messages[d.n("message", len(messages))]}}
		}
		kept := quoted[d.n("kept", len(quoted))]
		if kept == "null" {
			kept = `"root"`
		}
		lines = append(lines, oneLine(f, s, d, fmt.Sprintf("%08x", i+1), parentOf(d, quoted), kept, i))
		if s.typ == "leaf" { // nothing hangs on one: what comes next hangs on its target
			quoted = append(quoted, strings.Replace(kept, `"root"`, "null", 1))
			continue
		}
		quoted = append(quoted, fmt.Sprintf("%q", fmt.Sprintf("%08x", i+1)))
	}
	return lines
}

// parentOf returns the entry before, most of the time.
func parentOf(d draw, quoted []string) string {
	if d.n("branch", 5) > 0 {
		return quoted[len(quoted)-1]
	}
	return quoted[d.n("parent", len(quoted))]
}

// everyType returns a file without branches that has each type and message of a format once.
func everyType(f interop.Format, full bool) []string {
	types, messages := shapeOf(f)
	for _, m := range messages {
		types = append(types[:len(types):len(types)], schema{"message", []string{"message=" + m}})
	}
	lines := []string{headers[f][0]}
	parent := "null"
	for i, s := range types {
		kept := parent
		if kept == "null" {
			kept = `"nobody"`
		}
		lines = append(lines, oneLine(f, s, turns{full}, fmt.Sprintf("%08x", i+1), parent, kept, i))
		if s.typ == "leaf" {
			parent = kept
			continue
		}
		parent = fmt.Sprintf("%q", fmt.Sprintf("%08x", i+1))
	}
	return lines
}
