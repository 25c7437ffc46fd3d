package retain_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/retain"
	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/snapshot"
)

// house is a store with sessions that were active a minute apart, and a clock.
type house struct {
	t     *testing.T
	b     backend.Backend
	store *coppice.Store
	now   time.Time
}

func newHouse(t *testing.T, b backend.Backend, p retain.Policy, ids ...string) *house {
	t.Helper()
	h := &house{t: t, b: b, now: now}
	h.store = sessiontest.NewStore(t, b, &coppice.Options{Now: func() time.Time { return h.now }})
	for _, id := range ids {
		h.now = h.now.Add(time.Minute)
		s := testutil.Must(h.store.Create(id, &coppice.SessionOptions{Cwd: "/w"}))(t)
		testutil.Must(s.Commit(t.Context(), coppice.Turn{State: id}))(t)
		testutil.OK(t, s.Close())
	}
	testutil.OK(t, retain.Save(t.Context(), h.store, p))
	return h
}

// run is a run that deletes, except what fails.
func (h *house) run(change ...func(*retain.Run)) (retain.Result, error) {
	r := retain.Run{Store: h.store, Now: func() time.Time { return h.now }}
	r.Remove = func(ctx context.Context, r retain.Removal) error {
		if strings.HasPrefix(r.ID, "bad") {
			return errors.New("no connection")
		}
		return h.store.DeleteAt(ctx, r.ID, r.Commit)
	}
	r.Prune = func(ctx context.Context, id string, keep snapshot.Retention) ([]snapshot.Info, error) {
		return retain.Prune(ctx, h.store, id, keep)
	}
	for _, f := range change {
		f(&r)
	}
	return r.Do(h.t.Context())
}

func most(n int) func(*retain.Run)            { return func(r *retain.Run) { r.Most = n } }
func every(d time.Duration) func(*retain.Run) { return func(r *retain.Run) { r.Every = d } }

