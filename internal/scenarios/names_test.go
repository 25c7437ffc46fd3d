package scenarios_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// branchHeads returns the heads of the branches of a session by name.
func branchHeads(t testing.TB, s *coppice.Session) map[string]string {
	t.Helper()
	heads := map[string]string{}
	for _, b := range must(s.Tree(t.Context()))(t).Branches() {
		heads[b.Name] = b.Head
	}
	return heads
}

// A branch gets another name, or none; the head stays, a fresh handle and a log without a checkpoint show the same, and
// the entries of a branch without a name exist.
func TestRenameBranch(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		st := newStore(t, b, fixedOptions())
		s, rs := grown(t, st, "s", 3, nil)
		must(s.Branch(bg, rs[0].Entry, &coppice.BranchOptions{Name: "side"}))(t)
		said := say(t, s, "elsewhere")
		commit(t, s, state{Turns: 9})
		must(s.Switch(bg, "main"))(t)
		head, entries := s.Head().Entry, s.Info().Entries
		r := must(s.RenameBranch(bg, "side", "other"))(t)
		same(t, "reason", history(t, s)[0].Reason, "names")
		same(t, "head", r.Entry+r.Branch, head+"main")
		same(t, "entries of the commit", r.Entries, 0)
		must(s.RenameBranch(bg, "main", "trunk"))(t)
		same(t, "the branch that the session is on", s.Head().Branch+s.Info().Branch, "trunktrunk")
		must(s.RenameBranch(bg, "other", ""))(t)
		want := map[string]string{"trunk": head}
		same(t, "names", branchHeads(t, s), want)
		same(t, "the entries stay", s.Info().Entries, entries)
		must(s.Switch(bg, said[0]))(t)
		same(t, "its state", stateOf(t, s), state{Turns: 9})
		must(s.Switch(bg, "trunk"))(t)
		names := branchHeads(t, s)
		say(t, s, "on")
		commit(t, s, nil)
		names["trunk"] = s.Head().Entry
		ok(t, s.Close())
		same(t, "opened", branchHeads(t, open(t, st, "s")), names)
		same(t, "problems", must(st.Verify(bg, "s", true))(t).Problems, []*coppice.Error(nil))
		if _, appends := b.(backend.Appender); appends {
			ok(t, b.Delete(bg, "checkpoint_latest/s"))
			same(t, "from the log", branchHeads(t, open(t, st, "s")), names)
			same(t, "the branch of the head", open(t, st, "s").Head().Branch, "trunk")
		}
	})
}

func TestRenameBranchRefuses(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		s, rs := grown(t, st, "s", 2, nil)
		must(s.Branch(bg, rs[0].Entry, &coppice.BranchOptions{Name: "side"}))(t)
		before := s.Head()
		for _, c := range []struct {
			from, to string
			want     error
		}{
			{"none", "x", fs.ErrNotExist},
			{"none", "", fs.ErrNotExist},
			{"main", "side", fs.ErrExist},
			{"main", "main", fs.ErrExist},
			{"main", strings.Repeat("n", 257), backend.ErrTooLarge},
			{"side", "", nil}, // the session is on this branch
			{"", "x", nil},
			{"main", "\xff", nil},
		} {
			_, err := s.RenameBranch(bg, c.from, c.to)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || backend.OutcomeOf(err) == backend.Applied {
				t.Errorf("%q to %.9q: %v", c.from, c.to, err)
			}
		}
		same(t, "head", s.Head(), before)
		ro := must(st.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true}))(t)
		if _, err := ro.RenameBranch(bg, "main", "x"); !errors.Is(err, coppice.ErrReadOnly) {
			t.Error(err)
		}
	})
}

