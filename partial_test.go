package coppice_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// watchClock is a clock that a test moves on.
type watchClock struct {
	mu sync.Mutex
	at time.Time
}

func newWatchClock() *watchClock {
	return &watchClock{at: testutil.Shifted(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))}
}

func (c *watchClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

func (c *watchClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// streaming are the options of a handle that writes what it streams.
var streaming = &coppice.SessionOptions{PartialEvery: 2 * time.Second}

// onEachStream runs a test on every kind of store, whose background work is done at once, with a clock.
func onEachStream(t *testing.T, f func(t *testing.T, s *coppice.Store, c *watchClock)) {
	t.Helper()
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newWatchClock()
			o := fixedOptions()
			o.Now = c.now
			s := newStore(t, open(t), o)
			coppice.Inline(s)
			f(t, s, c)
		})
	}
}

// streams sets partial output that is to be written: one call begins the answer, the other one comes later.
func streams(t testing.TB, s *coppice.Session, c *watchClock, text string) {
	t.Helper()
	ok(t, s.Partial(bg, json.RawMessage(`"`+text[:1]+`"`)))
	c.pass(2 * time.Second)
	ok(t, s.Partial(bg, json.RawMessage(`"`+text+`"`)))
}

// interrupted is what a resume of a session would return.
func interrupted(t testing.TB, store *coppice.Store, id string) string {
	t.Helper()
	s := open(t, store, id)
	defer func() { ok(t, s.Close()) }()
	return string(s.Interrupted())
}

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
	for range w.changes { // what was on its way
	}
	ok(t, <-w.done)
}

// Partial output is seen on every handle of the store at once, costs no request, and is over with the turn.
func TestPartialInMemory(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		coppice.SetSleep(store, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
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
		ok(t, s.Partial(bg, json.RawMessage(`{"text":"one two"}`))) // nothing new
		ok(t, s.Partial(bg, nil))
		see("partial ")
		ok(t, s.Partial(bg, json.RawMessage(`1`)))
		see("partial 1")
		ok(t, s.Partial(bg, json.RawMessage(` null`)))
		see("partial ")
		same(t, "requests", cost(s.IO().Sub(before)), "none")
		same(t, "not durable", string(s.Interrupted())+interrupted(t, store, "s"), "")
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
		same(t, "a label", <-mine.changes, "label 1") // the other handle learns of it when it polls, and it ends nothing
		ok(t, s.Reload(bg))
		same(t, "reloaded", <-mine.changes, "partial ")
		mine.ends(t)
		its.ends(t)
	})
}

