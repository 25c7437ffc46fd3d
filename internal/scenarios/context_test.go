package scenarios_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// managed is the state of a conversation manager.
type managed struct {
	Removed  int    `json:"removed,omitempty"`
	Summary  string `json:"summary,omitempty"`
	Response string `json:"response,omitempty"`
}

func managerOf(t testing.TB, s *coppice.Session) (m managed) {
	t.Helper()
	ok(t, json.Unmarshal(must(s.At(bg, coppice.Target{}))(t).Document().Manager, &m))
	return m
}

func items(ids ...string) []transcript.Item {
	var list []transcript.Item
	for _, id := range ids {
		list = append(list, itemFor(id))
	}
	return list
}

// 15: every byte is returned, in the state, in the manager's state, and in a document in a provider's format, whether
// small or large enough to be stored outside of the line.
func TestEveryByteSurvives(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		s := create(t, store, "s", nil)
		var docs []string
		for _, n := range []int{1, 200, 1000} {
			data := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(all), n)))
			docs = append(docs, fmt.Sprintf(`{"role":"user","content":[{"type":"document","title":"d.pdf","source":{"type":"base64","media_type":"application/pdf","data":%q}}]}`, data))
			must(s.Append(bg, entry.Message(json.RawMessage(docs[len(docs)-1]))))(t)
		}
		must(s.Commit(bg, coppice.Turn{State: map[string][]byte{"b": all}, Manager: all}))(t)
		ok(t, s.Close())
		again := open(t, store, "s")
		for i, m := range must(again.Context(bg))(t).Messages {
			same(t, "a document", string(m.Raw) == docs[i], true)
		}
		var v map[string][]byte
		ok(t, again.State(&v))
		same(t, "state", v["b"], all)
		var back []byte
		ok(t, json.Unmarshal(must(again.At(bg, coppice.Target{}))(t).Document().Manager, &back))
		same(t, "manager", back, all)
	})
}

// 16: if the provider's server keeps the conversation, its id is returned, and the messages on the server are not sent
// again, though none is lost.
func TestServerSideConversation(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, _ := grown(t, store, "s", 3, nil)
		must(s.Branch(bg, "", &coppice.BranchOptions{Name: "server"}))(t)
		must(s.Commit(bg, coppice.Turn{State: state{Turns: 3}, Manager: managed{Response: "resp_3"}}))(t)
		again := open(t, store, "s")
		same(t, "response", managerOf(t, again).Response, "resp_3")
		same(t, "to send", texts(t, again), "")
		say(t, again, "u4")
		commit(t, again, nil)
		same(t, "to send", texts(t, open(t, store, "s")), "u4")
		same(t, "entries", len(collect(t, again.Entries(bg))), 7)
		must(again.Switch(bg, "main"))(t)
		same(t, "before", texts(t, again), "u1 a1 u2 a2 u3 a3")
	})
}

// 27: a sliding window: the trimmed conversation is returned with its count, not the whole one.
func TestTrimmedConversation(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		var all []string
		for i := 1; i <= 6; i++ {
			all = append(all, say(t, s, fmt.Sprintf("u%d", i), fmt.Sprintf("a%d", i))...)
			removed := max(0, len(all)-4)
			ok(t, s.SetContext(bg, items(all[removed:]...)...))
			must(s.Commit(bg, coppice.Turn{Manager: managed{Removed: removed}}))(t)
			s = open(t, store, "s")
			same(t, "removed", managerOf(t, s).Removed, removed)
			same(t, "messages", len(must(s.Context(bg))(t).Messages), len(all)-removed)
		}
		same(t, "context", texts(t, s), "u5 a5 u6 a6")
		same(t, "transcript", len(collect(t, s.Path(bg, ""))), 12)
	})
}

