package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/trace"
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
			lists := map[string]int{"replace": 2, "append": 42} // a log may be ahead: the segments of all 40
			same(t, "cost", cost(tr.IO()), fmt.Sprintf("5 get %d list", lists[name]))

			got = paged(t, store, coppice.ListOptions{Limit: 7}, nil)
			same(t, "pages", got, append([]string{"broken"}, want...))
			mine := collect(t, store.List(bg, coppice.ListOptions{Cwd: "/1", Limit: 3}))
			same(t, "by folder", []string{mine[0].ID, mine[0].Title, mine[2].ID}, []string{want[0], "t" + want[0], want[4]})
			deleted := collect(t, store.List(bg, coppice.ListOptions{}))[4]
			ok(t, store.Delete(bg, want[3]))
			page := coppice.ListOptions{Limit: 1}
			page.After = deleted.Cursor
			same(t, "after a session that was deleted", collect(t, store.List(bg, page))[0].ID, want[4])
			for _, o := range []coppice.ListOptions{
				{After: want[2]}, {Order: "size"}, {Order: coppice.ByID, After: page.After},
			} {
				n := 0
				for _, err := range store.List(bg, o) {
					n++
					if err == nil {
						t.Errorf("%+v is taken for something", o)
					}
				}
				same(t, "results", n, 1)
			}
		})
	}
}

// paged returns the ids of a listing, page by page; between, if not nil, is called after each page.
func paged(t testing.TB, store *coppice.Store, o coppice.ListOptions, between func()) (ids []string) {
	t.Helper()
	for {
		page := collect(t, store.List(bg, o))
		if len(page) == 0 {
			return ids
		}
		for _, sum := range page {
			ids = append(ids, sum.ID)
			o.After = sum.Cursor
		}
		if between != nil {
			between()
		}
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
	grown(t, two, "s", 3, nil)
	ok(t, one.Delete(bg, "s"))
	same(t, "the other one after a deletion", texts(t, open(t, two, "s")), "u1 a1 u2 a2 u3 a3")
}

// A listing reports its progress, at the cost of the two LISTs; deleted sessions are not in it; results are yielded
// before everything is read, and a caller that stops ends the reads.
func TestListProgress(t *testing.T) {
	b := memory.New()
	tr := trace.New(b)
	store := newStore(t, tr, nil)
	for i := range 50 {
		s := create(t, store, fmt.Sprintf("s%02d", i), &coppice.SessionOptions{Cwd: fmt.Sprint("/", i%2)})
		say(t, s, "u1")
		commit(t, s, nil)
		ok(t, s.Close())
	}
	for i := range 4 {
		ok(t, store.Delete(bg, fmt.Sprintf("s%02d", i)))
	}
	type told struct{ looked, total int }
	run := func(o coppice.ListOptions, most int) (seen []told, n int, early int) {
		tr.Reset()
		o.Progress = func(looked, total int) { seen = append(seen, told{looked, total}) }
		for _, err := range store.List(bg, o) {
			ok(t, err)
			if n++; n == 1 {
				early = tr.IO().Get
			}
			if n == most {
				break
			}
		}
		return seen, n, early
	}
	seen, n, early := run(coppice.ListOptions{}, 0)
	same(t, "sessions", n, 46)
	same(t, "first", seen[0], told{0, 50})
	same(t, "last", seen[len(seen)-1], told{46, 46})
	same(t, "cost", cost(tr.IO()), "50 get 2 list")
	same(t, "read before the first result", early, 16)
	if !slices.IsSortedFunc(seen, func(a, b told) int { return a.looked - b.looked }) {
		t.Errorf("it went back: %v", seen)
	}
	seen, n, _ = run(coppice.ListOptions{Cwd: "/1"}, 0)
	same(t, "of a directory", n, 23)
	same(t, "looked at, of a directory", seen[len(seen)-1], told{46, 46})
	second := coppice.ListOptions{Limit: 5}
	second.After = collect(t, store.List(bg, second))[4].Cursor
	seen, n, _ = run(second, 0)
	same(t, "of a page", n, 5)
	same(t, "a page is not the whole", seen[len(seen)-1].looked < seen[len(seen)-1].total, true)
	seen, _, _ = run(coppice.ListOptions{}, 3)
	if last := seen[len(seen)-1]; last.looked != 3 || tr.IO().Get != 16 {
		t.Errorf("after the third: %v, %s", last, cost(tr.IO()))
	}

	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	n = 0
	var failed error
	for _, err := range store.List(ctx, coppice.ListOptions{}) {
		if err != nil {
			failed = err
			break
		}
		n++
		cancel()
	}
	if !errors.Is(failed, context.Canceled) || n != 12 { // four of the first sixteen were deleted
		t.Errorf("%d results and %v after a cancellation", n, failed)
	}
}

// Sessions are selected by their parent and their metadata, and a fork is not an agent's session. The selection costs
// the same as the listing, and one more read for each session whose metadata is long.
func TestListByParentAndMeta(t *testing.T) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			tr := trace.New(open(t))
			store := newStore(t, tr, nil)
			begin := func(id string, o coppice.SessionOptions) *coppice.Session {
				s := create(t, store, id, &o)
				say(t, s, "u")
				commit(t, s, nil)
				return s
			}
			long := map[string]string{"team": "blue", "notes": strings.Repeat("n", 3900)}
			root := begin("root", coppice.SessionOptions{Meta: map[string]string{"team": "red", "run": "7"}})
			begin("agent", coppice.SessionOptions{Parent: "root", Relation: "agent", Meta: long})
			begin("next", coppice.SessionOptions{Parent: "root"})
			must(root.Fork(bg, coppice.Target{}, "fork", nil))(t)
			list := func(o coppice.ListOptions) string {
				var got []string
				for sum, err := range store.List(bg, o) {
					ok(t, err)
					got = append(got, sum.ID+":"+sum.Relation+":"+sum.Meta["team"])
				}
				slices.Sort(got)
				return strings.Join(got, " ")
			}
			before := tr.IO().Get
			same(t, "all", list(coppice.ListOptions{}), "agent:agent:blue fork:fork: next:: root::red")
			same(t, "reads", tr.IO().Get-before, 5)
			same(t, "of a parent", list(coppice.ListOptions{Parent: "root"}), "agent:agent:blue fork:fork: next::")
			same(t, "of a team", list(coppice.ListOptions{Meta: map[string]string{"team": "blue"}}), "agent:agent:blue")
			same(t, "of both", list(coppice.ListOptions{Meta: map[string]string{"team": "red", "run": "7"}}), "root::red")
			same(t, "of none", list(coppice.ListOptions{Meta: map[string]string{"team": "red", "run": "8"}}), "")
			same(t, "limit", list(coppice.ListOptions{Parent: "root", Limit: 1}), "fork:fork:")
			s := must(store.Open(bg, "agent", nil))(t)
			same(t, "handle", s.Info().Meta["notes"], long["notes"])
			say(t, s, "more")
			commit(t, s, nil)
			ok(t, s.Close())
			same(t, "after a commit", list(coppice.ListOptions{Meta: long}), "agent:agent:blue")
		})
	}
}

