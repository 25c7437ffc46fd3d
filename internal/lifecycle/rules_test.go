package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// Nothing is written by Open, Create, Append or any read; a session exists from its first
// commit.
func TestOnlyCommitsWrite(t *testing.T) {
	b := trace.New(memory.New())
	store := newStore(t, b, nil)
	s := create(t, store, "s", nil)
	say(t, s, "u1", "a1")
	_ = texts(t, s)
	_ = must(s.Tree(bg))(t)
	_ = collect(t, s.Entries(bg))
	_ = collect(t, s.Path(bg, ""))
	same(t, "requests of a new session", b.IO(), backend.IO{})
	if _, err := store.Open(bg, "s", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a session without a commit: %v", err)
	}
	commit(t, s, state{Turns: 1})
	b.Reset()
	again := open(t, store, "s")
	say(t, again, "u2")
	_ = texts(t, again)
	_ = must(again.Tree(bg))(t)
	_ = collect(t, again.Entries(bg))
	_ = collect(t, again.Log(bg, coppice.Target{}))
	_ = must(again.At(bg, coppice.Target{Seq: 1}))(t)
	if io := b.IO(); io.Put+io.Append+io.Delete > 0 {
		t.Errorf("written: %+v", io)
	}
}

// The conversation is read-your-writes, committed or not; state and seq change with the acknowledgement.
func TestReadYourWrites(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		say(t, s, "u1")
		commit(t, s, state{Turns: 1})
		id := say(t, s, "a1", "u2")
		same(t, "context", texts(t, s), "u1 a1 u2")
		same(t, "head", s.Head().Entry, id[1])
		same(t, "seq", s.Head().Seq, 1)
		tree := must(s.Tree(bg))(t)
		same(t, "tree", len(slices.Collect(tree.Path(id[1]))), 3)
		same(t, "entries", len(collect(t, s.Entries(bg))), 3)
		path := ids(collect(t, s.Path(bg, "")))
		same(t, "path", path[:2], []string{id[1], id[0]})
		other := open(t, store, "s")
		same(t, "another handle", texts(t, other), "u1")
	})
}

// A commit includes what was appended before the call. While its request is under way, readers see the previous state,
// and an Append waits.
func TestAppendWhileACommitIsSent(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		say(t, s, "u2")
		sent := following(bg, t, s, turnsTo(2))
		write := r.gate.next(t)
		appending := begin(func() ([]string, error) { return s.Append(bg, entry.User("u3")) })
		if appending.ended(t) {
			t.Error("Append did not wait")
		}
		same(t, "context meanwhile", texts(t, s), "u1 a1 u2")
		same(t, "state meanwhile", stateOf(t, s), state{Turns: 1})
		tree := must(s.Tree(bg))(t)
		same(t, "tree meanwhile", len(slices.Collect(tree.Path(tree.Head()))), 3)
		write.pass()
		r.gate.open()
		receipt, err := sent.wait(t)
		ok(t, err)
		same(t, "entries of the first", receipt.Entries, 1)
		must(appending.wait(t))(t)
		same(t, "state after", stateOf(t, s), state{Turns: 2})
		same(t, "context after", texts(t, s), "u1 a1 u2 u3")
		same(t, "entries of the second", commit(t, s, nil).Entries, 1)
		r.agrees(t, s)
	})
}

// State is marshalled before anything else; nil = unchanged; null clears.
func TestState(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		same(t, "none", stateOf(t, s), state{Turns: -1})
		v := &state{Turns: 1}
		commit(t, s, v)
		v.Turns = 99
		same(t, "kept", stateOf(t, s), state{Turns: 1})
		commit(t, s, nil)
		same(t, "unchanged", stateOf(t, s), state{Turns: 1})
		must(s.Commit(bg, coppice.Turn{Manager: map[string]int{"removed": 3}}))(t)
		same(t, "unchanged by a manager", stateOf(t, s), state{Turns: 1})
		commit(t, s, json.RawMessage("null"))
		same(t, "cleared", stateOf(t, open(t, store, "s")), state{Turns: -1})
		view := must(s.At(bg, coppice.Target{}))(t)
		same(t, "manager", string(view.Document().Manager), `{"removed":3}`)
		commit(t, s, json.RawMessage(`{"big":9007199254740993.10,"nil":null,"":[1e400]}`))
		var raw json.RawMessage
		ok(t, open(t, store, "s").State(&raw))
		same(t, "number literals", string(raw), `{"big":9007199254740993.10,"nil":null,"":[1e400]}`)
		if _, err := s.Commit(bg, coppice.Turn{State: func() {}}); err == nil {
			t.Error("a state that is no JSON was taken")
		}
		p := []byte{0, 1, 255}
		commit(t, s, p)
		var back []byte
		ok(t, s.State(&back))
		same(t, "bytes", back, p)
	})
}

