package lifecycle_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// closing starts to close a session.
func closing(s *coppice.Session) *call[struct{}] {
	return begin(func() (struct{}, error) { return struct{}{}, s.Close() })
}

// swell commits so many bytes that Close may seal the active segment of a log.
func swell(t testing.TB, s *coppice.Session) {
	t.Helper()
	must(s.Append(bg, entry.Custom("padding", strings.Repeat("0123456789abcdef", 20_000))))(t)
	commit(t, s, nil)
}

// turnsOf returns the ids of a session's commits made by callers, oldest first. Commits of its background work are left
// out.
func turnsOf(t testing.TB, s *coppice.Session) (list []string) {
	t.Helper()
	for _, c := range history(t, s) {
		if c.Reason == "turn" {
			list = append(list, c.Commit)
		}
	}
	slices.Reverse(list)
	return list
}

// left checks the error of Close: ErrUncommitted counts the appended entries that are not stored, ErrCommitUnknown
// names a commit in doubt.
func left(t testing.TB, err error, pending int, doubt bool) {
	t.Helper()
	if pending == 0 && !doubt {
		ok(t, err)
		return
	}
	if errors.Is(err, coppice.ErrUncommitted) != (pending > 0) || errors.Is(err, coppice.ErrCommitUnknown) != doubt {
		t.Errorf("close: %v; want ErrUncommitted: %v, ErrCommitUnknown: %v", err, pending > 0, doubt)
	}
	if pending > 0 && !strings.Contains(err.Error(), fmt.Sprintf("%d entries", pending)) {
		t.Errorf("close: %v; want that it counts %d entries", err, pending)
	}
	if e, is := errors.AsType[*coppice.Error](err); doubt && (!is || e.Commit == "") {
		t.Errorf("close: %v; want that it names the commit", err)
	}
}

// Close refuses new and waiting calls at once. It waits for the request that was sent, and sends none meanwhile. A
// fresh handle sees exactly the acknowledged commits.
func TestCloseWaitsForTheRequestThatWasSent(t *testing.T) {
	for name, outcome := range map[string]struct {
		decide  func(write *request)
		want    error
		path    string
		pending int
		doubt   bool
	}{
		"stored":  {(*request).pass, nil, "u1 a1 l1 l2 l3", 0, false},
		"refused": {(*request).refuse, errRefused, "u1 a1", 3, false},
		"lost":    {func(write *request) { write.lose(0) }, coppice.ErrCommitUnknown, "u1 a1", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				r.gate.open()
				swell(t, s)
				acknowledged := turnsOf(t, s)
				r.gate.close()
				say(t, s, "l1", "l2", "l3")
				sent := following(bg, t, s, turnsTo(2))
				write := r.gate.next(t)
				waiting := following(bg, t, s, carrying("", 3, "m1", "m2"))
				end := closing(s)
				if end.ended(t) {
					t.Error("Close did not wait for the request that was sent")
				}
				if held, _, _ := r.gate.count(); held != 1 {
					t.Errorf("%d requests are on their way at once", held)
				}
				if _, err := following(bg, t, s, turnsTo(4)).wait(t); !errors.Is(err, fs.ErrClosed) {
					t.Errorf("a new commit: %v", err)
				}
				if _, err := s.Append(bg, entry.User("n")); !errors.Is(err, fs.ErrClosed) {
					t.Errorf("a new append: %v", err)
				}
				outcome.decide(write)
				receipt, err := sent.wait(t)
				if !errors.Is(err, outcome.want) {
					t.Errorf("the commit that was sent: %v, want %v", err, outcome.want)
				}
				if err == nil {
					acknowledged = append(acknowledged, receipt.Commit)
				}
				r.gate.open()
				_, err = waiting.wait(t)
				if !errors.Is(err, fs.ErrClosed) || errors.Is(err, coppice.ErrCommitUnknown) {
					t.Errorf("the commit that waited: %v", err)
				}
				_, err = end.wait(t)
				left(t, err, outcome.pending, outcome.doubt)
				fresh := r.fresh(t)
				same(t, "commits", turnsOf(t, fresh), acknowledged)
				same(t, "path", texts(t, fresh), outcome.path)
			})
		})
	}
}

// Close counts the appended entries that are not stored, and names a commit in doubt. A handle in doubt writes nothing
// more.
func TestCloseTellsWhatIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		pending int
		doubt   bool
	}{"none": {0, false}, "pending": {2, false}, "in doubt": {0, true}, "both": {2, true}} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				r.gate.open()
				for range c.pending {
					say(t, s, "m")
				}
				if c.doubt {
					r.doubts(t, s, carrying(s.Head().Commit, 2, "l"), 0)
				}
				_, _, before := r.gate.count()
				left(t, s.Close(), c.pending, c.doubt)
				if _, _, after := r.gate.count(); c.doubt && after != before {
					t.Errorf("a handle in doubt made %d writes at Close", after-before)
				}
				same(t, "stored", everything(t, r.fresh(t)), "u1 a1")
			})
		})
	}
}

// A handle that commits nothing writes nothing, also at Close.
func TestCloseWithoutACommitWritesNothing(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		r.gate.open()
		swell(t, s)
		want := s.Head()
		reader := must(r.store.Open(bg, "s", nil))(t)
		quiet(t) // the background work of the first handle has ended
		_, _, before := r.gate.count()
		texts(t, reader)
		ok(t, reader.Close())
		_, _, after := r.gate.count()
		same(t, "writes", after-before, 0)
		same(t, "head", r.fresh(t).Head(), want)
	})
}
