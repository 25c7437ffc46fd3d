package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/interop"
)

// What was imported before is left alone, whatever its format and whatever was added to the session; what has other
// bytes becomes a session of its own, or continues its session if it has grown and may.
func TestImportAgain(t *testing.T) {
	const omp = `{"type":"title","v":1,"title":"T","updatedAt":"2026-01-01T00:00:00.000Z","pad":""}` + "\n" +
		`{"type":"session","version":3,"id":"o","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n" +
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hi","timestamp":1}}` + "\n"
	line := `{"type":"custom","id":"z","parentId":null,"timestamp":"2026-01-01T00:00:02.000Z","customType":"x"}` + "\n"
	const bare = `{"type":"session","cwd":"/w"}` + "\n" +
		`{"type":"message","message":{"role":"user","content":"hi"}}` + "\n"
	for _, c := range []struct {
		name, first, second string
		again, added, grow  bool
		unchanged           bool
		grows               int
		detail              string
	}{
		{name: "the same", first: string(session.JSONL()), second: string(session.JSONL()), unchanged: true},
		{name: "added to since", first: string(session.JSONL()), second: string(session.JSONL()), added: true, unchanged: true},
		{name: "with an original", first: omp, second: omp, unchanged: true},
		{name: "with an original, added to since", first: omp, second: omp, added: true, unchanged: true},
		{name: "without ids and times", first: bare, second: bare, unchanged: true},
		{name: "asked for", first: omp, second: omp, again: true, detail: "was imported from this file: imported"},
		{name: "grown", first: omp, second: omp + line, detail: "when it was shorter"},
		{name: "grown, and may", first: omp, second: omp + line, grow: true, grows: 1},
		{name: "grown, asked for", first: omp, second: omp + line, again: true, detail: "when it was shorter"},
		{name: "grown, of the store's own form", first: string(session.JSONL()), second: string(session.JSONL()) + line + line, grow: true, grows: 2},
		{name: "grown, by what is no entry", first: omp, second: omp + "torn", grow: true, grows: -1},
		{name: "grown, added to since", first: omp, second: omp + line, added: true, grow: true, detail: "when it was shorter"},
		{name: "shorter", first: omp + line, second: omp, detail: "another session: imported"},
		{
			name: "other bytes", first: omp, second: strings.Replace(omp, "hi", "ho", 1),
			detail: "another session: imported",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := newStore(t)
			first, err := Import(t.Context(), st, interop.Bytes("f", []byte(c.first)), options())
			if err != nil {
				t.Fatal(err)
			}
			if c.added {
				add(t, st, first.Session)
				first.Entries++
			}
			o := options()
			o.Again, o.Grow = c.again, c.grow
			r, err := Import(t.Context(), st, interop.Bytes("f", []byte(c.second)), o)
			if err != nil {
				t.Fatal(err)
			}
			if there := c.unchanged || c.grows != 0; r.Unchanged != c.unchanged || r.Grew != (c.grows != 0) || r.Added != max(0, c.grows) ||
				there != (r.Session == first.Session) || r.Unchanged && (r.Entries != first.Entries || r.Format != first.Format) {
				t.Errorf("%+v after %+v", r, first)
			}
			if n := len(r.Diagnostics); n > 0 != (c.detail != "") && c.grows == 0 || c.detail != "" && !strings.Contains(r.Diagnostics[0].Detail, c.detail) {
				t.Errorf("%+v: want %q", r.Diagnostics, c.detail)
			}
			sessions := 0
			for _, err := range st.List(t.Context(), coppice.ListOptions{}) {
				if sessions++; err != nil {
					t.Fatal(err)
				}
			}
			if want := map[bool]int{true: 1, false: 2}[c.unchanged || c.grows != 0]; sessions != want {
				t.Errorf("%d sessions: want %d", sessions, want)
			}
			var out bytes.Buffer
			if err := st.Export(t.Context(), r.Session, &out); err != nil || out.String() != c.second {
				t.Errorf("gives back %d bytes, %v: want the %d of the file", out.Len(), err, len(c.second))
			}
		})
	}
}

