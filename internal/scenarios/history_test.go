package scenarios_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/snapshot"
)

// Stored entries are never changed, whatever is done with the session afterwards.
func TestHistoryIsNeverChanged(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, rs := grown(t, store, "s", 8, nil)
		said := collect(t, s.Entries(bg))
		must(s.Snapshot(bg, "x"))(t)
		must(s.Append(bg, entry.Compaction("sum", rs[6].Entry, 5)))(t)
		commit(t, s, nil)
		must(s.Edit(bg, rs[3].Entry, entry.User("edited")))(t)
		must(s.Label(bg, rs[1].Entry, "l"))(t)
		must(s.Rollback(bg, coppice.Target{Seq: 2}))(t)
		must(s.Branch(bg, "", nil))(t)
		say(t, s, "new root")
		commit(t, s, nil)
		other := open(t, store, "s")
		must(other.Claim(bg))(t)
		say(t, s, "lost")
		if _, err := s.Commit(bg, coppice.Turn{}); err == nil {
			t.Error("an old writer committed")
		}
		must(s.Commit(bg, coppice.Turn{KeepBoth: true}))(t)
		must(s.Prune(bg, snapshot.Retention{}))(t)
		ok(t, s.Close())
		must(store.GC(bg, "s", false))(t)
		now := map[string]string{}
		for _, e := range collect(t, open(t, store, "s").Entries(bg)) {
			now[e.ID] = fmt.Sprint(e.Ordinal, string(e.Raw))
		}
		for _, e := range said {
			same(t, "entry", now[e.ID], fmt.Sprint(e.Ordinal, string(e.Raw)))
		}
	})
}

// States of branches do not leak into each other, however often the writer switches, and each commit has a new id, also
// a move back in time.
func TestStatesOfBranchesDoNotLeak(t *testing.T) {
	testutil.SkipLong(t)
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		say(t, s, "u0")
		base := map[string]any{"pad": strings.Repeat("x", 4500), "list": []any{}, "n": 0.0}
		commit(t, s, base)
		states := map[string]map[string]any{"b0": base, "b1": base, "b2": base}
		root := s.Head().Entry
		for _, name := range slices.Sorted(maps.Keys(states)) {
			must(s.Branch(bg, root, &coppice.BranchOptions{Name: name}))(t)
			say(t, s, "u-"+name) // so that the branch has its own head
			commit(t, s, nil)
		}
		rng := rand.New(rand.NewPCG(3, 4))
		bySeq, seen := map[uint64]string{}, map[string]bool{}
		for i := range 24 {
			name := fmt.Sprint("b", rng.IntN(3))
			must(s.Switch(bg, name))(t)
			v := maps.Clone(states[name])
			v["n"], v[name] = float64(i), "mine"
			v["list"] = append(slices.Clone(v["list"].([]any)), float64(i))
			if i%5 == 0 {
				delete(v, "n")
			}
			states[name] = v
			say(t, s, fmt.Sprint("u", i))
			r := commit(t, s, v)
			if seen[r.Commit] {
				t.Errorf("commit %s twice", r.Commit)
			}
			seen[r.Commit] = true
			p, err := json.Marshal(v)
			ok(t, err)
			bySeq[r.Seq] = string(p)
		}
		ok(t, s.Close())
		again := open(t, store, "s")
		for seq, want := range bySeq {
			same(t, fmt.Sprint("seq ", seq), string(must(again.At(bg, coppice.Target{Seq: seq}))(t).Document().State), want)
		}
		for name, v := range states {
			must(again.Switch(bg, name))(t)
			var got map[string]any
			ok(t, again.State(&got))
			same(t, name, got, v)
		}
	})
}

// A fork after a compaction, or of an explicit context, has the context of its source, not the raw messages; a deleted
// parent does not affect it.
func TestForkAfterCompaction(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, rs := grown(t, store, "s", 4, nil)
		must(s.Append(bg, entry.Compaction("sum", rs[3].Entry, 5)))(t)
		commit(t, s, nil)
		compacted := texts(t, s)
		ok(t, s.SetContext(bg, itemFor(rs[0].Entry), itemOf(`{"role":"user","content":"inline"}`)))
		commit(t, s, nil)
		must(s.Fork(bg, coppice.Target{Seq: 5}, "f1", nil))(t)
		must(s.Fork(bg, coppice.Target{}, "f2", nil))(t)
		ok(t, store.Delete(bg, "s"))
		same(t, "compacted", texts(t, open(t, store, "f1")), compacted)
		f := open(t, store, "f2")
		same(t, "explicit", texts(t, f), "a1 inline")
		say(t, f, "u5")
		commit(t, f, nil)
		same(t, "goes on", texts(t, open(t, store, "f2")), "a1 inline u5")
	})
}

