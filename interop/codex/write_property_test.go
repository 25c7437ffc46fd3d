package codex

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/testutil"
)

// sayings are messages in any provider's shape. @ is a call's id, ~ a text.
var sayings = []string{
	`{"role":"user","content":"~",` + at + `}`,
	`{"role":"user","content":[{"type":"text","text":"~"},{"type":"text","text":"more"}],` + at + `}`,
	`{"role":"user","content":[{"type":"text","text":"~"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}],` + at + `}`,
	`{"role":"user","content":[{"type":"image","data":"R0lGODlh","mimeType":"image/gif"}],` + at + `}`,
	`{"role":"user","content":[{"type":"text","text":"~"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}`,
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"@","content":"~"},{"type":"text","text":"and?"}]}`,
	`{"role":"user","content":[{"toolResult":{"toolUseId":"@","content":[{"text":"~"}]}}]}`,
	`{"role":"user","parts":[{"text":"~"}]}`,
	`{"role":"user","content":""}`,
	`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"sig"},{"type":"text","text":"~"},{"type":"toolCall","id":"@","name":"read","arguments":{"path":"a\nb"}}],` + counted + `,"stopReason":"toolUse",` + at + `}`,
	`{"role":"assistant","content":[{"type":"text","text":"~"}],"api":"a","provider":"anthropic","model":"c","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"cost":{"total":0}},"stopReason":"aborted",` + at + `}`,
	`{"role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":{},"stopReason":"error","errorMessage":"no",` + at + `}`,
	`{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"text","text":"~"},{"type":"tool_use","id":"@","name":"n","input":{"input":"~"}}],"usage":{"input_tokens":5,"output_tokens":6}}`,
	`{"role":"assistant","content":"~","tool_calls":[{"id":"@","type":"function","function":{"name":"n","arguments":"{\"x\":1}"}},{"id":"@2","type":"function","function":{"name":"a b","arguments":"{}"}}]}`,
	`{"role":"model","parts":[{"text":"~"},{"functionCall":{"name":"g","args":{"x":1}}}]}`,
	`{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"output":"~"}}}]}`,
	`{"role":"assistant","content":[{"text":"~"},{"toolUse":{"toolUseId":"@","name":"n","input":{}}}]}`,
	`{"role":"toolResult","toolCallId":"@","toolName":"read","content":[{"type":"text","text":"~"}],"isError":true,"details":{"a":1},` + at + `}`,
	`{"role":"toolResult","toolCallId":"@","toolName":"read","content":[{"type":"text","text":"~"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}],"isError":false,` + at + `}`,
	`{"role":"tool","tool_call_id":"@2","content":"~"}`,
	`{"type":"function_call","call_id":"@","name":"n","arguments":"{}"}`,
	`{"type":"function_call_output","call_id":"@","output":"~"}`,
	`{"role":"bashExecution","command":"~","output":"o","exitCode":1,"cancelled":false,"truncated":false,` + at + `}`,
	`{"role":"custom","customType":"note","content":[{"type":"text","text":"~"}],"display":true,` + at + `}`,
	`{"role":"system","content":"~",` + at + `}`,
	`{"role":"developer","content":"~"}`,
}

// others are entries that are not messages. % is an earlier entry.
var others = []string{
	`thinking_level_change "thinkingLevel":"high"`, `thinking_level_change "thinkingLevel":"off"`, `thinking_level_change "thinkingLevel":"max"`,
	`model_change "provider":"openai","modelId":"m2"`, `model_change "model":"p/m3","role":"default"`,
	`compaction "summary":"~","firstKeptEntryId":"%","tokensBefore":9`, `compaction "summary":"~","firstKeptEntryId":null,"tokensBefore":9`,
	`branch_summary "fromId":"%","summary":"~"`, `custom "customType":"ext","data":{"n":1}`, `custom "customType":"coppice.commit"`,
	`custom_message "customType":"ext","content":"~","display":false`,
	`custom_message "customType":"ext","content":[{"type":"text","text":"~"},{"type":"image","data":"AAAA","mimeType":"image/gif"}],"display":true`,
	`label "targetId":"%","label":"x"`, `session_info "name":"N"`, `usage "kind":"k"`, `from_the_future "x":1`,
}

