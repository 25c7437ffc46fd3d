package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/transcript"
)

// resume opens the session on a machine, and returns its store too.
func (m *machine) resume(o *coppice.SessionOptions) *coppice.Session {
	m.w.t.Helper()
	return must(m.store().Open(m.w.t.Context(), sid, o))(m.w.t)
}

// texts counts the messages of the whole session by their text, in a new handle.
func (w *world) texts() map[string]int {
	w.t.Helper()
	all := map[string]int{}
	for e, err := range w.machine("reader").resume(nil).Entries(w.t.Context()) {
		if err != nil {
			w.t.Fatal(err)
		}
		if m, ok := e.Message(); ok {
			all[m.Text()]++
		}
	}
	return all
}

// onces checks that the session contains each of these texts once, and nothing else.
func (w *world) onces(want ...string) {
	w.t.Helper()
	have := w.texts()
	for _, text := range want {
		if have[text] != 1 {
			w.t.Errorf("%q is there %d times", text, have[text])
		}
	}
	if len(have) != len(want) {
		w.t.Errorf("there are %d messages of %d: %v", len(have), len(want), have)
	}
}

// begun creates a session of one turn, "first".
func (w *world) begun() {
	w.t.Helper()
	s := must(w.machine("founder").store().Create(sid, nil))(w.t)
	must(s.Append(w.t.Context(), entry.User("first")))(w.t)
	must(s.Commit(w.t.Context(), coppice.Turn{State: counter{Turns: 1}}))(w.t)
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// Many hosts resume one session and commit at once: one wins, each other gets an error that names the winner, and
// nothing of theirs is stored until they commit it again with KeepBoth. That keeps every turn as a branch, with its own
// state.
func TestManyHosts(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("KeepBoth=%v", keep), func(t *testing.T) {
			onStores(t, func(t *testing.T, w *world) { manyHosts(w, keep) })
		})
	}
}

func manyHosts(w *world, keep bool) {
	t, ctx := w.t, w.t.Context()
	w.begun()
	const n = 6
	var hosts [n]*coppice.Session
	var got [n]coppice.Receipt
	var errs [n]error
	want := []string{"first"}
	for i := range hosts {
		hosts[i] = w.machine(fmt.Sprintf("host-%d", i)).resume(&coppice.SessionOptions{KeepBoth: keep})
		want = append(want, fmt.Sprintf("turn of %d", i))
		must(hosts[i].Append(ctx, entry.User(want[i+1])))(t)
	}
	together := func(f func(i int)) {
		var all sync.WaitGroup
		for i := range hosts {
			all.Go(func() { f(i) })
		}
		all.Wait()
	}
	together(func(i int) { got[i], errs[i] = hosts[i].Commit(ctx, coppice.Turn{State: counter{Turns: 10 + i}}) })
	won := slices.IndexFunc(got[:], func(r coppice.Receipt) bool { return r.Commit != "" && r.Kept == "" })
	if won < 0 {
		t.Fatalf("nobody won: %v", errs)
	}
	if !keep {
		for i, err := range errs {
			var e *coppice.Error
			switch {
			case i == won:
			case !errors.Is(err, coppice.ErrConflict) || errors.Is(err, coppice.ErrFenced) || !errors.As(err, &e):
				t.Errorf("host %d: %v", i, err)
			case e.Winner == nil || e.Winner.Commit != got[won].Commit || e.Winner.Writer != fmt.Sprintf("host-%d", won):
				t.Errorf("host %d was told that %+v won, not %s", i, e.Winner, got[won].Commit)
			}
		}
		w.onces("first", want[won+1])
		together(func(i int) {
			if i != won {
				got[i], errs[i] = hosts[i].Commit(ctx, coppice.Turn{State: counter{Turns: 10 + i}, KeepBoth: true})
			}
		})
	}
	fresh := w.machine("fresh").resume(nil)
	if fresh.Head().Entry != got[won].Entry || turns(t, fresh) != 10+won {
		t.Errorf("head %s and state %d, want the winner's", fresh.Head().Entry, turns(t, fresh))
	}
	for i, r := range got {
		if errs[i] != nil {
			t.Errorf("host %d: %v", i, errs[i])
		}
		if i == won {
			continue
		}
		if !strings.HasPrefix(r.Kept, "conflict-") {
			t.Errorf("host %d: its turn is kept as %q", i, r.Kept)
			continue
		}
		must(fresh.Switch(ctx, r.Kept))(t)
		if c := must(fresh.Context(ctx))(t); turns(t, fresh) != 10+i || len(c.Messages) != 2 || c.Messages[1].Text() != want[i+1] {
			t.Errorf("on %s: state %d, %d messages", r.Kept, turns(t, fresh), len(c.Messages))
		}
	}
	w.onces(want...)
	w.sound()
}

