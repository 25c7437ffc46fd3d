package coppice_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/backend/trace"
)

func TestList(t *testing.T) {
	for name, b := range map[string]backend.Backend{"replace": memory.New(), "append": memory.NewAppender()} {
		t.Run(name, func(t *testing.T) {
			tr := trace.New(b)
			store := newStore(t, tr, nil)
			same(t, "empty", len(collect(t, store.List(bg, coppice.ListOptions{}))), 0)
			var want []string
			for i := range 40 {
				id := fmt.Sprintf("Session_%02d", i)
				s := create(t, store, id, &coppice.SessionOptions{Title: "t" + id, Cwd: fmt.Sprint("/", i%2)})
				say(t, s, "u1")
				commit(t, s, nil)
				ok(t, s.Close())
				want = append(want, id)
				time.Sleep(time.Millisecond) // objects' own times tell which is newest
			}
			slices.Reverse(want)
			must(b.Put(bg, "checkpoint_latest/FOREIGN", []byte("x"), backend.Cond{}))(t)
			must(b.Put(bg, "checkpoint_latest/broken", []byte("x"), backend.Cond{}))(t)

			tr.Reset()
			var got []string
			for _, sum := range collect(t, store.List(bg, coppice.ListOptions{Limit: 5})) {
				got = append(got, sum.ID)
			}
			same(t, "newest", got, append([]string{"broken"}, want[:4]...))
			same(t, "cost", cost(tr.IO()), "5 get 1 list")

			got = nil
			for after := "broken"; ; after = got[len(got)-1] {
				page := collect(t, store.List(bg, coppice.ListOptions{Limit: 7, After: after}))
				if len(page) == 0 {
					break
				}
				for _, sum := range page {
					got = append(got, sum.ID)
				}
			}
			same(t, "pages", got, want)
			mine := collect(t, store.List(bg, coppice.ListOptions{Cwd: "/1", Limit: 3}))
			same(t, "by folder", []string{mine[0].ID, mine[0].Title, mine[2].ID}, []string{want[0], "t" + want[0], want[4]})
			for _, err := range store.List(bg, coppice.ListOptions{After: "nowhere"}) {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a bad cursor: %v", err)
				}
			}
		})
	}
}

// One store per prefix: neither sees the other's sessions.
func TestPrefixes(t *testing.T) {
	b := memory.New()
	one, two := newStore(t, backend.WithPrefix(b, "a/"), nil), newStore(t, backend.WithPrefix(b, "a/b/"), nil)
	s := create(t, one, "s", nil)
	say(t, s, "u1")
	commit(t, s, nil)
	if _, err := two.Open(bg, "s", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open: %v", err)
	}
	same(t, "listed", len(collect(t, two.List(bg, coppice.ListOptions{}))), 0)
	same(t, "listed", len(collect(t, one.List(bg, coppice.ListOptions{}))), 1)
}
