package coppice_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// The tests of this file call the library as adapters of other frameworks would (docs/adr/0028). Each sketch has the
// calls of its framework's plug point, and nothing of the framework.

// kindOf are the JSON of custom entries of one kind on the way to the head, root first.
func kindOf(t testing.TB, s *coppice.Session, kind string) []string {
	t.Helper()
	var list []string
	for _, e := range collect(t, s.Path(context.Background(), "")) {
		var v struct {
			CustomType string
			Data       json.RawMessage
		}
		ok(t, e.Decode(&v))
		if v.CustomType == kind {
			list = append(list, string(v.Data))
		}
	}
	slices.Reverse(list)
	return list
}

// Claude's SessionStore: a batch of entries and the folded summary are one commit; load returns the entries unchanged;
// summaries of a project come with the listing; subpaths are sessions of their own.
func TestClaudeSessionStore(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		ctx := t.Context()
		appendTo := func(id, project, parent string, fold func(prev obj) obj, lines ...string) {
			s := must(st.OpenOrCreate(ctx, id, &coppice.SessionOptions{
				Parent: parent, Meta: map[string]string{"project": project},
			}))(t)
			var turn coppice.Turn
			for _, line := range lines {
				d := entry.Custom("claude", json.RawMessage(line))
				var known struct{ UUID string }
				ok(t, json.Unmarshal([]byte(line), &known))
				d.ID = known.UUID // "" = an entry without one: a title, a mode
				turn.Entries = append(turn.Entries, d)
			}
			if fold != nil {
				var prev obj
				ok(t, s.Doc("summary", &prev))
				turn.Docs = obj{"summary": fold(prev)}
			}
			must(s.Commit(ctx, turn))(t)
			ok(t, s.Close())
		}
		fold := func(prev obj) obj {
			n, _ := prev["n"].(float64)
			return obj{"n": n + 1}
		}
		lines := []string{
			`{"uuid":"u-1","type":"user","parentUuid":null}`, `{"type":"custom-title","customTitle":"T"}`,
			`{"uuid":"u-2","type":"assistant","parentUuid":"u-1"}`,
		}
		appendTo("one", "p", "", fold, lines[:2]...)
		appendTo("one", "p", "", fold, lines[2])
		appendTo("two", "p", "", fold, `{"uuid":"u-9","type":"user"}`)
		appendTo("other", "q", "", fold, `{"uuid":"u-9","type":"user"}`)
		appendTo("one.sub", "p", "one", nil, `{"uuid":"u-5","type":"user"}`)
		same(t, "load", kindOf(t, open(t, st, "one"), "claude"), fmt.Sprint(lines))
		if _, err := st.Open(ctx, "never", nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("load of what was never written: %v", err)
		}
		var summaries []string
		for _, sum := range collect(t, st.List(ctx, coppice.ListOptions{
			Meta: map[string]string{"project": "p"}, Docs: []string{"summary"},
		})) {
			if sum.Parent == "" {
				summaries = append(summaries, fmt.Sprintf("%s %s", sum.ID, sum.Docs["summary"]))
			}
		}
		same(t, "listSessionSummaries", summaries, `[two {"n":1} one {"n":2}]`)
		subkeys := collect(t, st.List(ctx, coppice.ListOptions{Parent: "one"}))
		same(t, "listSubkeys", len(subkeys) == 1 && subkeys[0].ID == "one.sub", true)
		for _, sub := range subkeys { // delete cascades
			ok(t, st.Delete(ctx, sub.ID))
		}
		ok(t, st.Delete(ctx, "one"))
		same(t, "listSessions", len(collect(t, st.List(ctx, coppice.ListOptions{}))), 2)
	})
}

