package scenarios_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/snapshot"
)

// An intact store has no problems, and garbage collection finds nothing.
func TestVerifySoundStore(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		for _, id := range []string{"s", "s2"} {
			s, _ := grown(t, store, id, 5, nil)
			must(s.Snapshot(bg, "x"))(t)
			ok(t, s.Close())
		}
		for _, deep := range []bool{false, true} {
			r := must(store.Verify(bg, "", deep))(t)
			same(t, "sessions", r.Sessions, 2)
			for _, p := range r.Problems {
				if errors.Is(p, coppice.ErrCorrupt) {
					t.Errorf("deep %v: %v", deep, p)
				}
			}
		}
		must(store.GC(bg, "", false))(t)
		same(t, "after a collection", texts(t, open(t, store, "s")), "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5")
		same(t, "sessions", must(store.Verify(bg, "s2", true))(t).Sessions, 1)
	})
}

// Damage is ErrCorrupt, with its object; the error of Open names it too.
func TestVerifyFindsDamage(t *testing.T) {
	b := memory.New()
	store := newStore(t, b, nil)
	s, _ := grown(t, store, "s", 3, nil)
	ok(t, s.Close())
	const key = "checkpoint_latest/s"
	p, _, err := b.Get(bg, key, backend.Range{})
	ok(t, err)
	p[len(p)/2] ^= 1
	must(b.Put(bg, key, p, backend.Cond{}))(t)
	r := must(store.Verify(bg, "s", true))(t)
	if len(r.Problems) == 0 || !errors.Is(r.Problems[0], coppice.ErrCorrupt) || r.Problems[0].Object != key {
		t.Errorf("problems: %v", r.Problems)
	}
	_, err = store.Open(bg, "s", nil)
	var e *coppice.Error
	if !errors.Is(err, coppice.ErrCorrupt) || !errors.As(err, &e) || e.Object != key || !strings.Contains(e.Hint, "repair") {
		t.Errorf("open: %v", err)
	}
}

// A damaged session is repaired: a dry run writes nothing, all intact data exists afterwards, and the next commit
// succeeds.
func TestRepair(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		store := newStore(t, b, nil)
		s, _ := grown(t, store, "s", 5, nil)
		must(s.Snapshot(bg, "x"))(t)
		ok(t, s.Close())
		const key = "checkpoint_latest/s"
		p, _, err := b.Get(bg, key, backend.Range{})
		ok(t, err)
		p[len(p)/2] ^= 1
		must(b.Put(bg, key, p, backend.Cond{}))(t)
		dry := must(store.Repair(bg, "s", true))(t)
		q, _, err := b.Get(bg, key, backend.Range{})
		ok(t, err)
		same(t, "checkpoint after a dry run", string(q) == string(p), true)
		r := must(store.Repair(bg, "s", false))(t)
		if len(dry.Problems) == 0 || len(r.Problems) == 0 || r.Bytes == 0 {
			t.Errorf("dry run: %v; repair: %v", dry.Problems, r.Problems)
		}
		rebuilt := false
		for _, p := range r.Problems {
			rebuilt = rebuilt || p.Kind() == "rebuilt" && p.Object == key && !errors.Is(p, coppice.ErrCorrupt)
		}
		same(t, "the checkpoint was rebuilt", rebuilt, true)
		for _, p := range must(store.Verify(bg, "s", true))(t).Problems {
			if errors.Is(p, coppice.ErrCorrupt) {
				t.Errorf("after the repair: %v", p)
			}
		}
		again := open(t, store, "s")
		same(t, "context", texts(t, again), "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5")
		say(t, again, "u6", "a6")
		commit(t, again, state{Turns: 6})
		same(t, "context", texts(t, again), "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5 u6 a6")
		if r := must(store.Repair(bg, "", false))(t); len(r.Problems) != 0 {
			t.Errorf("a sound store: %v", r.Problems)
		}
	})
}

// An entry of the log is damaged, and a snapshot has a copy: prune keeps the snapshot whatever the rules are, until a
// repair has restored the entry in the log.
func TestPruneKeepsTheOnlyCopy(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		if !appends(b) {
			t.Skip("the checkpoint holds all entries of a short session")
		}
		store := newStore(t, b, nil)
		s, _ := grown(t, store, "s", 3, nil)
		early := must(s.Snapshot(bg, ""))(t)
		must(s.Branch(bg, "", nil))(t) // the working context is empty: only the snapshot has the old one
		say(t, s, "u4", "a4")
		commit(t, s, state{Turns: 4})
		late := must(s.Snapshot(bg, ""))(t)
		ok(t, s.Close())
		for key, p := range objects(t, b) {
			if strings.HasSuffix(key, ".jsonl") {
				must(b.Put(bg, key, []byte(strings.Replace(p, "u2", "uX", 1)), backend.Cond{}))(t)
			}
		}
		newest := snapshot.Retention{Last: 1}
		left := func() (ids []string) {
			for _, info := range collect(t, open(t, store, "s").Snapshots(bg)) {
				ids = append(ids, info.ID)
			}
			return ids
		}
		dry := newest
		dry.DryRun = true
		same(t, "a dry run before the repair would drop", len(must(open(t, store, "s").Prune(bg, dry))(t)), 0)
		must(open(t, store, "s").Prune(bg, newest))(t)
		same(t, "the only copy of a state stays: snapshots after prune", left(), []string{late.ID, early.ID})

		must(store.Repair(bg, "s", false))(t)
		must(open(t, store, "s").Prune(bg, newest))(t)
		same(t, "after the repair the log leads there: snapshots after prune", left(), []string{late.ID})
		v := must(open(t, store, "s").At(bg, coppice.Target{Seq: 3}))(t)
		same(t, "state of commit 3", stateOf(t, v), state{Turns: 3})
		same(t, "context of commit 3", texts(t, v), "u1 a1 u2 a2 u3 a3")
	})
}