// A watcher that comes late sees what is streamed; one that is slow sees the newest; the end of the handle is the end of
// what it streamed.
func TestPartialLatest(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		coppice.SetSleep(store, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
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

// What cannot be partial output, and who cannot set it.
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
	for _, every := range []time.Duration{-1, 1, 2*time.Second - 1} {
		o := &coppice.SessionOptions{PartialEvery: every}
		if _, err := store.Create("t", o); err == nil {
			t.Errorf("created with PartialEvery %v", every)
		}
		if _, err := store.Open(bg, "s", o); err == nil {
			t.Errorf("opened with PartialEvery %v", every)
		}
		if _, err := coppice.New(memory.New(), &coppice.Options{Session: *o}); err == nil {
			t.Errorf("a store with PartialEvery %v", every)
		}
	}
	if _, err := s.Commit(bg, coppice.Turn{Reason: "partial"}); err == nil {
		t.Error("a turn says that it is partial output")
	}
}

// Partial output is written when it is due, as a commit of its own that holds nothing else, and the next turn takes it
// out again; a resume returns it, at the cost of a resume.
func TestPartialDurable(t *testing.T) {
	onEachStream(t, func(t *testing.T, store *coppice.Store, c *watchClock) {
		s, rs := grown(t, store, "s", 2, streaming)
		before := cost(open(t, store, "s").IO())
		say(t, s, "u3")
		one := s.IO()
		ok(t, s.Partial(bg, json.RawMessage(`"a"`)))
		c.pass(1900 * time.Millisecond)
		ok(t, s.Partial(bg, json.RawMessage(`"a3"`)))
		same(t, "before it is due", cost(s.IO().Sub(one)), "none")
		c.pass(200 * time.Millisecond)
		ok(t, s.Partial(bg, json.RawMessage(`"a3 a4"`)))
		if io := s.IO().Sub(one); io.Put+io.Append != 1 || io.Get+io.List+io.Stat+io.Delete > 0 {
			t.Errorf("a write costs %s", cost(io))
		}
		ok(t, s.Partial(bg, json.RawMessage(`"a3 a4 a5"`)))
		same(t, "seq", s.Head().Seq, rs[1].Seq+1)
		same(t, "own", string(s.Interrupted()), `"a3 a4"`)
		again := open(t, store, "s")
		same(t, "resumed", string(again.Interrupted()), `"a3 a4"`)
		same(t, "a resume costs", cost(again.IO()), before)
		same(t, "context", texts(t, again), "u1 a1 u2 a2")
		same(t, "head", again.Head().Entry, rs[1].Entry)
		log := history(t, again)
		same(t, "log", fmt.Sprint(log[0].Reason, " ", log[0].Entries, log[0].Entry == log[1].Entry), "partial 0 true")
		v := must(again.At(bg, coppice.Target{Seq: log[0].Seq}))(t)
		same(t, "at its commit", string(v.Interrupted()), `"a3 a4"`)
		v = must(again.At(bg, coppice.Target{Seq: log[1].Seq}))(t)
		same(t, "at the one before", string(v.Interrupted()), "")
		v = must(again.At(bg, coppice.Target{Entry: rs[1].Entry}))(t)
		same(t, "at the entry", string(v.Interrupted()), "")
		say(t, s, "a3 a4 a5")
		r := must(s.Commit(bg, coppice.Turn{State: state{Turns: 3}, Base: ""}))(t)
		same(t, "entries of the turn", r.Entries, 2)
		same(t, "after the turn", string(s.Interrupted())+interrupted(t, store, "s"), "")
		ok(t, s.Close())
		v = must(open(t, store, "s").At(bg, coppice.Target{Seq: log[0].Seq}))(t)
		same(t, "later", string(v.Interrupted()), `"a3 a4"`)
		rep := must(store.Verify(bg, "s", true))(t)
		same(t, "problems", len(rep.Problems), 0)
	})
}

// What becomes of durable partial output, by operation.
func TestPartialEnds(t *testing.T) {
	for name, o := range map[string]struct {
		do   func(t *testing.T, s *coppice.Session) error
		left string
	}{
		"turn":     {func(t *testing.T, s *coppice.Session) error { return commitErr(s, coppice.Turn{}) }, ""},
		"branch":   {func(t *testing.T, s *coppice.Session) error { _, err := s.Branch(bg, s.Head().Entry, nil); return err }, ""},
		"switch":   {func(t *testing.T, s *coppice.Session) error { _, err := s.Switch(bg, "side"); return err }, ""},
		"stay":     {func(t *testing.T, s *coppice.Session) error { _, err := s.Switch(bg, "main"); return err }, `"part"`},
		"rollback": {func(t *testing.T, s *coppice.Session) error { _, err := s.Rollback(bg, coppice.Target{}); return err }, ""},
		"edit": {func(t *testing.T, s *coppice.Session) error {
			_, err := s.Edit(bg, s.Head().Entry, entry.User("x"))
			return err
		}, ""},
		"clear":  {func(t *testing.T, s *coppice.Session) error { return s.Partial(bg, nil) }, ""},
		"label":  {func(t *testing.T, s *coppice.Session) error { _, err := s.Label(bg, s.Head().Entry, "x"); return err }, `"part"`},
		"claim":  {func(t *testing.T, s *coppice.Session) error { _, err := s.Claim(bg); return err }, `"part"`},
		"reload": {func(t *testing.T, s *coppice.Session) error { return s.Reload(bg) }, `"part"`},
		"rebase": {func(t *testing.T, s *coppice.Session) error { _, err := s.Rebase(bg); return err }, `"part"`},
		"pending": {func(t *testing.T, s *coppice.Session) error {
			say(t, s, "u")
			_, err := s.Rebase(bg)
			return err
		}, ""},
		"snapshot": {func(t *testing.T, s *coppice.Session) error {
			info, err := s.Snapshot(bg, "x")
			ok(t, err)
			v := must(s.At(bg, coppice.Target{Snapshot: info.ID}))(t)
			same(t, "in the snapshot", string(v.Interrupted()), `"part"`)
			return nil
		}, `"part"`},
		"fork": {func(t *testing.T, s *coppice.Session) error {
			f := must(s.Fork(bg, coppice.Target{}, "f", nil))(t)
			same(t, "in the fork", string(f.Interrupted()), "")
			same(t, "state of the fork", stateOf(t, f), state{Turns: 2})
			return f.Close()
		}, `"part"`},
		"close": {func(t *testing.T, s *coppice.Session) error { return s.Close() }, `"part"`},
	} {
		t.Run(name, func(t *testing.T) {
			onEachStream(t, func(t *testing.T, store *coppice.Store, c *watchClock) {
				s, rs := grown(t, store, "s", 2, streaming)
				must(s.Branch(bg, rs[0].Entry, &coppice.BranchOptions{Name: "side"}))(t)
				must(s.Switch(bg, "main"))(t)
				streams(t, s, c, "part")
				same(t, "before", interrupted(t, store, "s"), `"part"`)
				ok(t, o.do(t, s))
				same(t, "after", interrupted(t, store, "s"), o.left)
				if name != "close" {
					same(t, "on the handle", string(s.Interrupted()), o.left)
				}
				rep := must(store.Verify(bg, "s", true))(t)
				same(t, "problems", rep.Problems, []*coppice.Error(nil))
			})
		})
	}
}

func commitErr(s *coppice.Session, turn coppice.Turn) error {
	_, err := s.Commit(bg, turn)
	return err
}

// Turns that were made before a commit of partial output do not conflict with it: not of another writer, not one with a
// base, not the handle's own; nor does partial output conflict with another writer's label.
func TestPartialConflictsWithNothing(t *testing.T) {
	onEachStream(t, func(t *testing.T, store *coppice.Store, c *watchClock) {
		s, rs := grown(t, store, "s", 2, streaming)
		other := open(t, store, "s")
		say(t, other, "u3")
		streams(t, s, c, "part")
		r := must(other.Commit(bg, coppice.Turn{State: state{Turns: 3}}))(t)
		same(t, "kept", r.Kept, "")
		same(t, "ended by the other writer", interrupted(t, store, "s"), "")

		ok(t, s.Reload(bg))
		head := s.Head().Commit
		streams(t, s, c, "more")
		say(t, s, "a3")
		ok(t, commitErr(s, coppice.Turn{State: state{Turns: 4}}))
		same(t, "of the turn before", rs[1].Commit == head, false)

		head = s.Head().Commit
		streams(t, s, c, "based")
		based := coppice.Turn{Base: head, Entries: drafts("u4"), State: state{Turns: 5}}
		ok(t, commitErr(s, based))
		head = s.Head().Commit
		streams(t, s, c, "again")
		must(other.Rebase(bg))(t)
		based = coppice.Turn{Base: head, Entries: drafts("a4"), State: state{Turns: 6}}
		ok(t, commitErr(other, based))
		same(t, "ended", interrupted(t, store, "s"), "")

		ok(t, s.Reload(bg))
		ok(t, s.Partial(bg, json.RawMessage(`"b"`)))
		must(other.Label(bg, rs[0].Entry, "x"))(t)
		streams(t, s, c, "beside a label")
		same(t, "folded in", interrupted(t, store, "s"), `"beside a label"`)
		say(t, s, "u5")
		ok(t, commitErr(s, coppice.Turn{State: state{Turns: 7}}))
		same(t, "all", texts(t, open(t, store, "s")), "u1 a1 u2 a2 u3 a3 u4 a4 u5")
	})
}

// Partial output that meets another writer's turn or claim is dropped. The handle's turn gets the answer that it would
// have got without it.
func TestPartialIsDropped(t *testing.T) {
	for name, winner := range map[string]func(t *testing.T, w *coppice.Session){
		"turn":  func(t *testing.T, w *coppice.Session) { say(t, w, "won"); commit(t, w, nil) },
		"claim": func(t *testing.T, w *coppice.Session) { must(w.Claim(bg))(t) },
	} {
		t.Run(name, func(t *testing.T) {
			onEachStream(t, func(t *testing.T, store *coppice.Store, c *watchClock) {
				s, _ := grown(t, store, "s", 1, streaming)
				say(t, s, "u2")
				winner(t, open(t, store, "s"))
				before := history(t, open(t, store, "s"))[0].Commit
				streams(t, s, c, "part")
				same(t, "nothing written", history(t, open(t, store, "s"))[0].Commit, before)
				_, err := s.Append(bg, entry.Assistant("a2")) // the handle knows of nothing
				ok(t, err)
				err = commitErr(s, coppice.Turn{State: state{Turns: 2}})
				if want := map[string]error{"turn": coppice.ErrConflict, "claim": coppice.ErrFenced}[name]; !errors.Is(err, want) {
					t.Fatalf("the turn: %v", err)
				}
				r := must(s.Rebase(bg))(t)
				same(t, "kept", r.Kept != "" && r.Entries == 2, true)
				ok(t, s.Partial(bg, nil))
			})
		})
	}
}

// drafts are messages.
func drafts(texts ...string) (list []transcript.Draft) {
	for _, text := range texts {
		if strings.HasPrefix(text, "a") {
			list = append(list, entry.Assistant(text))
		} else {
			list = append(list, entry.User(text))
		}
	}
	return list
}

// A turn that is committed while partial output is on its way comes after it and ends it; one that waits already
// supersedes it. Whatever becomes of the request, the turn is stored.
func TestPartialOnItsWay(t *testing.T) {
	for name, decide := range map[string]func(r *rig, write *request){
		"passed":  func(_ *rig, w *request) { w.pass() },
		"refused": func(_ *rig, w *request) { w.refuse() },
		"applied, answer lost": func(_ *rig, w *request) {
			w.decide(func(write writing) (backend.Info, error) {
				_, _ = write(w.body)
				return backend.Info{}, failure("write", "", backend.Unknown, errDown)
			})
		},
		"never applied, answer lost": func(_ *rig, w *request) {
			w.decide(func(writing) (backend.Info, error) {
				return backend.Info{}, failure("write", "", backend.Unknown, errDown)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, objects := range gates {
				t.Run(kind, func(t *testing.T) {
					older = goroutines()
					c := newWatchClock()
					r := gatedAt(t, objects(), c.now)
					defer settled()
					defer r.gate.open()
					s := r.start(t, streaming)
					streams(t, s, c, "part")
					write := r.gate.next(t)
					say(t, s, "u2", "a2")
					turn := following(bg, t, s, turnsTo(2))
					same(t, "the turn waits", turn.ended(t), false)
					ok(t, s.Partial(bg, json.RawMessage(`"late"`)))
					decide(r, write)
					r.gate.open()
					_, err := turn.wait(t)
					ok(t, err)
					same(t, "durable", interrupted(t, r.others, "s"), "")
					same(t, "texts", texts(t, r.fresh(t)), "u1 a1 u2 a2")
					r.agrees(t, s)
					ok(t, s.Close())
				})
			}
		})
	}
}

// Partial output that was due before a turn, and not sent, is never written after it.
func TestPartialSuperseded(t *testing.T) {
	for kind, objects := range gates {
		t.Run(kind, func(t *testing.T) {
			older = goroutines()
			c := newWatchClock()
			r := gatedAt(t, objects(), c.now)
			defer settled()
			defer r.gate.open()
			s := r.start(t, streaming)
			label := begin(func() (coppice.Receipt, error) { return s.Label(bg, s.Head().Entry, "x") })
			write := r.gate.next(t)
			streams(t, s, c, "part") // waits for the label
			say(t, s, "u2")
			turn := following(bg, t, s, turnsTo(2))
			write.pass()
			write = r.gate.next(t)
			if bytes.Contains(write.body, []byte(`"reason":"partial"`)) {
				t.Error("partial output is sent before a turn that ends it")
			}
			r.gate.open()
			for _, c := range []*call[coppice.Receipt]{label, turn} {
				_, err := c.wait(t)
				ok(t, err)
			}
			quiet(t)
			same(t, "durable", interrupted(t, r.others, "s"), "")
			same(t, "commits", s.Head().Seq, 3)
			ok(t, s.Close())
		})
	}
}

// A process that dies between partial output and the turn leaves the interrupted answer to the next one; one that dies
// after the turn does not. The log alone says so, too.
func TestPartialSurvives(t *testing.T) {
	onEachStream(t, func(t *testing.T, store *coppice.Store, c *watchClock) {
		s, _ := grown(t, store, "s", 2, streaming)
		streams(t, s, c, "part")
		after := must(store.Open(bg, "s", streaming))(t) // s is never heard of again
		same(t, "interrupted", string(after.Interrupted()), `"part"`)
		_, err := after.Claim(bg)
		ok(t, err)
		same(t, "claimed", string(after.Interrupted()), `"part"`)
		_, err = after.Run(bg, nil, func(ctx context.Context) error {
			same(t, "in a run", string(after.Interrupted()), `"part"`)
			_, err := after.Append(ctx, entry.User("u3"), entry.Assistant("a3"))
			return err
		}, nil)
		ok(t, err)
		same(t, "after the turn", interrupted(t, store, "s"), "")
	})
}

func TestPartialFromTheLogAlone(t *testing.T) {
	for _, kind := range []string{"append", "local"} { // elsewhere the tail of the transcript is in the object that is lost
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b, c := backends[kind](t), newWatchClock()
			o := fixedOptions()
			o.Now = c.now
			store := newStore(t, b, o)
			coppice.Inline(store)
			s, _ := grown(t, store, "s", 2, streaming)
			streams(t, s, c, "part")
			ok(t, s.Close())
			ok(t, b.Delete(bg, "checkpoint_latest/s"))
			same(t, "recovered", interrupted(t, store, "s"), `"part"`)
			must(store.Repair(bg, "s", false))(t)
			same(t, "repaired", interrupted(t, store, "s"), `"part"`)
			rep := must(store.Verify(bg, "s", true))(t)
			same(t, "problems", rep.Problems, []*coppice.Error(nil))
		})
	}
}