// Messages are objects and are kept byte for byte; anything else is refused, and the call has no effect.
func TestMessages(t *testing.T) {
	store := newStore(t, memory.New(), nil)
	s := create(t, store, "s", nil)
	raw := `{"role":"user","content":[{"type":"text","text":"hi é <b>"}],"x":1.0e5}`
	must(s.Append(bg, entry.Message(json.RawMessage(raw))))(t)
	for _, bad := range []any{"text", []string{"a"}, []byte("{}"), 5, nil} {
		if _, err := s.Append(bg, entry.User("before"), entry.Message(bad)); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
	commit(t, s, nil)
	c := must(open(t, store, "s").Context(bg))(t)
	same(t, "messages", len(c.Messages), 1)
	same(t, "raw", string(c.Messages[0].Raw), raw)
}

// Invalid options are errors of the constructor.
func TestImpossibleOptions(t *testing.T) {
	for _, o := range []coppice.Options{
		{Poll: -1},
		{Writer: strings.Repeat("w", 1000)},
	} {
		if _, err := coppice.New(memory.New(), &o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	if _, err := coppice.New(nil, nil); err == nil {
		t.Error("no backend was taken")
	}
	store := newStore(t, memory.New(), nil)
	if _, err := store.Create("x", &coppice.SessionOptions{Profile: "none"}); err == nil {
		t.Error("an unknown profile was taken")
	}
	for _, id := range []string{".", "..", " ", "a/b", `a\b`, "a b", ".a", "a.", strings.Repeat("x", 129)} {
		if _, err := store.Create(id, nil); err == nil {
			t.Errorf("id %q was taken", id)
		}
		if err := store.Delete(bg, id); err == nil {
			t.Errorf("id %q could be deleted", id)
		}
		if _, err := store.Open(bg, id, nil); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("id %q: %v", id, err)
		}
	}
	if err := store.Delete(bg, ""); err == nil {
		t.Error("the empty id could be deleted")
	}
	for _, reason := range []string{"Turn", "a b", strings.Repeat("x", 33), "delete", "import"} {
		s := create(t, store, "", nil)
		if _, err := s.Commit(bg, coppice.Turn{Reason: reason}); err == nil {
			t.Errorf("reason %q was taken", reason)
		}
	}
}

// An iterator yields its error last and once, and break stops reading.
func TestIterators(t *testing.T) {
	store := newStore(t, memory.New(), nil)
	s := create(t, store, "s", nil)
	say(t, s, "u1", "a1", "u2")
	commit(t, s, nil)
	calls := 0
	for range s.Entries(bg) {
		calls++
		break
	}
	same(t, "after break", calls, 1)
	var errs []error
	for _, err := range s.Entries(bg, "nowhere") {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], fs.ErrNotExist) {
		t.Errorf("errors: %v", errs)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	for _, err := range s.Path(ctx, "") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("done context: %v", err)
		}
	}
}

// A done context means no effect.
func TestDoneContext(t *testing.T) {
	store := newStore(t, memory.New(), nil)
	s := create(t, store, "s", nil)
	say(t, s, "u1")
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := s.Append(ctx, entry.User("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	if _, err := s.Commit(ctx, coppice.Turn{}); !errors.Is(err, context.Canceled) {
		t.Errorf("commit: %v", err)
	}
	same(t, "context", texts(t, s), "u1")
	same(t, "entries", commit(t, s, nil).Entries, 1)
}

// After Close every method that can fail returns fs.ErrClosed; Close counts uncommitted entries.
func TestClose(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		say(t, s, "u1")
		commit(t, s, nil)
		say(t, s, "a1", "u2")
		err := s.Close()
		if err == nil || !strings.Contains(err.Error(), "2 entries") {
			t.Errorf("close: %v", err)
		}
		ok(t, s.Close())
		for op, err := range everyError(s) {
			if !errors.Is(err, fs.ErrClosed) {
				t.Errorf("%s: %v", op, err)
			}
		}
		ok(t, store.Close())
		ok(t, store.Close())
		if _, err := store.Open(bg, "s", nil); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("open: %v", err)
		}
	})
}

func everyError(s *coppice.Session) map[string]error {
	first := func(f func(yield func(error))) error {
		var out error
		f(func(err error) { out = errors.Join(out, err) })
		return out
	}
	errs := map[string]error{}
	_, errs["append"] = s.Append(bg, entry.User("x"))
	_, errs["commit"] = s.Commit(bg, coppice.Turn{})
	_, errs["context"] = s.Context(bg)
	_, errs["claim"] = s.Claim(bg)
	_, errs["settle"] = s.Settle(bg, "")
	errs["discard"] = s.Discard(bg)
	errs["reload"] = s.Reload(bg)
	errs["state"] = s.State(new(state))
	errs["set context"] = s.SetContext(bg)
	_, errs["tree"] = s.Tree(bg)
	_, errs["entry"] = s.Entry(bg, "x")
	_, errs["branch"] = s.Branch(bg, "", nil)
	_, errs["switch"] = s.Switch(bg, "main")
	_, errs["edit"] = s.Edit(bg, "x", entry.User("x"))
	_, errs["label"] = s.Label(bg, "x", "x")
	_, errs["at"] = s.At(bg, coppice.Target{})
	_, errs["rollback"] = s.Rollback(bg, coppice.Target{})
	_, errs["fork"] = s.Fork(bg, coppice.Target{}, "", nil)
	_, errs["snapshot"] = s.Snapshot(bg, "")
	_, errs["prune"] = s.Prune(bg, snapshot.Retention{})
	errs["entries"] = first(func(yield func(error)) {
		for _, err := range s.Entries(bg) {
			yield(err)
		}
	})
	errs["path"] = first(func(yield func(error)) {
		for _, err := range s.Path(bg, "") {
			yield(err)
		}
	})
	errs["log"] = first(func(yield func(error)) {
		for _, err := range s.Log(bg, coppice.Target{}) {
			yield(err)
		}
	})
	errs["snapshots"] = first(func(yield func(error)) {
		for _, err := range s.Snapshots(bg) {
			yield(err)
		}
	})
	errs["watch"] = first(func(yield func(error)) {
		for _, err := range s.Watch(bg, 0) {
			yield(err)
		}
	})
	return errs
}