// OpenAI's Session: getItems, addItems, popItem, clearSession, and transactions with an operation id.
func TestOpenAISession(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		ctx := t.Context()
		s := create(t, st, "s", nil)
		add := func(key string, list ...string) (coppice.Receipt, error) {
			turn := coppice.Turn{Key: key}
			for _, it := range list {
				turn.Entries = append(turn.Entries, entry.Custom("item", json.RawMessage(it)))
			}
			return s.Commit(ctx, turn)
		}
		pop := func() string {
			for e, err := range s.Path(ctx, "") {
				ok(t, err)
				must(s.Branch(ctx, e.ParentID, nil))(t) // the item stays on its branch
				var v struct{ Data json.RawMessage }
				ok(t, e.Decode(&v))
				return string(v.Data)
			}
			return ""
		}
		must(add("", `1`, `2`, `3`))(t)
		same(t, "getItems", kindOf(t, s, "item"), "[1 2 3]")
		same(t, "popItem", pop(), "3")
		must(add("", `4`))(t)
		same(t, "getItems", kindOf(t, s, "item"), "[1 2 4]")
		first := must(add("op-1", `5`, `6`))(t)
		again := must(add("op-1", `5`, `6`))(t)
		same(t, "append_items twice", again.Repeated && again.Commit == first.Commit, true)
		if _, err := add("op-1", `7`); !errors.Is(err, coppice.ErrKeyReused) {
			t.Errorf("the same operation with other items: %v", err)
		}
		// replace_suffix: the replacement grows from before the suffix, in one commit that a second call repeats
		path := collect(t, s.Path(ctx, ""))
		suffix := coppice.Turn{Key: "op-2", Base: first.Commit, Entries: []transcript.Draft{entry.Custom("item", 9)}}
		suffix.Entries[0].Parent = path[1].ParentID
		must(s.Commit(ctx, suffix))(t)
		same(t, "repeated", must(s.Commit(ctx, suffix))(t).Repeated, true)
		same(t, "replace_suffix", kindOf(t, s, "item"), "[1 2 4 9]")
		must(s.Branch(ctx, "", nil))(t)
		same(t, "clearSession", kindOf(t, s, "item"), "[]")
		same(t, "popItem of none", pop(), "")
		ok(t, s.Close())
		s = open(t, st, "s")
		same(t, "reopened", kindOf(t, s, "item"), "[]")
		must(add("", `10`))(t)
		same(t, "getItems", kindOf(t, s, "item"), "[10]")
	})
}

// graphStep is what a checkpointer stores of a step.
type graphStep struct {
	NS         string         `json:"ns"`
	Parent     string         `json:"parent,omitempty"`
	Metadata   map[string]any `json:"metadata"`
	Checkpoint string         `json:"checkpoint"`
}

// LangGraph's checkpointer: put, putWrites, getTuple, list with filter, before and limit, deleteThread.
func TestLangGraphCheckpointer(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		ctx := t.Context()
		on := func(thread string, turn coppice.Turn) {
			s := must(st.OpenOrCreate(ctx, thread, nil))(t)
			must(s.Commit(ctx, turn))(t)
			ok(t, s.Close())
		}
		put := func(thread, id string, c graphStep) {
			d := entry.Custom("checkpoint", c)
			d.ID, d.Parent = id, c.Parent // a put under an old parent is a branch
			on(thread, coppice.Turn{Entries: []transcript.Draft{d}})
		}
		putWrites := func(thread, id, task string, writes ...any) {
			var turn coppice.Turn
			for i, w := range writes {
				d := entry.Custom("write", obj{"checkpoint": id, "task": task, "idx": i, "value": w})
				d.Parent, turn.Key = id, "writes/"+id+"/"+task // insert if absent
				turn.Entries = append(turn.Entries, d)
			}
			on(thread, turn)
		}
		put("t1", "c1", graphStep{Metadata: obj{"source": "input", "step": -1}, Checkpoint: "A"})
		put("t1", "c2", graphStep{Parent: "c1", Metadata: obj{"source": "loop", "step": 0}, Checkpoint: "B"})
		putWrites("t1", "c2", "task", "x", "y")
		putWrites("t1", "c2", "task", "x", "y")
		put("t1", "c3", graphStep{Parent: "c1", Metadata: obj{"source": "fork", "step": 0}, Checkpoint: "C"})
		put("t2", "c4", graphStep{NS: "sub", Metadata: obj{"source": "loop", "step": 0}, Checkpoint: "D"})
		list := func(o coppice.QueryOptions) string {
			o.Type, o.Custom, o.Newest = "custom", "checkpoint", true
			var got []string
			for _, m := range collect(t, st.Query(ctx, o)) {
				got = append(got, m.Session+"/"+m.Entry.ID)
			}
			return strings.Join(got, " ")
		}
		same(t, "list", list(coppice.QueryOptions{}), "t2/c4 t1/c3 t1/c2 t1/c1")
		same(t, "of a thread", list(coppice.QueryOptions{Sessions: []string{"t1"}, Limit: 2}), "t1/c3 t1/c2")
		same(t, "before", list(coppice.QueryOptions{Sessions: []string{"t1"}, Before: "c3"}), "t1/c2 t1/c1")
		same(t, "filter", list(coppice.QueryOptions{Match: obj{"data.metadata.source": "loop", "data.metadata.step": 0}}), "t2/c4 t1/c2")
		same(t, "of a namespace", list(coppice.QueryOptions{Match: obj{"data.ns": ""}}), "t1/c3 t1/c2 t1/c1")
		// getTuple: by id, its parent, and its pending writes
		s := open(t, st, "t1")
		e := must(s.Entry(ctx, "c2"))(t)
		same(t, "parent", e.ParentID, "c1")
		var writes []string
		for _, m := range collect(t, st.Query(ctx, coppice.QueryOptions{
			Sessions: []string{"t1"}, Type: "custom", Custom: "write", Match: obj{"data.checkpoint": "c2"},
		})) {
			var v struct{ Data struct{ Value string } }
			ok(t, m.Entry.Decode(&v))
			writes = append(writes, v.Data.Value)
		}
		same(t, "pendingWrites", writes, "[x y]")
		ok(t, st.Delete(ctx, "t1"))
		same(t, "deleteThread", list(coppice.QueryOptions{}), "t2/c4")
	})
}

