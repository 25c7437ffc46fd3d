package integration

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// market is one session that machines write, read and collect concurrently.
type market struct {
	*world
	*ledger
	news []chan struct{} // for each reader: a turn has ended. Closed when all have.
}

// life is one machine that commits turns until it dies, between two requests.
func (m *market) life(name string, rng *rand.Rand) {
	ctx, host := m.t.Context(), m.machine(name)
	j, err := journal.Open(ctx, m.config(host))
	if err == nil && rng.IntN(4) == 0 {
		_, err = j.Commit(ctx, &journal.Step{Reason: "claim", Claim: true})
		if errors.Is(err, journal.ErrConflict) || errors.Is(err, journal.ErrFenced) {
			err = j.Reload(ctx)
		}
	}
	if err != nil {
		m.t.Errorf("a new host: %v", err)
		return
	}
	folder, left := []string{"/transcript/", "/index/", "checkpoint_latest/"}[rng.IntN(3)], 2+rng.IntN(3)
	host.dies(kinds[rng.IntN(3)], func(c fault.Call) bool {
		if putIn(folder)(c) {
			left--
		}
		return left < 0 || folder == "/index/" && putIn(folder)(c)
	})
	for n := range 8 {
		id := fmt.Sprintf("%s-%d", name, n)
		s := step(j, id)
		s.KeepBoth = true
		r, err := j.Commit(host.ctx, s)
		if errors.Is(err, journal.ErrFenced) { // another one claimed it: the turn is kept
			r, err = keepBoth(host.ctx, j, s)
		}
		dead := len(host.Faults()) > 0
		if err != nil && !dead {
			m.t.Errorf("%s: %v", id, err)
		}
		if m.note(id, r, err); err != nil && dead {
			m.mu.Lock()
			delete(m.failed, id)
			m.doubt[id] = err // its request may still arrive
			m.mu.Unlock()
		}
		for _, c := range m.news {
			select {
			case c <- struct{}{}:
			default: // it has not seen the last one yet
			}
		}
		if dead {
			break
		}
	}
	if err := j.Close(host.ctx); err != nil && len(host.Faults()) == 0 {
		m.t.Errorf("close: %v", err)
	}
	if host.Clear(); rng.IntN(2) == 0 {
		host.late()
	}
}

// known returns the turns acknowledged so far.
func (m *market) known() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.acked)
}

// read is a reader with one handle from the start, and a new one for each read.
func (m *market) read(news chan struct{}, rng *rand.Rand) {
	old := m.open(m.direct)
	first, held := old.State(), old.State()
	for range news {
		known := m.known()
		fresh := m.open(m.direct)
		for name, look := range map[string]func() error{
			"the newest head":                  func() error { return m.whole(fresh, fresh.State(), known, rng) },
			"the first head":                   func() error { return m.whole(old, first, nil, rng) },
			"the head before, by a new handle": func() error { return m.whole(fresh, held, nil, rng) },
		} {
			if err := look(); err != nil {
				m.t.Errorf("%s: %v", name, err)
				return
			}
		}
		held = fresh.State()
	}
}

// whole checks that all of st can be read: every line, every skeleton, one old commit; and that it contains the
// acknowledged turns.
func (m *market) whole(j *journal.Journal, st *state.State, known map[string]string, rng *rand.Rand) error {
	ctx := m.t.Context()
	found, next := map[string]bool{}, uint64(0)
	for l, err := range j.Lines(ctx, st, nil) {
		if err != nil {
			return err
		}
		if l.Ord != next {
			return fmt.Errorf("line %d where %d is due", l.Ord, next)
		}
		next++
		if e, err := segment.Entry(l.Ord, l.Raw); err == nil && !l.Commit {
			found[e.ID] = true
		}
	}
	for id := range known {
		if !found[id] {
			return fmt.Errorf("%s was acknowledged and is not there", id)
		}
	}
	for sk, err := range j.Skeletons(ctx, st, 0) {
		if err != nil {
			return err
		}
		next -= uint64(sk.Len())
	}
	if next != 0 {
		return fmt.Errorf("the tree lacks %d lines", next)
	}
	_, err := j.At(ctx, st, rng.Uint64N(st.Summary.Seq+1))
	return err
}

// Machines that write, die and return, readers of the newest head and of old ones, and continuous collection: nothing
// reachable disappears. After one more claim and collection, the leftovers of the dead are removed, and nothing else
// is.
func TestCollectBesideHosts(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		w.limits = journal.Limits{SealEntries: 2, Attempts: 20}
		m := &market{world: w, ledger: newLedger(), news: []chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}}
		first := w.machine("first").journal(true)
		for i := range 50 { // so that references are folded
			id := fmt.Sprintf("first-%d", i)
			m.acked[id] = w.turn(first, id).Commit.Commit
		}
		var writers, others sync.WaitGroup
		for i := range 3 {
			writers.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), 1))
				for life := range 3 {
					m.life(fmt.Sprintf("w%d-%d", i, life), rng)
				}
			})
		}
		for i := range 2 {
			others.Go(func() { m.read(m.news[i], rand.New(rand.NewPCG(uint64(i), 2))) })
		}
		removed := 0
		others.Go(func() {
			for range m.news[2] {
				removed += w.collect()
			}
		})
		writers.Wait()
		for _, c := range m.news {
			close(c)
		}
		others.Wait()

		heir := w.machine("heir").journal(false)
		for i := range 20 {
			id := fmt.Sprintf("heir-%d", i)
			m.acked[id] = w.turn(heir, id).Commit.Commit
		}
		heir = w.machine("the next").journal(false)
		m.acked["claimed"] = w.turn(heir, "claimed").Commit.Commit
		before := len(w.keys("/"))
		last := w.collect()
		if n := len(w.keys("/")); n != before-last || w.collect() != 0 {
			t.Errorf("%d objects of %d, %d collected", n, before, last)
		}
		m.unique("/transcript/", 1)
		m.unique("/index/", 2)
		if left := w.sound(); left != 0 {
			t.Errorf("%d objects are left over", left)
		}
		m.check(m.ledger)
		if removed+last == 0 || len(w.keys("/index/")) == 0 {
			t.Errorf("%d objects collected, %d of indexes: nothing was proven", removed+last, len(w.keys("/index/")))
		}
		t.Logf("%d turns acknowledged, %d in doubt, %d objects collected on the way, %d at the end of %d",
			len(m.acked), len(m.doubt), removed, last, before)
	})
}

