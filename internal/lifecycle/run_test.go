package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// says returns a turn that appends texts and increments the counter of the state.
func says(st *state, texts ...string) func(context.Context, *coppice.Session) error {
	return func(ctx context.Context, s *coppice.Session) error {
		st.Turns++
		for _, text := range texts {
			if _, err := s.Append(ctx, entry.User(text)); err != nil {
				return err
			}
		}
		return nil
	}
}

// Run creates the session, decodes the state, commits messages and state together, and the next host continues. It
// costs the same requests as the calls that it replaces.
func TestRun(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		for n := 1; n <= 3; n++ {
			var st state
			r := must(store.Run(bg, "s", &st, says(&st, "u"), nil))(t)
			same(t, "seq", r.Seq, uint64(n))
			same(t, "turns", st.Turns, n)
			byHand := must(store.OpenOrCreate(bg, "h", nil))(t)
			say(t, byHand, "u")
			want := commit(t, byHand, st)
			ok(t, byHand.Close())
			r.IO.BytesWritten, want.IO.BytesWritten = 0, 0 // ids differ
			same(t, "requests", r.IO, want.IO)
		}
		s := open(t, store, "s")
		same(t, "context", texts(t, s), "u u u")
		same(t, "state", stateOf(t, s), state{Turns: 3})
	})
}

// A turn without state keeps the previous one.
func TestRunWithoutState(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		st := state{}
		must(store.Run(bg, "s", &st, says(&st, "u1"), nil))(t)
		must(store.Run(bg, "s", nil, says(&state{}, "u2"), nil))(t)
		s := open(t, store, "s")
		same(t, "state", stateOf(t, s), state{Turns: 1})
		same(t, "context", texts(t, s), "u1 u2")
	})
}

// Calls that a dead host left open are answered before the turn begins, and stored with it.
func TestRunAnswersOpenCalls(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		must(s.Append(bg, entry.User("u1"), entry.Assistant("", entry.Call("c1", "bash", map[string]string{}))))(t)
		commit(t, s, nil)
		must(store.Run(bg, "s", nil, func(ctx context.Context, s *coppice.Session) error {
			c := must(s.Context(ctx))(t)
			same(t, "open calls", len(c.OpenCalls), 0)
			last := c.Messages[len(c.Messages)-1]
			same(t, "role", last.Role, "toolResult")
			if !strings.Contains(string(last.Raw), "it died") || !strings.Contains(string(last.Raw), `"isError":true`) {
				t.Errorf("result %s", last.Raw)
			}
			return nil
		}, &coppice.RunOptions{Interrupted: "it died"}))(t)
		same(t, "open calls", len(must(open(t, store, "s").Context(bg))(t).OpenCalls), 0)
	})
}

// Entries that a failed turn appended are dropped, its own commits stay, and the handle stays usable.
func TestRunDropsAFailedTurn(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		broke := errors.New("the model is away")
		s := create(t, store, "s", nil)
		for _, committed := range []bool{false, true} {
			ctx, cancel := context.WithCancel(bg)
			_, err := s.Run(ctx, nil, func(ctx context.Context) error {
				say(t, s, "u1")
				if committed {
					commit(t, s, state{Turns: 1})
				}
				say(t, s, "u2")
				cancel() // its caller has gone
				return broke
			}, nil)
			if !errors.Is(err, broke) || errors.Is(err, context.Canceled) {
				t.Fatalf("run: %v", err)
			}
		}
		st := state{}
		must(s.Run(bg, &st, func(context.Context) error { say(t, s, "u3"); return nil }, nil))(t)
		same(t, "state", st, state{Turns: 1})
		same(t, "stored", everything(t, open(t, store, "s")), "u1 u3")
		ok(t, s.Close())
	})
}

// Another writer committed first: both turns are stored, the head is the winner's, and the receipt names the branch.
func TestRunKeepsBoth(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		st := state{}
		must(store.Run(bg, "s", &st, says(&st, "u1"), nil))(t)
		s, st := open(t, store, "s"), state{}
		r := must(s.Run(bg, &st, func(context.Context) error {
			other := open(t, store, "s")
			say(t, other, "w")
			commit(t, other, state{Turns: 100})
			say(t, s, "l")
			st.Turns++
			return nil
		}, nil))(t)
		path, doc := line(t, open(t, store, "s"), r.Kept)
		same(t, "kept", path, "u1 l")
		same(t, "its state", doc, state{Turns: 2})
		same(t, "head", texts(t, open(t, store, "s")), "u1 w")
		st = state{}
		must(s.Run(bg, &st, func(context.Context) error { say(t, s, "n"); return nil }, nil))(t)
		same(t, "the next turn", texts(t, open(t, store, "s")), "u1 w n")
		same(t, "its state", st, state{Turns: 100})
	})
}

