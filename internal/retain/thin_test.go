package retain_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/retain"
	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/snapshot"
)

// pictured makes a session with so many commits, a snapshot after each, tagged "even" after each second one.
func (h *house) pictured(id string, commits int) {
	h.t.Helper()
	ctx := h.t.Context()
	o := &coppice.SessionOptions{Cwd: "/w", Snapshots: snapshot.Policy{Every: -1}}
	s := testutil.Must(h.store.Create(id, o))(h.t)
	for i := range commits {
		testutil.Must(s.Append(ctx, entry.User(fmt.Sprint("message ", i))))(h.t)
		testutil.Must(s.Commit(ctx, coppice.Turn{State: map[string]int{"at": i}}))(h.t)
		testutil.Must(s.Snapshot(ctx, []string{"even", ""}[i%2]))(h.t)
	}
	testutil.OK(h.t, s.Close())
}

// left returns how many snapshots a session has.
func (h *house) left(id string) int {
	h.t.Helper()
	return len(sessiontest.KeysIn(h.t, h.b, layout.SessionPrefix(id)+layout.Snapshots))
}

// Snapshots that no rule keeps go, those of held sessions stay. Every commit can be restored exactly afterwards; what
// names a snapshot that went is told that it does not exist. Nothing is damaged, and nothing is left to do.
func TestThinning(t *testing.T) {
	sessiontest.OnEachBackend(t, func(t *testing.T, b backend.Backend) {
		ctx := t.Context()
		p := retain.Policy{Snapshots: snapshot.Retention{Last: 1, Tags: []string{"even"}}}
		h := newHouse(t, b, p, "bare")
		h.pictured("s", 6)
		h.pictured("held", 6)
		held := testutil.Must(h.store.Open(ctx, "held", nil))(t)
		testutil.Must(held.Hold(ctx, "case 7"))(t)
		testutil.OK(t, held.Close())
		dry, err := h.run(func(r *retain.Run) { r.Dry = true })
		testutil.OK(t, err)
		if h.left("s") != 6 {
			t.Fatal("a dry run removed snapshots")
		}
		res, err := h.run()
		testutil.OK(t, err)
		if len(res.Thinned) != 1 || res.Thinned[0].Session != "s" || len(res.Thinned[0].IDs()) != 2 || res.More ||
			!slices.Equal(dry.Thinned[0].IDs(), res.Thinned[0].IDs()) || res.Thinned[0].Freed() <= 0 {
			t.Fatalf("%+v, dry %+v", res.Thinned, dry.Thinned)
		}
		if h.left("s") != 4 || h.left("held") != 6 || len(res.Removed) != 0 {
			t.Errorf("%d and %d snapshots are left; %v", h.left("s"), h.left("held"), res.Removed)
		}
		s := testutil.Must(h.store.Open(ctx, "s", &coppice.SessionOptions{ReadOnly: true}))(t)
		for i := range 6 {
			v := testutil.Must(s.At(ctx, coppice.Target{Seq: uint64(i) + 1}))(t)
			var state map[string]int
			testutil.OK(t, v.State(&state))
			if state["at"] != i {
				t.Errorf("commit %d has the state %v", i+1, state)
			}
		}
		gone := res.Thinned[0].IDs()[0]
		_, err = s.At(ctx, coppice.Target{Snapshot: gone})
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), gone) {
			t.Errorf("a snapshot that went: %v", err)
		}
		testutil.OK(t, s.Close())
		for what, f := range map[string]func() (coppice.Report, error){
			"verify": func() (coppice.Report, error) { return h.store.Verify(ctx, "", true) },
			"repair": func() (coppice.Report, error) { return h.store.Repair(ctx, "", false) },
			"gc":     func() (coppice.Report, error) { return h.store.GC(ctx, "", true) },
		} {
			if r, err := f(); err != nil || len(r.Problems) > 0 || r.Removed > 0 {
				t.Errorf("%s: %+v, %v", what, r, err)
			}
		}
		if res, err := h.run(); err != nil || len(res.Thinned) > 0 {
			t.Errorf("again: %+v, %v", res.Thinned, err)
		}
	})
}

// The size of a store is that of all objects of its sessions, and snapshots go before sessions do.
func TestSnapshotsBeforeSessions(t *testing.T) {
	sessiontest.OnEachBackend(t, func(t *testing.T, b backend.Backend) {
		h := newHouse(t, b, retain.Policy{}, "newest")
		h.pictured("old", 6)
		all := testutil.Must(retain.Survey(t.Context(), h.store, retain.Policy{}))(t)
		var size, stored int64
		for _, s := range all {
			size += s.Bytes
		}
		for info, err := range b.List(t.Context(), backend.ListOptions{}) {
			testutil.OK(t, err)
			if strings.HasPrefix(info.Key, layout.Sessions) || strings.HasPrefix(info.Key, layout.Checkpoints) {
				stored += info.Size
			}
		}
		if size != stored || size == 0 {
			t.Fatalf("the sessions have %d bytes, their objects %d", size, stored)
		}
		p := retain.Policy{MaxBytes: size - 1}
		testutil.OK(t, retain.Save(t.Context(), h.store, p))
		if res, err := h.run(func(r *retain.Run) { r.Dry = true }); err != nil || len(res.Decision.Removals) != 1 {
			t.Fatalf("without a rule on snapshots: %+v, %v", res, err)
		}
		p.Snapshots.Last = 5
		testutil.OK(t, retain.Save(t.Context(), h.store, p))
		res, err := h.run()
		if err != nil || len(res.Decision.Removals) != 0 || res.Decision.Left > p.MaxBytes || h.left("old") != 5 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// Thinning that meets its bound is continued by the next runs, and sessions are removed only when it is complete. A
// session that goes for its age is not thinned.
func TestThinningIsContinued(t *testing.T) {
	sessiontest.OnEachBackend(t, func(t *testing.T, b backend.Backend) {
		h := newHouse(t, b, retain.Policy{KeepLast: 4, Snapshots: snapshot.Retention{Last: 1}}, "first")
		for _, id := range []string{"oldest", "a", "bad", "c", "d"} {
			h.pictured(id, 2)
			h.now = h.now.Add(time.Minute)
		}
		var got []string
		for range 5 {
			res, err := h.run(most(1), func(r *retain.Run) {
				prune := r.Prune
				r.Prune = func(ctx context.Context, id string, keep snapshot.Retention) ([]snapshot.Info, error) {
					if id == "bad" {
						return nil, errors.New("no connection")
					}
					return prune(ctx, id, keep)
				}
			})
			text := fmt.Sprint(res.Removed, res.More, err != nil)
			for _, t := range res.Thinned {
				text += t.Session
			}
			got = append(got, text)
		}
		want := []string{
			"[] true falsea", "[] true true", "[] true falsec", "[first] true falsed", "[oldest] false false",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
