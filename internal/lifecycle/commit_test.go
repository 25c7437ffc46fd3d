package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// A commit that returns nil has stored everything that was appended to the handle before it, including entries whose
// earlier commit was refused or was cancelled while it waited.
func TestCommitStoresAllThatWasAppendedBefore(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		onGates(t, func(t *testing.T, r *rig) {
			s := r.start(t, nil)
			say(t, s, "c")
			first := following(bg, t, s, turnsTo(2))
			write := r.gate.next(t)
			second := following(bg, t, s, carrying("", 3, "m"))
			write.refuse()
			r.storesBoth(t, s, first, second, errRefused)
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		onGates(t, func(t *testing.T, r *rig) {
			s := r.start(t, nil)
			root := s.Head().Entry
			say(t, s, "c")
			label := begin(func() (coppice.Receipt, error) { return s.Label(bg, root, "x") })
			write := r.gate.next(t)
			ctx, cancel := context.WithCancel(bg)
			first := following(ctx, t, s, turnsTo(2))
			second := following(bg, t, s, carrying("", 3, "m"))
			cancel()
			quiet(t)
			write.pass()
			_, err := label.wait(t)
			ok(t, err)
			r.storesBoth(t, s, first, second, context.Canceled)
		})
	})
}

// storesBoth checks that the second of two commits stored the entry of the first, which failed, but not its state.
func (r *rig) storesBoth(t *testing.T, s *coppice.Session, first, second *call[coppice.Receipt], cause error) {
	t.Helper()
	r.gate.open()
	_, err := first.wait(t)
	if !errors.Is(err, cause) || errors.Is(err, coppice.ErrCommitUnknown) {
		t.Errorf("the first commit: %v, want %v", err, cause)
	}
	_, err = second.wait(t)
	ok(t, err)
	fresh := r.fresh(t)
	same(t, "stored", everything(t, fresh), "u1 a1 c m")
	same(t, "state", stateOf(t, fresh), state{Turns: 3})
	r.agrees(t, s)
	ok(t, s.Close())
}

// Callers of one handle are served in order of arrival, each with a commit of its own.
func TestCallersAreServedInOrder(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		const callers = 8
		s := r.start(t, nil)
		var calls []*call[coppice.Receipt]
		for i := range callers {
			calls = append(calls, following(bg, t, s, carrying("", 2+i, string(rune('b'+i)))))
		}
		for i, c := range calls {
			write := r.gate.next(t)
			held, _, _ := r.gate.count()
			same(t, "requests on their way", held, 1)
			for j, later := range calls[i:] {
				if later.ended(t) {
					t.Errorf("caller %d was served while %d was", i+j, i)
				}
			}
			write.pass()
			receipt, err := c.wait(t)
			ok(t, err)
			same(t, "seq", receipt.Seq, 2+i)
		}
		r.gate.open()
		same(t, "path", texts(t, s), "u1 a1 b c d e f g h i")
		r.agrees(t, s)
	})
}

// Of two callers that appended, the first to commit stores the entries of both. The other finds nothing to store, and
// gets the receipt of that commit.
func TestCommitTakesEntriesOfOtherCallers(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		say(t, s, "b")
		say(t, s, "c")
		first := following(bg, t, s, coppice.Turn{})
		write := r.gate.next(t)
		second := following(bg, t, s, coppice.Turn{})
		write.pass()
		r.gate.open()
		one, err := first.wait(t)
		ok(t, err)
		same(t, "entries", one.Entries, 2)
		two, err := second.wait(t)
		ok(t, err)
		same(t, "the other's receipt", two.Head, one.Head)
		same(t, "its entries", two.Entries, 0)
		same(t, "newest commit", r.fresh(t).Head(), one.Head)
	})
}

// An Append during a navigation waits for it; the parent of its entry is the target.
func TestAppendDuringNavigationGrowsFromItsTarget(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		u1 := collect(t, s.Path(bg, ""))[1].ID
		branch := begin(func() (coppice.Receipt, error) { return s.Branch(bg, u1, nil) })
		write := r.gate.next(t)
		appending := begin(func() ([]string, error) { return s.Append(bg, entry.User("y")) })
		if appending.ended(t) {
			t.Error("Append did not wait for the head")
		}
		write.pass()
		r.gate.open()
		_, err := branch.wait(t)
		ok(t, err)
		y := must(appending.wait(t))(t)[0]
		same(t, "head", s.Head().Entry, y)
		commit(t, s, nil)
		same(t, "path", texts(t, r.fresh(t)), "u1 y")
		r.agrees(t, s)
	})
}

// loses makes a commit that gets a conflict.
func loses(t *testing.T, r *rig, s *coppice.Session, turn coppice.Turn) {
	t.Helper()
	r.gate.open()
	if _, err := s.Commit(bg, turn); !errors.Is(err, coppice.ErrConflict) {
		t.Fatalf("commit: %v, want ErrConflict", err)
	}
}

// doubts makes the outcome of a commit unknown: its request reaches the store with n bytes, and the answer is lost.
func (r *rig) doubts(t *testing.T, s *coppice.Session, turn coppice.Turn, n int) {
	t.Helper()
	r.gate.close()
	c := committing(bg, s, turn)
	write := r.gate.next(t)
	write.lose(min(n, len(write.body)))
	if _, err := c.wait(t); !errors.Is(err, coppice.ErrCommitUnknown) {
		t.Fatalf("commit: %v, want ErrCommitUnknown", err)
	}
	r.gate.open()
}
