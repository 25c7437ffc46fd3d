package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/transcript"
)

// race is a session to which a winner committed while another handle had a draft in its buffer.
type race struct {
	store       *coppice.Store
	s, w        *coppice.Session
	first, last coppice.Receipt // the commit in the view of s, and the winner's
}

func newRace(t *testing.T, store *coppice.Store, o *coppice.SessionOptions) race {
	t.Helper()
	r := race{store: store, s: create(t, store, "s", o)}
	say(t, r.s, "u1")
	r.first = commit(t, r.s, state{Turns: 1})
	r.w = open(t, store, "s")
	say(t, r.w, "w")
	r.last = commit(t, r.w, state{Turns: 100})
	return r
}

// The rules of ADR 0036 by number, as a caller of the package sees them.
func TestRulesOfATurn(t *testing.T) {
	answer := func(text string) []transcript.Draft { return []transcript.Draft{entry.Assistant(text)} }
	rules := map[string]func(t *testing.T, store *coppice.Store){
		"2 a turn with a base leaves the buffer alone": func(t *testing.T, store *coppice.Store) {
			s := create(t, store, "s", nil)
			say(t, s, "u1")
			first := commit(t, s, state{Turns: 1})
			say(t, s, "u2")
			r := must(s.Commit(bg, coppice.Turn{Base: first.Commit, Entries: answer("a1"), State: state{Turns: 2}}))(t)
			same(t, "entries", r.Entries, 1)
			same(t, "the caller sees its draft", texts(t, s), "u1 u2")
			same(t, "stored", texts(t, open(t, store, "s")), "u1 a1")
			_, err := s.Commit(bg, coppice.Turn{})
			isErr(t, "the draft was made on what was before", err, coppice.ErrConflict)
		},
		"3 what is not stored changes nothing": func(t *testing.T, store *coppice.Store) {
			r := newRace(t, store, nil)
			say(t, r.s, "u2")
			for range 2 {
				_, err := r.s.Commit(bg, coppice.Turn{Entries: answer("a2"), State: state{Turns: 2}})
				isErr(t, "a stale turn", err, coppice.ErrConflict)
				_, err = r.s.Commit(bg, coppice.Turn{Base: r.first.Commit, State: state{Turns: 3}})
				isErr(t, "a stale turn with a base", err, coppice.ErrConflict)
				same(t, "context", texts(t, r.s), "u1 u2")
				same(t, "state", stateOf(t, r.s), state{Turns: 1})
				same(t, "commit", r.s.Head().Commit, r.first.Commit)
			}
			same(t, "stored", texts(t, open(t, store, "s")), "u1 w")
		},
		"4 a losing turn is kept where it asks for it, and the view stays": func(t *testing.T, store *coppice.Store) {
			r := newRace(t, store, nil)
			say(t, r.s, "u2")
			kept := must(r.s.Commit(bg, coppice.Turn{Entries: answer("a2"), State: state{Turns: 2}, KeepBoth: true}))(t)
			same(t, "view", r.s.Head().Commit, r.first.Commit)
			same(t, "buffer", texts(t, r.s), "u1")
			_, err := r.s.Append(bg, entry.User("u3"))
			isErr(t, "append on a handle that is behind", err, coppice.ErrConflict)
			more := must(r.s.Commit(bg, coppice.Turn{Base: kept.Commit, Entries: answer("a3")}))(t)
			same(t, "a base that ends a kept branch continues it", more.Kept, kept.Kept)
			ok(t, r.s.Reload(bg))
			same(t, "the winner's line", texts(t, r.s), "u1 w")
			must(r.s.Switch(bg, kept.Kept))(t)
			same(t, "the kept line", texts(t, r.s), "u1 u2 a2 a3")
			same(t, "its state", stateOf(t, r.s), state{Turns: 2})
			own := must(r.s.Commit(bg, coppice.Turn{Base: more.Commit, Entries: answer("a4")}))(t)
			same(t, "a base that the session is at is no lost one", own.Kept, "")
			same(t, "stored", texts(t, open(t, store, "s")), "u1 u2 a2 a3 a4")
		},
		"5 only the turn itself keeps a fenced turn": func(t *testing.T, store *coppice.Store) {
			r := newRace(t, store, &coppice.SessionOptions{KeepBoth: true})
			ok(t, r.s.Reload(bg))
			must(r.w.Claim(bg))(t)
			_, err := r.s.Commit(bg, coppice.Turn{Entries: answer("a2")})
			isErr(t, "a fenced turn", err, coppice.ErrFenced)
			_, err = r.s.Label(bg, r.first.Entry, "x")
			isErr(t, "a fenced annotation", err, coppice.ErrFenced)
			kept := must(r.s.Commit(bg, coppice.Turn{Entries: answer("a2"), KeepBoth: true}))(t)
			if kept.Kept == "" {
				t.Error("the fenced turn is on the session's line")
			}
			must(r.s.Claim(bg))(t)
			must(r.s.Commit(bg, coppice.Turn{Entries: answer("a3")}))(t)
			_, err = r.w.Commit(bg, coppice.Turn{Entries: answer("a4")})
			isErr(t, "the one that was taken over", err, coppice.ErrFenced)
		},
		"7 keys come before conflicts": func(t *testing.T, store *coppice.Store) {
			s := create(t, store, "s", nil)
			turn := coppice.Turn{Key: "k", Entries: answer("a1"), State: state{Turns: 1}}
			first := must(s.Commit(bg, turn))(t)
			r := open(t, store, "s")
			say(t, r, "w")
			commit(t, r, state{Turns: 100})
			again := must(s.Commit(bg, turn))(t)
			same(t, "commit", again.Commit, first.Commit)
			same(t, "repeated", again.Repeated, true)
			turn.State = state{Turns: 2}
			_, err := r.Commit(bg, turn)
			isErr(t, "other content", err, coppice.ErrKeyReused)
			other := must(store.Create("s", nil))(t)
			turn.State = state{Turns: 1}
			same(t, "a creation that is repeated", must(other.Commit(bg, turn))(t).Commit, first.Commit)
			_, err = must(store.Create("s", nil))(t).Commit(bg, coppice.Turn{Entries: answer("a1")})
			isErr(t, "a creation without a key", err, fs.ErrExist)
		},
		"9 a move does not take the buffer": func(t *testing.T, store *coppice.Store) {
			r := newRace(t, store, nil)
			_, err := r.s.Branch(bg, "", nil)
			isErr(t, "a stale move", err, coppice.ErrConflict)
			ok(t, r.s.Reload(bg))
			say(t, r.s, "u2")
			_, err = r.s.Branch(bg, r.first.Entry, nil)
			isErr(t, "a move with a buffer", err, coppice.ErrUncommitted)
			ok(t, r.s.Discard(bg))
			must(r.s.Branch(bg, r.first.Entry, nil))(t)
			same(t, "context", texts(t, r.s), "u1")
		},
		"10 annotations conflict with nothing, and the later one wins": func(t *testing.T, store *coppice.Store) {
			r := newRace(t, store, nil)
			say(t, r.s, "u2")
			title := func(s string) coppice.InfoChange { return coppice.InfoChange{Title: &s} }
			must(r.w.SetInfo(bg, title("winner's")))(t)
			must(r.s.SetInfo(bg, title("later")))(t)
			must(r.s.Label(bg, r.last.Entry, "an entry that the handle has not seen"))(t)
			must(r.s.Amend(bg, r.first.Entry, entry.User("u1, amended")))(t)
			must(r.s.Hide(bg, r.last.Entry))(t)
			same(t, "view", r.s.Head().Commit, r.first.Commit)
			same(t, "title", r.s.Info().Title, "later")
			_, err := r.s.Commit(bg, coppice.Turn{})
			isErr(t, "the turn is as stale as before", err, coppice.ErrConflict)
			fresh := open(t, store, "s")
			same(t, "context", texts(t, fresh), "u1, amended")
			same(t, "title", fresh.Info().Title, "later")
			same(t, "branches", len(must(fresh.Tree(bg))(t).Branches()), 1)
			last := must(fresh.SetInfo(bg, title("later")))(t)
			same(t, "nothing to do", last.Commit, fresh.Head().Commit)
		},
	}
	for name, f := range rules {
		t.Run(name, func(t *testing.T) { onEach(t, f) })
	}
}

