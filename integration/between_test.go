package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/integration/s3test"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/snapshot"
)

// onStores runs a test on memory, where each order of events can be forced, and on a real server.
func onStores(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		b := memory.New()
		f(t, &world{t: t, direct: b, faulty: b})
	})
	t.Run("s3", func(t *testing.T) {
		b := s3test.For(t).Store(t)
		f(t, &world{t: t, direct: b, faulty: b})
	})
}

// machine is a host with its own faults. Its context ends when it dies.
type machine struct {
	fault.Backend
	w    *world
	name string
	ctx  context.Context
}

func (w *world) machine(name string) *machine {
	return &machine{Backend: fault.New(w.direct, 1), w: w, name: name, ctx: w.t.Context()}
}

// journal opens or creates the session; background work runs synchronously in the caller.
func (m *machine) journal(create bool) *journal.Journal {
	m.w.t.Helper()
	cfg := m.w.config(m)
	cfg.Writer, cfg.Go = m.name, func(job func()) { job() }
	if create {
		return journal.Create(cfg, state.Genesis{Header: fmt.Appendf(nil, `{"type":"session","version":3,"id":%q}`, sid)})
	}
	return must(journal.Open(m.w.t.Context(), cfg))(m.w.t)
}

// store returns the store of a program on the machine.
func (m *machine) store() *coppice.Store {
	return must(coppice.New(m, &coppice.Options{Writer: m.name}))(m.w.t)
}

// dies makes the machine die at the first call that at selects: that one has the fault kind, and no later one is
// answered.
func (m *machine) dies(kind fault.Kind, at func(fault.Call) bool) {
	ctx, cancel := context.WithCancel(m.w.t.Context())
	m.ctx = ctx
	dead := false
	m.Add(fault.Rule{Kind: kind, When: func(c fault.Call) bool {
		dead = dead || at(c)
		return dead
	}}, fault.Rule{Count: -1, When: func(fault.Call) bool {
		if dead {
			cancel() // ends waits for a retry
		}
		return dead
	}})
}

// late delivers the pending requests of a dead machine, and returns their number.
func (m *machine) late() int {
	m.Clear()
	return len(m.Deliver(m.w.t.Context()))
}

func putIn(folder string) func(fault.Call) bool {
	return func(c fault.Call) bool { return c.Op == "put" && strings.Contains(c.Key, folder) }
}

// keys returns those of one kind of object.
func (w *world) keys(folder string) []string {
	w.t.Helper()
	var list []string
	for info, err := range w.direct.List(w.t.Context(), backend.ListOptions{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if strings.Contains(info.Key, folder) {
			list = append(list, info.Key)
		}
	}
	return list
}

// sound checks that nothing is damaged, by reading every byte, and counts the leftovers.
func (w *world) sound() (leftovers int) {
	w.t.Helper()
	r, err := check.Verify(w.t.Context(), w.config(w.direct), true)
	if err != nil {
		w.t.Fatalf("verify: %v", err)
	}
	for _, p := range r.Problems {
		if p.Kind.Damage() {
			w.t.Errorf("verify: %v", p)
		}
		if p.Kind == check.Leftover {
			leftovers++
		}
	}
	return leftovers
}

// collect runs a garbage collection and returns the number of objects removed.
func (w *world) collect() int {
	w.t.Helper()
	r, err := gc.Run(w.t.Context(), w.config(w.direct), false)
	if err != nil || len(r.Problems) > 0 {
		w.t.Fatalf("collect: %+v, %v", r, err)
	}
	return r.Removed
}

var kinds = []fault.Kind{fault.Before, fault.After, fault.Late}

// A writer dies between the PUT of a segment, or of an index object, and the commit that would have named it: before
// the PUT, after it, or so that it arrives long after. The history is complete; the orphan stays while its writer may
// be alive, and is removed once a later epoch is in force. The writer, which was only slow, no longer names it.
func TestDeathBehindAnObject(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		for folder, turns := range map[string]int{"/transcript/": 20, "/index/": 80} {
			for _, kind := range kinds {
				t.Run(fmt.Sprintf("%s%s", folder[1:], kind), func(t *testing.T) {
					w := &world{t: t, direct: backend.WithPrefix(w.direct, folder[1:]+kind.String()), limits: journal.Limits{SealEntries: 2, Attempts: 4}}
					behindAnObject(w, folder, kind, turns)
				})
			}
		}
	})
}

