package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// Watch and WatchPartial see commits of other handles of their Store at once: the poll is hours away.
func TestWatchOtherHandles(t *testing.T) {
	for name, watch := range map[string]func(*coppice.Session, context.Context, func(coppice.Change, error) bool){
		"Watch": func(s *coppice.Session, ctx context.Context, yield func(coppice.Change, error) bool) {
			s.Watch(ctx, 0)(yield)
		},
		"WatchPartial": func(s *coppice.Session, ctx context.Context, yield func(coppice.Change, error) bool) {
			s.WatchPartial(ctx, 0)(yield)
		},
	} {
		for _, readOnly := range []bool{false, true} {
			for kind, b := range backends {
				t.Run(name+"/"+kind, func(t *testing.T) {
					o := fixedOptions()
					o.Poll = 24 * time.Hour
					store := newStore(t, b(t), o)
					s := create(t, store, "s", nil)
					say(t, s, "u1")
					commit(t, s, nil)
					w := must(store.Open(bg, "s", &coppice.SessionOptions{ReadOnly: readOnly}))(t)
					ctx, cancel := context.WithCancel(bg)
					got, ended := make(chan uint64), make(chan struct{})
					go func() {
						defer close(ended)
						watch(w, ctx, func(c coppice.Change, err error) bool {
							if err == nil {
								got <- c.Commit.Seq
							}
							return err == nil
						})
					}()
					same(t, "what was there", <-got, 1)
					say(t, s, "a1")
					commit(t, s, nil)
					same(t, "another handle's commit", <-got, 2)
					must(s.Label(bg, s.Head().Entry, "here"))(t)
					same(t, "its label", <-got, 3)
					third := open(t, store, "s")
					must(third.Commit(bg, coppice.Turn{
						Base: s.Head().Commit, Entries: []transcript.Draft{entry.User("u2")},
					}))(t)
					same(t, "a third handle's commit", <-got, 4)
					if readOnly {
						same(t, "moved along", texts(t, w), "u1 a1 u2")
					}
					cancel()
					<-ended
				})
			}
		}
	}
}

// A session that grows by an import notifies its watchers.
func TestWatchGrow(t *testing.T) {
	for kind, b := range backends {
		t.Run(kind, func(t *testing.T) {
			o := fixedOptions()
			o.Poll = 24 * time.Hour
			store := newStore(t, b(t), o)
			lines, so := fileLines(fileOf("say", 3))
			so.ID = "s"
			w := must(store.Import(bg, lines, so))(t)
			before := w.Head().Seq
			ctx, cancel := context.WithCancel(bg)
			got, ended := make(chan coppice.Change), make(chan struct{})
			go func() {
				defer close(ended)
				for c, err := range w.Watch(ctx, before-1) {
					if err != nil {
						return
					}
					select {
					case got <- c:
					case <-ctx.Done():
						return
					}
				}
			}()
			same(t, "what was there", (<-got).Commit.Seq, before)
			lines, so = fileLines(fileOf("say", 4))
			so.ID = "s"
			g, added, err := store.Grow(bg, lines, so)
			ok(t, err)
			same(t, "added", added, 1)
			same(t, "entries of the next commit", len((<-got).Entries), 1)
			ok(t, g.Close())
			cancel()
			<-ended
		})
	}
}

// A handle that has got a conflict with another writer's commit watches that commit at once, without a poll.
func TestWatchAfterAConflict(t *testing.T) {
	for kind, b := range backends {
		t.Run(kind, func(t *testing.T) {
			o := fixedOptions()
			o.Poll = 24 * time.Hour
			store := b(t)
			s := create(t, newStore(t, store, o), "s", nil)
			first := commit(t, s, state{Turns: 1})
			other := open(t, newStore(t, store, o), "s") // as in another process
			won := commit(t, other, state{Turns: 2})
			_, err := s.Commit(bg, coppice.Turn{State: state{Turns: 3}})
			isErr(t, "commit", err, coppice.ErrConflict)
			ctx, cancel := context.WithTimeout(bg, 30*time.Second)
			defer cancel()
			for c, err := range s.Watch(ctx, first.Seq) {
				ok(t, err)
				same(t, "the winner", c.Commit.Commit, won.Commit)
				return
			}
			t.Error("it is not shown")
		})
	}
}
