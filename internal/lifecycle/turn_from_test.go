package lifecycle_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// fork3 makes a session u1 a1 u2 a2, whose state counts its commits, and returns the ids of its entries.
func fork3(t *testing.T, store *coppice.Store, id string) (*coppice.Session, []string) {
	t.Helper()
	s := create(t, store, id, &coppice.SessionOptions{})
	var all []string
	for i, d := range []transcript.Draft{
		entry.User("u1"), entry.Assistant("a1"), entry.User("u2"), entry.Assistant("a2"),
	} {
		r := must(s.Commit(bg, coppice.Turn{State: state{Turns: i + 1}, Entries: []transcript.Draft{d}}))(t)
		all = append(all, r.IDs...)
	}
	return s, all
}

// A turn with From has the same result as Branch and Commit together, in one commit.
func TestTurnFrom(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		for name, at := range map[string]int{"first": 0, "middle": 1, "head": 3, "root": -1} {
			for _, docs := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", docs), func(t *testing.T) {
					turn := coppice.Turn{Entries: []transcript.Draft{entry.User("new")}}
					if docs {
						turn.Docs = map[string]any{"a": 1}
					}
					two, all := fork3(t, store, fmt.Sprint("two-", name, docs))
					from := ""
					if at >= 0 {
						from = all[at]
					}
					must(two.Branch(bg, from, nil))(t)
					must(two.Commit(bg, turn))(t)
					one, all := fork3(t, store, fmt.Sprint("one-", name, docs))
					if turn.From = &from; at >= 0 {
						turn.From = &all[at]
					}
					r := must(one.Commit(bg, turn))(t)
					same(t, "seq", r.Seq, uint64(5))
					for _, h := range []*coppice.Session{one, open(t, store, one.ID())} {
						same(t, "context", texts(t, h), texts(t, two))
						same(t, "state", stateOf(t, h), stateOf(t, two))
						got, want := h.Info(), two.Info()
						same(t, "preview", got.Preview, want.Preview)
						same(t, "status", got.Status, want.Status)
						same(t, "branch", got.Branch, want.Branch)
						same(t, "head", h.Head().Entry, r.IDs[0])
						doc := 0
						ok(t, h.Doc("a", &doc))
						same(t, "document", doc == 1, docs)
					}
				})
			}
		}
	})
}

// A turn with From is judged, kept and repeated like any other turn, and does not commit the buffer.
func TestTurnFromIsATurn(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, all := fork3(t, store, "s")
		mine := open(t, store, "s")
		say(t, mine, "draft")
		turn := coppice.Turn{
			Key: "k", From: &all[0], State: state{Turns: 9}, Entries: []transcript.Draft{entry.User("new")},
		}
		if _, err := mine.Commit(bg, turn); !errors.Is(err, coppice.ErrUncommitted) {
			t.Fatalf("with a buffer: %v, want ErrUncommitted", err)
		}
		base := mine.Head().Commit
		say(t, s, "other")
		commit(t, s, state{Turns: 5})
		turn.Base = base
		if _, err := mine.Commit(bg, turn); !errors.Is(err, coppice.ErrConflict) {
			t.Fatalf("the head moved: %v, want ErrConflict", err)
		}
		turn.KeepBoth = true
		r := must(mine.Commit(bg, turn))(t)
		if r.Kept == "" {
			t.Fatalf("it is not kept: %+v", r)
		}
		same(t, "the session's state", stateOf(t, open(t, store, "s")), state{Turns: 5})
		again := must(open(t, store, "s").Commit(bg, turn))(t)
		same(t, "repeated", again.Repeated, true)
		same(t, "ids", again.IDs, r.IDs)
		turn.From = &all[1]
		_, err := mine.Commit(bg, turn)
		isErr(t, "another place under the key", err, coppice.ErrKeyReused)
		same(t, "text", err.Error(), "commit s: the idempotency key belongs to another turn")
		same(t, "buffer", texts(t, mine), "u1 a1 u2 a2 draft")
		h := open(t, store, "s")
		must(h.Switch(bg, r.Kept))(t)
		same(t, "kept line", texts(t, h), "u1 new")
		same(t, "its state", stateOf(t, h), state{Turns: 9})
		gone := "nowhere"
		if _, err := h.Commit(bg, coppice.Turn{From: &gone}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no such entry: %v, want fs.ErrNotExist", err)
		}
	})
}

