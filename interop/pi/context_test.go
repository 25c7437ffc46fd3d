package pi

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// contextCase is one case of testdata/context_cases.txt.
type contextCase struct {
	name, input, diag string
	want, set         map[string]string
	lines             int
}

func loadCases(t testing.TB) []contextCase {
	t.Helper()
	data, err := os.ReadFile("testdata/context_cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	const header = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/x"}` + "\n"
	var cases []contextCase
	for n, line := range strings.Split(string(data), "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		if name, ok := strings.CutPrefix(line, "case "); ok {
			cases = append(cases, contextCase{name: name, input: header, want: map[string]string{}, set: map[string]string{}})
			continue
		}
		if len(cases) == 0 || line == "" || line[0] == '#' {
			continue
		}
		c := &cases[len(cases)-1]
		names, value, _ := strings.Cut(rest, ":")
		switch verb {
		case "want", "set":
			for p := range strings.SplitSeq(names, ",") {
				map[string]map[string]string{"want": c.want, "set": c.set}[verb][p] = strings.TrimSpace(value)
			}
		case "diag:":
			c.diag = rest
		case "noheader":
			c.input = strings.TrimPrefix(c.input, header)
		case "raw":
			c.input += rest + "\n"
		case "bytes":
			s, err := strconv.Unquote(rest)
			if err != nil {
				t.Fatalf("line %d: %v", n+1, err)
			}
			c.input += s
		default:
			c.lines++
			c.input += caseLine(verb, rest, c.lines) + "\n"
		}
	}
	return cases
}

// caseLine writes one line of input.
func caseLine(kind, rest string, n int) string {
	w := strings.Fields(rest)
	id, parent := w[0], w[2]
	arg := map[string]any{}
	for _, a := range w[3:] {
		k, v, _ := strings.Cut(a, "=")
		if arg[k] = any(v); v == "null" {
			arg[k] = nil
		}
	}
	or := func(name string) any {
		if v, ok := arg[name]; ok {
			return v
		}
		return id
	}
	e := map[string]any{"type": kind, "id": id, "timestamp": fmt.Sprintf("2026-01-01T00:00:%02d.000Z", n)}
	if parent != "!" {
		if e["parentId"] = parent; parent == "-" {
			e["parentId"] = nil
		}
	}
	copyTo := func(field, name string) {
		if v, ok := arg[name]; ok {
			e[field] = v
		}
	}
	switch kind {
	case "user", "assistant", "result", "bash", "system":
		e["type"], e["message"] = "message", caseMessage(kind, id, arg, or("text"))
	case "compaction":
		e["summary"], e["tokensBefore"] = or("summary"), 10
		copyTo("firstKeptEntryId", "keep")
		if _, ok := arg["verbatim"]; ok {
			e["details"] = map[string]any{"strategy": "verbatim-lines"}
		}
		if s, ok := arg["system"]; ok {
			e["systemMessage"] = map[string]any{"role": "system", "content": s}
		}
	case "branch":
		e["type"], e["summary"], e["fromId"] = "branch_summary", or("summary"), "x"
	case "custom_message":
		e["customType"], e["content"], e["display"] = "note", or("text"), false
	case "model":
		e["type"], e["model"] = "model_change", arg["to"]
		e["provider"], e["modelId"], _ = strings.Cut(arg["to"].(string), "/")
		copyTo("role", "role")
	case "thinking":
		e["type"], e["thinkingLevel"] = "thinking_level_change", arg["level"]
	case "label", "leaf":
		e["targetId"], e["label"] = arg["target"], "x"
	case "edit":
		e["type"], e["targetId"], e["replacement"] = "context_edit", arg["target"], nil
		if arg["to"] != nil {
			e["replacement"] = map[string]any{"content": arg["to"]}
		}
	case "reset":
		e["type"] = "reset_boundary"
	}
	line, _ := json.Marshal(e)
	head := rawjson.Object("type", rawjson.Field(line, "type"), "id", rawjson.Field(line, "id"), "parentId", rawjson.Field(line, "parentId"), "timestamp", rawjson.Field(line, "timestamp"))
	for _, name := range []string{"type", "id", "parentId", "timestamp"} {
		line = rawjson.WithField(line, name, nil)
	}
	if len(line) == len("{}") {
		return string(head)
	}
	return string(head[:len(head)-1]) + "," + string(line[1:])
}

func caseMessage(kind, id string, arg map[string]any, said any) map[string]any {
	m := map[string]any{"role": kind, "content": said, "timestamp": 1}
	blocks := []any{map[string]any{"type": "text", "text": said}}
	switch kind {
	case "assistant":
		if said == "" {
			blocks = nil
		}
		if c, ok := arg["call"]; ok {
			blocks = append(blocks, map[string]any{"type": "toolCall", "id": c, "name": "tool", "arguments": map[string]any{}})
		}
		m["content"], m["provider"], m["model"], m["stopReason"] = blocks, "prov", id, "stop"
		if s, ok := arg["stop"]; ok {
			m["stopReason"] = s
		}
	case "result":
		m["role"], m["toolCallId"], m["content"] = "toolResult", arg["call"], blocks
	case "bash":
		m = map[string]any{"role": "bashExecution", "command": "ls", "output": "x"}
	}
	return m
}

var allProfiles = map[string]transcript.Profile{"coppice": transcript.Coppice, "pi": transcript.Pi, "omp": transcript.OMP, "atomic": transcript.Atomic, "operator": transcript.Operator}

func TestBuildContextCases(t *testing.T) {
	cases := loadCases(t)
	if len(cases) < 50 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := readFile(t, []byte(c.input))
			for name, p := range allProfiles {
				got := f.context(p)
				want, ok := c.want[name]
				if !ok {
					want = c.want["all"]
				}
				messages := brief(got.Messages)
				for i := range messages {
					messages[i] = strings.ReplaceAll(messages[i], " ", "_")
				}
				if diff := cmp.Diff(strings.Fields(want), messages); len(messages) > 0 && diff != "" || len(messages) == 0 && want != "" {
					t.Errorf("%s: messages (-want +got):\n%s", name, diff)
				}
				checkSettings(t, c, name, got)
				if !got.Window.Complete || got.Window.OmittedEntries != 0 || got.Explicit {
					t.Errorf("%s: window %+v", name, got.Window)
				}
			}
			var kinds []string
			for _, d := range append(f.diag, f.context(transcript.Coppice).Diagnostics...) {
				kinds = append(kinds, d.Kind)
			}
			slices.Sort(kinds)
			if got := strings.Join(kinds, " "); got != c.diag {
				t.Errorf("diagnostics %q, want %q", got, c.diag)
			}
		})
	}
}

func checkSettings(t *testing.T, c contextCase, name string, got transcript.Context) {
	t.Helper()
	want, ok := c.set[name]
	if !ok {
		if want, ok = c.set["all"]; !ok || name == "operator" && strings.Contains(want, "prov/") {
			return
		}
	}
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	if set := got.Settings.ThinkingLevel + " " + dash(got.Settings.Model) + " " + dash(got.Leaf); set != want {
		t.Errorf("%s: level, model, leaf = %s, want %s", name, set, want)
	}
}
