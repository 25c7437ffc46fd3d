package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

const (
	headerNew = `{"v":4,"kind":"header","id":"s1","storageVersion":1,"createdAt":1767225600000,"cwd":"/w"}`
)

// userLine is a transaction with a user message on the main lane; parent is JSON.
func userLine(id, parent string, seq int) string {
	return fmt.Sprintf(`[{"kind":"entry","id":%q,"parentId":%s,"type":"message","message":{"role":"user","content":%q,"timestamp":1},"seq":%d,"timestamp":1767225600000},{"kind":"value","op":"set","seq":%d,"namespace":"pi.branch.tip","key":"main","value":%q}]`,
		id, parent, id, seq, seq+1, id)
}

// appendedSession is a file as it was read.
type appendedSession struct {
	entries []transcript.Entry
	parents []int64
	found   []transcript.Diagnostic
}

func readAppended(t testing.TB, data string) (s appendedSession) {
	t.Helper()
	r := NewReader(source([]byte(data)), options())
	var lines []transcript.Line
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		l, err := transcript.ParseLine(d.Raw)
		if err != nil {
			t.Fatal(err)
		}
		s.entries = append(s.entries, l.Entry(uint64(len(lines))))
		lines = append(lines, l)
	}
	s.parents, _ = transcript.ResolveParents(lines)
	s.found = r.Diagnostics()
	return s
}

// at is the context at an entry by its ordinal, in short: role and text of each message.
func (s appendedSession) at(at int64) (out []string) {
	var path []transcript.Entry
	for ; at >= 0; at = s.parents[at] {
		path = append(path, s.entries[at])
	}
	slices.Reverse(path)
	for _, m := range transcript.BuildContext(path, transcript.Coppice).Messages {
		out = append(out, m.Role+": "+m.Text())
	}
	return out
}

// context is what the session shows when it is opened.
func (s appendedSession) context() []string { return s.at(int64(len(s.entries)) - 1) }

// drafts returns the entries as a session does, with added ones.
func (s appendedSession) drafts(added ...string) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		for _, e := range s.entries {
			if !yield(transcript.Draft{Raw: e.Raw}, nil) {
				return
			}
		}
		for _, line := range added {
			if !yield(transcript.Draft{Raw: []byte(line)}, nil) {
				return
			}
		}
	}
}

// last returns the ID of the last entry.
func (s appendedSession) last(added ...string) string {
	raw := []byte(s.entries[len(s.entries)-1].Raw)
	if len(added) > 0 {
		raw = []byte(added[len(added)-1])
	}
	return rawjson.Text(rawjson.Field(raw, "id"))
}

// continued reads a file, adds entries as a session does, and returns the file with the lines written after it.
func continued(t *testing.T, data string, added ...string) (string, interop.Losses) {
	t.Helper()
	s := readAppended(t, data)
	end, err := ReadEnd(source([]byte(data)))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	losses, err := end.Append(&out, len(s.entries), s.drafts(added...), s.last(added...))
	if err != nil {
		t.Fatal(err)
	}
	if err := strict(data + out.String()); err != nil {
		t.Fatalf("the harness would refuse it: %v\n%s", err, out.String())
	}
	return data + out.String(), losses
}

// strict checks a file against the rules of the harness's own loader.
func strict(data string) error {
	head, _, _ := strings.Cut(data, "\n")
	seq, old := 0, strings.Contains(head, `"version":4`)
	ids, entries, tips := map[string]bool{}, map[string]bool{}, map[string]any{mainLane: nil}
	if !strings.HasSuffix(data, "\n") {
		return errors.New("the last line does not end")
	}
	for i, line := range strings.Split(strings.TrimSuffix(data, "\n"), "\n")[1:] {
		var writes []map[string]any
		if line[0] == '{' {
			line = "[" + line + "]"
		}
		if err := json.Unmarshal([]byte(line), &writes); err != nil {
			return fmt.Errorf("line %d: %w", i+2, err)
		}
		for _, w := range writes {
			n, ok := w["seq"].(float64)
			if !ok || int(n) <= seq || old && int(n) != seq+1 {
				return fmt.Errorf("line %d: number %v after %d", i+2, w["seq"], seq)
			}
			seq = int(n)
			id, _ := w["id"].(string)
			switch w["kind"] {
			case "entry":
				parent, _ := w["parentId"].(string)
				if id == "" || ids[id] || parent != "" && !entries[parent] {
					return fmt.Errorf("line %d: entry %q below %q", i+2, id, parent)
				}
				if lane, ok := w["lane"].(string); ok {
					if tips[lane] != w["parentId"] {
						return fmt.Errorf("line %d: %q is not the end of lane %s", i+2, parent, lane)
					}
					tips[lane] = id
				}
				if _, ok := w["timestamp"].(float64); !ok {
					return fmt.Errorf("line %d: no time", i+2)
				}
				ids[id], entries[id] = true, true
			case "usage", "record":
				if id == "" || ids[id] {
					return fmt.Errorf("line %d: id %q", i+2, id)
				}
				ids[id] = true
			case "lane":
				tips[w["lane"].(string)] = w["leafId"]
			case "value", "list", "fact":
			default:
				return fmt.Errorf("line %d: kind %v", i+2, w["kind"])
			}
		}
	}
	return nil
}