// 28: pinned messages, then a summary, then the newest ones: returned in this order, each once, and later appended
// messages follow once.
func TestPinnedMessages(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		id := say(t, s, "u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4")
		list := append(items(id[:2]...), itemOf(`{"role":"user","content":"summary"}`))
		ok(t, s.SetContext(bg, append(list, items(id[6:]...)...)...))
		must(s.Commit(bg, coppice.Turn{Manager: managed{Removed: 4, Summary: "summary"}}))(t)
		for i := 5; i < 8; i++ {
			s = open(t, store, "s")
			say(t, s, fmt.Sprintf("u%d", i))
			commit(t, s, nil)
		}
		s = open(t, store, "s")
		same(t, "context", texts(t, s), "u1 a1 summary u4 a4 u5 u6 u7")
		same(t, "manager", managerOf(t, s), managed{Removed: 4, Summary: "summary"})
	})
}

// 29: a context that overflows during a turn: the reduced conversation is returned, also if the turn's other entries
// were appended after the reduction.
func TestReducedInMidTurn(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, _ := grown(t, store, "s", 5, nil)
		id := say(t, s, "u6")
		must(s.Append(bg, entry.Compaction("reduced", id[0], 9000)))(t)
		say(t, s, "a6")
		want := must(s.Context(bg))(t)
		commit(t, s, state{Turns: 6})
		got := must(open(t, store, "s").Context(bg))(t)
		same(t, "messages", len(got.Messages), 3)
		for i, m := range got.Messages {
			same(t, "message", string(m.Raw), string(want.Messages[i].Raw))
		}
		same(t, "transcript", len(collect(t, s.Path(bg, ""))), 13)
	})
}

// 30: a result that was moved out of the context can be fetched after a resume, is not in the context, and is deleted
// with its session.
func TestOffloadedResult(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		store := newStore(t, b, nil)
		s := create(t, store, "s", nil)
		big := strings.Repeat("a line of output ", 50_000)
		must(s.Append(bg, entry.User("u1"), entry.Assistant("a1", entry.Call("c1", "bash", nil))))(t)
		kept := must(s.Append(bg, entry.Custom("offloaded", big)))(t)[0]
		must(s.Append(bg, entry.ToolResult("c1", "bash", "kept as "+kept, false)))(t)
		commit(t, s, nil)
		for i := range 300 { // until it is in a segment
			say(t, s, fmt.Sprintf("u%d", i))
			if i%30 == 0 {
				commit(t, s, nil)
			}
		}
		commit(t, s, nil)
		ok(t, s.Close())
		again := open(t, store, "s")
		if strings.Contains(texts(t, again), "a line of output") {
			t.Error("it is in the context")
		}
		var v struct {
			Data string `json:"data"`
		}
		ok(t, must(again.Entry(bg, kept))(t).Decode(&v))
		same(t, "fetched", v.Data == big, true)
		ok(t, store.Delete(bg, "s"))
		same(t, "left", holders(t, b, "a line of output"), []string(nil))
	})
}

// 31: for any history, answering the calls of OpenCalls results in one result for each call.
func TestToolPairs(t *testing.T) {
	call := func(ids ...string) transcript.Draft {
		var calls []entry.Block
		for _, id := range ids {
			calls = append(calls, entry.Call(id, "bash", nil))
		}
		return entry.Assistant("a", calls...)
	}
	result := func(id string) transcript.Draft { return entry.ToolResult(id, "bash", "r-"+id, false) }
	for name, c := range map[string]struct {
		history []transcript.Draft
		open    string
	}{
		"valid":             {[]transcript.Draft{entry.User("u"), call("1", "2"), result("2"), result("1"), entry.Assistant("a")}, ""},
		"trailing":          {[]transcript.Draft{entry.User("u"), call("1")}, "1"},
		"partial":           {[]transcript.Draft{entry.User("u"), call("1", "2", "3"), result("2")}, "1 3"},
		"several":           {[]transcript.Draft{entry.User("u"), call("1"), entry.User("u"), call("2"), entry.User("u")}, "1 2"},
		"orphan first":      {[]transcript.Draft{result("0"), entry.User("u"), call("1")}, "1"},
		"a result twice":    {[]transcript.Draft{entry.User("u"), call("1"), result("1"), result("1")}, ""},
		"stale id":          {[]transcript.Draft{entry.User("u"), call("1"), result("9")}, "1"},
		"after compaction":  {[]transcript.Draft{entry.User("u"), call("1"), entry.User("u")}, "1"},
		"nothing to answer": {[]transcript.Draft{entry.User("u")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, store *coppice.Store) {
				s := create(t, store, "s", nil)
				must(s.Append(bg, c.history...))(t)
				commit(t, s, nil)
				s = open(t, store, "s")
				var left []string
				for _, call := range must(s.Context(bg))(t).OpenCalls {
					left = append(left, call.ID)
					must(s.Append(bg, entry.ToolResult(call.ID, call.Name, "interrupted", true)))(t)
				}
				same(t, "open", strings.Join(left, " "), c.open)
				commit(t, s, nil)
				again := must(open(t, store, "s").Context(bg))(t)
				same(t, "open after the answers", len(again.OpenCalls), 0)
				same(t, "messages", len(again.Messages), len(c.history)+len(left))
			})
		})
	}
}

