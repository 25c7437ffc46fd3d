package strands

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/sessiontest"
)

// imported imports a folder, and returns the results by file, and the files that failed.
func imported(
	t *testing.T, st *coppice.Store, root fs.FS, clock *importer.Clock,
) (map[string]importer.Result, []string) {
	t.Helper()
	all, failed := map[string]importer.Result{}, []string(nil)
	err := Import(t.Context(), st, root, Options{Clock: clock, Done: func(r importer.Result, err error) error {
		if err != nil {
			failed = append(failed, err.Error())
		}
		all[r.File] = r
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return all, failed
}

// files returns a copy of a folder in memory.
func files(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	m := fstest.MapFS{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		m[filepath.ToSlash(rel)] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// originals returns the messages on the path to an entry as the framework had them.
func originals(t *testing.T, s *coppice.Session, leaf string) (ids, texts []string) {
	t.Helper()
	for e, err := range s.Path(t.Context(), leaf) {
		if err != nil {
			t.Fatal(err)
		}
		if text := rawjson.Field(e.Raw, "original"); text != nil {
			ids, texts = append(ids, e.ID), append(texts, string(text))
		}
	}
	slices.Reverse(ids)
	slices.Reverse(texts)
	return ids, texts
}

const guide, packer = "session_trip/agents/agent_guide", "session_trip/agents/agent_packer"

func TestPython(t *testing.T) {
	clock := importer.NewClock(func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) })
	st := sessiontest.NewStore(t, memory.New(), &coppice.Options{Now: clock.Now})
	root := files(t, "testdata/python")
	all, failed := imported(t, st, root, clock)
	if len(all) != 2 || failed != nil {
		t.Fatalf("%v, %v", all, failed)
	}
	r := all[guide]
	if r.Entries != 6 || r.Messages != 6 || len(r.Diagnostics) != 1 || r.Diagnostics[0].Kind != "redacted" {
		t.Errorf("%+v", r)
	}
	s := sessiontest.Open(t, st, r.Session)
	var state json.RawMessage
	if err := s.State(&state); err != nil || !rawjson.Same(state, root[guide+"/agent.json"].Data) {
		t.Errorf("state %s, %v", state, err)
	}
	_, texts := originals(t, s, s.Head().Entry)
	for n, text := range texts {
		file := root[fmt.Sprintf("%s/messages/message_%d.json", guide, n)].Data
		want := rawjson.Field(file, "message")
		if n == 4 {
			want = rawjson.Field(file, "redact_message")
		}
		if text != string(rawjson.AppendCompact(nil, want)) {
			t.Errorf("message %d is %s, want %s", n, text, want)
		}
	}
	info, later := s.Info(), time.Date(2026, 11, 28, 5, 0, 0, 0, time.UTC)
	if info.Title != "trip guide" || info.Updated.After(later) || len(texts) != 5 {
		t.Errorf("%q, %v, %d messages", info.Title, info.Updated, len(texts))
	}
	c, err := s.Context(t.Context())
	said := ""
	for _, m := range c.Messages {
		said += m.Text() + "|"
	}
	if err != nil || !strings.Contains(said, "Kyoto, at 9:02.") || strings.Contains(said, "4929") {
		t.Errorf("%q, %v", said, err)
	}

	all, _ = imported(t, st, root, clock)
	now := sessiontest.Open(t, st, r.Session).Head()
	if again := all[guide]; !again.Unchanged || again.Added != 0 || now != s.Head() {
		t.Errorf("imported again: %+v", again)
	}
}

// What was added to a folder is appended, also where only the state changed; a changed message is a branch.
func TestPythonGrows(t *testing.T) {
	st := sessiontest.NewStore(t, memory.New(), nil)
	root := files(t, "testdata/python")
	first, _ := imported(t, st, root, nil)
	id := first[packer].Session
	root[packer+"/messages/message_2.json"] = &fstest.MapFile{Data: []byte(
		`{"message": {"role": "user", "content": [{"text": "And shoes?"}]}, "message_id": 2, "redact_message": null}`)}
	all, _ := imported(t, st, root, nil)
	if r := all[packer]; r.Session != id || !r.Grew || r.Added != 1 || r.Entries != 3 {
		t.Errorf("grown: %+v", r)
	}
	root[packer+"/agent.json"] = &fstest.MapFile{Data: []byte(`{"agent_id": "packer", "state": {"bags": 2.50}}`)}
	all, _ = imported(t, st, root, nil)
	var state json.RawMessage
	if err := sessiontest.Open(t, st, id).State(&state); err != nil || !all[packer].Grew ||
		string(state) != `{"agent_id":"packer","state":{"bags":2.50}}` {
		t.Errorf("%+v: state %s, %v", all[packer], state, err)
	}
	root[packer+"/messages/message_1.json"] = &fstest.MapFile{Data: []byte(
		`{"message": {"role": "assistant", "content": [{"text": "Two socks."}]}, "message_id": 1}`)}
	all, _ = imported(t, st, root, nil)
	if r := all[packer]; r.Added != 2 || r.Messages != 3 || r.Branches != 2 {
		t.Errorf("edited: %+v", r)
	}
}

// A damaged or missing file is reported, and everything else is imported.
func TestPythonDamaged(t *testing.T) {
	st := sessiontest.NewStore(t, memory.New(), nil)
	root := files(t, "testdata/python")
	root[guide+"/messages/message_1.json"].Data = root[guide+"/messages/message_1.json"].Data[:40]
	root[guide+"/agent.json"].Data = []byte("[]")
	delete(root, guide+"/messages/message_2.json")
	graph := "session_trip/multi_agents/multi_agent_g"
	root[graph+"/multi_agent.json"] = &fstest.MapFile{Data: []byte(`{"id":"g","n":1.0}`)}
	root["session_empty/session.json"] = &fstest.MapFile{Data: []byte("")}
	all, failed := imported(t, st, root, nil)
	var kinds []string
	for _, d := range all[guide].Diagnostics {
		kinds = append(kinds, d.Kind)
	}
	slices.Sort(kinds)
	if failed != nil || fmt.Sprint(kinds) != "[missing redacted unreadable unreadable]" || all[guide].Messages != 3 ||
		all[guide].BadLines != 2 {
		t.Errorf("%v %v: %+v", failed, kinds, all[guide])
	}
	var state json.RawMessage
	err := sessiontest.Open(t, st, all[graph].Session).State(&state)
	if err != nil || string(state) != `{"id":"g","n":1.0}` {
		t.Errorf("the graph: %s, %v", state, err)
	}
}

// A session that was continued here, or deleted, stays as it is.
func TestUsed(t *testing.T) {
	st := sessiontest.NewStore(t, memory.New(), nil)
	root := files(t, "testdata/python")
	all, _ := imported(t, st, root, nil)
	s := sessiontest.Open(t, st, all[packer].Session)
	if _, err := s.Commit(t.Context(), coppice.Turn{Entries: sessiontest.Drafts("Here now.")}); err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(t.Context(), all[guide].Session); err != nil {
		t.Fatal(err)
	}
	root[packer+"/messages/message_2.json"] = root[packer+"/messages/message_0.json"]
	head := s.Head()
	all, failed := imported(t, st, root, nil)
	r := all[packer]
	if failed != nil || !r.Unchanged || len(r.Diagnostics) != 1 || r.Diagnostics[0].Kind != "in-use" {
		t.Errorf("%v: %+v", failed, r)
	}
	if now := sessiontest.Open(t, st, s.ID()).Head(); now != head || all[guide].Deleted.IsZero() {
		t.Errorf("head %v, want %v; %+v", now, head, all[guide])
	}
}

// idOfA is what the adapter's id() returns for the key session/s/scopes/agent/a/snapshots/snapshot_latest.json.
const idOfA = "strands-72c02a982d2313d5d3eb987cf668335a90d04157"

const snapshotsOfA = "session/s/scopes/agent/a/snapshots"

// The sessions of TypeScript's snapshots are those of the adapter: a snapshot is rebuilt from state and messages.
func TestTypeScript(t *testing.T) {
	st := sessiontest.NewStore(t, memory.New(), nil)
	for _, dir := range []string{"testdata/typescript", "testdata/typescript-grown", "testdata/typescript-grown"} {
		root := files(t, dir)
		before := uint64(0)
		if s, err := st.Open(t.Context(), idOfA, nil); err == nil {
			before = s.Head().Seq
		}
		all, failed := imported(t, st, root, nil)
		if failed != nil || all[snapshotsOfA].Session != idOfA || len(all[snapshotsOfA].Diagnostics) > 0 {
			t.Fatalf("%v: %+v", failed, all)
		}
		if all[snapshotsOfA].Unchanged && sessiontest.Open(t, st, idOfA).Head().Seq != before {
			t.Errorf("%s: unchanged, with commits", dir)
		}
		for name, r := range all {
			file := name
			if name == snapshotsOfA {
				file += "/snapshot_latest.json"
			}
			if got := rebuilt(t, st, r.Session); !rawjson.Same(got, root[file].Data) {
				t.Errorf("%s is rebuilt as %s\nwant %s", file, got, root[file].Data)
			}
		}
		if all, _ := imported(t, st, root, nil); !all[snapshotsOfA].Unchanged {
			t.Errorf("imported again: %+v", all)
		}
	}
	s := sessiontest.Open(t, st, idOfA)
	if _, texts := originals(t, s, s.Head().Entry); len(texts) != 14 {
		t.Errorf("%d messages, want 14", len(texts))
	}
}

// A window that moves drops the first messages of a snapshot, and a summary is a branch: all stay in the session.
func TestTypeScriptWindow(t *testing.T) {
	st := sessiontest.NewStore(t, memory.New(), nil)
	for n, window := range []string{"abcd", "cdef", "cdef", "Sef"} {
		var list []string
		for _, c := range window {
			list = append(list, fmt.Sprintf(`{"role":"user","content":[{"text":"%c"}]}`, c))
		}
		file := `{"scope":"agent","data":{"messages":[` + strings.Join(list, ",") + `],"state":{}}}`
		root := fstest.MapFS{snapshotsOfA + "/snapshot_latest.json": &fstest.MapFile{Data: []byte(file)}}
		all, failed := imported(t, st, root, nil)
		if r := all[snapshotsOfA]; failed != nil || r.Unchanged != (n == 2) {
			t.Errorf("%s: %v, %+v", window, failed, r)
		}
		if got := rebuilt(t, st, idOfA); !rawjson.Same(got, []byte(file)) {
			t.Errorf("%s is rebuilt as %s", window, got)
		}
	}
	if n := sessiontest.Open(t, st, idOfA).Info().Entries; n != 9 {
		t.Errorf("%d entries, want 6, and 3 of the branch", n)
	}
}

// rebuilt makes a snapshot of a session, as the adapter does.
func rebuilt(t *testing.T, st *coppice.Store, id string) []byte {
	t.Helper()
	var state struct {
		Snapshot json.RawMessage
		Of, Leaf string
		Drop     int
	}
	s := sessiontest.Open(t, st, id)
	if err := s.State(&state); err != nil {
		t.Fatal(err)
	}
	if state.Of != "" {
		s = sessiontest.Open(t, st, state.Of)
	}
	_, texts := originals(t, s, state.Leaf)
	data := rawjson.Field(state.Snapshot, "data")
	list := []byte("[" + strings.Join(texts[state.Drop:], ",") + "]")
	return rawjson.WithField(state.Snapshot, "data", rawjson.WithField(data, "messages", list))
}

func TestDetect(t *testing.T) {
	for dir, want := range map[string]bool{
		"testdata/python": true, "testdata/python/session_trip": true, "testdata/typescript": true, ".": true,
	} {
		if got := Detect(os.DirFS(dir)); got != want {
			t.Errorf("%s: %v", dir, got)
		}
	}
	if Detect(fstest.MapFS{"a/session.json": &fstest.MapFile{}, "agents/b": &fstest.MapFile{}}) {
		t.Error("a folder of other files is taken for one of Strands")
	}
}