// With Claim a host takes over once. The previous one keeps its turn as a branch, gets an error, and stays fenced.
func TestRunClaims(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		claim := &coppice.RunOptions{Claim: true}
		slow, next := create(t, store, "s", nil), (*coppice.Session)(nil)
		calls := 0
		turn := func(s *coppice.Session, text string) func(context.Context) error {
			return func(context.Context) error { calls++; say(t, s, text); return nil }
		}
		must(slow.Run(bg, nil, turn(slow, "u1"), claim))(t)
		same(t, "seq of claim and turn", must(slow.Run(bg, nil, turn(slow, "u2"), claim))(t).Seq, uint64(3))
		r, err := slow.Run(bg, nil, func(context.Context) error {
			next = open(t, store, "s")
			must(next.Run(bg, nil, turn(next, "u3"), claim))(t)
			say(t, slow, "l")
			return nil
		}, claim)
		if !errors.Is(err, coppice.ErrFenced) || r.Kept == "" {
			t.Fatalf("the older host: %v, kept %q", err, r.Kept)
		}
		path, _ := line(t, open(t, store, "s"), r.Kept)
		same(t, "kept", path, "u1 u2 l")
		calls = 0
		for range 2 {
			if _, err := slow.Run(bg, nil, turn(slow, "late"), claim); !errors.Is(err, coppice.ErrFenced) {
				t.Errorf("the older host goes on: %v", err)
			}
		}
		same(t, "turns of the older host", calls, 0)
		must(next.Run(bg, nil, turn(next, "u4"), claim))(t)
		same(t, "head", texts(t, open(t, store, "s")), "u1 u2 u3 u4")
	})
}

// If the answer to the commit is lost, Run determines the outcome: the turn is stored once.
func TestRunAfterALostAnswer(t *testing.T) {
	for name, applied := range map[string]bool{"applied": true, "not applied": false} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s, st := r.start(t, nil), state{}
				run := begin(func() (coppice.Receipt, error) {
					return s.Run(bg, &st, func(context.Context) error { st.Turns++; say(t, s, "d"); return nil }, nil)
				})
				write, n := r.gate.next(t), 0
				if applied {
					n = len(write.body)
				}
				write.lose(n)
				if _, err := run.wait(t); !errors.Is(err, coppice.ErrCommitUnknown) {
					t.Fatalf("run while the store is away: %v, want ErrCommitUnknown", err)
				}
				r.gate.open()
				st = state{}
				must(s.Run(bg, &st, func(context.Context) error { st.Turns++; say(t, s, "e"); return nil }, nil))(t)
				same(t, "stored", everything(t, r.fresh(t)), "u1 a1 d e")
				same(t, "state", stateOf(t, r.fresh(t)), state{Turns: 3})
			})
		})
	}
}

// A state that cannot be decoded or encoded stops the turn, and changes nothing.
func TestRunRefusesState(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		must(store.Run(bg, "s", json.RawMessage(`"text"`), says(&state{}, "u1"), nil))(t)
		var n int
		if _, err := store.Run(bg, "s", &n, says(&state{}, "u2"), nil); err == nil {
			t.Error("a text was decoded into a number")
		}
		if _, err := store.Run(bg, "s", func() {}, says(&state{}, "u3"), nil); err == nil {
			t.Error("a function was taken for a state")
		}
		same(t, "stored", everything(t, open(t, store, "s")), "u1")
	})
}

// A finished job is not repeated: its key returns its receipt, on any host, also if two hosts run it concurrently.
func TestRunWithKey(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		job := &coppice.RunOptions{Key: "job 1"}
		st := state{}
		first := must(store.Run(bg, "s", &st, says(&st, "u1"), job))(t)
		same(t, "repeated", first.Repeated, false)
		again := must(store.Run(bg, "s", &st, func(context.Context, *coppice.Session) error {
			t.Error("the model ran again")
			return nil
		}, job))(t)
		same(t, "again", again.Repeated && again.Commit == first.Commit, true)

		job.Key = "job 2"
		var theirs coppice.Receipt
		r := must(store.Run(bg, "s", &st, func(ctx context.Context, s *coppice.Session) error {
			other := state{}
			theirs = must(store.Run(bg, "s", &other, says(&other, "theirs"), job))(t)
			return says(&st, "mine")(ctx, s)
		}, job))(t)
		same(t, "the other host's", r.Repeated && r.Commit == theirs.Commit, true)
		same(t, "stored", everything(t, open(t, store, "s")), "u1 theirs")
	})
}