// A turn whose answer was lost is stored once, whichever call is first: Settle, the repeated turn with its key, or a
// call of another kind. If the request was lost, its draft is in the buffer again.
func TestRuleOfDoubt(t *testing.T) {
	asks := map[string]func(s *coppice.Session, turn coppice.Turn, unknown error) error{
		"settle": func(s *coppice.Session, _ coppice.Turn, unknown error) error {
			var e *coppice.Error
			errors.As(unknown, &e)
			r, err := s.Settle(bg, e.Commit)
			if err == nil && r.Commit != e.Commit {
				return fmt.Errorf("settled %s instead of %s", r.Commit, e.Commit)
			}
			return err
		},
		"the turn again": func(s *coppice.Session, turn coppice.Turn, _ error) error {
			_, err := s.Commit(bg, turn)
			return err
		},
		"an annotation, then the turn again": func(s *coppice.Session, turn coppice.Turn, _ error) error {
			title := "t"
			_, err := s.SetInfo(bg, coppice.InfoChange{Title: &title})
			_, again := s.Commit(bg, turn)
			return errors.Join(err, again)
		},
	}
	for name, ask := range asks {
		for kind, fate := range map[string]fault.Kind{"applied": fault.After, "not applied": fault.Before} {
			for _, store := range []string{"replace", "append"} {
				t.Run(name+"/"+kind+"/"+store, func(t *testing.T) {
					store, b := faulty(t, store)
					ctx, cancel := context.WithCancel(bg)
					setSleep(store, func(context.Context) error { cancel(); return context.Canceled })
					s := create(t, store, "s", nil)
					say(t, s, "u1")
					commit(t, s, state{Turns: 1})
					say(t, s, "u2")
					b.Add(fault.Rule{When: writes, Count: 1, Kind: fate}, fault.Rule{Count: -1})
					a2 := []transcript.Draft{entry.Assistant("a2")}
					turn := coppice.Turn{Key: "k", Entries: a2, State: state{Turns: 2}}
					_, unknown := s.Commit(ctx, turn)
					isErr(t, "commit", unknown, coppice.ErrCommitUnknown)
					_, err := s.Append(bg, entry.User("u3"))
					isErr(t, "append in doubt", err, coppice.ErrInDoubt)
					_, err = s.Settle(ctx, "")
					isErr(t, "settle, of a caller who has gone", err, coppice.ErrCommitUnknown)
					same(t, "context", texts(t, s), "u1 u2")
					b.Clear()
					ok(t, ask(s, turn, unknown))
					say(t, s, "u3")
					commit(t, s, state{Turns: 3})
					again := open(t, store, "s")
					same(t, "reopened", texts(t, again), "u1 u2 a2 u3")
					same(t, "own", texts(t, s), "u1 u2 a2 u3")
				})
			}
		}
	}
}