func behindAnObject(w *world, folder string, kind fault.Kind, turns int) {
	t, l := w.t, newLedger()
	one, two := w.machine("one"), w.machine("two")
	j := one.journal(true)
	few := 10 // objects of the kind, or turns, before the death
	one.dies(kind, func(c fault.Call) bool {
		if folder == "/transcript/" && putIn(folder)(c) {
			few--
		}
		return putIn(folder)(c) && (few == 0 || folder != "/transcript/")
	})
	n := 0
	for ; len(one.Faults()) == 0; n++ {
		if n == turns {
			t.Fatalf("no object was written in %d turns", turns)
		}
		id := fmt.Sprintf("turn-%d", n)
		l.acked[id] = w.turn(j, id).Commit.Commit // it dies in the background work of the last one
	}
	before := len(w.keys(folder))
	w.check(l)
	w.sound()
	if removed := w.collect(); removed != 0 {
		t.Errorf("%d objects collected that their writer could still name", removed)
	}
	k := two.journal(false)
	l.acked["heir"] = w.turn(k, "heir").Commit.Commit
	arrived := one.late()
	orphans := map[fault.Kind]int{fault.After: 1, fault.Late: 1}[kind]
	if n := len(w.keys(folder)); arrived != map[fault.Kind]int{fault.Late: 1}[kind] || n < before+arrived {
		t.Errorf("%d objects, %d before; %d arrived late", n, before, arrived)
	}
	was, runs := len(w.keys("/")), len(w.keys("/ids/"))
	removed := w.collect()
	orphans += runs - len(w.keys("/ids/")) // runs of ids that were written for a checkpoint that was never stored
	if removed != orphans || len(w.keys("/")) != was-orphans || runs-len(w.keys("/ids/")) > 1 {
		t.Errorf("%d objects collected of %d orphans; %d of %d left", removed, orphans, len(w.keys("/")), was)
	}
	w.check(l)
	if left := w.sound(); left != 0 {
		t.Errorf("%d objects are left over", left)
	}
	slow := step(j, "slow")
	_, err := j.Commit(t.Context(), slow)
	if !errors.Is(err, journal.ErrConflict) {
		t.Errorf("the slow one's next commit: %v", err)
	}
	l.acked["slow"] = must(keepBoth(t.Context(), j, slow))(t).Commit.Commit
	if err := j.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 8 { // sealed and folded again
		id := fmt.Sprintf("on-%d", i)
		l.acked[id] = w.turn(j, id).Commit.Commit
	}
	w.check(l)
	w.sound()
	if len(w.keys(folder)) == 0 {
		t.Errorf("nothing stands in the place of what was lost in %s", folder)
	}
}