// Nothing of partial output is exported.
func TestPartialIsNotExported(t *testing.T) {
	onEachStream(t, func(t *testing.T, store *coppice.Store, c *watchClock) {
		s, _ := grown(t, store, "s", 2, streaming)
		var before, after bytes.Buffer
		ok(t, store.ExportPi(bg, "s", &before))
		streams(t, s, c, "part")
		ok(t, store.ExportPi(bg, "s", &after))
		same(t, "pi", after.String(), before.String())
	})
}

// A failing store costs partial output, and no turn anything.
func TestPartialOnAFailingStore(t *testing.T) {
	for kind, open := range backends {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := newWatchClock()
			b := fault.New(open(t), 1)
			o := &coppice.Options{Now: c.now, Rand: rand.NewChaCha8([32]byte{7}), Writer: "test"}
			store := newStore(t, b, o)
			coppice.Inline(store)
			coppice.SetSleep(store, func(ctx context.Context) error { return ctx.Err() })
			s, _ := grown(t, store, "s", 1, streaming)
			for i, kind := range []fault.Kind{fault.Before, fault.After, fault.Late} {
				writes := 0
				b.Add(fault.Rule{Kind: kind, Count: -1, When: func(c fault.Call) bool {
					writing := c.Op == "put" || c.Op == "append"
					if writing {
						writes++
					}
					return writing || writes > 0
				}})
				streams(t, s, c, fmt.Sprintf("%d part", i))
				if writes == 0 {
					t.Error("nothing was tried")
				}
				b.Clear()
				say(t, s, "u", "a")
				ok(t, commitErr(s, coppice.Turn{State: state{Turns: i}}))
				same(t, "after the turn", interrupted(t, store, "s"), "")
				same(t, "state", stateOf(t, s), state{Turns: i})
				b.Deliver(bg)
				same(t, "after the request arrived late", interrupted(t, store, "s"), "")
			}
			ok(t, s.Close())
		})
	}
}

