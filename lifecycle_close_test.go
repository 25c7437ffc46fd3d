package coppice_test

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
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

// turnsOf is the ids of a session's commits that a caller made, oldest first. Those of the session's own upkeep do not
// count.
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

// counted checks the error of Close, which counts entries: those that were pending, and those in doubt.
func counted(t testing.TB, err error, pending, doubtful int) {
	t.Helper()
	if pending+doubtful == 0 {
		ok(t, err)
		return
	}
	has := map[string]bool{}
	for _, n := range regexp.MustCompile(`\d+`).FindAllString(fmt.Sprint(err), -1) {
		has[n] = true
	}
	wrong := pending > 0 && !has[fmt.Sprint(pending)] || doubtful > 0 && !has[fmt.Sprint(doubtful)] ||
		pending > 0 && doubtful > 0 && has[fmt.Sprint(pending+doubtful)]
	if wrong || strings.Contains(fmt.Sprint(err), "doubt") != (doubtful > 0) {
		t.Errorf("close: %v; want that it counts %d pending entries and %d in doubt", err, pending, doubtful)
	}
}

// Close refuses new calls at once and waits for the request in flight, beside which it sends none. Commits that were
// not sent end with ErrClosed. A fresh handle sees exactly the commits that were acknowledged.
func TestCloseWaitsForTheRequestInFlight(t *testing.T) {
	for name, outcome := range map[string]struct {
		decide            func(write *request)
		want              error
		path              string
		pending, doubtful int
	}{
		"stored":  {(*request).pass, nil, "u1 a1 l1 l2 l3", 2, 0},
		"refused": {(*request).refuse, errRefused, "u1 a1", 5, 0},
		"lost":    {func(write *request) { write.lose(0) }, coppice.ErrCommitUnknown, "u1 a1", 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				r.gate.open()
				swell(t, s)
				acknowledged := turnsOf(t, s)
				r.gate.close()
				say(t, s, "l1", "l2", "l3")
				leader := following(bg, t, s, turnsTo(2))
				write := r.gate.next(t)
				say(t, s, "m1", "m2")
				queued := following(bg, t, s, turnsTo(3))
				end := closing(s)
				if end.ended(t) {
					t.Error("Close did not wait for the request in flight")
				}
				if held, _, _ := r.gate.count(); held != 1 {
					t.Errorf("%d requests are in flight at once", held)
				}
				if _, err := following(bg, t, s, turnsTo(4)).wait(t); !errors.Is(err, fs.ErrClosed) {
					t.Errorf("a new commit: %v", err)
				}
				if _, err := s.Append(bg, entry.User("n")); !errors.Is(err, fs.ErrClosed) {
					t.Errorf("a new append: %v", err)
				}
				outcome.decide(write)
				receipt, err := leader.wait(t)
				if !errors.Is(err, outcome.want) {
					t.Errorf("the commit in flight: %v, want %v", err, outcome.want)
				}
				if err == nil {
					acknowledged = append(acknowledged, receipt.Commit)
				}
				r.gate.open()
				if _, err := queued.wait(t); !errors.Is(err, fs.ErrClosed) || errors.Is(err, coppice.ErrCommitUnknown) {
					t.Errorf("the commit in line: %v", err)
				}
				_, err = end.wait(t)
				counted(t, err, outcome.pending, outcome.doubtful)
				fresh := r.fresh(t)
				same(t, "commits", turnsOf(t, fresh), acknowledged)
				same(t, "path", texts(t, fresh), outcome.path)
			})
		})
	}
}

// Close counts the entries that are pending and those of which nothing is certain separately, and nothing that is
// stored. A handle in doubt writes nothing more.
func TestCloseCountsWhatIsLeft(t *testing.T) {
	for name, n := range map[string][2]int{"none": {0, 0}, "pending": {2, 0}, "in doubt": {0, 3}, "both": {2, 3}} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				r.gate.open()
				for range n[1] {
					say(t, s, "l")
				}
				if n[1] > 0 {
					r.doubts(t, s, turnsTo(2), 0)
				}
				for range n[0] {
					say(t, s, "m")
				}
				_, _, before := r.gate.count()
				counted(t, s.Close(), n[0], n[1])
				if _, _, after := r.gate.count(); n[1] > 0 && after != before {
					t.Errorf("a handle in doubt made %d writes at Close", after-before)
				}
				same(t, "stored", everything(t, r.fresh(t)), "u1 a1")
			})
		})
	}
}

// A handle that commits nothing writes nothing, at Close either.
func TestCloseWithoutACommitWritesNothing(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		r.gate.open()
		swell(t, s)
		want := s.Head()
		reader := must(r.store.Open(bg, "s", nil))(t)
		quiet(t) // what the first handle does beside its commits has ended
		_, _, before := r.gate.count()
		texts(t, reader)
		ok(t, reader.Close())
		_, _, after := r.gate.count()
		same(t, "writes", after-before, 0)
		same(t, "head", r.fresh(t).Head(), want)
	})
}
