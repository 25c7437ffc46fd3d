package scenarios_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// An explicit context is that list plus later appended entries; it survives a restart, and follows the tree.
func TestSetContext(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		id := say(t, s, "u1", "a1", "u2", "a2")
		commit(t, s, nil)
		inline := itemOf(`{"role":"user", "content":"so far"}`)
		ok(t, s.SetContext(bg, inline, itemFor(id[3])))
		same(t, "context", texts(t, s), "so far a2")
		say(t, s, "u3")
		same(t, "context", texts(t, s), "so far a2 u3")
		same(t, "not saved yet", texts(t, open(t, store, "s")), "u1 a1 u2 a2")
		commit(t, s, nil)
		again := open(t, store, "s")
		c := must(again.Context(bg))(t)
		same(t, "explicit", c.Explicit, true)
		same(t, "leaf", c.Leaf, again.Head().Entry)
		same(t, "entries", []string{c.Messages[0].Entry, c.Messages[1].Entry}, []string{"", id[3]})
		same(t, "context", texts(t, again), "so far a2 u3")
		say(t, again, "a3")
		commit(t, again, nil)
		again = open(t, store, "s")
		same(t, "context", texts(t, again), "so far a2 u3 a3")
		same(t, "a view", texts(t, must(again.At(bg, coppice.Target{Seq: 2}))(t)), "so far a2 u3")
		same(t, "a view before", texts(t, must(again.At(bg, coppice.Target{Seq: 1}))(t)), "u1 a1 u2 a2")

		must(again.Branch(bg, id[1], nil))(t)
		same(t, "state follows the tree", texts(t, again), "u1 a1")
		must(again.Switch(bg, id[3]))(t)
		same(t, "and back", texts(t, again), "so far a2 u3 a3")
		ok(t, again.SetContext(bg))
		same(t, "derived again", texts(t, again), "u1 a1 u2 a2 u3 a3")
		commit(t, again, nil)
		same(t, "reopened", texts(t, open(t, store, "s")), "u1 a1 u2 a2 u3 a3")

		for _, bad := range []transcript.Item{{}, {Entry: id[0], Message: inline.Message}, itemOf(`"text"`), itemOf(`{`), itemOf(``)} {
			if err := again.SetContext(bg, bad); err == nil {
				t.Errorf("%+v was taken", bad)
			}
		}
		if err := again.SetContext(bg, itemFor("nowhere")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an entry that is not there: %v", err)
		}
	})
}

// Entries of an explicit context that are no longer in the window are stored in the checkpoint: a resume stays one
// read.
func TestSetContextBeyondTheWindow(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		id := say(t, s, "u1", "a1", "u2", "a2")
		must(s.Append(bg, entry.Compaction("sum", id[3], 1)))(t)
		commit(t, s, nil)
		s = open(t, store, "s")
		ok(t, s.SetContext(bg, itemFor(id[0]), itemFor(id[3])))
		commit(t, s, nil)
		ok(t, s.Close())
		again := open(t, store, "s")
		before := again.IO()
		same(t, "context", texts(t, again), "u1 a2")
		same(t, "requests", cost(again.IO().Sub(before)), "none")
		c := must(again.Context(bg))(t)
		same(t, "entry", c.Messages[0].Entry, id[0])
	})
}

// A context is a copy: its caller may change it.
func TestContextIsACopy(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		say(t, s, "u1")
		c := must(s.Context(bg))(t)
		for i := range c.Messages[0].Raw {
			c.Messages[0].Raw[i] = 'x'
		}
		same(t, "context", texts(t, s), "u1")
		commit(t, s, nil)
		same(t, "reopened", texts(t, open(t, store, "s")), "u1")
	})
}

// The arguments of an open call are those that were appended, including an image, and are a copy.
func TestOpenCallsHoldTheirArguments(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		args := `{"n":12345678901234567890.10,"shot":{"type":"image","mimeType":"image/png","data":"` +
			base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("pixel"), 20_000)) + `"}}`
		must(s.Append(bg, entry.Assistant("", entry.Call("c1", "paste", json.RawMessage(args)))))(t)
		commit(t, s, nil)
		again := open(t, store, "s")
		for range 2 {
			calls := must(again.Context(bg))(t).OpenCalls
			same(t, "arguments", string(calls[0].Arguments), args)
			clear(calls[0].Arguments)
		}
	})
}

// Calls left open by a crash during a tool are reported, and can be answered.
func TestOpenCalls(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		must(s.Append(bg, entry.User("u1"), entry.Assistant("a1", entry.Call("c1", "bash", map[string]any{"command": "ls"}))))(t)
		commit(t, s, nil)
		again := open(t, store, "s")
		c := must(again.Context(bg))(t)
		same(t, "open", c.OpenCalls, []transcript.ToolCall{{
			Entry: again.Head().Entry, ID: "c1", Name: "bash", Arguments: json.RawMessage(`{"command":"ls"}`),
		}})
		must(again.Append(bg, entry.ToolResult("c1", "bash", "interrupted", true)))(t)
		same(t, "answered", len(must(again.Context(bg))(t).OpenCalls), 0)
	})
}

// A handle may use another profile or bound than the session was written with.
func TestOtherProfile(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		aborted := json.RawMessage(`{"role":"assistant","content":[{"type":"text","text":"a1"}],"stopReason":"aborted"}`)
		must(s.Append(bg, entry.User("u1"), entry.Message(aborted)))(t)
		commit(t, s, nil)
		o := &coppice.SessionOptions{Profile: transcript.OMP}
		again := must(store.Open(bg, "s", o))(t)
		c := must(again.Context(bg))(t)
		same(t, "messages", len(c.Messages), 1)
		say(t, again, "u2")
		commit(t, again, nil)
		ok(t, again.Close())
		third := open(t, store, "s")
		before := third.IO()
		same(t, "the session's own by now", len(must(third.Context(bg))(t).Messages), 2)
		same(t, "requests", cost(third.IO().Sub(before)), "none")
		fork := must(third.Fork(bg, coppice.Target{}, "", nil))(t)
		same(t, "a fork's own", len(must(fork.Context(bg))(t).Messages), 2)
	})
}