// grow adds entries below any that are there.
func (s *talk) grow(t *rapid.T, ids []string, n int, name string) []string {
	for i := range n {
		parent := ""
		if len(ids) > 0 && rapid.IntRange(0, 19).Draw(t, "root") > 0 {
			parent = ids[len(ids)-1]
			if rapid.IntRange(0, 7).Draw(t, "branch") == 0 {
				parent = rapid.SampledFrom(ids).Draw(t, "parent")
			}
		}
		before := "none"
		if len(ids) > 0 {
			before = ids[rapid.IntRange(max(0, len(ids)-8), len(ids)-1).Draw(t, "before")]
		}
		id := fmt.Sprintf("%s%d", name, i)
		fill := strings.NewReplacer("~", fmt.Sprintf("t%s", id), "@", fmt.Sprintf("k%d", i/4), "%", before)
		if rapid.IntRange(0, 4).Draw(t, "message") > 0 {
			s.message(id, parent, fill.Replace(rapid.SampledFrom(sayings).Draw(t, "said")))
		} else {
			typ, fields, _ := strings.Cut(fill.Replace(rapid.SampledFrom(others).Draw(t, "other")), " ")
			s.add(id, parent, typ, fields)
		}
		ids = append(ids, id)
	}
	return ids
}

// renamed returns words with the names of tools as they are written.
func renamed(words []string) []string {
	for i, w := range words {
		words[i] = strings.Replace(w, "c:a b{", "c:a_b{", 1)
	}
	return words
}

// TestWriteProperty: for any session, the context that Codex computes from its file is the session's, calls have their
// outputs, and a reader has no diagnostics and the same context.
func TestWriteProperty(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := talk{Header: begun}
		ids := s.grow(rt, nil, rapid.IntRange(0, 40).Draw(rt, "entries"), "e")
		head := ""
		if len(ids) > 0 && rapid.IntRange(0, 9).Draw(rt, "start") > 0 {
			head = rapid.SampledFrom(ids).Draw(rt, "head")
		}
		file, _ := s.write(rt, head)
		lines := valid(rt, file)
		items := rebuilt(lines)
		paired(rt, items)
		want := but(renamed(s.words(rt, head)), "r:aborted")
		if diff := cmp.Diff(want, but(heard(rt, items), "r:aborted")); diff != "" {
			rt.Fatalf("Codex's context (-ours +its):\n%s\n%s\n%s", diff, s.shown(), file)
		}
		back, tip := taken(rt, file)
		if diff := cmp.Diff(want, but(unled(back.words(rt, tip)), "r:aborted")); diff != "" {
			rt.Fatalf("the context of an import (-ours +its):\n%s\n%s\n%s", diff, s.shown(), file)
		}
		if again, _ := s.write(rt, head); again != file {
			rt.Fatal("the same session gives another file")
		}
	})
}

// TestContinueProperty: whatever is added to an imported session, and wherever its head is, the file begins with the
// original, and the context that Codex computes from it is the session's.
func TestContinueProperty(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(rt *rapid.T) {
		first := talk{Header: begun}
		ids := first.grow(rt, nil, rapid.IntRange(1, 25).Draw(rt, "entries"), "e")
		original, _ := first.write(rt, ids[len(ids)-1])
		s, tip := taken(rt, original)
		known := len(s.lines)
		ids = ids[:0]
		for _, raw := range s.lines {
			ids = append(ids, idOf(rt, raw))
		}
		ids = s.grow(rt, ids, rapid.IntRange(0, 12).Draw(rt, "added"), "n")
		head := tip
		switch rapid.IntRange(0, 2).Draw(rt, "where") {
		case 1:
			head = ids[len(ids)-1]
		case 2:
			head = rapid.SampledFrom(append(slices.Clone(ids), "")).Draw(rt, "head")
		}
		file, losses := s.goOn(rt, original, known, head)
		if !strings.HasPrefix(file, original) || head == tip && file != original {
			rt.Fatal("the original's bytes are others")
		}
		lines := valid(rt, file)
		items := rebuilt(lines)
		rt.Logf("head %s, %v\n%s\n%s", head, losses, strings.Join(s.lines[known:], "\n"), file)
		paired(rt, items)
		want := but(unled(renamed(s.words(rt, head))), "r:aborted")
		if diff := cmp.Diff(want, but(heard(rt, items), "r:aborted")); diff != "" {
			rt.Fatalf("Codex's context (-ours +its):\n%s\nhead %s, %v\n%s\n%s", diff, head, losses, strings.Join(s.lines[known:], "\n"), file)
		}
		if head == tip {
			return
		}
		back, end := taken(rt, file)
		if diff := cmp.Diff(want, but(unled(back.words(rt, end)), "r:aborted", "s:The conversation goes on from an earlier place.")); diff != "" {
			rt.Fatalf("the context of an import (-ours +its):\n%s", diff)
		}
	})
}

// shown drops the lines without content.
func (s *talk) shown() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(s.lines), func(l string) bool { return strings.Contains(l, `thinking_level_change`) }), "\n")
}