// A rollback to the first commits restores the state of that time, not nothing, and later entries are not visible to
// readers of the context.
func TestRollbackToTheStart(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		must(s.Commit(bg, coppice.Turn{State: state{Note: "initial"}}))(t)
		for i := 1; i <= 4; i++ {
			say(t, s, fmt.Sprint("u", i), fmt.Sprint("a", i))
			commit(t, s, state{Turns: i})
		}
		gone := s.Head()
		r := must(s.Rollback(bg, coppice.Target{Seq: 1}))(t)
		if r.Commit == gone.Commit || r.Seq != gone.Seq+1 {
			t.Errorf("receipt %+v after %+v", r.Head, gone)
		}
		for _, h := range []*coppice.Session{s, open(t, store, "s")} {
			same(t, "state", stateOf(t, h), state{Note: "initial"})
			same(t, "context", texts(t, h), "")
			same(t, "path", len(collect(t, h.Path(bg, ""))), 0)
			tree := must(h.Tree(bg))(t)
			same(t, "on the path", len(slices.Collect(tree.Path(tree.Head()))), 0)
		}
		say(t, s, "u1b")
		commit(t, s, nil)
		same(t, "context", texts(t, open(t, store, "s")), "u1b")
	})
}

// 20: a snapshot that cannot be taken is a warning; the commit is stored, and the next snapshot is taken.
func TestFailedSnapshotKeepsTheCommit(t *testing.T) {
	for kind, newBackend := range backends {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := fault.New(newBackend(t), 1)
			store := newStore(t, b, nil)
			b.Add(fault.Rule{
				When:  func(c fault.Call) bool { return c.Op == "put" && strings.Contains(c.Key, "/snapshots/") },
				Count: 1, Outcome: backend.NotApplied,
			})
			s, rs := grown(t, store, "s", 12, &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: 3}})
			warned := 0
			for _, r := range rs {
				warned += len(r.Warnings)
			}
			same(t, "state", stateOf(t, open(t, store, "s")), state{Turns: 12})
			for n := 0; warned == 0 && n < 10_000; n++ { // it is taken in the background: a later receipt warns
				warned += len(commit(t, s, state{Turns: 100 + n}).Warnings)
			}
			same(t, "warnings", warned, 1)
			ok(t, s.Close())
			s = open(t, store, "s")
			of := map[uint64]bool{}
			for _, info := range collect(t, s.Snapshots(bg)) {
				of[info.Seq] = true
			}
			same(t, "a snapshot of seq 3", of[3], false)
			if len(of) == 0 {
				t.Error("no snapshot after one that failed")
			}
			for i := range rs { // the failed snapshot restores nothing
				same(t, "at", stateOf(t, must(s.At(bg, coppice.Target{Seq: uint64(i + 1)}))(t)), state{Turns: i + 1})
			}
		})
	}
}

// 22: other files among the snapshots are no snapshots, use up no retention count, and stay.
func TestForeignSnapshots(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		store := newStore(t, b, nil)
		s, _ := grown(t, store, "s", 2, nil)
		info := must(s.Snapshot(bg, "mine"))(t)
		const folder = "sessions/s/snapshots/"
		strangers := []string{"README.txt", "latest", "00000000000000000001", "99999999999999999999999-abcdefgh", "00000000000000000009-short"}
		for _, name := range strangers {
			must(b.Put(bg, folder+name, []byte("junk"), backend.Cond{}))(t)
		}
		list := collect(t, s.Snapshots(bg))
		same(t, "snapshots", len(list), 1)
		same(t, "mine", list[0].ID, info.ID)
		must(s.Prune(bg, snapshot.Retention{}))(t)
		same(t, "at", stateOf(t, must(s.At(bg, coppice.Target{Seq: 2}))(t)), state{Turns: 2})
		all := objects(t, b)
		for _, name := range strangers {
			same(t, name, all[folder+name], "junk")
		}
	})
}