// Entries are appended to a file as the harness writes them: read again it has the same context.
func TestAppend(t *testing.T) {
	at := `"timestamp":"2026-12-01T00:00:00.000Z"`
	add := func(typ, id, parent, rest string) string {
		return fmt.Sprintf(`{"type":%q,"id":%q,"parentId":%q,%s,%s}`, typ, id, parent, at, rest)
	}
	user := func(id, parent string) string {
		return add("message", id, parent, `"message":{"role":"user","content":"`+id+`","timestamp":1796083200000}`)
	}
	for _, name := range []string{"transactions", "lanes"} {
		data, err := os.ReadFile("testdata/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		s := readAppended(t, string(data))
		was := s.context()
		last := s.entries[len(s.entries)-1]
		head := last.ParentID // of the leaf entry at the end
		if last.Type != "leaf" {
			head = last.ID
		}
		for _, tt := range []struct {
			name   string
			added  []string
			want   []string
			losses int
		}{
			{"messages", []string{user("q1", head), user("q2", "q1")}, append(was[:len(was):len(was)], "user: q1", "user: q2"), 0},
			{"a custom message", []string{add("custom_message", "q1", head, `"customType":"c","content":"seen","display":false`)}, append(was[:len(was):len(was)], "custom: seen"), 0},
			{"a summary of a branch", []string{add("branch_summary", "q1", head, `"fromId":"`+head+`","summary":"left"`)}, append(was[:len(was):len(was)], "branchSummary: left"), 0},
			{"a compaction that keeps", []string{user("q1", head), user("q2", "q1"), add("compaction", "k", "q2", `"summary":"OURS","firstKeptEntryId":"q1","tokensBefore":7`), user("q3", "k")}, []string{"compactionSummary: OURS", "custom: q1", "custom: q2", "user: q3"}, 0},
			{"a compaction that keeps nothing", []string{add("compaction", "k", head, `"summary":"OURS","firstKeptEntryId":"gone","tokensBefore":7`)}, []string{"compactionSummary: OURS"}, 0},
			{"another branch", []string{user("q1", s.real(t, "user")), user("q2", "q1")}, append(s.upTo(t, s.real(t, "user")), "user: q1", "user: q2"), 0},
			{"a move", []string{user("q1", head), add("leaf", "f", "q1", `"targetId":"`+head+`"`)}, was, 0},
			{"back to the beginning", []string{user("q1", head), add("leaf", "f", "q1", `"targetId":null`)}, nil, 0},
			{"names, labels, settings", []string{
				add("session_info", "i", head, `"name":"N"`), add("label", "l", "i", `"targetId":"`+s.real(t, "user")+`","label":"L"`), add("model_change", "m", "l", `"provider":"pp","modelId":"mm"`),
				add("thinking_level_change", "h", "m", `"thinkingLevel":"off"`), add("usage", "x", "h", `"kind":"k","provider":"p","model":"m","usage":{"input":1}`), user("q1", "x"),
			}, append(was[:len(was):len(was)], "user: q1"), 0},
			{"what it has no form for", []string{add("context_edit", "e", head, `"targetId":"u1","replacement":null`), add("label", "l", "e", `"targetId":"","label":"x"`)}, was, 2},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				text, losses := continued(t, string(data), tt.added...)
				again := readAppended(t, text)
				if diff := cmp.Diff(tt.want, again.context()); diff != "" {
					t.Errorf("%s\n%s", diff, text[len(data):])
				}
				lost := 0
				for _, n := range losses {
					lost += n
				}
				if lost != tt.losses || len(again.found) > 0 {
					t.Errorf("lost %v, found %v", losses, again.found)
				}
				end, err := ReadEnd(source([]byte(text)))
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(tt.name, "names") && !end.Old && (end.Provider != "pp" || end.Model != "mm" || end.Thinking != "off") {
					t.Errorf("settings %+v", end.fileState)
				}
			})
		}
	}
}

