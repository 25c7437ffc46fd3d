package claudecode

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// TestInserted: texts that Claude Code inserts are not the user's, and the model sees them.
func TestInserted(t *testing.T) {
	text := func(s string) string { return fmt.Sprintf("%q", s) }
	blocks := func(texts ...string) string {
		var list []string
		for _, s := range texts {
			list = append(list, fmt.Sprintf(`{"type":"text","text":%q}`, s))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	const reminder = "<system-reminder>be brief</system-reminder>"
	const opened = "<ide_opened_file>The user opened a.go.</ide_opened_file>"
	origin := func(kind string) string { return `,"origin":{"kind":"` + kind + `"}` }
	for _, tt := range []struct {
		name, content, extra string
		want                 string // text in a tree, after the user's role; "" = not the user's
	}{
		{"typed", text("chart the reef"), "", "chart the reef"},
		{"typed, with an origin", text("chart the reef"), origin("human"), "chart the reef"},
		{"of a task", text("a task has ended"), origin("task-notification"), ""},
		{"of another agent", text("hello"), origin("peer"), ""},
		{"of a channel", text("hello"), origin("channel"), ""},
		{"a task, by its text", text("<task-notification>\n<task-id>b</task-id>\n</task-notification>"), "", ""},
		{"a command", text("<command-name>/clear</command-name>\n  <command-args></command-args>"), "", ""},
		{"its output", text("<local-command-stdout></local-command-stdout>"), "", ""},
		{"a command of the shell", text("<bash-input>ls</bash-input>"), "", ""},
		{"an unknown skill", text("Unknown skill: buddy"), "", ""},
		{"a question about one", text("Unknown skill: buddy, why?"), "", "Unknown skill: buddy, why?"},
		{"an interruption", blocks("[Request interrupted by user for tool use]"), "", ""},
		{"a reminder", blocks(reminder), "", ""},
		{"marked as meta", text("read this"), `,"isMeta":true`, ""},
		{"a reminder and words", blocks(reminder, "chart the reef"), "", "chart the reef"},
		{"both in one text", text(opened + "\nchart the reef\n\n" + reminder), "", "chart the reef"},
		{"a reminder and an image", `[{"type":"image","source":{}},` + blocks(reminder)[1:], "", reminder},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := read(t, file(node{id: "u", typ: "user", content: tt.content, extra: tt.extra}))
			path := s.Path(t, "")
			row := transcript.RowOf(lineOf(t, path[len(path)-1]), codec.NoParent)
			if got := row.Role == "user"; got != (tt.want != "") || got && row.Preview != tt.want {
				t.Errorf("role %q, preview %q, want %q", row.Role, row.Preview, tt.want)
			}
			if n := len(transcript.BuildContext(path, transcript.Coppice).Messages); n != 1 {
				t.Errorf("the model sees %d messages", n)
			}
		})
	}
}

// TestInsertedWithResults: a reminder on the line of a result is not the user's.
func TestInsertedWithResults(t *testing.T) {
	content := `[{"type":"tool_result","tool_use_id":"c","content":"done"},` +
		`{"type":"text","text":"<system-reminder>be brief</system-reminder>"}]`
	s, _ := read(t, file(
		node{id: "u", typ: "user"}, node{id: "a", parent: "u", typ: "assistant", content: call("c")},
		node{id: "r", parent: "a", typ: "user", content: content}))
	if got, want := s.Talk(t, ""), "u:u a:+c r:done=c m:<system-reminder>be brief</system-reminder>"; got != want {
		t.Errorf("context %s, want %s", got, want)
	}
}

