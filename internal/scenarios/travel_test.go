package scenarios_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/snapshot"
)

// Every commit can be read and restored exactly, by each kind of target.
func TestAt(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, rs := grown(t, store, "s", 5, nil)
		three := rs[2]
		at := must(s.At(bg, coppice.Target{Seq: 3}))(t).Commit().Time
		snap := coppice.Target{}
		ok(t, snap.UnmarshalText([]byte("head")))
		for name, target := range map[string]coppice.Target{
			"seq": {Seq: 3}, "commit": {Commit: three.Commit}, "entry": {Entry: three.Entry}, "time": {Time: at},
			"later": {Time: at.Add(time.Microsecond)}, "prefix": {Entry: three.Entry[:35]},
		} {
			for _, h := range []*coppice.Session{s, open(t, store, "s")} {
				v, err := h.At(bg, target)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				same(t, name+" state", stateOf(t, v), state{Turns: 3})
				same(t, name+" seq", v.Commit().Seq, 3)
				same(t, name+" context", texts(t, v), "u1 a1 u2 a2 u3 a3")
				same(t, name+" path", len(collect(t, v.Path(bg))), 6)
			}
		}
		same(t, "nothing moved", s.Head(), rs[4].Head)
		for _, text := range []string{"seq:99", "commit:nowhere", "entry:nowhere", "snap:nowhere", "tag:nowhere", "nowhere", "2020-01-01T00:00:00Z"} {
			var target coppice.Target
			ok(t, target.UnmarshalText([]byte(text)))
			if _, err := s.At(bg, target); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", text, err)
			}
		}
		first := coppice.Target{}
		ok(t, first.UnmarshalText([]byte("seq:0")))
		v := must(s.At(bg, first))(t)
		same(t, "seq 0", v.Commit().Reason, "create")
		same(t, "its context", texts(t, v), "")
		if _, err := s.At(bg, coppice.Target{Seq: 1, Tag: "x"}); err == nil {
			t.Error("a target that says two things was taken")
		}
	})
}

// A snapshot is state, head and context in one read; tags find it; prune follows its rules.
func TestSnapshots(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, _ := grown(t, store, "s", 3, nil)
		green := must(s.Snapshot(bg, "green"))(t)
		same(t, "seq", green.Seq, 3)
		say(t, s, "u4")
		commit(t, s, state{Turns: 4})
		must(s.Snapshot(bg, ""))(t)
		list := collect(t, s.Snapshots(bg))
		same(t, "newest first", []uint64{list[0].Seq, list[1].Seq}, []uint64{4, 3})
		again := open(t, store, "s")
		before := again.IO()
		v := must(again.At(bg, coppice.Target{Snapshot: green.ID}))(t)
		same(t, "reads", again.IO().Sub(before).Get, 1)
		same(t, "state", stateOf(t, v), state{Turns: 3})
		same(t, "context", texts(t, v), "u1 a1 u2 a2 u3 a3")
		same(t, "reads", again.IO().Sub(before).Get, 1)
		for _, text := range []string{"tag:green", "green", "snap:" + green.ID, green.ID} {
			var target coppice.Target
			ok(t, target.UnmarshalText([]byte(text)))
			same(t, text, must(again.At(bg, target))(t).Commit().Seq, 3)
		}
		gone := must(s.Prune(bg, snapshot.Retention{Tags: []string{"*"}, DryRun: true}))(t)
		same(t, "would go", len(gone), 1)
		same(t, "still there", len(collect(t, s.Snapshots(bg))), 2)
		must(s.Prune(bg, snapshot.Retention{Tags: []string{"*"}}))(t)
		list = collect(t, s.Snapshots(bg))
		same(t, "left", len(list), 1)
		same(t, "tag", list[0].Tag, "green")
	})
}