// A claim fences the previous host: its commit, before its next side effect, is refused, is not kept by the handle's
// KeepBoth, and stores nothing. The turn's own KeepBoth keeps it as a branch and does not take the session: the new
// host commits as before. The newest claim holds.
func TestFencedHost(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.begun()
		old := w.machine("old").resume(&coppice.SessionOptions{KeepBoth: true})
		next := w.machine("next").resume(nil)
		claim := must(next.Claim(ctx))(t)
		effects := 0
		act := func(s *coppice.Session, text string) (coppice.Receipt, error) {
			_, err := s.Append(ctx, entry.User(text))
			if err != nil {
				return coppice.Receipt{}, err
			}
			r, err := s.Commit(ctx, coppice.Turn{State: counter{Turns: 20}, Reason: "before-effect"})
			if err == nil {
				effects++
			}
			return r, err
		}
		_, err := act(old, "of the old host")
		var e *coppice.Error
		if !errors.Is(err, coppice.ErrFenced) || errors.Is(err, coppice.ErrConflict) || !errors.As(err, &e) ||
			e.Winner == nil || e.Winner.Commit != claim.Commit || e.Winner.Writer != "next" || e.Hint == "" {
			t.Fatalf("commit of the old host: %v", err)
		}
		if _, err := old.Commit(ctx, coppice.Turn{}); !errors.Is(err, coppice.ErrFenced) || effects != 0 {
			t.Errorf("once more: %v, %d side effects", err, effects)
		}
		w.onces("first")
		r := must(old.Commit(ctx, coppice.Turn{State: counter{Turns: 20}, KeepBoth: true}))(t)
		if r.Kept == "" || r.Entries != 1 {
			t.Errorf("kept: %+v", r)
		}
		if r, err := act(next, "of the new host"); err != nil || r.Kept != "" || r.IO.Put > 2 {
			t.Errorf("the new host's commit: %+v, %v", r, err)
		}
		fresh := w.machine("fresh").resume(nil)
		if c := must(fresh.Context(ctx))(t); len(c.Messages) != 2 || c.Messages[1].Text() != "of the new host" {
			t.Errorf("the session's context: %d messages", len(c.Messages))
		}
		must(fresh.Switch(ctx, r.Kept))(t)
		if n := turns(t, fresh); n != 20 {
			t.Errorf("state %d of the old host's turn", n)
		}
		must(old.Claim(ctx))(t)
		if _, err := act(next, "too late"); !errors.Is(err, coppice.ErrFenced) {
			t.Errorf("the new host, fenced in its turn: %v", err)
		}
		if err := next.Reload(ctx); err != nil {
			t.Error(err)
		}
		w.onces("first", "of the old host", "of the new host")
		w.sound()
	})
}

// A commit with an unknown outcome, and another host that does nothing meanwhile, commits, or claims. The first host
// refuses further commits until Settle. The turn is in the session once, on the path to the head, or as a branch.
func TestUnknownBetweenHosts(t *testing.T) {
	for _, kind := range kinds {
		for _, other := range []string{"does nothing", "commits", "claims"} {
			t.Run(fmt.Sprintf("%s, the other %s", kind, other), func(t *testing.T) {
				onStores(t, func(t *testing.T, w *world) { unknownBetween(w, kind, other) })
			})
		}
	}
}

