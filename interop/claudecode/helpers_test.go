package claudecode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func options() interop.Options {
	return interop.Options{Now: now}
}

func source(name string, files map[string]string) interop.Source {
	return interop.Source{
		Name: name,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(files[name])), nil },
		Beside: func(name string) (io.ReadCloser, error) {
			if text, ok := files[name]; ok {
				return io.NopCloser(strings.NewReader(text)), nil
			}
			return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		},
		List: func(dir string) (names []string, err error) {
			for other := range files {
				if path.Dir(other) == dir {
					names = append(names, other)
				}
			}
			slices.Sort(names)
			return names, nil
		},
	}
}

// session is what a reader gave.
type session struct {
	header  interop.Header
	entries []transcript.Entry
	byID    map[string]int
}

// collect takes entries and checks what holds for all: whole lines, ids that are there once, parents first.
func collect(t testing.TB, h interop.Header, next func() (transcript.Draft, error)) session {
	t.Helper()
	s := session{header: h, byID: map[string]int{}}
	for {
		d, err := next()
		if errors.Is(err, io.EOF) {
			return s
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := d.Line("", "", now)
		if err != nil {
			t.Fatalf("%v: %.300s", err, d.Raw)
		}
		l, err := transcript.ParseLine(raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.byID[l.ID]; ok {
			t.Fatalf("id %s twice", l.ID)
		}
		s.byID[l.ID] = len(s.entries)
		s.entries = append(s.entries, l.Entry(uint64(len(s.entries))))
	}
}

// path gives the entries from the root to an id; "" = to the last entry.
func (s *session) path(t testing.TB, id string) []transcript.Entry {
	t.Helper()
	if id == "" && len(s.entries) > 0 {
		id = s.entries[len(s.entries)-1].ID
	}
	var out []transcript.Entry
	for id != "" {
		at, ok := s.byID[id]
		if !ok {
			t.Fatalf("parent %q is not there", id)
		}
		if out = append(out, s.entries[at]); len(out) > len(s.entries) {
			t.Fatal("parents go round")
		}
		id = s.entries[at].ParentID
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// amended returns entries as later lines of the file amend them, without the amendments.
func (s *session) amended(list []transcript.Entry) (out []transcript.Entry) {
	newest := map[string]transcript.Amendment{}
	for _, e := range s.entries {
		if a, ok := e.Amendment(); ok {
			newest[a.Target] = a
		}
	}
	for _, e := range list {
		if _, ok := e.Amendment(); !ok {
			out = append(out, e.Amended(newest[e.ID]))
		}
	}
	return out
}

// talk writes the context at an id: a word for each message.
func (s *session) talk(t testing.TB, id string) string {
	t.Helper()
	var words []string
	for _, m := range transcript.BuildContext(s.amended(s.path(t, id)), transcript.Coppice).Messages {
		sh := transcript.Inspect(m.Raw)
		w := map[string]string{"user": "u", "assistant": "a", "toolResult": "r", "custom": "m", "compactionSummary": "C"}[m.Role]
		w += ":" + strings.ReplaceAll(sh.Text, "\n", "|")
		for _, c := range sh.Calls {
			w += "+" + c.ID
		}
		if len(sh.Results) > 0 {
			w += "=" + strings.Join(sh.Results, ",")
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func read(t testing.TB, text string) (session, *Reader) {
	t.Helper()
	return readFile(t, "s.jsonl", map[string]string{"s.jsonl": text})
}

func readFile(t testing.TB, name string, files map[string]string) (session, *Reader) {
	t.Helper()
	r := NewReader(source(name, files), options())
	h, err := r.Header()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transcript.ParseLine(h.Raw); err != nil {
		t.Fatalf("header %s: %v", h.Raw, err)
	}
	return collect(t, h, r.Next), r
}

func kinds(diags []transcript.Diagnostic) string {
	var out []string
	for _, d := range diags {
		out = append(out, d.Kind)
	}
	return strings.Join(out, " ")
}

// node is a line of a file under test.
type node struct {
	id, parent, typ string // parent "" = null
	content         string // JSON; "" = the id as text
	extra           string // more fields, each with a comma in front
	msg             string // the provider's id of the message
}

func (n node) line() string {
	parent := "null"
	if n.parent != "" {
		parent = fmt.Sprintf("%q", n.parent)
	}
	if n.content == "" {
		n.content = fmt.Sprintf(`[{"type":"text","text":%q}]`, n.id)
	}
	message := ""
	switch n.typ {
	case "user":
		message = `,"message":{"role":"user","content":` + n.content + `}`
	case "assistant":
		id := n.msg
		if id == "" {
			id = "msg_" + n.id
		}
		message = fmt.Sprintf(`,"message":{"id":%q,"type":"message","role":"assistant","model":"claude-x","content":%s,"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":2}}`, id, n.content)
	}
	side := `,"isSidechain":false`
	if strings.Contains(n.extra, "isSidechain") {
		side = ""
	}
	return fmt.Sprintf(`{"parentUuid":%s%s,"userType":"external","cwd":"/w","sessionId":"s1","version":"2.0.1","gitBranch":"main","type":%q%s,"uuid":%q,"timestamp":"2026-01-01T00:00:00.000Z"%s}`,
		parent, side, n.typ, message, n.id, n.extra)
}

func file(nodes ...node) string {
	var b bytes.Buffer
	for _, n := range nodes {
		b.WriteString(n.line() + "\n")
	}
	return b.String()
}

func call(ids ...string) string {
	var out []string
	for _, id := range ids {
		out = append(out, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"ls"}}`, id))
	}
	return "[" + strings.Join(out, ",") + "]"
}

func result(ids ...string) string {
	var out []string
	for _, id := range ids {
		out = append(out, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"out-%s"}`, id, id))
	}
	return "[" + strings.Join(out, ",") + "]"
}

func collectOne(t testing.TB, raw []byte) transcript.Line {
	t.Helper()
	l, err := transcript.ParseLine(raw)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