// 31: providers that number the calls of each turn from 0 use an id twice: each use is a separate call.
func TestCallIDUsedAgain(t *testing.T) {
	call := entry.Assistant("a", entry.Call("1", "bash", nil))
	result := entry.ToolResult("1", "bash", "r", false)
	for name, c := range map[string]struct {
		history []transcript.Draft
		open    int // the entry with an open call
	}{
		"the first is answered":  {[]transcript.Draft{call, result, call}, 2},
		"the second is answered": {[]transcript.Draft{call, entry.User("u"), call, result}, 0},
	} {
		s := create(t, newStore(t, memory.New(), nil), "s", nil)
		id := must(s.Append(bg, c.history...))(t)
		calls := must(s.Context(bg))(t).OpenCalls
		same(t, name, calls, []transcript.ToolCall{{
			Entry: id[c.open], ID: "1", Name: "bash", Arguments: json.RawMessage("{}"),
		}})
	}
}

// 33: a run is resumed in the middle: finished work is not repeated, parallel nodes and the sessions of sub-graphs all
// exist, and a finished run starts afresh.
func TestResumeMidRun(t *testing.T) {
	type run struct {
		Done, Pending []string
		Round         int
	}
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "run", nil)
		say(t, s, "u1")
		commit(t, s, run{Pending: []string{"a", "b", "c"}})
		for _, node := range []string{"a", "b"} { // a and b in separate processes, c never ran
			sub := create(t, store, "run."+node, &coppice.SessionOptions{Parent: "run"})
			say(t, sub, "u-"+node)
			commit(t, sub, nil)
			ok(t, sub.Close())
		}
		must(s.Commit(bg, coppice.Turn{State: run{Done: []string{"a", "b"}, Pending: []string{"c"}}, Reason: "node", Key: "node-b"}))(t)

		again := open(t, store, "run")
		var v run
		ok(t, again.State(&v))
		same(t, "pending", v.Pending, []string{"c"})
		for _, node := range v.Done {
			sub := open(t, store, "run."+node)
			same(t, "sub-graph", texts(t, sub)+" "+sub.Info().Parent, "u-"+node+" run")
		}
		if _, err := store.Open(bg, "run.c", nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a node that never ran: %v", err)
		}
		r := must(again.Commit(bg, coppice.Turn{State: run{Done: []string{"a", "b"}, Pending: []string{"c"}}, Reason: "node", Key: "node-b"}))(t)
		same(t, "a node that reports twice", r.Seq, again.Head().Seq)
		ok(t, again.State(&v))
		same(t, "done once", v.Done, []string{"a", "b"})
		must(again.Branch(bg, "", nil))(t)
		commit(t, again, run{Pending: []string{"a", "b", "c"}, Round: 2})
		same(t, "a new run", texts(t, open(t, store, "run")), "")
	})
}