// At the limit of names, new names of any kind replace automatic names; names of callers stay.
func TestAutomaticNamesGiveWay(t *testing.T) {
	inMemory(t, func(t *testing.T, st *coppice.Store) {
		s := must(st.Create("s", nil))(t)
		r := must(s.Commit(bg, coppice.Turn{Entries: []transcript.Draft{entry.User("a")}, State: 1}))(t)
		for i := range checkpoint.MaxBranches - 3 {
			must(s.Branch(bg, r.IDs[0], &coppice.BranchOptions{Name: fmt.Sprint("b", i)}))(t)
		}
		must(s.Rollback(bg, coppice.Target{Seq: r.Seq}))(t)
		must(s.Switch(bg, "main"))(t)
		rival := open(t, st, "s")
		must(rival.Commit(bg, coppice.Turn{State: 2}))(t)
		kept := must(s.Commit(bg, coppice.Turn{Entries: drafts("mine"), KeepBoth: true, State: 3}))(t).Kept
		ok(t, s.Reload(bg))
		heads := branchHeads(t, s)
		same(t, "names", len(heads), checkpoint.MaxBranches)
		same(t, "of both kinds", heads["rollback-1"] != "" && heads[kept] != "", true)

		must(s.Branch(bg, r.IDs[0], &coppice.BranchOptions{Name: "mine"}))(t)
		heads = branchHeads(t, s)
		same(t, "the oldest is gone", heads["rollback-1"], "")
		must(s.Switch(bg, "main"))(t)
		ok(t, rival.Reload(bg))
		must(rival.Commit(bg, coppice.Turn{State: 4}))(t)
		next := must(s.Commit(bg, coppice.Turn{Entries: drafts("again"), KeepBoth: true, State: 5}))(t).Kept
		ok(t, s.Reload(bg))
		heads = branchHeads(t, s)
		same(t, "a conflict takes the place of an older one", heads[kept] == "" && heads[next] != "", true)
		same(t, "names", len(heads), checkpoint.MaxBranches)
		same(t, "those of callers", heads["mine"] != "" && heads["b0"] != "" && heads["main"] != "", true)
		own := branchHeads(t, s)
		livesOn(t, st, s)
		same(t, "fresh", maps.Equal(own, branchHeads(t, open(t, st, "s"))), false) // main moved
		now := branchHeads(t, open(t, st, "s"))
		same(t, "names of it", slices.Sorted(maps.Keys(own)), slices.Sorted(maps.Keys(now)))
	})
}

// Unlimited rollbacks: the table of names stays within its limit, and so does the checkpoint.
func TestRollbacksWithoutEnd(t *testing.T) {
	testutil.SkipLong(t)
	b := memory.NewAppender()
	st := newStore(t, b, nil)
	s := must(st.Create("s", nil))(t)
	r := must(s.Commit(bg, coppice.Turn{Entries: []transcript.Draft{entry.User("a")}, State: 1}))(t)
	size := func() int {
		ok(t, s.Close())
		p, _, err := b.Get(bg, "checkpoint_latest/s", backend.Range{})
		ok(t, err)
		s = open(t, st, "s")
		return len(p)
	}
	first := 0
	for i := range 3 * checkpoint.MaxBranches {
		must(s.Rollback(bg, coppice.Target{Seq: r.Seq}))(t)
		if i == checkpoint.MaxBranches+1 {
			first = size()
		}
	}
	if last := size(); last > first+first/4 || last > 64<<10 {
		t.Errorf("the checkpoint has %d bytes at the limit of names, and %d later", first, last)
	}
	same(t, "names", len(branchHeads(t, s)), checkpoint.MaxBranches)
	livesOn(t, st, s)
}

