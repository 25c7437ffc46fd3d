package lifecycle_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

const erasedWord = "zorbalonquist"

// unproven fails if an object of the store has the word.
func unproven(t *testing.T, store *coppice.Store) {
	t.Helper()
	if p := must(store.Prove(bg, erasedWord))(t); len(p.Found) > 0 {
		t.Errorf("the text is in %v", p.Found)
	}
}

func TestEraseEntries(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		ids := must(s.Append(bg, entry.User(erasedWord+" is my word"), entry.Assistant("I keep "+erasedWord)))(t)
		commit(t, s, state{Turns: 1})
		must(s.Edit(bg, ids[0], entry.User("another branch")))(t)
		must(s.Snapshot(bg, "tag"))(t)
		title := strings.ToUpper(erasedWord[:1]) + erasedWord[1:] + " is my"
		must(s.SetInfo(bg, coppice.InfoChange{Title: &title}))(t)
		must(s.Switch(bg, ids[1]))(t)
		must(s.Tree(bg))(t)
		if p := must(store.Prove(bg, erasedWord))(t); len(p.Found) == 0 {
			t.Fatal("the proof does not find what is there")
		}

		dry := must(store.Erase(bg, "s", ids[:2], &coppice.EraseOptions{DryRun: true}))(t)
		p := must(store.Prove(bg, erasedWord))(t)
		if len(p.Found) == 0 || len(dry.Entries) != 2 || len(dry.Written) == 0 {
			t.Errorf("a dry run changed something, or says nothing: %+v", dry)
		}
		asked := &coppice.EraseOptions{Reason: "asked"}
		r := must(store.Erase(bg, "s", []string{ids[0][:len(ids[0])-1], ids[1]}, asked))(t)
		unproven(t, store)
		if !slices.Equal(r.Entries, ids[:2]) || r.Commit.Commit == "" {
			t.Errorf("%+v", r)
		}
		if again := must(store.Erase(bg, "s", ids[:2], nil))(t); again.Commit.Commit != "" || len(again.Already) != 2 {
			t.Errorf("again: %+v", again)
		}

		// the handle commits again, and sees stubs
		say(t, s, "later")
		commit(t, s, state{Turns: 2})
		for _, h := range []*coppice.Session{s, open(t, store, "s")} {
			var texts []string
			for e, err := range h.Entries(bg, ids[:2]...) {
				if err != nil {
					t.Fatal(err)
				}
				if stub, ok := e.Erased(); !ok || stub.Reason != "asked" {
					t.Errorf("%s is no stub", e.Raw)
				}
				m, _ := e.Message()
				texts = append(texts, m.Role+": "+m.Text())
			}
			if got := strings.Join(texts, ", "); got != "user: [erased], assistant: [erased]" {
				t.Error(got)
			}
			for _, m := range must(h.Context(bg))(t).Messages {
				if strings.Contains(string(m.Raw), erasedWord) {
					t.Errorf("the context has %s", m.Raw)
				}
			}
			if p := preview(must(h.Tree(bg))(t), ids[0]); p != "[erased]" {
				t.Errorf("the tree shows %q", p)
			}
			if i := h.Info(); strings.Contains(i.Title+i.Preview+i.First, erasedWord[1:]) {
				t.Errorf("%+v", i)
			}
		}
		unproven(t, store)
		if rep := must(store.Verify(bg, "s", true))(t); !onlyErased(rep) {
			t.Errorf("%v", rep.Problems)
		}
		if _, err := store.Erase(bg, "s", []string{"nothing"}, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
}

func onlyErased(rep coppice.Report) bool {
	for _, p := range rep.Problems {
		if p.Kind() != "erased" {
			return false
		}
	}
	return len(rep.Problems) > 0
}

func preview(tree *transcript.Tree, id string) string {
	n, _ := tree.Node(id)
	return n.Preview
}

// Forks have the entries too: an erasure names them, and with Everywhere erases there as well.
func TestEraseEverywhere(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		ids := must(s.Append(bg, entry.User(erasedWord), entry.Assistant("yes")))(t)
		commit(t, s, state{Turns: 1})
		fork := must(s.Fork(bg, coppice.Target{Seq: 1}, "fork", nil))(t)
		say(t, fork, "in the fork")
		commit(t, fork, state{Turns: 2})
		ok(t, must(fork.Fork(bg, coppice.Target{Seq: 1}, "forked", nil))(t).Close())
		create(t, store, "other", nil)

		others := func(r coppice.Erased) (names []string) {
			for _, o := range r.Others {
				names = append(names, o.Session)
			}
			return names
		}
		here := must(store.Erase(bg, "s", ids[:1], nil))(t)
		same(t, "named", others(here), []string{"fork", "forked"})
		if p := must(store.Prove(bg, erasedWord))(t); len(p.Found) == 0 {
			t.Error("the forks were erased unasked")
		}
		all := must(store.Erase(bg, "s", ids[:1], &coppice.EraseOptions{Everywhere: true}))(t)
		same(t, "erased", others(all), []string{"fork", "forked"})
		unproven(t, store)
		same(t, "the fork", texts(t, open(t, store, "fork")), "[erased] yes in the fork")
	})
}

// An amendment that is erased by its own id is in no window either: the entry shows what it had before.
func TestEraseAnAmendment(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		ids := must(s.Append(bg, entry.User("first"), entry.Assistant("yes")))(t)
		commit(t, s, state{Turns: 1})
		must(s.Amend(bg, ids[0], entry.User(erasedWord)))(t)
		must(s.Snapshot(bg, "tag"))(t)
		e := must(s.Entry(bg, ids[0]))(t)
		must(store.Erase(bg, "s", []string{e.AmendedBy}, nil))(t)
		unproven(t, store)
		same(t, "the context", strings.Contains(texts(t, open(t, store, "s")), "first"), true)
	})
}

// Copies has the sessions that share entries, and of those that are related to a deleted session all.
func TestCopies(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		ids := must(s.Append(bg, entry.User("one"), entry.Assistant("two")))(t)
		commit(t, s, state{Turns: 1})
		commit(t, create(t, store, "agent", &coppice.SessionOptions{Parent: "s"}), state{Turns: 1})
		commit(t, create(t, store, "other", nil), state{Turns: 1})
		must(s.Fork(bg, coppice.Target{Seq: 1}, "fork", nil))(t)
		for id, want := range map[string][]string{"s": {"fork"}, "fork": {"s"}, "agent": {}, "other": {}} {
			if got := must(store.Copies(bg, id))(t); !slices.Equal(got, want) {
				t.Errorf("copies of %s: %v, want %v", id, got, want)
			}
		}
		must(store.Erase(bg, "fork", ids, nil))(t)
		if got := must(store.Copies(bg, "s"))(t); len(got) > 0 {
			t.Errorf("a stub counts as a copy: %v", got)
		}
		if err := errors.Join(s.Close(), store.Delete(bg, "s")); err != nil {
			t.Fatal(err)
		}
		want := []string{"agent", "fork"}
		if got := must(store.Copies(bg, "s"))(t); !slices.Equal(got, want) {
			t.Errorf("copies of a deleted session: %v, want %v", got, want)
		}
	})
}