// Hooks run with no lock held, see everything, and can stop a call before anything is queued.
func TestHooks(t *testing.T) {
	o := fixedOptions()
	var receipts []coppice.Receipt
	o.Hooks = coppice.Hooks{
		BeforeAppend: func(_ context.Context, d *transcript.Draft) error {
			if strings.Contains(string(d.Body), "forbidden") {
				return errors.New("refused")
			}
			d.Body = json.RawMessage(strings.ReplaceAll(string(d.Body), "secret", "[gone]"))
			return nil
		},
		AfterCommit: func(s *coppice.Session, r coppice.Receipt) {
			_ = s.Head()
			receipts = append(receipts, r)
		},
	}
	b := memory.New()
	store := newStore(t, b, o)
	s := create(t, store, "s", nil)
	id := say(t, s, "u1 secret", "a1")
	if _, err := s.Append(bg, entry.User("fine"), entry.User("forbidden")); err == nil {
		t.Error("the hook did not stop the call")
	}
	same(t, "context", texts(t, s), "u1 [gone] a1")
	commit(t, s, nil)
	same(t, "receipts", len(receipts), 1)
	commit(t, s, nil)
	same(t, "receipts after a commit of nothing", len(receipts), 1)
	must(s.Branch(bg, id[0], &coppice.BranchOptions{Summary: "what was tried: secret"}))(t)
	same(t, "context after a move", len(must(s.Context(bg))(t).Messages), 2)
	for info, err := range b.List(bg, backend.ListOptions{}) {
		ok(t, err)
		p, _, err := b.Get(bg, info.Key, backend.Range{})
		ok(t, err)
		if strings.Contains(string(p), "secret") {
			t.Errorf("%s holds what the hook removed", info.Key)
		}
	}
	for e := range s.Entries(bg) {
		if strings.Contains(string(e.Raw), "secret") {
			t.Errorf("entry %s", e.Raw)
		}
	}
}

// With DeferUntilAssistant a session writes nothing before the first assistant message, as in pi.
func TestDeferUntilAssistant(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", &coppice.SessionOptions{DeferUntilAssistant: true})
		say(t, s, "u1")
		r := must(s.Commit(bg, coppice.Turn{State: state{Turns: 1}, Docs: map[string]any{"d": 1, "first": 1}}))(t)
		same(t, "seq", r.Seq, 0)
		same(t, "commit", r.Commit, "")
		same(t, "entry", r.Entry, s.Head().Entry)
		same(t, "writes", s.IO(), backend.IO{})
		same(t, "state", stateOf(t, s), state{Turns: 1})
		say(t, s, "a1")
		r = must(s.Commit(bg, coppice.Turn{Docs: map[string]any{"d": 2, "last": 2}}))(t)
		same(t, "seq", r.Seq, 1)
		same(t, "entries", r.Entries, 2)
		again := open(t, store, "s")
		docs := must(again.At(bg, coppice.Target{}))(t).Document().Docs
		same(t, "documents", string(docs["d"])+string(docs["first"])+string(docs["last"]), "212")
		same(t, "state", stateOf(t, again), state{Turns: 1})
		same(t, "context", texts(t, again), "u1 a1")

		never := create(t, store, "never", &coppice.SessionOptions{DeferUntilAssistant: true})
		say(t, never, "u1")
		commit(t, never, nil)
		ok(t, never.Close())
		if _, err := store.Open(bg, "never", nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it was written: %v", err)
		}
	})
}

// A turn with a known key is applied once, whichever host repeats it.
func TestIdempotency(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		turn := coppice.Turn{State: state{Turns: 1}, Key: "job-1", Entries: []transcript.Draft{entry.User("u1"), entry.Assistant("a1")}}
		r := must(s.Commit(bg, turn))(t)
		ok(t, s.Close())

		again := open(t, store, "s")
		r2 := must(again.Commit(bg, turn))(t)
		same(t, "receipt", r2.Head, r.Head)
		same(t, "context", texts(t, again), "u1 a1")
		same(t, "state", stateOf(t, again), state{Turns: 1})
		say(t, again, "u2")
		commit(t, again, nil)
		same(t, "context", texts(t, open(t, store, "s")), "u1 a1 u2")
	})
}