// A run that meets its bound is continued by the next one, also past sessions that cannot be removed.
func TestRunIsContinued(t *testing.T) {
	sessiontest.OnEachBackend(t, func(t *testing.T, b backend.Backend) {
		h := newHouse(t, b, retain.Policy{KeepLast: 1}, "bad1", "bad2", "a", "bad3", "b", "newest")
		var got []string
		for range 6 {
			r, err := h.run(most(1))
			text := fmt.Sprintf("%s %d", strings.Join(r.Removed, " "), r.Rest)
			if err != nil {
				text = "failed " + text
			}
			got = append(got, text)
		}
		// One family in each; what failed waits until all others were tried.
		want := []string{"failed  4", "failed  4", "a 4", "failed  3", "b 3", "failed  2"}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%q, want %q", got, want)
		}
		r, err := h.run(most(1000))
		if err == nil || len(r.Removed) != 0 || r.Rest != 0 || r.Requests == 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// One run has a store at a time, until it has ended or its claim has. A claim by a clock that is far ahead, and one
// that is damaged, keep no run away.
func TestOneRunner(t *testing.T) {
	sessiontest.OnEachBackend(t, func(t *testing.T, b backend.Backend) {
		h := newHouse(t, b, retain.Policy{KeepLast: 1}, "a", "b", "newest")
		within := 0
		_, err := h.run(func(r *retain.Run) {
			remove := r.Remove
			r.Remove = func(ctx context.Context, r retain.Removal) error {
				if _, err := h.run(); !errors.Is(err, retain.ErrRunning) {
					t.Errorf("beside another run: %v", err)
				}
				if res, err := h.run(every(time.Hour)); err != nil || res.Wait != 2*time.Minute {
					t.Errorf("beside another run: %+v, %v", res, err)
				}
				if _, err := h.run(func(r *retain.Run) { r.Dry = true }); err != nil {
					t.Errorf("a dry run beside another run: %v", err)
				}
				within++
				return remove(ctx, r)
			}
		})
		if err != nil || within != 2 {
			t.Fatalf("%d removals, %v", within, err)
		}
		put := func(until time.Time) {
			t.Helper()
			raw := fmt.Sprintf(`{"version":1,"by":"00","until":%d,"ended":%d}`, until.UnixMilli(), until.UnixMilli())
			if _, err := b.Put(t.Context(), layout.RetentionRunKey, []byte(raw), backend.Cond{}); err != nil {
				t.Fatal(err)
			}
		}
		for name, free := range map[string]time.Duration{"ended": -time.Millisecond, "by another clock": time.Hour} {
			put(h.now.Add(free))
			if _, err := h.run(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		put(h.now.Add(time.Second))
		if _, err := h.run(); !errors.Is(err, retain.ErrRunning) || !errors.Is(err, coppice.ErrConflict) {
			t.Errorf("beside a claim: %v", err)
		}
		for text, wrong := range map[string]bool{"damaged": false, `{"version":2}`: true} {
			_, err := b.Put(t.Context(), layout.RetentionRunKey, []byte(text), backend.Cond{})
			testutil.OK(t, err)
			if _, err := h.run(); (err != nil) != wrong {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}

// A run whose claim was taken over, because it was slow, ends before its next removal.
func TestClaimTakenOver(t *testing.T) {
	sessiontest.OnEachBackend(t, func(t *testing.T, b backend.Backend) {
		h := newHouse(t, b, retain.Policy{KeepLast: 1}, "a", "b", "newest")
		res, err := h.run(func(r *retain.Run) {
			r.Remove = func(context.Context, retain.Removal) error {
				h.now = h.now.Add(3 * time.Minute)
				if res, err := h.run(); err != nil || len(res.Removed) != 2 {
					t.Errorf("the other one: %+v, %v", res, err)
				}
				return nil
			}
		})
		if !errors.Is(err, retain.ErrRunning) || res.Rest != 1 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// Runs with a time between them leave the store alone for that time, whichever program made the last one. Without a
// policy they write nothing.
func TestRunsApart(t *testing.T) {
	sessiontest.OnEachBackend(t, func(t *testing.T, b backend.Backend) {
		h := newHouse(t, b, retain.Policy{}, "a", "b")
		before := len(sessiontest.Objects(t, b))
		if res, err := h.run(every(time.Hour)); err != nil || res.Wait != time.Hour || res.Requests != 2 {
			t.Errorf("without a policy: %+v, %v", res, err)
		}
		if n := len(sessiontest.Objects(t, b)); n != before {
			t.Errorf("%d objects, were %d", n, before)
		}
		testutil.OK(t, retain.Save(t.Context(), h.store, retain.Policy{KeepLast: 1}))
		if res, err := h.run(every(time.Hour)); err != nil || res.Wait != 0 || len(res.Removed) != 1 {
			t.Errorf("%+v, %v", res, err)
		}
		h.now = h.now.Add(20 * time.Minute)
		if res, err := h.run(every(time.Hour)); err != nil || res.Wait != 40*time.Minute {
			t.Errorf("%+v, %v", res, err)
		}
		h.now = h.now.Add(40 * time.Minute)
		if res, err := h.run(every(time.Hour)); err != nil || res.Wait != 0 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// What a run writes is as in the golden file, and the next one continues from that: it completes the deletion that was
// begun, and begins with the family after the one where the other met its bound.
func TestRunGolden(t *testing.T) {
	golden := testutil.Must(os.ReadFile("testdata/run.golden"))(t)
	h := newHouse(t, memory.New(), retain.Policy{KeepLast: 1}, "a", "b", "newest")
	_, err := h.run(func(r *retain.Run) {
		r.Remove = func(ctx context.Context, _ retain.Removal) error {
			raw, _, err := h.b.Get(ctx, layout.RetentionRunKey, backend.Range{})
			raw = regexp.MustCompile(`"[0-9a-f]{16}"`).ReplaceAll(raw, []byte(`"0000000000000000"`))
			if err != nil || !bytes.Equal(raw, golden) {
				t.Errorf("%s, %v", raw, err)
			}
			r.Most = 1
			return coppice.ErrDeleteUnfinished
		}
	})
	if !errors.Is(err, coppice.ErrDeleteUnfinished) {
		t.Error(err)
	}
	testutil.Must(h.b.Put(t.Context(), layout.RetentionRunKey, golden, backend.Cond{}))(t)
	h.now = h.now.Add(3 * time.Minute)
	var order []string
	_, err = h.run(func(r *retain.Run) {
		r.Remove = func(_ context.Context, r retain.Removal) error {
			order = append(order, r.ID+" "+r.Commit[:min(1, len(r.Commit))])
			return nil
		}
	})
	if got := strings.Join(order, ", "); err != nil || got != "a , b 0, a 0" {
		t.Errorf("%s, %v", got, err)
	}
}
