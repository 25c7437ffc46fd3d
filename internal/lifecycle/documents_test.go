package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

type obj = map[string]any

var gone = json.RawMessage("null")

// docs commits a turn that only changes documents.
func docs(t testing.TB, s *coppice.Session, change obj) coppice.Receipt {
	t.Helper()
	return must(s.Commit(context.Background(), coppice.Turn{Docs: change}))(t)
}

// docsOf returns the documents in force, in order.
func docsOf(s interface {
	Docs() iter.Seq2[string, json.RawMessage]
},
) string {
	var list []string
	for name, p := range s.Docs() {
		list = append(list, name+"="+string(p))
	}
	return strings.Join(list, " ")
}

// Documents are stored with the entries and the state of their turn, and every handle that opens the session has them.
func TestDocsAreStoredWithTheirTurn(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		ctx := t.Context()
		s := create(t, st, "s", nil)
		same(t, "at first", docsOf(s), "")
		r := must(s.Commit(ctx, coppice.Turn{
			State: state{Turns: 1}, Entries: []transcript.Draft{entry.User("hi")},
			Docs: obj{"summary": obj{"n": 1}, "app:x": json.RawMessage(` [1, 2] `), "left": nil},
		}))(t)
		same(t, "commit", r.Seq, 1)
		want := `app:x=[1,2] summary={"n":1}`
		same(t, "docs", docsOf(s), want)
		docs(t, s, obj{"summary": obj{"n": 2}})
		commit(t, s, state{Turns: 2})
		docs(t, s, obj{"app:x": gone, "none": gone})
		for range 2 {
			same(t, "docs", docsOf(s), `summary={"n":2}`)
			same(t, "state", stateOf(t, s).Turns, 2)
			v := must(s.At(ctx, coppice.Target{Seq: 1}))(t)
			same(t, "docs at 1", docsOf(v), want)
			var got obj
			ok(t, s.Doc("summary", &got))
			same(t, "one", got, obj{"n": 2})
			ok(t, v.Doc("summary", &got))
			same(t, "one at 1", got, obj{"n": 1})
			got = nil
			ok(t, s.Doc("app:x", &got))
			same(t, "none", got == nil, true)
			ok(t, s.Close())
			s = open(t, st, "s")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Doc("summary", new(obj)); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// Navigation restores the documents at its target, and a fork begins with those of its target.
func TestDocsFollowTheTree(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		ctx := t.Context()
		s := create(t, st, "s", nil)
		first := say(t, s, "u1")
		docs(t, s, obj{"a": 1})
		say(t, s, "u2")
		docs(t, s, obj{"a": 2, "b": "x"})
		must(s.Branch(ctx, first[0], nil))(t)
		same(t, "branch", docsOf(s), "a=1")
		must(s.Switch(ctx, first[0]))(t)
		same(t, "switch", docsOf(s), `a=2 b="x"`)
		must(s.Rollback(ctx, coppice.Target{Seq: 1}))(t)
		same(t, "rollback", docsOf(s), "a=1")
		f := must(s.Fork(ctx, coppice.Target{Seq: 2}, "f", nil))(t)
		same(t, "fork", docsOf(f), `a=2 b="x"`)
		ok(t, f.Close())
		same(t, "fork, opened", docsOf(open(t, st, "f")), `a=2 b="x"`)
	})
}

// Two hosts that change only documents conflict, like those that change the state; the loser's documents are those of
// its branch.
func TestDocsConflict(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		ctx := t.Context()
		s := create(t, st, "s", nil)
		say(t, s, "u1")
		docs(t, s, obj{"a": 1})
		a, b := open(t, st, "s"), must(st.Open(ctx, "s", &coppice.SessionOptions{KeepBoth: true}))(t)
		docs(t, s, obj{"a": 2})
		say(t, a, "u2")
		if _, err := a.Commit(ctx, coppice.Turn{Docs: obj{"b": 1}}); !errors.Is(err, coppice.ErrConflict) {
			t.Fatalf("the second writer: %v", err)
		}
		same(t, "the loser's view", docsOf(a), "a=1")
		kept := must(a.Commit(ctx, coppice.Turn{Docs: obj{"b": 1}, KeepBoth: true}))(t).Kept
		same(t, "the loser's view", docsOf(a), "a=1")
		ok(t, a.Reload(ctx))
		same(t, "the winner's stay", docsOf(a), "a=2")
		must(a.Switch(ctx, kept))(t)
		same(t, "the branch", docsOf(a), "a=1 b=1")
		must(a.Switch(ctx, "main"))(t)
		same(t, "back", docsOf(a), "a=2")
		r := must(b.Commit(ctx, coppice.Turn{Docs: obj{"c": 1}}))(t)
		same(t, "kept", r.Kept != "", true)
		same(t, "the handle's documents", docsOf(b), "a=1")
		ok(t, b.Reload(ctx))
		same(t, "documents of the session", docsOf(b), "a=2")
		same(t, "those of the loser", docsOf(must(b.At(ctx, coppice.Target{Commit: r.Commit}))(t)), "a=1 c=1")
		ok(t, errors.Join(a.Close(), b.Close(), s.Close()))
	})
}