// A commit that is certainly refused (no permission, for example), or that was empty, has used the results of sealing
// or folding in the background, and was not stored: the next one uses them. Nothing is written twice and nothing is
// orphaned.
func TestRefusedCommitForgetsNoSegment(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		w.limits = journal.Limits{SealEntries: 2, Attempts: 4}
		l, m := newLedger(), w.machine("one")
		j := m.journal(true)
		written := 0
		m.Add(fault.Rule{When: func(c fault.Call) bool {
			if putIn("/transcript/")(c) || putIn("/index/")(c) {
				written++
			}
			return false
		}})
		turn := func(id, key string) journal.Outcome {
			t.Helper()
			s := step(j, id)
			s.Key = key
			r, err := j.Commit(t.Context(), s)
			if err != nil || len(r.Warnings) > 0 {
				t.Fatalf("turn %s: %v, warnings %q", id, err, r.Warnings)
			}
			return r
		}
		for i := range 75 { // enough for an index object
			id := fmt.Sprintf("turn-%d", i)
			before := written
			l.acked[id] = turn(id, id).Commit.Commit
			switch {
			case written == before:
			case i%2 == 0:
				m.Add(fault.Rule{When: putIn("checkpoint_latest/"), Outcome: backend.NotApplied})
				if _, err := j.Commit(t.Context(), step(j, "refused")); backend.OutcomeOf(err) != backend.NotApplied {
					t.Fatalf("commit: %v", err)
				}
			case !turn("again", "turn-0").Repeated:
				t.Error("a known turn was applied again")
			}
		}
		l.acked["last"] = turn("last", "last").Commit.Commit
		l.failed["refused"] = errors.New("no permission")
		w.check(l)
		named, last := 0, j.State()
		for level, refs := range last.Segments.Levels {
			named += len(refs) * []int{1, 65}[level]
		}
		have, folds := len(w.keys("/transcript/"))+len(w.keys("/index/")), len(w.keys("/index/"))
		if due := written - named; have != written || due > 1 || folds == 0 { // one may not be named yet
			t.Errorf("%d objects written, %d of them of indexes, %d there, %d that the head reaches", written, folds, have, named)
		}
		if n := len(last.Tail); n >= 4 {
			t.Errorf("%d lines wait to be sealed", n)
		}
	})
}

// Processes of one turn each: none lives long enough to name the results of its background work. Sealing and folding
// still happen when due, there are almost no orphans, and the session does not reach a limit.
func TestProcessATurn(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		w.limits = journal.Limits{SealEntries: 2, Attempts: 4}
		l := newLedger()
		l.acked["first"] = w.turn(w.machine("first").journal(true), "first").Commit.Commit
		var last *state.State
		for i := range 200 { // a segment every other turn
			id := fmt.Sprintf("turn-%d", i)
			j := w.machine(id).journal(false)
			l.acked[id] = w.turn(j, id).Commit.Commit
			last = j.State()
			if err := j.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		segments, indexes := 0, 0
		for level, refs := range last.Segments.Levels {
			segments += len(refs) * []int{1, 64}[level]
			indexes += len(refs) * level
		}
		if indexes == 0 || len(last.Segments.Levels[0]) > 66 {
			t.Errorf("nothing is folded: the head names %d segments", segments)
		}
		if s, i := len(w.keys("/transcript/")), len(w.keys("/index/")); s > segments+1 || i > indexes+1 {
			t.Errorf("%d segments and %d index objects are there; the head reaches %d and %d", s, i, segments, indexes)
		}
		w.check(l)
		w.sound()
	})
}