// unique checks that no two objects cover the same entries: except for the newest writer's, one of them would be an
// orphan. Names begin with numbers that identify the covered entries.
func (m *market) unique(folder string, numbers int) {
	seen := map[string]string{}
	for _, key := range m.keys(folder) {
		name := strings.Join(strings.SplitN(key[strings.LastIndexByte(key, '/')+1:], "-", numbers+1)[:numbers], "-")
		if seen[name] != "" && !strings.Contains(key, fmt.Sprintf("-%020d-", m.open(m.direct).State().Summary.Epoch)) {
			m.t.Errorf("an orphan is left: %s or %s", seen[name], key)
		}
		seen[name] = key
	}
}

// Objects that a handle uploaded before it was reloaded are named by none of its later commits: they may have been
// collected. They are removed after the first commit after the reload, and not before.
func TestUploadBeforeReload(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		w.limits, w.t = journal.Limits{SealEntries: 6}, t
		l, j := newLedger(), w.machine("one").journal(true)
		for i := range 3 {
			id := fmt.Sprintf("turn-%d", i)
			l.acked[id] = w.turn(j, id).Commit.Commit
		}
		orphan := w.keys("/transcript/")
		if len(orphan) != 1 {
			t.Fatalf("sealed: %q", orphan)
		}
		orphan = append(orphan, w.keys("/ids/")...) // the run of its ids was uploaded with it
		if err := j.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.collect(); n != 0 {
			t.Errorf("%d objects collected before the next commit", n)
		}
		l.acked["next"] = w.turn(j, "next").Commit.Commit
		for level, refs := range j.State().Segments.Levels {
			t.Errorf("the head names %d objects of level %d, uploaded before the reload", len(refs), level)
		}
		n := w.collect()
		for _, key := range orphan {
			if len(w.keys(key)) != 0 {
				t.Errorf("%s is left", key)
			}
		}
		if n != len(orphan) {
			t.Errorf("%d objects collected, want %q", n, orphan)
		}
		l.acked["last"] = w.turn(j, "last").Commit.Commit
		w.check(l)
		if w.sound() != 0 || len(w.keys("/transcript/")) != 1 {
			t.Errorf("left: %q", w.keys("/transcript/"))
		}
	})
}

// Readers resume; then a segment that they know is damaged, repaired and collected. They read the head again by
// themselves and find every entry, whatever part of the old segment they had read before.
func TestReadersOfAnOldMap(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		ctx, o := t.Context(), &coppice.SessionOptions{ContextBytes: 2 << 10, Snapshots: snapshot.Policy{Every: -1}}
		store := w.machine("keeper").store()
		const each, segments = 600, 2 // more than two thresholds: the next commit seals them
		for turn := range segments + 1 {
			s := must(store.OpenOrCreate(ctx, sid, o))(t)
			var d []transcript.Draft
			for i := range each {
				d = append(d, entry.User(fmt.Sprintf("%d-%d", turn, i)))
			}
			must(s.Append(ctx, d...))(t)
			must(s.Commit(ctx, coppice.Turn{State: counter{Turns: turn}}))(t)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		must(must(store.Open(ctx, sid, o))(t).Claim(ctx))(t)
		w.collect()
		looks := map[string]func(s *coppice.Session) (int, error){
			"nothing": func(*coppice.Session) (int, error) { return each * (segments + 1), nil },
			"entries": func(s *coppice.Session) (n int, err error) {
				for _, err := range s.Entries(ctx) {
					if err != nil {
						return n, err
					}
					n++
				}
				return n, nil
			},
			"tree": func(s *coppice.Session) (int, error) {
				tree, err := s.Tree(ctx)
				if err != nil {
					return 0, err
				}
				return len(slices.Collect(tree.Path(tree.Head()))), nil
			},
		}
		readers := map[string]*coppice.Session{}
		for warm, read := range looks {
			for look := range looks {
				s := must(store.Open(ctx, sid, o))(t)
				if n := must(read(s))(t); n != each*(segments+1) {
					t.Fatalf("%s: %d entries", warm, n)
				}
				readers[look+" after "+warm] = s
			}
		}
		key := w.keys("/transcript/")[0]
		p, _, err := w.direct.Get(ctx, key, backend.Range{})
		if err != nil {
			t.Fatal(err)
		}
		p[len(p)-30] ^= 1 // in the index at its end: no entry is lost
		must(w.direct.Put(ctx, key, p, backend.Cond{}))(t)
		must(store.Repair(ctx, sid, false))(t)
		must(must(store.Open(ctx, sid, o))(t).Claim(ctx))(t)
		must(store.GC(ctx, sid, false))(t)
		if len(w.keys(key)) != 0 {
			t.Fatal("the damaged segment is still there")
		}
		for name, s := range readers {
			look, _, _ := strings.Cut(name, " ")
			if n, err := looks[look](s); err != nil || n != each*(segments+1) {
				t.Errorf("%s: %d entries, %v", name, n, err)
			}
		}
	})
}