// Snapshots are taken by policy, in the background: by one handle for many turns, and by a handle for each turn. The
// log names those that were finished before a later commit of their handle.
func TestSnapshotPolicy(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		o := &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: 5}}
		s, _ := grown(t, store, "s", 12, o)
		named := map[string]bool{}
		for n := 0; len(named) == 0 && n < 10_000; n++ {
			if r := commit(t, s, state{Turns: 100 + n}); r.Snapshot != "" {
				named[r.Snapshot] = true
			}
		}
		for _, c := range collect(t, s.Log(bg, coppice.Target{})) {
			delete(named, c.Snapshot)
		}
		same(t, "receipts that the log does not confirm", len(named), 0)
		ok(t, s.Close())

		for i := range 12 {
			h := must(store.OpenOrCreate(bg, "a-handle-a-turn", o))(t)
			commit(t, h, state{Turns: i})
			ok(t, h.Close())
		}
		h := open(t, store, "a-handle-a-turn")
		var of []uint64
		for _, info := range collect(t, h.Snapshots(bg)) {
			of = append(of, info.Seq)
		}
		same(t, "snapshots of a handle a turn", of, []uint64{10, 5})
	})
}

// A rollback restores exactly, adds a branch name for the old path, and can be undone.
func TestRollback(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, rs := grown(t, store, "s", 4, nil)
		say(t, s, "u5")
		commit(t, s, nil)
		r := must(s.Rollback(bg, coppice.Target{Seq: 2}))(t)
		same(t, "kept", r.Kept, "main")
		same(t, "branch", r.Branch, "rollback-2")
		same(t, "state", stateOf(t, s), state{Turns: 2})
		same(t, "context", texts(t, s), "u1 a1 u2 a2")
		again := open(t, store, "s")
		same(t, "state", stateOf(t, again), state{Turns: 2})
		same(t, "context", texts(t, again), "u1 a1 u2 a2")
		same(t, "head", again.Head().Entry, rs[1].Entry)
		say(t, again, "u3b")
		commit(t, again, state{Turns: 30})
		must(again.Switch(bg, r.Kept))(t)
		same(t, "back", texts(t, again), "u1 a1 u2 a2 u3 a3 u4 a4 u5")
		same(t, "state", stateOf(t, again), state{Turns: 4})
		must(again.Switch(bg, r.Branch))(t)
		same(t, "state", stateOf(t, again), state{Turns: 30})
		r = must(again.Rollback(bg, coppice.Target{Seq: 2}))(t)
		same(t, "branch", r.Branch, "rollback-2-2")
	})
}

// Any commit's state is restored exactly, whatever was edited in between.
func TestEveryStateIsRestored(t *testing.T) {
	testutil.SkipLong(t)
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		big := map[string]any{"pad": strings.Repeat("x", 5000), "": nil}
		var want []string
		for i := range 80 {
			big[fmt.Sprint("k", i%7)] = []any{i, json.Number("9007199254740993"), "é<&>", nil}
			delete(big, fmt.Sprint("k", (i+3)%7))
			p, err := json.Marshal(big)
			ok(t, err)
			want = append(want, string(p))
			if i%9 == 0 {
				say(t, s, "u")
			}
			must(s.Commit(bg, coppice.Turn{State: json.RawMessage(p)}))(t)
		}
		again := open(t, store, "s")
		for i := range want {
			v := must(again.At(bg, coppice.Target{Seq: uint64(i + 1)}))(t)
			if got := string(v.Document().State); got != want[i] {
				t.Fatalf("seq %d: %.80s, want %.80s", i+1, got, want[i])
			}
		}
	})
}

// Diff returns the messages that only one side has, and the change of the state.
func TestDiff(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, rs := grown(t, store, "s", 3, nil)
		a := must(s.At(bg, coppice.Target{}))(t)
		must(s.Rollback(bg, coppice.Target{Seq: 1}))(t)
		say(t, s, "u2b")
		commit(t, s, state{Turns: 7})
		b := must(s.At(bg, coppice.Target{}))(t)
		d := must(a.Diff(bg, b))(t)
		same(t, "base", d.Base, rs[0].Entry)
		same(t, "only a", len(d.OnlyA), 4)
		same(t, "only b", len(d.OnlyB), 1)
		same(t, "state", string(d.State), `[{"op":"replace","path":"/turns","value":7}]`)
	})
}