func TestMetaLimits(t *testing.T) {
	store := newStore(t, memory.New(), nil)
	many := map[string]string{}
	for i := range 65 {
		many[fmt.Sprint(i)] = ""
	}
	for name, o := range map[string]coppice.SessionOptions{
		"too long":  {Meta: map[string]string{"k": strings.Repeat("v", 4<<10)}},
		"too many":  {Meta: many},
		"empty key": {Meta: map[string]string{"": "v"}},
		"bad key":   {Meta: map[string]string{"a b": "v"}},
		"not UTF-8": {Meta: map[string]string{"k": "\xff"}},
		"bad name":  {Relation: "An Agent"},
		"long name": {Relation: strings.Repeat("a", 33)},
	} {
		if _, err := store.Create("s", &o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A session that lost its checkpoint is listed, in its place and at the cost of one LIST. On a disk the log has
// everything that the checkpoint had; if objects are only replaced, opening it returns the damage. A folder without
// segments is not a session.
func TestListWithoutCheckpoint(t *testing.T) {
	for name, b := range map[string]backend.Backend{"replace": memory.New(), "append": memory.NewAppender()} {
		t.Run(name, func(t *testing.T) {
			tr := trace.New(b)
			store := newStore(t, tr, nil)
			for _, id := range []string{"old", "lost", "new"} {
				s := create(t, store, id, &coppice.SessionOptions{Title: "t" + id, Cwd: "/w"})
				for range 600 { // more than a segment
					say(t, s, "u1")
				}
				commit(t, s, map[string]string{"of": id})
				say(t, s, "u2")
				commit(t, s, nil)
				ok(t, s.Close())
			}
			ok(t, b.Delete(bg, "checkpoint_latest/lost"))
			must(b.Put(bg, "sessions/no-session/blobs/x", []byte("x"), backend.Cond{}))(t)

			tr.Reset()
			list := collect(t, store.List(bg, coppice.ListOptions{}))
			var ids []string
			for _, sum := range list {
				ids = append(ids, sum.ID)
			}
			if want := []string{"new", "lost", "old"}; !slices.Equal(ids, want) {
				t.Fatalf("a session without its checkpoint is not listed in its place: %v", ids)
			}
			// two for every listing, one for each folder without a checkpoint (if the log may be ahead, for each), two
			// for the attempt to open the session (on a log three, one of them for its snapshots)
			same(t, "requests", tr.IO().List, map[string]int{"replace": 5, "append": 8}[name])
			lost := list[1]
			after := coppice.ListOptions{After: lost.Cursor}
			same(t, "after it", collect(t, store.List(bg, after))[0].ID, "old")
			_, err := store.Open(bg, "lost", nil)
			_, again := store.OpenOrCreate(bg, "lost", nil)
			if name == "append" {
				same(t, "title", lost.Title, "tlost")
				same(t, "entries", lost.Entries, list[0].Entries)
				ok(t, errors.Join(err, again))
				return
			}
			same(t, "marked", []any{lost.Commit, lost.Title, lost.Updated.IsZero()}, []any{"", "", false})
			if !errors.Is(err, coppice.ErrCorrupt) || !errors.Is(again, coppice.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("open: %v; open or create: %v", err, again)
			}
			if _, err := create(t, store, "lost", nil).Commit(bg, coppice.Turn{State: 1}); !errors.Is(err, fs.ErrExist) {
				t.Errorf("create: %v", err)
			}
			report := must(store.Repair(bg, "lost", false))(t)
			if len(report.Problems) == 0 {
				t.Error("the repair says nothing")
			}
			same(t, "title", collect(t, store.List(bg, coppice.ListOptions{}))[0].Title, "tlost")
			s := must(store.Open(bg, "lost", nil))(t)
			var state map[string]string
			ok(t, s.State(&state))
			same(t, "state", state["of"], "lost")
		})
	}
}

// A listing shows everything that was committed before it, by any handle, whether its checkpoint was written or not: it
// filters and sorts by it. A session whose log is ahead of its checkpoint costs at most three more reads, and any other
// none.
func TestListShowsTheLog(t *testing.T) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			tr := trace.New(b)
			store := newStore(t, tr, nil)
			written := map[string]*coppice.Session{}
			for i := range 6 {
				id := fmt.Sprintf("s%d", i)
				s := create(t, store, id, &coppice.SessionOptions{Title: "old " + id, Cwd: "/old", Meta: map[string]string{"k": "old"}})
				say(t, s, "u1")
				commit(t, s, nil)
				ok(t, s.Close())
				written[id] = must(store.Open(bg, id, nil))(t)
			}
			list := func(o coppice.ListOptions) string {
				var ids []string
				for _, sum := range collect(t, store.List(bg, o)) {
					ids = append(ids, sum.ID)
				}
				return strings.Join(ids, " ")
			}
			same(t, "at first", list(coppice.ListOptions{}), "s5 s4 s3 s2 s1 s0")
			title, cwd, value := "renamed", "/new", "v"
			must(written["s3"].SetInfo(bg, coppice.InfoChange{Title: &title, Cwd: &cwd, Meta: map[string]*string{"k": &value}}))(t)
			say(t, written["s1"], "hello")
			must(written["s1"].Commit(bg, coppice.Turn{Docs: map[string]any{"plan": 1}}))(t) // the handles stay open

			tr.Reset()
			same(t, "newest first", list(coppice.ListOptions{}), "s1 s3 s5 s4 s2 s0")
			reads, lists := 6, 2 // two sessions have commits that are not in their checkpoints
			switch name {
			case "local": // recent changes, by the clock of the store, are not cached
				reads, lists = reads+2*3, lists+6
			case "append":
				reads, lists = reads+2*3, lists+6+2 // a lookup for each, and their segments
			}
			if io := tr.IO(); io.Get > reads || io.Get < 6 || io.List != lists {
				t.Errorf("%s, want at most %d gets and %d lists", cost(io), reads, lists)
			}
			all := collect(t, store.List(bg, coppice.ListOptions{Docs: []string{"plan"}}))
			for _, sum := range all[:2] {
				now := written[sum.ID].Info()
				same(t, sum.ID, fmt.Sprint(sum.Head, sum.Title, sum.Preview, sum.Entries, sum.Meta, sum.Cwd, sum.Updated),
					fmt.Sprint(now.Head, now.Title, now.Preview, now.Entries, now.Meta, now.Cwd, now.Updated))
			}
			same(t, "documents", string(all[0].Docs["plan"]), "1")
			same(t, "by metadata", list(coppice.ListOptions{Meta: map[string]string{"k": "v"}}), "s3")
			same(t, "by metadata of before", list(coppice.ListOptions{Meta: map[string]string{"k": "old"}}), "s1 s5 s4 s2 s0")
			same(t, "by folder", list(coppice.ListOptions{Cwd: "/new"}), "s3")
			same(t, "by folder of before", list(coppice.ListOptions{Cwd: "/old", Limit: 2}), "s1 s5")
			pages := paged(t, store, coppice.ListOptions{Limit: 2}, nil)
			same(t, "pages", strings.Join(pages, " "), "s1 s3 s5 s4 s2 s0")

			for _, id := range []string{"s0", "s2", "s4", "s5", "s3", "s1"} {
				ok(t, written[id].Close())
			}
			tr.Reset()
			same(t, "at last", list(coppice.ListOptions{}), "s1 s3 s5 s4 s2 s0")
			same(t, "cost", cost(tr.IO()), map[string]string{
				"replace": "6 get 2 list", "local": "6 get 8 list", "append": "2 get 8 list", // four are unchanged
			}[name])
		})
	}
}