// A batch with From that is sent again succeeds: its entries are known, and the head is at them.
func TestTurnFromWithKnownEntries(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, all := fork3(t, store, "s")
		turn := coppice.Turn{From: &all[0], Entries: known(transcript.KnownIgnore, noted("x", "y")...)}
		first := must(s.Commit(bg, turn))(t)
		again := must(s.Commit(bg, turn))(t)
		same(t, "again", fmt.Sprint(again.Repeated, again.IDs, again.Commit == first.Commit), "true [x y] true")
		must(s.Switch(bg, all[3]))(t)
		r := must(s.Commit(bg, turn))(t) // it moves the head to the known entries
		same(t, "moved", fmt.Sprint(r.Repeated, r.IDs, r.Entries, r.Entry), "false [x y] 0y")
		same(t, "head", open(t, store, "s").Head().Entry, "y")
	})
}

// A move with a base is judged by it, ignores the buffer, and starts from the newest state.
func TestMovesWithBase(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, all := fork3(t, store, "s")
		mine := open(t, store, "s")
		base := mine.Head().Commit
		must(s.Label(bg, all[0], "x"))(t) // moves nothing
		say(t, mine, "draft")
		if _, err := mine.Branch(bg, all[1], nil); !errors.Is(err, coppice.ErrUncommitted) {
			t.Fatalf("without a base: %v, want ErrUncommitted", err)
		}
		r := must(mine.Branch(bg, all[1], nil, coppice.WithBase(base), coppice.WithKey("k")))(t)
		same(t, "the session", texts(t, open(t, store, "s")), "u1 a1")
		same(t, "the handle and its buffer", texts(t, mine), "u1 a1 u2 a2 draft")
		again := must(open(t, store, "s").Branch(bg, all[1], nil, coppice.WithBase(base), coppice.WithKey("k")))(t)
		same(t, "again", fmt.Sprint(again.Repeated, again.Commit == r.Commit), "true true")
		for name, move := range map[string]func(o coppice.MoveOption) (coppice.Receipt, error){
			"branch": func(o coppice.MoveOption) (coppice.Receipt, error) { return s.Branch(bg, all[0], nil, o) },
			"switch": func(o coppice.MoveOption) (coppice.Receipt, error) { return s.Switch(bg, all[3], o) },
			"stay":   func(o coppice.MoveOption) (coppice.Receipt, error) { return s.Switch(bg, all[1], o) },
			"edit": func(o coppice.MoveOption) (coppice.Receipt, error) {
				return s.Edit(bg, all[0], entry.User("v2"), o)
			},
			"rollback": func(o coppice.MoveOption) (coppice.Receipt, error) {
				return s.Rollback(bg, coppice.Target{Seq: 1}, o)
			},
		} {
			if _, err := move(coppice.WithBase(base)); !errors.Is(err, coppice.ErrConflict) {
				t.Errorf("%s on an old base: %v, want ErrConflict", name, err)
			}
		}
		must(s.Edit(bg, all[0], entry.User("v2"), coppice.WithBase(r.Commit)))(t)
		same(t, "on a newer base than the handle shows", texts(t, open(t, store, "s")), "v2")
	})
}

// Callers that share a handle are distinguished by their names: a claim fences the turns, moves and annotations of the
// others that are based on an earlier commit.
func TestWriters(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, all := fork3(t, store, "s")
		base := s.Head().Commit
		r := must(s.Claim(bg, coppice.WithWriter("a")))(t)
		turn := func(writer, base string) coppice.Turn {
			return coppice.Turn{Writer: writer, Base: base, Entries: []transcript.Draft{entry.User("by " + writer)}}
		}
		by := coppice.WithWriter("b")
		_, terr := s.Commit(bg, turn("b", base))
		_, merr := s.Branch(bg, all[0], nil, coppice.WithBase(base), by)
		_, nerr := s.Label(bg, all[0], "x", coppice.WithBase(base), by)
		for what, err := range map[string]error{"turn": terr, "move": merr, "annotation": nerr} {
			if !errors.Is(err, coppice.ErrFenced) {
				t.Errorf("%s of another writer: %v, want ErrFenced", what, err)
			}
		}
		must(s.Label(bg, all[0], "x", by))(t) // without a base
		other := open(t, store, "s")          // as of another server
		_, err := other.Commit(bg, turn("b", base))
		isErr(t, "b, through another handle", err, coppice.ErrFenced)
		must(other.Label(bg, all[0], "y", coppice.WithBase(base), coppice.WithWriter("a")))(t)
		mine := must(s.Commit(bg, turn("a", base)))(t)
		must(s.Commit(bg, turn("b", mine.Commit)))(t)
		var writers []string
		for c, err := range s.Log(bg, coppice.Target{}) {
			if ok(t, err); c.Seq >= r.Seq {
				writers = append(writers, c.Writer)
			}
		}
		same(t, "writers", fmt.Sprint(writers), "[b a a b a]")
	})
}