// A fork is a new session with the path to the target, byte for byte, and the document there.
func TestFork(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, rs := grown(t, store, "s", 4, &coppice.SessionOptions{Title: "the title", Cwd: "/w"})
		must(s.Label(bg, rs[0].Entry, "good"))(t)
		say(t, s, "u5")
		f := must(s.Fork(bg, coppice.Target{Seq: 2}, "fork", nil))(t)
		same(t, "context", texts(t, f), "u1 a1 u2 a2")
		again := open(t, store, "fork")
		same(t, "state", stateOf(t, again), state{Turns: 2})
		same(t, "context", texts(t, again), "u1 a1 u2 a2")
		info := again.Info()
		same(t, "info", []string{info.Parent, info.Title, info.Cwd}, []string{"s", "the title", "/w"})
		same(t, "head", again.Head().Entry, rs[1].Entry)
		from := collect(t, must(s.At(bg, coppice.Target{Seq: 2}))(t).Path(bg))
		to := collect(t, again.Path(bg, ""))
		for i := range from {
			same(t, "raw", string(to[i].Raw), string(from[i].Raw))
		}
		n, _ := must(again.Tree(bg))(t).Node(rs[0].Entry)
		same(t, "label", n.Label, "good")
		say(t, again, "u3f")
		commit(t, again, nil)
		same(t, "the source", texts(t, open(t, store, "s")), "u1 a1 u2 a2 u3 a3 u4 a4")
		if _, err := s.Fork(bg, coppice.Target{}, "fork", nil); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a taken id: %v", err)
		}
		same(t, "the fork is still there", texts(t, open(t, store, "fork")), "u1 a1 u2 a2 u3f")
	})
}

// In the files of pi labels are entries of the path. A fork has each of them once, and what removed one of them.
func TestForkOfAPathWithLabels(t *testing.T) {
	label := func(id, entry, name string) string {
		return fmt.Sprintf(`{"type":"label","id":%q,"parentId":%q,"timestamp":"2026-01-01T00:00:02.000Z",`+
			`"targetId":%q,"label":%q}`+"\n", id, entry, entry, name)
	}
	raw := []byte(header + "\n" + piLine("m1", "null", "u1") + "\n" + label("l1", "m1", "one") +
		piLine("m2", "l1", "u2") + "\n" + label("l2", "m2", "two") +
		piLine("m3", "l2", "u3") + "\n")
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := importFile(t, store, raw)
		must(s.Label(bg, "m2", ""))(t)
		must(s.Label(bg, "m3", "three"))(t)
		f := must(s.Fork(bg, coppice.Target{}, "fork", nil))(t)
		var path []string
		for _, e := range collect(t, f.Path(bg, "")) {
			path = append(path, e.ID)
		}
		same(t, "path", strings.Join(path, " "), "m3 l2 m2 l1 m1")
		same(t, "entries", f.Info().Entries, 7)
		tree := must(f.Tree(bg))(t)
		for id, want := range map[string]string{"m1": "one", "m2": "", "m3": "three"} {
			n, _ := tree.Node(id)
			same(t, "label of "+id, n.Label, want)
		}
	})
}

// The log goes from any target down to commit 0.
func TestLog(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, rs := grown(t, store, "s", 100, &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}})
		log := collect(t, open(t, store, "s").Log(bg, coppice.Target{}))
		same(t, "commits", len(log), 101)
		for i, c := range log {
			same(t, "seq", c.Seq, 100-i)
			if i < 100 {
				same(t, "commit", c.Commit, rs[99-i].Commit)
			}
		}
		same(t, "from", collect(t, s.Log(bg, coppice.Target{Seq: 7}))[0].Seq, 7)
		fresh := create(t, store, "fresh", nil)
		same(t, "a new session", len(collect(t, fresh.Log(bg, coppice.Target{}))), 0)
	})
}

