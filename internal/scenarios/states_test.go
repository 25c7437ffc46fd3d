package scenarios_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/testutil"
)

// wide returns a state that is too long to be stored whole in each commit, so commits store patches of it.
func wide(n int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"fill":%q,"n":%d}`, strings.Repeat("x", 8<<10), n))
}

// States yields the result of At for each commit, newest first, kept losing turns included.
func TestStatesAreWhatAtReturns(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		var base string
		for i := range 150 {
			turn := coppice.Turn{}
			if i%3 > 0 {
				turn.State = wide(i / 3)
			}
			if i%40 == 7 {
				turn.State = json.RawMessage(`{"n":1}`)
			}
			r := must(s.Commit(bg, turn))(t)
			if i == 20 {
				base = r.Commit
			}
			if i > 20 && i%17 == 0 {
				r := must(s.Commit(bg, onBase(base, "lost", true)))(t)
				same(t, "kept", r.Kept != "", true)
			}
		}
		for _, h := range []*coppice.Session{s, open(t, store, "s")} {
			for _, from := range []coppice.Target{{}, {Seq: 100}, {Seq: 1}} {
				got := collect(t, h.States(bg, from))
				want := collect(t, h.Log(bg, from))
				same(t, "commits", len(got), len(want))
				for i, at := range got {
					same(t, "commit", at.Commit, want[i])
					v := must(h.At(bg, coppice.Target{Commit: at.Commit.Commit}))(t)
					same(t, "document", at.Document, v.Document())
				}
			}
		}
		for range s.States(bg, coppice.Target{}) {
			break // ends at once
		}
		same(t, "of nothing", len(collect(t, create(t, store, "empty", nil).States(bg, coppice.Target{}))), 0)
	})
}

// States reads a segment once for all of its commits.
func TestStatesCost(t *testing.T) {
	const n = 1000
	for kind, most := range map[string]int{"replace": 12, "append": 3, "local": 3} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			store := newStore(t, backends[kind](t), nil)
			s := create(t, store, "s", nil)
			for i := range n {
				must(s.Commit(bg, coppice.Turn{State: wide(i)}))(t)
			}
			ok(t, s.Close())
			s = open(t, store, "s")
			before := s.IO()
			list := collect(t, s.States(bg, coppice.Target{}))
			same(t, "commits", len(list), int(s.Head().Seq)+1)
			io := s.IO().Sub(before)
			if len(list) <= n || io.Get > most || io.Put+io.Append+io.Stat+io.List+io.Delete > 0 {
				t.Errorf("%s for %d commits, want at most %d get", cost(io), n, most)
			}
		})
	}
}

// The patches of consecutive changes lead from each state to the next; those of a Watch cost no additional read.
func TestStatePatch(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(rt *rapid.T) {
		store := newStore(t, memory.New(), nil)
		s := create(t, store, rapid.StringMatching(`s[a-z]{12}`).Draw(rt, "id"), nil)
		states := map[uint64]string{} // the session's states after the commits of the test
		steps := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 400).Draw(rt, "steps")
		base, now, until := "", "", uint64(0)
		for i, step := range steps {
			turn, next := coppice.Turn{}, now
			switch {
			case step <= 2:
				turn.State, next = wide(i), string(wide(i))
			case step == 3:
				turn.State, next = json.RawMessage(`null`), ""
			case step == 4 && base != "":
				turn, next = onBase(base, "x", true), `{"turns":0,"note":"x"}`
			}
			r, err := s.Commit(bg, turn)
			if err != nil {
				rt.Fatal(err)
			}
			if base == "" {
				base = r.Commit
			}
			if r.Kept == "" {
				now = next
			}
			until = r.Seq
			states[until] = now
		}
		at := func(seq uint64) []byte {
			for ; ; seq-- {
				if state, known := states[seq]; known || seq == 0 {
					return documentOfState(state)
				}
			}
		}
		after := rapid.Uint64Range(0, until).Draw(rt, "after")
		plain, patched := watchTo(rt, store, s.ID(), after, until, nil),
			watchTo(rt, store, s.ID(), after, until, func(c coppice.Change) {
				is := at(c.Commit.Seq - 1)
				patch, err := c.StatePatch(bg)
				if err != nil {
					rt.Fatal(err)
				}
				raw, err := checkpoint.ApplyPatch(is, bytes.ReplaceAll(patch, []byte(`"path":"`), []byte(`"path":"/state`)), false)
				if err != nil {
					rt.Fatalf("%s: %v", patch, err)
				}
				if want := at(c.Commit.Seq); !equalJSON(rt, raw, want) {
					rt.Fatalf("commit %d: %.100s becomes %.100s, want %.100s", c.Commit.Seq, is, raw, want)
				}
			})
		if patched > plain+1 {
			rt.Fatalf("%d reads with patches, %d without", patched, plain)
		}
	})
}

// documentOfState returns a document with a state; "" = none.
func documentOfState(state string) []byte {
	if state == "" {
		return []byte("{}")
	}
	return []byte(`{"state":` + state + `}`)
}

func equalJSON(t rapid.TB, a, b []byte) bool {
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return slices.Equal(p, q)
}

// watchTo watches the commits after one, up to another, and returns the number of reads.
func watchTo(t rapid.TB, store *coppice.Store, id string, after, until uint64, f func(coppice.Change)) int {
	s, err := store.Open(bg, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := s.IO()
	if after < until {
		for c, err := range s.Watch(bg, after) {
			if err != nil {
				t.Fatal(err)
			}
			if f != nil {
				f(c)
			}
			if c.Commit.Seq == until {
				break
			}
		}
	}
	return s.IO().Sub(before).Get
}