// Strands' Storage: each key is a session whose document is the value; list is by prefix of the key, ascending.
func TestStrandsStorage(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		ctx := t.Context()
		id := func(key string) string { return strings.ReplaceAll(key, "/", "--") } // an escape that keeps prefixes
		write := func(key, data string) {
			s := must(st.OpenOrCreate(ctx, id(key), &coppice.SessionOptions{Title: key}))(t)
			must(s.Commit(ctx, coppice.Turn{State: []byte(data)}))(t)
			ok(t, s.Close())
		}
		read := func(key string) (data []byte) {
			s, err := st.Open(ctx, id(key), nil)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			ok(t, err)
			ok(t, s.State(&data))
			ok(t, s.Close())
			return data
		}
		list := func(prefix string) (keys []string) {
			for _, sum := range collect(t, st.List(ctx, coppice.ListOptions{})) {
				if strings.HasPrefix(sum.Title, prefix) {
					keys = append(keys, sum.Title)
				}
			}
			slices.Sort(keys)
			return keys
		}
		write("session/b/latest.json", "1")
		write("session/a/latest.json", "2")
		write("session/a/latest.json", "3")
		write("other", "\x00\xff")
		same(t, "read", string(read("session/a/latest.json")), "3")
		same(t, "bytes", read("other"), []byte("\x00\xff"))
		same(t, "missing", read("none") == nil, true)
		same(t, "list", list("session/"), "[session/a/latest.json session/b/latest.json]")
		old := must(open(t, st, id("session/a/latest.json")).At(ctx, coppice.Target{Seq: 1}))(t)
		var was []byte
		ok(t, old.State(&was))
		same(t, "an earlier version", string(was), "2")
		for range 2 {
			ok(t, st.Delete(ctx, id("session/b/latest.json")))
		}
		same(t, "list", list("session/"), "[session/a/latest.json]")
	})
}