// The base of a turn is found by the index of ids, however old it is, without a scan.
func TestBaseOfAnOldCommit(t *testing.T) {
	testutil.SkipLong(t)
	for name, b := range map[string]backend.Backend{"replace": memory.New(), "append": memory.NewAppender()} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t, b, nil)
			s := create(t, store, "s", noSnapshots)
			first := must(s.Commit(bg, coppice.Turn{Entries: noted("first")}))(t)
			rested(t, store, s)
			inline(store)
			s = must(store.Open(bg, "s", noSnapshots))(t)
			noteMore(t, s, 3000, 10)
			rested(t, store, s)
			h := must(store.Open(bg, "s", noSnapshots))(t)
			before := h.IO()
			turn := coppice.Turn{Base: first.Commit, Entries: noted("late"), KeepBoth: true}
			r := must(h.Commit(bg, turn))(t)
			if r.Kept == "" {
				t.Errorf("it is not kept: %+v", r)
			}
			if io := h.IO().Sub(before); io.Get > 7 || io.List > 0 {
				t.Errorf("%d gets, %d lists; want at most 3 runs of ids, the log, the line and its segment",
					io.Get, io.List)
			}
			same(t, "it grows from", must(h.Entry(bg, "late"))(t).ParentID, "first")
			ok(t, h.Close())
		})
	}
}

// named returns a user message with an id of the caller.
func named(id string, rule transcript.KnownID) transcript.Draft {
	d := entry.User(id)
	d.ID, d.OnKnownID = id, rule
	return d
}

// The context follows the path to the head, also if a turn with From goes back in the history: by an entry that the
// session has, or by the parent of a draft.
func TestContextOfATurnFrom(t *testing.T) {
	child := named("n", transcript.KnownError)
	child.Parent = "u2"
	ignore := transcript.KnownIgnore
	for name, c := range map[string]struct {
		from    string
		entries []transcript.Draft
		want    string
	}{
		"known, then new": {
			"", []transcript.Draft{named("u1", ignore), named("u2", ignore), named("n", ignore)}, "u1 u2 n",
		},
		"new, then known": {"u1", []transcript.Draft{named("n", ignore), named("u2", ignore)}, "u1 u2"},
		"parent":          {"", []transcript.Draft{child}, "u1 u2 n"},
		"amended": {
			"u1",
			[]transcript.Draft{named("u2", transcript.KnownAmend), named("n", transcript.KnownError)},
			"u1 u2 n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, store *coppice.Store) {
				s := create(t, store, "s", nil)
				for _, id := range []string{"u1", "u2", "u3"} {
					must(s.Commit(bg, coppice.Turn{Entries: []transcript.Draft{named(id, transcript.KnownError)}}))(t)
				}
				must(s.Commit(bg, coppice.Turn{From: &c.from, Entries: c.entries}))(t)
				for range 2 { // the second time after Close
					same(t, "own", texts(t, s), c.want)
					same(t, "fresh", texts(t, open(t, store, "s")), c.want)
					last := c.want[strings.LastIndexByte(c.want, ' ')+1:]
					same(t, "preview", open(t, store, "s").Info().Preview, last)
					ok(t, s.Close())
					s = open(t, store, "s")
				}
			})
		})
	}
}