// A program's host dies between the PUT of an image, a snapshot or a tombstone and the next step. Everything
// acknowledged is complete, on every host; an image and a snapshot stay with their session, and the next caller
// completes a deletion.
func TestDeathOfAProgram(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		removal := func(c fault.Call) bool { return c.Op == "delete" }
		for name, c := range map[string]struct {
			at     func(fault.Call) bool
			folder string // where it leaves objects; "" = it was a deletion
			last   func(m *machine, s *coppice.Session) error
		}{
			"image": {putIn("/blobs/"), "/blobs/", func(m *machine, s *coppice.Session) error {
				_, err := s.Append(m.ctx, entry.User("look", entry.Image("image/png", bytes.Repeat([]byte("0123456789abcdef"), 20_000))))
				_, cerr := s.Commit(m.ctx, coppice.Turn{State: counter{Turns: 4}})
				return errors.Join(err, cerr)
			}},
			"snapshot": {putIn("/snapshots/"), "/snapshots/", func(m *machine, s *coppice.Session) error {
				_, err := s.Snapshot(m.ctx, "tag")
				return err
			}},
			"tombstone": {putIn("checkpoint_latest/"), "", func(m *machine, _ *coppice.Session) error { return m.store().Delete(m.ctx, sid) }},
			"removal":   {removal, "", func(m *machine, _ *coppice.Session) error { return m.store().Delete(m.ctx, sid) }},
		} {
			for _, kind := range kinds {
				t.Run(fmt.Sprintf("%s %s", name, kind), func(t *testing.T) {
					w := &world{t: t, direct: backend.WithPrefix(w.direct, name+kind.String())}
					one := w.machine("one")
					s := must(one.store().Create(sid, &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}}))(t)
					for i := range 3 {
						talk(t, s, i+1)
						must(s.Snapshot(t.Context(), "before"))(t)
					}
					one.dies(kind, c.at)
					if err := c.last(one, s); err == nil {
						t.Error("the host is dead, and says that all is well")
					}
					if c.folder == "" {
						w.endsDeletion(one, kind == fault.After || name == "removal")
						return
					}
					w.goesOn(one, c.folder, map[fault.Kind]int{fault.After: 1, fault.Late: 1}[kind])
				})
			}
		}
	})
}

// endsDeletion checks that an interrupted deletion has left all of the session, or that the next caller completes it.
func (w *world) endsDeletion(dead *machine, buried bool) {
	t, ctx := w.t, w.t.Context()
	t.Helper()
	store := w.machine("two").store()
	after, err := store.Open(ctx, sid, nil)
	if errors.Is(err, fs.ErrNotExist) != buried {
		t.Errorf("open: %v", err)
	}
	if !buried {
		if n := len(w.keys("/snapshots/")); n != 3 || turns(t, after) != 3 {
			t.Errorf("the session stands, with %d snapshots of 3 and state %d", n, turns(t, after))
		}
		w.sound()
	}
	if left := len(w.keys("/snapshots/")); buried && left == 3 {
		must(store.GC(ctx, "", false))(t)
	} else if err := store.Delete(ctx, sid); err != nil {
		t.Error(err)
	}
	dead.late()
	if keys := w.keys(sid); len(keys) != 1 || keys[0] != "checkpoint_latest/"+sid {
		t.Errorf("left: %q", keys)
	}
}

// goesOn checks that the session of a dead host is complete, that the host left n objects in folder that no commit
// names, and that these are deleted with the session.
func (w *world) goesOn(dead *machine, folder string, n int) {
	t, ctx := w.t, w.t.Context()
	t.Helper()
	store := w.machine("two").store()
	before := map[string]int{"/snapshots/": 3}[folder]
	s := must(store.Open(ctx, sid, nil))(t)
	if n := turns(t, s); n != 3 {
		t.Errorf("state %d of 3", n)
	}
	must(s.Claim(ctx))(t)
	dead.late()
	w.sound()
	if removed := w.collect(); removed != 0 {
		t.Errorf("%d objects collected: they live with their session", removed)
	}
	if have := len(w.keys(folder)) - before; have != n {
		t.Errorf("%d objects in %s, want %d", have, folder, n)
	}
	if folder == "/snapshots/" && n > 0 {
		if n := turns(t, must(s.At(ctx, coppice.Target{Tag: "tag"}))(t)); n != 3 {
			t.Errorf("state %d in the snapshot", n)
		}
		if dropped := must(s.Prune(ctx, snapshot.Retention{Tags: []string{"before"}}))(t); len(dropped) != 1 {
			t.Errorf("pruned: %v", dropped)
		}
	}
	talk(t, s, 4)
	w.sound()
	if err := store.Delete(ctx, sid); err != nil {
		t.Error(err)
	}
	if keys := w.keys("sessions/"); len(keys) != 0 {
		t.Errorf("left: %q", keys)
	}
}