// real returns the ID of the file's first message of a role.
func (s appendedSession) real(t *testing.T, role string) string {
	t.Helper()
	for _, e := range s.entries {
		if e.Type == "message" && strings.Contains(string(e.Raw), `"role":"`+role+`"`) {
			return e.ID
		}
	}
	t.Fatal("none of role", role)
	return ""
}

// upTo is the context at an entry.
func (s appendedSession) upTo(t *testing.T, id string) []string {
	t.Helper()
	for i, e := range s.entries {
		if e.ID == id {
			return s.at(int64(i))
		}
	}
	t.Fatal("no entry", id)
	return nil
}

// Nothing is appended to a file that the harness would refuse, or whose last line it would drop.
func TestNoEnd(t *testing.T) {
	head, a, b := headerNew, userLine("a", "null", 1), userLine("b", `"a"`, 3)
	for _, data := range []string{
		lf(head, a) + b, lf(head, a) + b[:30], lf(head, a, "x", b), lf(a, b), lf(head, a, strings.Replace(b, `"seq":3`, `"seq":1`, 1)), lf(head, a+b), strings.ReplaceAll(lf(head, a), "\n", "\r\n"),
	} {
		if _, err := ReadEnd(source([]byte(data))); !errors.Is(err, ErrNoEnd) {
			t.Errorf("%q: %v", data, err)
		}
	}
	if _, err := ReadEnd(source([]byte("x\n"))); !errors.Is(err, interop.ErrNotSession) {
		t.Error(err)
	}
	for nextSeq, want := range map[string]int64{"": 5, `,"nextSeq":3`: 5, `,"nextSeq":77`: 77} {
		data := lf(strings.Replace(head, "}", nextSeq+"}", 1), a, b)
		text, _ := continued(t, data, `{"type":"session_info","id":"n","parentId":"b","timestamp":"2026-01-01T00:00:00.000Z","name":"N"}`)
		if !strings.Contains(text, fmt.Sprintf(`"seq":%d,"namespace":"pi.session.name"`, want)) {
			t.Errorf("%s: %s", nextSeq, text[len(data):])
		}
	}
}

// FuzzAppend: a file that the harness loads is still one after entries were appended.
func FuzzAppend(f *testing.F) {
	for _, name := range []string{"transactions", "lanes", "damaged"} {
		data, err := os.ReadFile("testdata/" + name + ".jsonl")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add(lf(headerNew, userLine("a", "null", 1), userLine("b", `"a"`, 3)))
	f.Fuzz(func(t *testing.T, data string) {
		end, err := ReadEnd(source([]byte(data)))
		if err != nil || strict(data) != nil {
			return
		}
		s := readAppended(t, data)
		head := s.entries[len(s.entries)-1].ID
		added := []string{
			`{"type":"message","id":"q 1","parentId":` + string(piwriter.OrNull(head)) + `,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"q"}}`,
			`{"type":"compaction","id":"q 2","parentId":"q 1","timestamp":"2026-01-01T00:00:00.000Z","summary":"S","firstKeptEntryId":"q 1","tokensBefore":1}`,
			`{"type":"thinking_level_change","id":"q 3","parentId":"q 2","timestamp":"2026-01-01T00:00:00.000Z","thinkingLevel":"off"}`,
			`{"type":"message","id":"q 4","parentId":"q 3","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"q"}}`,
		}
		var out strings.Builder
		if _, err := end.Append(&out, len(s.entries), s.drafts(added...), "q 4"); err != nil {
			t.Fatal(err)
		}
		if err := strict(data + out.String()); err != nil {
			t.Fatalf("%v\n%s", err, data+out.String())
		}
	})
}
