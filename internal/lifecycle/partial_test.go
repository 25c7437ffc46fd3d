package lifecycle_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
)

// watching collects what a handle's WatchPartial yields, in a goroutine.
type watching struct {
	changes chan string
	done    chan error
	stop    context.CancelFunc
}

func watchPartial(s *coppice.Session) *watching {
	ctx, stop := context.WithCancel(bg)
	w := &watching{changes: make(chan string), done: make(chan error, 1), stop: stop}
	go func() {
		defer close(w.changes)
		for c, err := range s.WatchPartial(ctx, s.Head().Seq) {
			text := fmt.Sprintf("partial %s", c.Partial)
			if err != nil {
				w.done <- err
				return
			}
			if c.Commit.Commit != "" {
				text = fmt.Sprintf("%s %d", c.Commit.Reason, len(c.Entries))
			}
			select {
			case w.changes <- text:
			case <-ctx.Done():
			}
		}
		w.done <- nil
	}()
	return w
}

func (w *watching) ends(t testing.TB) {
	t.Helper()
	w.stop()
	for range w.changes { // changes under way
	}
	ok(t, <-w.done)
}

// Partial output is visible on every handle of the store at once, costs no request, and ends with the turn.
func TestPartialInMemory(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		setSleep(store, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		s, _ := grown(t, store, "s", 1, nil)
		other := must(store.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true}))(t)
		mine, its := watchPartial(s), watchPartial(other)
		see := func(want ...string) {
			t.Helper()
			for _, w := range []*watching{mine, its} {
				for _, text := range want {
					same(t, "change", <-w.changes, text)
				}
			}
		}
		before := s.IO()
		ok(t, s.Partial(bg, json.RawMessage(` {"text": "one"} `)))
		see(`partial {"text":"one"}`)
		ok(t, s.Partial(bg, json.RawMessage(`{"text":"one two"}`)))
		see(`partial {"text":"one two"}`)
		ok(t, s.Partial(bg, json.RawMessage(`{"text":"one two"}`))) // unchanged
		ok(t, s.Partial(bg, nil))
		see("partial ")
		ok(t, s.Partial(bg, json.RawMessage(`1`)))
		see("partial 1")
		ok(t, s.Partial(bg, json.RawMessage(` null`)))
		see("partial ")
		same(t, "requests", cost(s.IO().Sub(before)), "none")
		ok(t, s.Partial(bg, json.RawMessage(`2`)))
		see("partial 2")
		say(t, s, "u2", "a2")
		commit(t, s, nil)
		see("turn 2", "partial ")
		ok(t, s.Partial(bg, json.RawMessage(`3`)))
		see("partial 3")
		must(s.Branch(bg, "", nil))(t)
		see("branch 0", "partial ")
		ok(t, s.Partial(bg, json.RawMessage(`4`)))
		see("partial 4")
		must(s.Label(bg, collect(t, s.Entries(bg))[0].ID, "x"))(t)
		same(t, "a label", <-mine.changes, "label 1") // the other handle sees it when it polls, and it ends nothing
		ok(t, s.Reload(bg))
		same(t, "reloaded", <-mine.changes, "partial ")
		mine.ends(t)
		its.ends(t)
	})
}

// A watcher that starts late sees the present partial output; a slow one sees the newest; closing the handle ends its
// partial output.
func TestPartialLatest(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		setSleep(store, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		s, _ := grown(t, store, "s", 1, nil)
		other := open(t, store, "s")
		ok(t, s.Partial(bg, json.RawMessage(`1`)))
		n := 0
		ctx, cancel := context.WithCancel(bg)
		var got []string
		for c, err := range other.WatchPartial(ctx, other.Head().Seq) {
			ok(t, err)
			got = append(got, string(c.Partial))
			switch n++; n {
			case 1:
				for i := range 100 {
					ok(t, s.Partial(bg, json.RawMessage(fmt.Sprint(i))))
				}
			case 2:
				ok(t, s.Close())
			case 3:
				cancel()
			}
		}
		same(t, "seen", fmt.Sprintf("%q", got), `["1" "99" ""]`)
		cancel()
		if err := s.Partial(bg, json.RawMessage(`1`)); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// Values that cannot be partial output, and handles that cannot set it.
func TestPartialRefuses(t *testing.T) {
	store := newStore(t, memory.New(), nil)
	s, _ := grown(t, store, "s", 1, nil)
	just := `"` + strings.Repeat("x", 256<<10-2) + `"`
	ok(t, s.Partial(bg, json.RawMessage(just+"  ")))
	var e *coppice.Error
	err := s.Partial(bg, json.RawMessage(`"x`+just[1:]))
	if !errors.Is(err, backend.ErrTooLarge) || !errors.As(err, &e) || e.Object != "partial" || e.Op != "partial" {
		t.Errorf("too large: %v", err)
	}
	if err := s.Partial(bg, json.RawMessage(`{`)); err == nil {
		t.Error("no JSON")
	}
	ro := must(store.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true}))(t)
	if err := ro.Partial(bg, json.RawMessage(`1`)); !errors.Is(err, coppice.ErrReadOnly) {
		t.Errorf("read-only: %v", err)
	}
	if _, err := s.Commit(bg, coppice.Turn{Reason: "partial"}); err == nil {
		t.Error("a turn says that it is partial output")
	}
}

