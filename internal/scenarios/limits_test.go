package scenarios_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// tooLarge fails unless an error names a limit, and nothing was applied.
func tooLarge(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, backend.ErrTooLarge) || backend.OutcomeOf(err) == backend.Applied {
		t.Fatalf("%s: %v, want backend.ErrTooLarge", what, err)
	}
}

// A commit is not acknowledged if the next checkpoint or the next segment would be refused: on a disk the names of
// branches are checked when the line is composed, not when a segment begins.
func TestNamesAreCheckedAtTheDoor(t *testing.T) {
	inMemory(t, func(t *testing.T, st *coppice.Store) {
		s := must(st.Create("s", nil))(t)
		r := must(s.Commit(t.Context(), coppice.Turn{Entries: []transcript.Draft{entry.User("a")}}))(t)
		for i := 1; i < checkpoint.MaxBranches; i++ { // main is a name too
			must(s.Branch(t.Context(), r.IDs[0], &coppice.BranchOptions{Name: fmt.Sprint("b", i)}))(t)
		}
		_, err := s.Branch(t.Context(), r.IDs[0], &coppice.BranchOptions{Name: "one more"})
		tooLarge(t, "a name over the limit", err)
		livesOn(t, st, s)
	})
}

// livesOn commits more than a segment, and continues in a fresh handle.
func livesOn(t *testing.T, st *coppice.Store, s *coppice.Session) {
	t.Helper()
	for i := range 5 {
		must(s.Commit(t.Context(), coppice.Turn{
			Entries: []transcript.Draft{entry.User(strings.Repeat("x", 300_000))}, State: i,
		}))(t)
	}
	ok(t, s.Close())
	f := must(st.Open(t.Context(), s.ID(), nil))(t)
	must(f.Commit(t.Context(), coppice.Turn{State: "again"}))(t)
	ok(t, f.Close())
	if rep := must(st.Verify(t.Context(), s.ID(), true))(t); len(rep.Problems) > 0 {
		t.Fatalf("verify: %v", rep.Problems)
	}
}

// Rollbacks succeed at the limit of branch names: the automatic name of an older one is reused.
func TestRollbacksBeyondTheNames(t *testing.T) {
	inMemory(t, func(t *testing.T, st *coppice.Store) {
		s := must(st.Create("s", nil))(t)
		must(s.Commit(t.Context(), coppice.Turn{Entries: []transcript.Draft{entry.User("a")}, State: 1}))(t)
		must(s.Branch(t.Context(), s.Head().Entry, &coppice.BranchOptions{Name: "mine"}))(t)
		for i := range checkpoint.MaxBranches + 20 {
			must(s.Commit(t.Context(), coppice.Turn{Entries: []transcript.Draft{entry.User(fmt.Sprint("try ", i))}}))(t)
			must(s.Rollback(t.Context(), coppice.Target{Seq: 1}))(t)
		}
		names := must(s.Tree(t.Context()))(t).Branches()
		if len(names) > checkpoint.MaxBranches {
			t.Errorf("%d names", len(names))
		}
		for _, name := range []string{"main", "mine"} {
			if !hasBranch(names, name) {
				t.Errorf("the name %s is gone", name)
			}
		}
		livesOn(t, st, s)
	})
}

func hasBranch(all []transcript.Branch, name string) bool {
	for _, b := range all {
		if b.Name == name {
			return true
		}
	}
	return false
}

// A parent that is too long for a checkpoint is refused with the first commit.
func TestParentIsCheckedAtTheDoor(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		long := must(st.Create("s", &coppice.SessionOptions{Parent: strings.Repeat("p", checkpoint.MaxName+1)}))(t)
		_, err := long.Commit(t.Context(), coppice.Turn{State: 1})
		tooLarge(t, "a long parent", err)
		ok(t, long.Close())
		s := must(st.Create("s", &coppice.SessionOptions{Parent: strings.Repeat("p", checkpoint.MaxName)}))(t)
		must(s.Commit(t.Context(), coppice.Turn{State: 1}))(t)
		livesOn(t, st, s)
	})
}

// noise returns text that does not compress.
func noise(bytes int, seed uint64) string {
	p := make([]byte, bytes*3/4)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = r.Read(p)
	return base64.StdEncoding.EncodeToString(p)
}

// A turn that would make the checkpoint too large is refused, also on a store that appends.
func TestWindowIsCheckedAtTheDoor(t *testing.T) {
	inMemory(t, func(t *testing.T, st *coppice.Store) {
		s := must(st.Create("s", &coppice.SessionOptions{ContextBytes: -1}))(t)
		must(s.Commit(t.Context(), coppice.Turn{State: 0}))(t)
		last := 0
		var err error
		for i := 1; err == nil; i++ {
			_, e := s.Commit(t.Context(), coppice.Turn{
				Entries: []transcript.Draft{entry.User(noise(2<<20, uint64(i)))}, State: i,
			})
			if err = e; err == nil {
				last = i
			}
			if i > 10 {
				t.Fatal("no turn was refused")
			}
		}
		tooLarge(t, "a window over the limit", err)
		ok(t, s.Close())
		f := must(st.Open(t.Context(), "s", nil))(t)
		now, reads := 0, f.IO().Get
		ok(t, f.State(&now))
		if now != last || reads > 2 {
			t.Errorf("a fresh handle has state %d after %d reads, want %d", now, reads, last)
		}
	})
}
