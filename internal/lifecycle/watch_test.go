package lifecycle_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/coppice-go/coppice"
)

// Watch yields every commit once, old and new, of this handle and of others, and advances a read-only handle.
func TestWatch(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, _ := grown(t, store, "s", 3, nil)
		ro := must(store.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true}))(t)
		looks := 0
		setSleep(store, func(ctx context.Context) error {
			if looks++; looks == 2 {
				say(t, s, "u4")
				commit(t, s, state{Turns: 4})
				say(t, s, "a4")
				commit(t, s, nil)
			}
			return ctx.Err()
		})
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		var seqs []uint64
		for c, err := range ro.Watch(ctx, 1) {
			ok(t, err)
			seqs = append(seqs, c.Commit.Seq)
			if c.Commit.Seq == 4 {
				same(t, "entries", len(c.Entries), 1)
			}
			if c.Commit.Seq == 5 {
				cancel()
			}
		}
		same(t, "seqs", seqs, []uint64{2, 3, 4, 5})
		same(t, "moved along", texts(t, ro), "u1 a1 u2 a2 u3 a3 u4 a4")
		same(t, "state", stateOf(t, ro), state{Turns: 4})
	})
}

// A watcher sees the handle's own commits at once, and ends with the handle.
func TestWatchOwn(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		setSleep(store, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		s := create(t, store, "s", nil)
		got := make(chan uint64)
		end := make(chan error, 1)
		go func() {
			defer close(got)
			for c, err := range s.Watch(bg, 0) {
				if err != nil {
					end <- err
					return
				}
				got <- c.Commit.Seq
			}
		}()
		for i := uint64(1); i <= 3; i++ {
			say(t, s, "u")
			commit(t, s, nil)
			same(t, "seq", <-got, i)
		}
		ok(t, s.Close())
		if err := <-end; !errors.Is(err, fs.ErrClosed) {
			t.Errorf("end: %v", err)
		}
	})
}