// An id is stored once, whichever handle appended it first, and whatever the bases of the turns are.
func TestIDsOfTheBuffer(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		a := create(t, store, "s", nil)
		commit(t, a, state{Turns: 1})
		b := open(t, store, "s")
		must(a.Append(bg, named("x", transcript.KnownError)))(t)
		turn := coppice.Turn{Base: a.Head().Commit, Entries: []transcript.Draft{named("x", transcript.KnownError)}}
		if _, err := a.Commit(bg, turn); !errors.Is(err, fs.ErrExist) {
			t.Errorf("an id of the buffer: %v, want fs.ErrExist", err)
		}
		must(b.Commit(bg, turn))(t)
		if _, err := a.Commit(bg, coppice.Turn{KeepBoth: true}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("an id that another handle stored: %v, want fs.ErrExist", err)
		}
		same(t, "stored", everything(t, open(t, store, "s")), "x")
	})
}

// Redacted text is removed from listings, also if the head was moved before, and another handle redacts it.
func TestListingsAfterMovesAndAmendments(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		for _, hide := range []bool{false, true} {
			id := fmt.Sprint("hide-", hide)
			a := create(t, store, id, nil)
			said := []transcript.Draft{entry.User("q"), entry.Assistant("answer")}
			r := must(a.Commit(bg, coppice.Turn{Entries: said}))(t)
			must(a.Branch(bg, r.IDs[0], nil))(t)
			must(a.Branch(bg, r.IDs[1], nil))(t)
			x := must(a.Commit(bg, coppice.Turn{Entries: []transcript.Draft{entry.User("SECRET")}}))(t)
			b, want := open(t, store, id), "redacted"
			if hide {
				want = "answer"
				must(b.Hide(bg, x.IDs[0]))(t)
			} else {
				must(b.Amend(bg, x.IDs[0], entry.User("redacted")))(t)
			}
			same(t, "own", b.Info().Preview, want)
			same(t, "fresh", open(t, store, id).Info().Preview, want)
			for sum, err := range store.List(bg, coppice.ListOptions{}) {
				if ok(t, err); sum.ID == id {
					same(t, "list", sum.Preview, want)
				}
			}
		}
	})
}

// The key of a move or an annotation without effect is known afterwards: its repeat undoes nothing.
func TestKeysOfWhatChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		first := must(s.Commit(bg, coppice.Turn{Entries: []transcript.Draft{entry.User("u")}}))(t)
		none, title := "", "of a person"
		must(s.SetInfo(bg, coppice.InfoChange{Title: &none}, coppice.WithKey("i")))(t)
		must(s.Switch(bg, "main", coppice.WithKey("s")))(t)
		other := open(t, store, "s")
		must(other.SetInfo(bg, coppice.InfoChange{Title: &title}))(t)
		must(other.Branch(bg, "", &coppice.BranchOptions{Name: "side"}))(t)
		r := must(s.SetInfo(bg, coppice.InfoChange{Title: &none}, coppice.WithKey("i")))(t)
		same(t, "title again", r.Repeated, true)
		r = must(s.Switch(bg, "main", coppice.WithKey("s")))(t)
		same(t, "switch again", r.Repeated, true)
		h := open(t, store, "s")
		same(t, "title", h.Info().Title, title)
		same(t, "head", h.Head().Entry != first.Entry, true)
	})
}

// A turn that a deferred commit cannot hold is stored at once. A context that is not stored keeps the handle where it
// is. The handle's own name for its branch causes no conflict.
func TestBuffersAndTurns(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "d", &coppice.SessionOptions{DeferUntilAssistant: true})
		must(s.Commit(bg, coppice.Turn{Entries: []transcript.Draft{entry.User("first")}}))(t)
		root := ""
		if _, err := s.Commit(bg, coppice.Turn{From: &root}); !errors.Is(err, coppice.ErrUncommitted) {
			t.Errorf("From with what is deferred: %v, want ErrUncommitted", err)
		}
		ok(t, s.Discard(bg))

		s = create(t, store, "s", nil)
		commit(t, s, state{Turns: 1})
		ok(t, s.SetContext(bg, transcript.Item{Message: []byte(`{"role":"user","content":"sum"}`)}))
		must(s.Commit(bg, coppice.Turn{Base: s.Head().Commit, Entries: []transcript.Draft{entry.User("q")}}))(t)
		if _, err := s.Commit(bg, coppice.Turn{}); !errors.Is(err, coppice.ErrConflict) {
			t.Errorf("a context of before the turn: %v, want ErrConflict", err)
		}
		ok(t, s.Reload(bg))
		say(t, s, "draft")
		must(s.RenameBranch(bg, "main", "trunk"))(t)
		r := commit(t, s, nil)
		same(t, "branch", r.Branch, "trunk")
	})
}