// Title and directory of a fork's options override those in copied entries.
func TestForkIsNamedByItsOptions(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", &coppice.SessionOptions{Title: "at first", Cwd: "/w"})
		say(t, s, "u1", "a1")
		must(s.Append(bg, entry.Title("on the path"), entry.Custom("coppice.move", map[string]string{"cwd": "/moved"})))(t)
		commit(t, s, state{Turns: 1})
		at := s.Head().Seq
		must(s.Append(bg, entry.Title("afterwards")))(t)
		commit(t, s, state{Turns: 2})
		for id, c := range map[string]struct {
			o     *coppice.SessionOptions
			want  string
			added uint64 // entries outside the path
			seq   uint64 // seq of its end
		}{
			"both":   {&coppice.SessionOptions{Title: "mine", Cwd: "/own"}, "mine /own", 2, at},
			"title":  {&coppice.SessionOptions{Title: "mine"}, "mine /moved", 1, at},
			"cwd":    {&coppice.SessionOptions{Cwd: "/own"}, "on the path /own", 1, at},
			"none":   {&coppice.SessionOptions{}, "on the path /moved", 0, at},
			"equal":  {&coppice.SessionOptions{Title: "on the path", Cwd: "/moved"}, "on the path /moved", 0, at},
			"nil":    {nil, "afterwards /moved", 0, at + 1},
			"nil-at": {nil, "afterwards /moved", 1, at},
		} {
			f := must(s.Fork(bg, coppice.Target{Seq: c.seq}, id, c.o))(t)
			same(t, id+", entries", f.Info().Entries, 4+c.seq-at+c.added)
			same(t, id+", parent", f.Info().Parent, "s")
			ok(t, f.Close())
			again := open(t, store, id)
			same(t, id, again.Info().Title+" "+again.Info().Cwd, c.want)
			same(t, id+", context", texts(t, again), "u1 a1")
			same(t, id+", state", stateOf(t, again), state{Turns: int(c.seq)})
		}
	})
}

// A rollback is a keyframe: the log has its whole document. The commit before it is damaged and the checkpoint is lost,
// so the state is rebuilt from the log alone, and a patch against the lost document would restore nothing.
func TestRollbackStandsAlone(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		if !appends(b) {
			t.Skip("there is no log beside the checkpoint")
		}
		store := newStore(t, b, nil)
		s := create(t, store, "s", nil)
		const pad = 5000 // more than a document that is always stored whole
		doc := map[string]any{"pad": strings.Repeat("x", pad)}
		for _, name := range []string{"one", "two", "three"} {
			say(t, s, name)
			doc[name] = name
			commit(t, s, doc)
		}
		back := must(s.Rollback(bg, coppice.Target{Seq: 1}))(t)
		say(t, s, "after")
		after := commit(t, s, map[string]any{"pad": doc["pad"], "one": "one", "after": "after"})
		damaged := false
		for key, p := range objects(t, b) {
			if q := strings.Replace(p, `"seq":3,`, `"seq":4,`, 1); strings.HasSuffix(key, ".jsonl") && q != p {
				must(b.Put(bg, key, []byte(q), backend.Cond{}))(t)
				damaged = true
			}
		}
		same(t, "the commit before the rollback is damaged", damaged, true)
		ok(t, b.Delete(bg, "checkpoint_latest/s"))
		must(store.Repair(bg, "s", false))(t)
		again := open(t, store, "s")
		for seq, want := range map[uint64]string{back.Seq: "one pad", after.Seq: "after one pad"} {
			var got map[string]string
			ok(t, must(again.At(bg, coppice.Target{Seq: seq}))(t).State(&got))
			same(t, fmt.Sprintf("the document of commit %d, rolled back or after that", seq), strings.Join(slices.Sorted(maps.Keys(got)), " "), want)
			same(t, "its bytes", len(got["pad"]), pad)
		}
	})
}
