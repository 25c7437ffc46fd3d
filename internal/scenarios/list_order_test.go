package scenarios_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/internal/trace"
)

// orders are those that are complete during concurrent writes.
var orders = []string{coppice.ByCreated, coppice.ByID}

// A program that deletes what it lists deletes everything, in each order.
func TestListDeletesWhatItYields(t *testing.T) {
	for _, order := range append(orders, "", coppice.ByActivity) {
		onEach(t, func(t *testing.T, store *coppice.Store) {
			for i := range 9 {
				commit(t, create(t, store, fmt.Sprintf("s%d", i), nil), nil)
			}
			o := coppice.ListOptions{Order: order, Limit: 2}
			n := 0
			for page := collect(t, store.List(bg, o)); len(page) > 0; page = collect(t, store.List(bg, o)) {
				for _, sum := range page {
					ok(t, store.Delete(bg, sum.ID))
					o.After = sum.Cursor
					n++
				}
			}
			same(t, "deleted by "+order, n, 9)
			same(t, "left", len(collect(t, store.List(bg, coppice.ListOptions{}))), 0)
		})
	}
}

// Sessions are created, deleted and committed to between the pages. By creation and by id each session that exists from
// the first page to the last is yielded once, in order, and no other one twice.
func TestListIsCompleteWhileOthersWrite(t *testing.T) {
	for _, kind := range []string{"replace", "append"} {
		t.Run(kind, func(t *testing.T) {
			testutil.SkipLong(t)
			rapid.Check(t, func(r *rapid.T) {
				store := newStore(t, backends[kind](t), nil)
				w := &listWriter{t: t, store: store, alive: map[string]bool{}}
				for range rapid.IntRange(0, 12).Draw(r, "sessions") {
					w.create(r)
				}
				order := rapid.SampledFrom(orders).Draw(r, "order")
				throughout := map[string]bool{}
				for id := range w.alive {
					throughout[id] = true
				}
				steps := 30 // number of writes; then the listing ends
				o := coppice.ListOptions{Order: order, Limit: rapid.IntRange(1, 5).Draw(r, "limit")}
				got := paged(t, store, o, func() {
					for range min(steps, rapid.IntRange(0, 4).Draw(r, "writes")) {
						steps--
						w.step(r)
					}
				})
				seen := map[string]bool{}
				for _, id := range got {
					if seen[id] {
						r.Errorf("%s twice by %s: %v", id, order, got)
					}
					seen[id] = true
				}
				for id := range throughout {
					if w.alive[id] && !seen[id] {
						r.Errorf("%s is missing by %s: %v", id, order, got)
					}
				}
				if order == coppice.ByID && !slices.IsSorted(got) {
					r.Errorf("not in order: %v", got)
				}
			})
		})
	}
}

// listWriter is another writer.
type listWriter struct {
	t     *testing.T
	store *coppice.Store
	alive map[string]bool // false = deleted
}

func (w *listWriter) create(r *rapid.T) {
	id := rapid.StringMatching(`[a-c]([-.][a-c]){0,2}`).Draw(r, "id")
	if _, used := w.alive[id]; used {
		return
	}
	w.alive[id] = true
	commit(w.t, create(w.t, w.store, id, nil), nil)
}

func (w *listWriter) step(r *rapid.T) {
	var there []string
	for id, alive := range w.alive {
		if alive {
			there = append(there, id)
		}
	}
	slices.Sort(there)
	kind := rapid.IntRange(0, 2).Draw(r, "kind")
	if kind == 0 || len(there) == 0 {
		w.create(r)
		return
	}
	id := rapid.SampledFrom(there).Draw(r, "of")
	if kind == 1 {
		w.alive[id] = false
		ok(w.t, w.store.Delete(bg, id))
		return
	}
	s := open(w.t, w.store, id)
	say(w.t, s, "u")
	commit(w.t, s, nil)
	if rapid.Bool().Draw(r, "closed") {
		ok(w.t, s.Close())
	}
}

// The orders, what they show of a commit that is only in the log, and their costs: a page by id reads only its own
// sessions.
func TestListOrders(t *testing.T) {
	for kind, openStore := range backends {
		t.Run(kind, func(t *testing.T) {
			tr := trace.New(openStore(t))
			store := newStore(t, tr, nil)
			for _, id := range []string{"c", "a", "B", "b_", "b"} {
				s := create(t, store, id, nil)
				commit(t, s, nil)
				ok(t, s.Close())
			}
			title := "renamed"
			must(open(t, store, "a").SetInfo(bg, coppice.InfoChange{Title: &title}))(t) // the handle stays open
			ids := func(o coppice.ListOptions) string {
				var list []string
				for _, sum := range collect(t, store.List(bg, o)) {
					list = append(list, strings.TrimSuffix(sum.ID+"="+sum.Title, "="))
				}
				return strings.Join(list, " ")
			}
			same(t, "by activity", ids(coppice.ListOptions{Order: coppice.ByActivity}), "a=renamed b b_ B c")
			same(t, "by creation", ids(coppice.ListOptions{Order: coppice.ByCreated}), "b b_ B a=renamed c")
			same(t, "by id", ids(coppice.ListOptions{Order: coppice.ByID}), "B a=renamed b b_ c")
			same(t, "pages by creation", paged(t, store, coppice.ListOptions{Order: coppice.ByCreated, Limit: 2}, nil),
				[]string{"b", "b_", "B", "a", "c"})
			o := coppice.ListOptions{Order: coppice.ByID, Limit: 2}
			o.After = collect(t, store.List(bg, o))[1].Cursor
			tr.Reset()
			same(t, "a page by id", ids(o), "b b_")
			// In memory they are cached by now. On the disk they changed after the clock of this store.
			same(t, "its reads", tr.IO().Get, map[string]int{"replace": 2, "local": 2}[kind])
		})
	}
}
