package listing

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/testutil"
)

// seconds is a store whose listing reports times to the second, as S3's does.
type seconds struct{ backend.Backend }

func (s seconds) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		for info, err := range s.Backend.List(ctx, o) {
			info.ModTime = time.Unix(1000+int64(len(info.Key)%2), 0)
			if !yield(info, err) {
				return
			}
		}
	}
}

// timed is a store whose objects were written at given times.
type timed struct {
	backend.Backend
	times map[string]time.Time
	reads *atomic.Int64
}

func (b timed) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		for info, err := range b.Backend.List(ctx, o) {
			info.ModTime = b.times[info.Key]
			if !yield(info, err) {
				return
			}
		}
	}
}

func (b timed) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	b.reads.Add(1)
	return b.Backend.Get(ctx, key, r)
}

// paged returns the ids of n sessions in the order of a listing, page by page; fewer where a page is empty.
func paged(t *testing.T, b backend.Backend, limit, n int) (ids []string) {
	t.Helper()
	for after := ""; len(ids) < n; {
		had := len(ids)
		for sum, err := range uncached.Sessions(t.Context(), b, Options{Limit: limit, After: after}, today, nil) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, sum.ID)
			after = sum.Cursor
		}
		if len(ids) == had {
			break
		}
	}
	return ids
}

// Old sessions that were imported last are listed by their own dates. Pages agree on the order, and the newest of a
// store in use cost no read more than there are results.
func TestOrderIsThatOfTheDatesShown(t *testing.T) {
	b := timed{memory.New(), map[string]time.Time{}, new(atomic.Int64)}
	noon := time.Date(2026, 3, 2, 12, 0, 0, 123456789, time.UTC)
	put := func(id string, active, written time.Time) {
		o := &checkpoint.Object{HeadOrd: -1, Document: []byte("{}")}
		o.Summary = checkpoint.Summary{ID: id, Updated: active.Truncate(time.Millisecond)}
		p, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(t.Context(), layout.CheckpointKey(id), p, backend.Cond{}); err != nil {
			t.Fatal(err)
		}
		b.times[layout.CheckpointKey(id)] = written
	}
	const inUse, old = 20, 30
	var want []string
	for i := range inUse {
		at := noon.Add(-time.Duration(i) * time.Minute)
		put(fmt.Sprintf("live%02d", i), at, at)
		want = append(want, fmt.Sprintf("live%02d", i))
	}
	for i := range old { // written half an hour ago, in an order of their own
		active := noon.Add(-time.Duration(24*i+1) * time.Hour)
		put(fmt.Sprintf("old%02d", i), active, noon.Add(-30*time.Minute+time.Duration(i*7%old)*time.Second))
		want = append(want, fmt.Sprintf("old%02d", i))
	}
	for _, limit := range []int{0, 1, 7, 50, 51} {
		got := paged(t, b, limit, len(want))
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %v, want %v", limit, got, want)
		}
	}
	b.reads.Store(0)
	for _, err := range uncached.Sessions(t.Context(), b, Options{Limit: 5}, today, nil) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if b.reads.Load() != 5 {
		t.Errorf("%d reads for the newest 5", b.reads.Load())
	}
}

// uncached is no cache.
var uncached *Catalogue

// today is when the tests list.
var today = time.Date(2026, 3, 2, 13, 0, 0, 0, time.UTC)

// What a wrong clock dated is behind all others, by activity and by creation, on pages of any size; what is a little
// ahead, and what the store wrote at a time that can be, is not.
func TestWrongClocks(t *testing.T) {
	b := timed{memory.New(), map[string]time.Time{}, new(atomic.Int64)}
	wrong := today.AddDate(5, 0, 0)
	for id, at := range map[string][2]time.Time{ // of the session, and of the store
		"recent": {today.Add(-time.Hour), today.Add(-time.Hour)},
		"old":    {today.AddDate(-1, 0, 0), today.AddDate(0, -1, 0)},
		"ahead":  {today.Add(23 * time.Hour), today.Add(23 * time.Hour)},
		"dated":  {wrong, today.Add(-2 * time.Hour)},
		"wrong":  {wrong, wrong},
		"worse":  {wrong.Add(time.Hour), wrong.Add(time.Hour)},
	} {
		o := &checkpoint.Object{HeadOrd: -1, Document: []byte("{}")}
		o.Summary = checkpoint.Summary{ID: id, Created: at[0], Updated: at[0]}
		p := testutil.Must(o.Encode())(t)
		testutil.Must(b.Put(t.Context(), layout.CheckpointKey(id), p, backend.Cond{}))(t)
		b.times[layout.CheckpointKey(id)] = at[1]
	}
	for order, want := range map[string]string{
		ByActivity: "ahead recent dated old worse wrong",
		ByCreated:  "ahead recent old worse wrong dated",
	} {
		for _, limit := range []int{0, 1, 2, 5} {
			var ids []string
			for o := (Options{Order: order, Limit: limit}); ; {
				had := len(ids)
				for sum, err := range uncached.Sessions(t.Context(), b, o, today, nil) {
					testutil.OK(t, err)
					ids, o.After = append(ids, sum.ID), sum.Cursor
				}
				if limit == 0 || len(ids) == had {
					break
				}
			}
			if got := strings.Join(ids, " "); got != want {
				t.Errorf("by %s, pages of %d: %s, want %s", order, limit, got, want)
			}
		}
	}
}

// Where the store reports times to the second, the order is that of the commits all the same, and pages of any size
// agree on it.
func TestOrderWithinASecond(t *testing.T) {
	b := seconds{memory.New()}
	var want []string
	for i := range 60 {
		id := fmt.Sprintf("s%02d", (i*37)%60)
		if i%3 == 0 {
			id += "x" // another second
		}
		o := &checkpoint.Object{HeadOrd: -1, Document: []byte("{}")}
		o.Summary = checkpoint.Summary{ID: id, Updated: time.UnixMilli(int64(i))}
		p, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(t.Context(), layout.CheckpointKey(id), p, backend.Cond{}); err != nil {
			t.Fatal(err)
		}
		want = append([]string{id}, want...)
	}
	all := strings.Join(want, " ")
	for _, limit := range []int{0, 1, 7, 16, 59, 60, 61} {
		got := paged(t, b, limit, len(want))
		if strings.Join(got, " ") != all {
			t.Errorf("pages of %d: got %v, want %s", limit, got, all)
		}
	}
}