// Memory and document agree on what has ended partial output: a Rebase and a Claim that store what was appended end it,
// a turn of which everything is known and nothing is committed does not.
func TestPartialMemoryAndDocumentAgree(t *testing.T) {
	for name, ends := range map[string]func(s *coppice.Session) error{
		"rebase": func(s *coppice.Session) error { _, err := s.Rebase(bg); return err },
		"claim":  func(s *coppice.Session) error { _, err := s.Claim(bg); return err },
		"known": func(s *coppice.Session) error {
			return commitErr(s, coppice.Turn{Entries: noted("n"), OnKnownID: coppice.KnownIgnore})
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachStream(t, func(t *testing.T, store *coppice.Store, c *watchClock) {
				s := create(t, store, "s", streaming)
				must(s.Commit(bg, coppice.Turn{Entries: noted("n")}))(t)
				streams(t, s, c, "partial")
				if name != "known" {
					say(t, s, "pending")
				}
				w := watchPartial(s)
				same(t, "first", <-w.changes, `partial "partial"`)
				ok(t, ends(s))
				want, last := "", "partial " // nothing is streamed any more
				if name == "known" {
					must(s.Label(bg, "n", "x"))(t)
					want, last = `"partial"`, "label 1"
				}
				for change := range w.changes { // the commits come before what they end
					if change == last {
						break
					}
					if change == "partial " {
						t.Error("the watcher was told of an end that the document has not")
					}
				}
				w.ends(t)
				same(t, "document", string(s.Interrupted()), want)
			})
		})
	}
}