// A session that was deleted does not come back with its file, also when that grows. It comes back on request, and
// grows then. A session with the same id and other content is another one.
func TestImportOfDeleted(t *testing.T) {
	st := newStore(t)
	take := func(text []byte, again bool) Result {
		t.Helper()
		o := growing()
		if o.Again = again; again {
			o.Grow = false
		}
		r, err := Import(t.Context(), st, interop.Bytes("f", text), o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	ends := lineEnds(session.JSONL())
	less := session.JSONL()[:ends[len(ends)-3]]
	first := take(less, false)
	if err := st.Delete(t.Context(), first.Session); err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{less, session.JSONL(), session.JSONL()[:ends[len(ends)-9]]} {
		if r := take(text, false); r.Deleted.IsZero() || r.Session != first.Session || r.Entries != 0 {
			t.Errorf("%+v", r)
		}
	}
	other := bytes.Replace(less, []byte(`"role":"user"`), []byte(`"role":"USER"`), 1)
	if r := take(other, false); !r.Deleted.IsZero() || r.Entries == 0 {
		t.Errorf("another session with the id: %+v", r)
	}
	again := take(less, true)
	if r := take(session.JSONL(), false); again.Session != first.Session || !r.Grew || r.Session != again.Session {
		t.Errorf("%+v after %+v", r, again)
	}
}

// add appends one message to a session.
func add(t *testing.T, st *coppice.Store, id string) {
	t.Helper()
	s, err := st.Open(t.Context(), id, nil)
	if err == nil {
		_, err = s.Append(t.Context(), entry.Message(map[string]any{"role": "user", "content": "more"}))
	}
	if err == nil {
		_, err = s.Commit(t.Context(), coppice.Turn{})
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// agents are the files of a session of Claude Code's: its own, and that of an agent that it started.
func agents(t *testing.T, answer, more string) (file string) {
	t.Helper()
	const sid = "22220000-0000-4000-8000-000000000002"
	row := func(typ, id, parent, rest string) string {
		return fmt.Sprintf(`{"parentUuid":%s,"type":%q,"uuid":%q,"timestamp":"2026-07-01T10:00:00.000Z","sessionId":%q,"cwd":"/w","version":"2.1.0",%s}`+"\n", parent, typ, id, sid, rest)
	}
	dir := t.TempDir()
	file = filepath.Join(dir, sid+".jsonl")
	agent := filepath.Join(dir, sid, "subagents", "agent-ab12.jsonl")
	for name, text := range map[string]string{
		file: row("user", "u1", "null", `"isSidechain":false,"message":{"role":"user","content":"run"}`) +
			row("assistant", "a1", `"u1"`, `"isSidechain":false,"message":{"id":"m1","role":"assistant","model":"c","content":[{"type":"tool_use","id":"t1","name":"Task","input":{}}]}`) +
			row("user", "r1", `"a1"`, `"isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"done"}]},"toolUseResult":{"agentId":"ab12"}`) + more,
		agent: row("user", "s1", "null", `"isSidechain":true,"agentId":"ab12","message":{"role":"user","content":"task"}`) + answer,
	} {
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = os.WriteFile(name, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// said returns the nth line of an agent's answer.
func said(n int) string {
	return fmt.Sprintf(`{"parentUuid":"s%d","type":"assistant","uuid":"s%d","timestamp":"2026-07-01T10:00:00.000Z","sessionId":"22220000-0000-4000-8000-000000000002","isSidechain":true,"agentId":"ab12","message":{"id":"m%d","role":"assistant","model":"c","content":[{"type":"text","text":"done"}]}}`+"\n", n, n+1, n+10)
}

// Whatever became of the sessions of an earlier import, what agents wrote comes in whole, and once.
func TestChildrenAgain(t *testing.T) {
	const more = `{"parentUuid":"r1","isSidechain":false,"type":"user","uuid":"u2","timestamp":"2026-07-01T11:00:00.000Z","sessionId":"22220000-0000-4000-8000-000000000002","cwd":"/w","version":"2.1.0","message":{"role":"user","content":"more"}}` + "\n"
	for _, c := range []struct {
		name      string
		between   func(t *testing.T, st *coppice.Store, child string)
		answer    string // of the agent, by the second time
		more      string // of the session
		again     bool
		unchanged bool
		grow      bool
		children  int // that the second import brings
	}{
		{name: "nothing is new", answer: said(1), unchanged: true},
		{name: "the agent went on", answer: said(1) + said(2), unchanged: true, children: 1},
		{name: "the session went on", answer: said(1), more: more, children: 1},
		{name: "the session goes on", answer: said(1), more: more, grow: true},
		{name: "the agent goes on", answer: said(1) + said(2), unchanged: true, grow: true, children: 1},
		{name: "both go on", answer: said(1) + said(2), more: more, grow: true, children: 1},
		{name: "the agent went on, and here too", answer: said(1) + said(2), unchanged: true, between: add, children: 1},
		{name: "the agent goes on, and did here", answer: said(1) + said(2), unchanged: true, between: add, grow: true, children: 1},
		{name: "asked for", answer: said(1), again: true, children: 1},
		{name: "the child was gone on with", answer: said(1), unchanged: true, between: add},
		{name: "the child was deleted", answer: said(1), unchanged: true, between: func(t *testing.T, st *coppice.Store, child string) {
			t.Helper()
			if err := st.Delete(t.Context(), child); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := newStore(t)
			first, err := Import(t.Context(), st, FromFile(agents(t, said(1), "")), options())
			if err != nil || len(first.Children) != 1 {
				t.Fatalf("%+v, %v", first, err)
			}
			if c.between != nil {
				c.between(t, st, first.Children[0])
			}
			file, o := agents(t, c.answer, c.more), options()
			for turn := range 2 { // once more: then nothing is new
				o.Again, o.Grow = c.again && turn == 0, c.grow
				r, err := Import(t.Context(), st, FromFile(file), o)
				if err != nil || r.Unchanged != (c.unchanged || turn == 1) || r.Grew != (c.grow && c.more != "" && turn == 0) || len(r.Files) != 1 {
					t.Fatalf("turn %d: %+v, %v", turn, r, err)
				}
				if want := c.children * (1 - turn); len(r.Children) != want {
					t.Fatalf("turn %d: %d children: want %d", turn, len(r.Children), want)
				}
				for _, id := range r.Children {
					info, err := look(t.Context(), st, id)
					// An entry each, one for its model, and one that names the transcript's owner.
					if want := uint64(3 + strings.Count(c.answer, "\n")); err != nil || info.Entries != want || info.Parent != r.Session {
						t.Errorf("child: %+v, %v: want %d entries", info, err, want)
					}
				}
			}
		})
	}
}

// An agent that continues while its session does not comes once in each state in which it was seen. If it may grow, it
// stays one session, or continues in another one if its session was continued here.
func TestChildGrows(t *testing.T) {
	for _, grow := range []bool{false, true} {
		st, text, seen := newStore(t), "", map[string]bool{}
		o := options()
		o.Grow = grow
		for n := 1; n <= 6; n++ {
			text += said(n)
			for again := range 2 {
				r, err := Import(t.Context(), st, FromFile(agents(t, text, "")), o)
				if err != nil || len(r.Children) != 1-again {
					t.Fatalf("%d lines: %+v, %v: want %d children", n, r, err, 1-again)
				}
				for _, id := range r.Children {
					seen[id] = true
					if n == 3 {
						add(t, st, id)
					}
				}
			}
		}
		if want := map[bool]int{false: 6, true: 2}[grow]; len(seen) != want {
			t.Errorf("%d sessions of one agent: want %d", len(seen), want)
		}
	}
}

// An import that was broken off behind the session brings what is missing the next time.
func TestChildrenBrokenOff(t *testing.T) {
	st, file := newStore(t), agents(t, "", "")
	src := FromFile(file)
	beside := src.Beside
	src.Beside = func(name string) (io.ReadCloser, error) {
		return nil, errDisk
	}
	src.List = nil
	first, err := Import(t.Context(), st, src, options())
	if err == nil && len(first.Children) > 0 {
		t.Fatalf("%+v", first)
	}
	src.Beside = beside
	r, err := Import(t.Context(), st, src, options())
	if err != nil || !r.Unchanged || len(r.Children) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A file comes once, whatever its id is; one that grows, once for each state in which it was seen.
func TestImportOnce(t *testing.T) {
	const old = `{"type":"session","id":"%s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n" +
		`{"type":"message","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hi","timestamp":1}}` + "\n"
	line := `{"type":"message","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":"ho","timestamp":1}}` + "\n"
	for _, id := range []string{"o", "../x"} {
		st, seen := newStore(t), map[string]string{}
		text := fmt.Sprintf(old, id)
		for range 3 {
			for again := range 2 {
				r, err := Import(t.Context(), st, interop.Bytes("f", []byte(text)), options())
				if err != nil || r.Unchanged != (again == 1) || again == 1 && seen[text] != r.Session {
					t.Fatalf("id %q: %+v, %v", id, r, err)
				}
				seen[text] = r.Session
			}
			text += line
		}
	}
}

// A parent's id that is too long stays in the header alone.
func TestLongParent(t *testing.T) {
	st := newStore(t)
	text := fmt.Sprintf(`{"type":"session","version":3,"id":"o","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","parentSession":%q}`+"\n", "/"+strings.Repeat("deep/", 100)) +
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hi","timestamp":1}}` + "\n"
	r, err := Import(t.Context(), st, interop.Bytes("f", []byte(text)), options())
	if err != nil || r.Entries != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	var out bytes.Buffer
	if err := st.Export(t.Context(), r.Session, &out); err != nil || out.String() != text {
		t.Errorf("%s, %v", &out, err)
	}
}

// The result of the call that started an agent has the agent's id in its details, and the agent's session has that id
// after "agent-", and is an agent's: by these a program finds the call of an agent.
func TestCallOfAnAgent(t *testing.T) {
	st := newStore(t)
	got, err := Import(t.Context(), st, FromFile(agents(t, said(1), "")), options())
	if err != nil || len(got.Children) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	s, err := st.Open(t.Context(), got.Session, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var calls []string
	for e, err := range s.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		var says struct {
			Message struct {
				Role, ToolCallID string
				Details          struct{ AgentID string }
			}
		}
		if err := json.Unmarshal(e.Raw, &says); err != nil {
			t.Fatal(err)
		}
		if m := says.Message; m.Role == "toolResult" && "agent-"+m.Details.AgentID == got.Children[0] {
			calls = append(calls, m.ToolCallID)
		}
	}
	if len(calls) != 1 || calls[0] != "t1" {
		t.Errorf("calls %v of agent %s", calls, got.Children[0])
	}
	for sum, err := range st.List(t.Context(), coppice.ListOptions{Parent: got.Session}) {
		if err != nil || sum.ID != got.Children[0] || sum.Relation != "agent" {
			t.Errorf("%+v, %v", sum, err)
		}
	}
}

// A rollout of Codex that is packed, and unpacked again, is one session, which grows.
func TestPackedRollout(t *testing.T) {
	plain, err := os.ReadFile("../../interop/codex/testdata/older.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	pack := func(p []byte) []byte {
		w, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		return w.EncodeAll(p, nil)
	}
	lines := bytes.SplitAfter(bytes.TrimSpace(plain), []byte("\n"))
	less := bytes.Join(lines[:len(lines)-4], nil)
	st, session := newStore(t), ""
	for i, file := range [][]byte{less, pack(less), less, plain, pack(plain), plain} {
		o := options()
		o.Grow = true
		r, err := Import(t.Context(), st, interop.Bytes("f", file), o)
		if err != nil {
			t.Fatal(err)
		}
		if session == "" {
			session = r.Session
		}
		if r.Session != session || r.Unchanged != (i != 0 && i != 3) || r.Grew != (i == 3) {
			t.Errorf("import %d: session %s, unchanged %v, grew %v", i, r.Session, r.Unchanged, r.Grew)
		}
	}
	if n := sessions(t, st); n != 1 {
		t.Errorf("%d sessions", n)
	}
}