// The documents are part of the content that an idempotency key identifies.
func TestDocsAndKeys(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		ctx := t.Context()
		s := create(t, st, "s", nil)
		turn := coppice.Turn{Key: "k", Docs: obj{"a": 1, "b": 2}}
		must(s.Commit(ctx, turn))(t)
		docs(t, s, obj{"a": 9})
		again := must(s.Commit(ctx, turn))(t)
		same(t, "repeated", again.Repeated, true)
		same(t, "not applied again", docsOf(s), "a=9 b=2")
		for _, other := range []obj{nil, {"a": 1}, {"a": 1, "b": 3}, {"a": 1, "c": 2}, {"a": 1, "b": gone}} {
			if _, err := s.Commit(ctx, coppice.Turn{Key: "k", Docs: other}); !errors.Is(err, coppice.ErrKeyReused) {
				t.Errorf("%v under the same key: %v", other, err)
			}
		}
		same(t, "afterwards", docsOf(s), "a=9 b=2")
	})
}

// Each limit is a LimitError that names the value, and leaves everything as it was.
func TestDocsLimits(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		ctx := t.Context()
		s := create(t, st, "s", nil)
		text := func(n int) string { return strings.Repeat("x", n-2) } // n bytes as JSON
		full := obj{}
		for i := range checkpoint.MaxDocs {
			full[fmt.Sprintf("d%02d", i)] = i
		}
		docs(t, s, full)
		refused := func(what string, limit, value int64, change obj) {
			t.Helper()
			_, err := s.Commit(ctx, coppice.Turn{State: state{Turns: 99}, Docs: change})
			var le *codec.LimitError
			if !errors.As(err, &le) || !errors.Is(err, backend.ErrTooLarge) || le.What != what || le.Limit != limit ||
				le.Value != value {
				t.Errorf("got %v, want %s %d over %d", err, what, value, limit)
			}
		}
		refused(`document "d00"`, 64<<10, 64<<10+1, obj{"d00": text(64<<10 + 1)})
		refused("documents", checkpoint.MaxDocs, checkpoint.MaxDocs+1, obj{"one-more": 1})
		refused("documents together", checkpoint.MaxDocsTotal, 262707,
			obj{"d00": text(64 << 10), "d01": text(64 << 10), "d02": text(64 << 10), "d03": text(64 << 10)})
		refused(`name of document "`+strings.Repeat("n", 129)+`"`, 128, 129, obj{strings.Repeat("n", 129): 1})
		for _, name := range []string{"", "a b", "é", "a\"", "~"} {
			if _, err := s.Commit(ctx, coppice.Turn{Docs: obj{name: 1}}); err == nil {
				t.Errorf("name %q was taken", name)
			}
		}
		if _, err := s.Commit(ctx, coppice.Turn{Docs: obj{"d00": json.RawMessage("{")}}); err == nil {
			t.Error("what is no JSON was taken")
		}
		same(t, "state", stateOf(t, s).Turns, -1)
		same(t, "seq", s.Head().Seq, 1)
		docs(t, s, obj{"d00": text(64 << 10), "d01": gone, "one-more": 1})
		same(t, "seq", open(t, st, "s").Head().Seq, 2)
	})
}

// On a store with a log, a lost checkpoint loses no document.
func TestDocsWithoutACheckpoint(t *testing.T) {
	testutil.SkipLong(t)
	for _, name := range []string{"append", "local"} {
		t.Run(name, func(t *testing.T) {
			b := backends[name](t)
			st := newStore(t, b, nil)
			s := create(t, st, "s", nil)
			for i := range 150 { // across keyframes, in patches of a document that is not small
				docs(t, s, obj{fmt.Sprintf("d%d", i%7): obj{"i": i, "pad": strings.Repeat("x", 900)}, "last": i})
			}
			docs(t, s, obj{"d3": gone})
			want := docsOf(s)
			ok(t, s.Close())
			ok(t, b.Delete(t.Context(), "checkpoint_latest/s"))
			listed := collect(t, st.List(t.Context(), coppice.ListOptions{Docs: []string{"last", "d3"}}))
			same(t, "listed", fmt.Sprintf("%s", listed[0].Docs), "map[last:149]")
			same(t, "docs", docsOf(open(t, st, "s")), want)
		})
	}
}