// TestSynthetic: a message that Claude Code writes in place of an answer is a failure without text of the model.
func TestSynthetic(t *testing.T) {
	for _, tt := range []struct{ text, extra, stop string }{
		{"API Error: 529", `,"isApiErrorMessage":true`, "error"},
		{"Prompt is too long", "", "error"},
		{"No response requested.", `,"isApiErrorMessage":false`, "aborted"},
	} {
		line := node{
			id: "a", parent: "u", typ: "assistant", extra: tt.extra,
			content: fmt.Sprintf(`[{"type":"text","text":%q}]`, tt.text),
		}.line()
		text := file(node{id: "u", typ: "user"}) + strings.ReplaceAll(line, "claude-x", "<synthetic>") + "\n"
		s, _ := read(t, text)
		path := s.Path(t, "")
		raw := rawjson.Field(path[len(path)-1].Raw, "message")
		for name, want := range map[string]string{
			"content": "[]", "errorMessage": fmt.Sprintf("%q", tt.text), "stopReason": `"` + tt.stop + `"`,
		} {
			if got := string(rawjson.Field(raw, name)); got != want {
				t.Errorf("%s: %s is %s, want %s", tt.text, name, got, want)
			}
		}
		if got := s.Talk(t, ""); got != "u:u" {
			t.Errorf("%s: context %s", tt.text, got)
		}
		row := transcript.RowOf(lineOf(t, path[len(path)-1]), codec.NoParent)
		if row.Flags&codec.FlagFailed == 0 || row.Preview != tt.text {
			t.Errorf("%s: preview %q, flags %d", tt.text, row.Preview, row.Flags)
		}
	}
}

// TestSpread: a provider's body that Claude Code split into an object is not an answer.
func TestSpread(t *testing.T) {
	line := node{id: "a", parent: "request_1", typ: "assistant", msg: "m"}.line()
	from, to := strings.Index(line, `{"id":"m"`), strings.Index(line, `,"uuid"`)
	line = line[:from] + `{"0":"e","1":"v","content":[]}` + line[to:]
	text := file(node{id: "request_1", typ: "user"}) + line + "\n" + file(node{id: "u2", parent: "a", typ: "user"})
	s, _ := read(t, text)
	if got := s.Talk(t, ""); got != "u:request_1 u:u2" {
		t.Errorf("context %s", got)
	}
	path := s.Path(t, "")
	failed := path[len(path)-2].Raw
	if !bytes.Contains(failed, []byte(`"errorMessage":"the`)) || !bytes.Contains(failed, []byte(`"0":"e"`)) {
		t.Errorf("%s", failed)
	}
}

func lineOf(t *testing.T, e transcript.Entry) transcript.Line {
	t.Helper()
	l, err := transcript.ParseLine(e.Raw)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestBrokenOff: an aborted or failed answer keeps its text and counts as failed, also after a round trip through a
// file of Claude Code. The text of a failed answer comes back as that of the error, because Claude Code sends no other
// text back.
func TestBrokenOff(t *testing.T) {
	const entry = `{"type":"message","id":%q,"parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":` +
		`{"role":"assistant","provider":"p","model":"m","content":[{"type":"text","text":"half"}],"stopReason":%q}}`
	for stop, want := range map[string]string{
		"aborted": `aborted [{"type":"text","text":"half"}] `, "error": "error [] half",
		"stop": `stop [{"type":"text","text":"half"}] `,
	} {
		var out bytes.Buffer
		list := func(yield func(transcript.Draft, error) bool) {
			yield(transcript.Draft{Raw: fmt.Appendf(nil, entry, "a", stop)}, nil)
		}
		losses, err := Write(&out, interop.Header{ID: "mine", Cwd: "/w"}, list)
		if err != nil || (len(losses) > 0) != (stop == "error") {
			t.Errorf("%s: losses %v, %v", stop, losses, err)
		}
		s, _ := read(t, out.String())
		path := s.Path(t, "")
		m := rawjson.Field(path[len(path)-1].Raw, "message")
		text := func(name string) string { return rawjson.Text(rawjson.Field(m, name)) }
		got := text("stopReason") + " " + string(rawjson.Field(m, "content")) + " " + text("errorMessage")
		if got != want {
			t.Errorf("%s: %s, want %s\n%s", stop, got, want, out.String())
		}
	}
}