// ADK's session service: events with a delta of the state; app and user state are documents of sessions above, which
// are changed by compare-and-swap; a stale handle is refused.
func TestADKSessionService(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		ctx := t.Context()
		meta := map[string]string{"app": "a", "user": "u"}
		s := create(t, st, "s1", &coppice.SessionOptions{Meta: meta})
		must(s.Commit(ctx, coppice.Turn{Docs: obj{"session": obj{"k": 0}}}))(t)
		// shared changes one document of the state above sessions, and tries again where another host was first
		shared := func(id string, change func(was obj) obj) {
			for {
				h := must(st.OpenOrCreate(ctx, id, &coppice.SessionOptions{Relation: "state"}))(t)
				var was obj
				ok(t, h.Doc("state", &was))
				_, err := h.Commit(ctx, coppice.Turn{Docs: obj{"state": change(was)}})
				if errors.Is(err, coppice.ErrConflict) || errors.Is(err, fs.ErrExist) {
					ok(t, h.Reload(ctx))
					ok(t, h.Close())
					continue
				}
				ok(t, err)
				ok(t, h.Close())
				return
			}
		}
		increment := func(was obj) obj {
			n, _ := was["n"].(float64)
			return obj{"n": n + 1}
		}
		shared("app.a", increment)
		raced := false
		shared("app.a", func(was obj) obj {
			if !raced { // another host, between the read and the write
				raced = true
				shared("app.a", increment)
			}
			return increment(was)
		})
		var app obj
		ok(t, open(t, st, "app.a").Doc("state", &app))
		same(t, "app state", app["n"], 3)
		// AppendEvent on what a session was when it was read
		stale := s.Head().Commit
		event := func(base string, k int) error {
			_, err := s.Commit(ctx, coppice.Turn{
				Base: base, Docs: obj{"session": obj{"k": k}}, Entries: []transcript.Draft{entry.Custom("event", k)},
			})
			return err
		}
		ok(t, event(stale, 1))
		if err := event(stale, 2); !errors.Is(err, coppice.ErrConflict) {
			t.Errorf("a stale handle: %v", err)
		}
		ok(t, event(s.Head().Commit, 3))
		same(t, "events", kindOf(t, s, "event"), "[1 3]")
		var own obj
		ok(t, s.Doc("session", &own))
		same(t, "session state", own["k"], 3)
		recent := coppice.QueryOptions{Sessions: []string{"s1"}, Type: "custom", Custom: "event", Newest: true, Limit: 1}
		for _, m := range collect(t, st.Query(ctx, recent)) { // numRecentEvents
			same(t, "the newest event", strings.Contains(string(m.Entry.Raw), `"data":3`), true)
		}
		same(t, "list", len(collect(t, st.List(ctx, coppice.ListOptions{Meta: meta}))), 1)
	})
}

// The thread list and the history of a chat UI: rename, archive, a cursor, and a tree whose head is stored.
func TestChatThreads(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		ctx := t.Context()
		for i := range 3 {
			s := create(t, st, fmt.Sprint("t", i), &coppice.SessionOptions{Meta: map[string]string{"status": "regular"}})
			say(t, s, "u1", "a1")
			commit(t, s, nil)
			ok(t, s.Close())
		}
		s := open(t, st, "t1")
		must(s.SetInfo(ctx, coppice.InfoChange{Title: new("Named"), Meta: map[string]*string{"status": new("archived")}}))(t)
		message := collect(t, s.Path(ctx, ""))[0]
		edited := must(s.Edit(ctx, message.ID, entry.Assistant("a2")))(t) // regenerate: a sibling, which is the head
		ok(t, s.Close())
		list := func(o coppice.ListOptions) iter.Seq[string] {
			return func(yield func(string) bool) {
				for _, sum := range collect(t, st.List(ctx, o)) {
					if !yield(sum.ID + ":" + sum.Title) {
						return
					}
				}
			}
		}
		regular, archived := map[string]string{"status": "regular"}, map[string]string{"status": "archived"}
		same(t, "archived", slices.Collect(list(coppice.ListOptions{Meta: archived})), "[t1:Named]")
		same(t, "regular", slices.Collect(list(coppice.ListOptions{Meta: regular, Limit: 1})), "[t2:]")
		page := coppice.ListOptions{Meta: regular, Limit: 1}
		page.After = collect(t, st.List(ctx, page))[0].Cursor
		same(t, "next page", slices.Collect(list(page)), "[t0:]")
		s = open(t, st, "t1")
		same(t, "the head of the repository", s.Head().Entry, edited.Entry)
		same(t, "the branch that is shown", texts(t, s), "u1 a2")
		siblings, _ := must(s.Tree(ctx))(t).Siblings(edited.Entry)
		same(t, "versions of the answer", len(siblings), 2)
		must(s.Switch(ctx, message.ID))(t)
		ok(t, s.Close())
		same(t, "the branch that was switched to", texts(t, open(t, st, "t1")), "u1 a1")
	})
}