// List returns the requested documents, of the same commit as the summary, with one read for each listed session.
func TestListWithDocs(t *testing.T) {
	b := memory.New()
	counted := &sessiontest.Counting{Backend: b}
	st := newStore(t, counted, nil)
	for i := range 5 {
		s := create(t, st, fmt.Sprintf("s%d", i), &coppice.SessionOptions{Meta: map[string]string{"odd": fmt.Sprint(i % 2)}})
		docs(t, s, obj{"summary": obj{"i": i}, "other": strings.Repeat("x", 10_000)})
	}
	none := create(t, st, "none", nil)
	commit(t, none, state{})
	damaged := create(t, st, "damaged", nil)
	docs(t, damaged, obj{"summary": 1})
	p, _, err := b.Get(t.Context(), "checkpoint_latest/damaged", backend.Range{})
	ok(t, err)
	p[len(p)-20] ^= 1
	must(b.Put(t.Context(), "checkpoint_latest/damaged", p, backend.Cond{}))(t)
	list := func(o coppice.ListOptions) (got []string) {
		counted.Gets.Store(0)
		for _, sum := range collect(t, st.List(t.Context(), o)) {
			got = append(got, fmt.Sprintf("%s:%s@%d", sum.ID, sum.Docs["summary"], sum.Seq))
			if len(sum.Docs) > 1 {
				t.Errorf("%s has %d documents", sum.ID, len(sum.Docs))
			}
		}
		return got
	}
	names := []string{"summary", "nosuch"}
	same(t, "all", list(coppice.ListOptions{Docs: names}), "[damaged:@0 none:@1 s4:{\"i\":4}@1 s3:{\"i\":3}@1 "+
		"s2:{\"i\":2}@1 s1:{\"i\":1}@1 s0:{\"i\":0}@1]")
	same(t, "reads", counted.Gets.Load(), 7)
	same(t, "without", list(coppice.ListOptions{})[2], "s4:@1")
	odd := coppice.ListOptions{Docs: names, Meta: map[string]string{"odd": "1"}}
	same(t, "chosen", list(odd), "[s3:{\"i\":3}@1 s1:{\"i\":1}@1]")
	same(t, "reads of summaries, and of those that are listed", counted.Gets.Load(), 7+2)
}

// Documents equal those of a model at every commit and after every rollback.
func TestDocsAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := backend.Backend(memory.New())
		if rapid.Bool().Draw(rt, "append") {
			b = memory.NewAppender()
		}
		st := newStore(t, b, nil)
		s := create(t, st, "s", nil)
		history := []map[string]string{{}}
		check := func(what string, got iter.Seq2[string, json.RawMessage], want map[string]string) {
			have := map[string]string{}
			for name, p := range got {
				have[name] = string(p)
			}
			if !maps.Equal(have, want) {
				rt.Fatalf("%s: got %v, want %v", what, have, want)
			}
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			now := maps.Clone(history[len(history)-1])
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				if seq := rapid.IntRange(1, max(1, len(history)-1)).Draw(rt, "to"); seq < len(history) {
					must(s.Rollback(t.Context(), coppice.Target{Seq: uint64(seq)}))(t)
					history = append(history, maps.Clone(history[seq]))
				}
			case 1:
				ok(t, s.Close())
				s = open2(t, st, s, len(history) > 1)
			default:
				change := obj{}
				for range rapid.IntRange(0, 4).Draw(rt, "changes") {
					name := rapid.SampledFrom([]string{"a", "B", "b/c", "z.1", "app:x"}).Draw(rt, "name")
					value := rapid.SampledFrom([]string{
						"null", "1", `"t"`, "{}", `{"b":1,"a":[2,{"":3}]}`, `[1.0,"<&>"]`, `{"k":"` + strings.Repeat("v", 3000) + `"}`,
					}).Draw(rt, "value")
					change[name], now[name] = json.RawMessage(value), value
					if value == "null" {
						delete(now, name)
					}
				}
				turn := coppice.Turn{Docs: change}
				if rapid.Bool().Draw(rt, "spoken") {
					turn.Entries = []transcript.Draft{entry.User("u")}
				}
				if r := must(s.Commit(t.Context(), turn))(t); r.Seq == uint64(len(history)) { // else nothing changed
					history = append(history, now)
				}
			}
			check("now", s.Docs(), history[len(history)-1])
			if seq := rapid.IntRange(0, len(history)-1).Draw(rt, "look at"); len(history) > 1 && seq > 0 {
				check("then", must(s.At(t.Context(), coppice.Target{Seq: uint64(seq)}))(t).Docs(), history[seq])
			}
		}
		ok(t, s.Close())
	})
}

// open2 opens a session again, or creates it if nothing was committed.
func open2(t testing.TB, st *coppice.Store, s *coppice.Session, committed bool) *coppice.Session {
	t.Helper()
	if !committed {
		return create(t, st, s.ID(), nil)
	}
	return open(t, st, s.ID())
}