// Title and working directory are untruncated in every handle, on every kind of store; a listing truncates them.
func TestLongTitlesAreWhole(t *testing.T) {
	title, cwd := strings.Repeat("é", 2048), strings.Repeat("/dir", 1024)
	onEach(t, func(t *testing.T, st *coppice.Store) {
		created := must(st.Create("created", &coppice.SessionOptions{Title: title, Cwd: cwd}))(t)
		must(created.Commit(bg, coppice.Turn{State: 1}))(t)
		set, _ := grown(t, st, "set", 1, nil)
		setInfo(t, set, coppice.InfoChange{Title: &title, Cwd: &cwd})
		fork := must(set.Fork(bg, coppice.Target{}, "fork", nil))(t)
		copied := must(set.Fork(bg, coppice.Target{}, "named", &coppice.SessionOptions{Title: title, Cwd: cwd}))(t)
		for _, s := range []*coppice.Session{created, set, fork, copied} {
			is := func(what string, info checkpoint.Summary) {
				t.Helper()
				same(t, s.ID()+": "+what+": title", info.Title, title)
				same(t, s.ID()+": "+what+": working directory", info.Cwd, cwd)
			}
			is("own", s.Info())
			ok(t, s.Close())
			again := open(t, st, s.ID())
			is("opened", again.Info())
			must(again.Commit(bg, coppice.Turn{State: 2}))(t)
			is("after a commit", again.Info())
			ok(t, again.Close())
		}
		for _, sum := range collect(t, st.List(bg, coppice.ListOptions{})) {
			if len(sum.Title) != 255 || len(sum.Cwd) != 1024 || !strings.HasSuffix(sum.Title, "é…") {
				t.Errorf("%s is listed with %d and %d bytes", sum.ID, len(sum.Title), len(sum.Cwd))
			}
		}
		long := title + "x"
		for what, o := range map[string]*coppice.SessionOptions{"title": {Title: long}, "cwd": {Cwd: long}} {
			_, err := st.Create("too long", o)
			if err == nil {
				t.Errorf("a long %s was taken", what)
			}
		}
		// An entry stores the whole value; the summary truncates it.
		s := open(t, st, "set")
		must(s.Append(bg, entry.Title(long)))(t)
		commit(t, s, nil)
		same(t, "cut", len(s.Info().Title) <= 4096 && strings.HasSuffix(s.Info().Title, "…"), true)
		same(t, "cut alike", open(t, st, "set").Info().Title, s.Info().Title)
	})
}

// If two calls exceed a limit together the second one is refused, through any handle.
func TestMetadataTogether(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		for name, c := range map[string][2]map[string]*string{
			"keys":  {keys("a", 40, "v"), keys("b", 40, "v")},
			"bytes": {keys("a", 3, strings.Repeat("v", 900)), keys("b", 3, strings.Repeat("v", 900))},
		} {
			one, _ := grown(t, st, name, 1, nil)
			two := open(t, st, name)
			setInfo(t, one, coppice.InfoChange{Meta: c[0]})
			_, err := two.SetInfo(bg, coppice.InfoChange{Meta: c[1]})
			tooLarge(t, name, err)
			ok(t, two.Reload(bg))
			same(t, "own", len(two.Info().Meta), len(c[0]))
			same(t, "fresh", open(t, st, name).Info().Meta, one.Info().Meta)
			must(two.Commit(bg, coppice.Turn{State: "on"}))(t)
		}
	})
}

// Metadata can be changed any number of times: a removed key leaves nothing behind.
func TestMetadataWithoutEnd(t *testing.T) {
	inMemory(t, func(t *testing.T, st *coppice.Store) {
		s := create(t, st, "s", &coppice.SessionOptions{Meta: map[string]string{"first": "1"}})
		for i := range 300 {
			change := map[string]*string{fmt.Sprint("k", i): new("v"), fmt.Sprint("k", i-1): nil}
			if i == 7 {
				change["first"] = nil
			}
			setInfo(t, s, coppice.InfoChange{Meta: change})
		}
		same(t, "metadata", s.Info().Meta, map[string]string{"k299": "v"})
		livesOn(t, st, s)
		same(t, "fresh", open(t, st, "s").Info().Meta, map[string]string{"k299": "v"})
	})
}

// keys returns a change of n keys.
func keys(prefix string, n int, value string) map[string]*string {
	c := map[string]*string{}
	for i := range n {
		c[fmt.Sprint(prefix, i)] = &value
	}
	return c
}