// A turn ends the partial output before it, also if it is kept as a branch; partial output set while a turn is being
// sent, or of a turn that was refused, stays.
func TestPartialEnds(t *testing.T) {
	for name, o := range map[string]struct {
		do   func(t *testing.T, s, rival *coppice.Session) error
		left string
	}{
		"refused": {func(t *testing.T, s, _ *coppice.Session) error {
			if err := commitErr(s, coppice.Turn{Base: "of another session"}); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			return nil
		}, `"part"`},
		"kept": {func(t *testing.T, s, rival *coppice.Session) error {
			must(rival.Commit(bg, coppice.Turn{State: 1}))(t)
			say(t, s, "u")
			return commitErr(s, coppice.Turn{KeepBoth: true})
		}, ""},
		"claimed": {func(_ *testing.T, s, _ *coppice.Session) error { _, err := s.Claim(bg); return err }, `"part"`},
		"rollback": {func(_ *testing.T, s, _ *coppice.Session) error {
			_, err := s.Rollback(bg, coppice.Target{Seq: 1})
			return err
		}, ""},
		"stay":   {func(_ *testing.T, s, _ *coppice.Session) error { _, err := s.Switch(bg, "main"); return err }, `"part"`},
		"close":  {func(_ *testing.T, s, _ *coppice.Session) error { return s.Close() }, ""},
		"reload": {func(_ *testing.T, s, _ *coppice.Session) error { return s.Reload(bg) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, store *coppice.Store) {
				setSleep(store, func(context.Context) error { return errors.New("enough") })
				s, _ := grown(t, store, "s", 2, nil)
				watcher := open(t, store, "s")
				ok(t, s.Partial(bg, json.RawMessage(`"part"`)))
				ok(t, o.do(t, s, open(t, store, "s")))
				got := ""
				for c := range watcher.WatchPartial(bg, watcher.Head().Seq) { // its first sleep fails
					got += string(c.Partial)
				}
				same(t, "left", got, o.left)
			})
		})
	}
}

func commitErr(s *coppice.Session, turn coppice.Turn) error {
	_, err := s.Commit(bg, turn)
	return err
}

// One goroutine streams, one commits, one watches: all turns are stored without a conflict. The watcher sees no partial
// output after the last turn.
func TestPartialRace(t *testing.T) {
	for kind := range backends {
		t.Run(kind, func(t *testing.T) {
			o := fixedOptions()
			o.Now = clockEvery(time.Second)
			store := newStore(t, backends[kind](t), o)
			s := create(t, store, "s", nil)
			say(t, s, "u")
			commit(t, s, nil)
			w := watchPartial(must(store.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true}))(t))
			streamed, ended := make(chan struct{}), make(chan string, 1)
			go func() {
				for text := range w.changes {
					if text == `partial "the last"` {
						close(streamed)
						break
					}
				}
				ended <- <-w.changes + ", " + <-w.changes
			}()
			const turns = 30
			ok(t, s.Partial(bg, json.RawMessage(`0`))) // turns before it end nothing, and nothing waits for them
			var wg sync.WaitGroup
			wg.Go(func() {
				for i := range 20 * turns {
					if err := s.Partial(bg, json.RawMessage(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() {
				for i := range turns {
					if _, err := s.Commit(bg, coppice.Turn{Entries: drafts("a"), State: state{Turns: i}}); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Wait()
			ok(t, s.Partial(bg, json.RawMessage(`"the last"`)))
			<-streamed
			say(t, s, "a")
			must(s.Commit(bg, coppice.Turn{Reason: "last"}))(t)
			same(t, "seen", <-ended, "last 1, partial ")
			w.ends(t)
			ok(t, s.Close())
			same(t, "path", len(collect(t, open(t, store, "s").Path(bg, ""))), turns+2)
		})
	}
}

// clockEvery returns a clock that advances by step with each call.
func clockEvery(step time.Duration) func() time.Time {
	var mu sync.Mutex
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(step)
		return at
	}
}

// The bytes and requests of a session without partial output stay the same.
func TestNoPartialNoCost(t *testing.T) {
	for kind, want := range map[string]string{"replace": "cc3877748b7dcf78", "append": "aa76a42865e74ab2"} {
		t.Run(kind, func(t *testing.T) {
			b := backends[kind](t)
			o := fixedOptions()
			o.Now = clockEvery(time.Millisecond)
			store := newStore(t, b, o)
			inline(store)
			s, rs := grown(t, store, "s", 3, nil)
			must(s.Label(bg, rs[0].Entry, "x"))(t)
			must(s.Branch(bg, rs[1].Entry, &coppice.BranchOptions{Name: "side"}))(t)
			must(s.Commit(bg, coppice.Turn{Key: "k", Entries: drafts("u"), State: state{Note: strings.Repeat("n", 5000)}}))(t)
			must(s.Commit(bg, coppice.Turn{State: state{Note: strings.Repeat("n", 5001)}}))(t)
			must(s.Rollback(bg, coppice.Target{Seq: 2}))(t)
			must(s.Claim(bg))(t)
			sum := sha256.New()
			fmt.Fprintln(sum, cost(s.IO()))
			ok(t, s.Close())
			for info, err := range b.List(bg, backend.ListOptions{}) {
				ok(t, err)
				p, _, err := b.Get(bg, info.Key, backend.Range{})
				ok(t, err)
				addUncompressed(t, sum, info.Key, p)
			}
			same(t, "sum of requests and bytes", hex.EncodeToString(sum.Sum(nil)[:8]), want)
		})
	}
}

// addUncompressed adds an object to a hash; of a checkpoint its decompressed content, since compressors change.
func addUncompressed(t *testing.T, sum hash.Hash, key string, p []byte) {
	t.Helper()
	if !strings.HasPrefix(key, "checkpoint_latest/") {
		fmt.Fprintf(sum, "%s\n%s\n", key, p)
		return
	}
	o, err := checkpoint.DecodeObject(p)
	ok(t, err)
	fmt.Fprintf(sum, "%s\n%s\n%s\n%+v\n", key, o.Document, o.Header, o.Summary.Head)
	for _, line := range o.Tail.Lines {
		fmt.Fprintf(sum, "%s\n", line)
	}
}