func unknownBetween(w *world, kind fault.Kind, other string) {
	t, ctx := w.t, w.t.Context()
	w.begun()
	one := w.machine("one")
	a := one.resume(&coppice.SessionOptions{KeepBoth: true})
	must(a.Append(ctx, entry.User("in doubt")))(t)
	one.dies(kind, putIn("checkpoint_latest/"))
	if _, err := a.Commit(one.ctx, coppice.Turn{State: counter{Turns: 2}}); !errors.Is(err, coppice.ErrCommitUnknown) {
		t.Fatalf("commit: %v", err)
	}
	one.Clear()
	if _, err := a.Commit(ctx, coppice.Turn{}); !errors.Is(err, coppice.ErrInDoubt) || errors.Is(err, coppice.ErrCommitUnknown) {
		t.Errorf("I11: a commit after unknown: %v", err)
	}
	want := []string{"first", "in doubt"}
	b := w.machine("two").resume(nil)
	switch other {
	case "commits":
		want = append(want, "of the other")
		must(b.Append(ctx, entry.User("of the other")))(t)
		must(b.Commit(ctx, coppice.Turn{State: counter{Turns: 3}}))(t)
	case "claims":
		must(b.Claim(ctx))(t)
	}
	head := b.Head()
	late := one.Deliver(ctx)
	applied := kind == fault.After || kind == fault.Late && other == "does nothing"
	if kind == fault.Late && (len(late) != 1 || applied != (late[0] == nil)) {
		t.Errorf("the late commit: %v", late)
	}
	r, err := a.Settle(ctx, "")
	lost := errors.Is(err, coppice.ErrConflict) || errors.Is(err, coppice.ErrFenced)
	if lost {
		r, err = a.Commit(ctx, coppice.Turn{State: counter{Turns: 2}, KeepBoth: true})
	}
	kept := !applied && other != "does nothing"
	if err != nil || kept != (r.Kept != "") || kept != lost || r.Entries != 1 {
		t.Errorf("settled: %+v, %v", r, err)
	}
	w.onces(want...)
	fresh := w.machine("fresh").resume(nil)
	if other != "does nothing" && fresh.Head().Entry != head.Entry {
		t.Errorf("the head is %s, want the other's %s", fresh.Head().Entry, head.Entry)
	}
	if r.Kept != "" {
		must(fresh.Switch(ctx, r.Kept))(t)
	}
	if n := turns(t, fresh); n != 2 && (r.Kept != "" || other != "commits") {
		t.Errorf("state %d of the turn that was in doubt", n)
	}
	if other == "claims" { // Settle does not lift a fence
		if _, err := a.Append(ctx, entry.User("late")); !errors.Is(err, coppice.ErrFenced) {
			t.Errorf("an append after the other's claim: %v", err)
		}
		if _, err := a.Commit(ctx, coppice.Turn{}); !errors.Is(err, coppice.ErrFenced) {
			t.Errorf("a commit after the other's claim: %v", err)
		}
		must(a.Claim(ctx))(t)
	}
	must(a.Append(ctx, entry.User("goes on")))(t)
	must(a.Commit(ctx, coppice.Turn{}))(t)
	w.onces(append(want, "goes on")...)
	w.sound()
}

// A job that another host repeats with the same key is applied once, whatever the outcome of the first try.
func TestJobIsDoneAgain(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			onStores(t, func(t *testing.T, w *world) {
				ctx := t.Context()
				w.begun()
				one := w.machine("one")
				a := one.resume(nil)
				job := coppice.Turn{State: counter{Turns: 2}, Key: "job-7", Entries: []transcript.Draft{entry.User("job")}}
				one.dies(kind, putIn("checkpoint_latest/"))
				if _, err := a.Commit(one.ctx, job); !errors.Is(err, coppice.ErrCommitUnknown) {
					t.Fatalf("commit: %v", err)
				}
				b := w.machine("two").resume(nil)
				r := must(b.Commit(ctx, job))(t)
				one.late()
				again := must(a.Commit(ctx, job))(t)
				if again.Seq != r.Seq || again.Commit != r.Commit || again.Kept != "" {
					t.Errorf("done as %d %s, and again as %d %s %s", r.Seq, r.Commit, again.Seq, again.Commit, again.Kept)
				}
				w.onces("first", "job")
				if n := turns(t, w.machine("fresh").resume(nil)); n != 2 {
					t.Errorf("state %d", n)
				}
			})
		})
	}
}
