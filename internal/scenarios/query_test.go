package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

type obj = map[string]any

// step makes an entry of a run of a graph.
func step(id string, source string, n int) transcript.Draft {
	d := entry.Custom("app.step", obj{"source": source, "step": n, "nested": obj{"a": []int{1, n}, "b": nil}})
	d.ID = id
	return d
}

// queryStore fills a store: three sessions with four steps each among messages and other entries.
func queryStore(t testing.TB, st *coppice.Store) {
	t.Helper()
	for i, id := range []string{"b-one", "a-two", "b-three"} {
		s := create(t, st, id, &coppice.SessionOptions{Cwd: "/" + id[:1], Meta: map[string]string{"n": fmt.Sprint(i)}})
		for n := range 4 {
			say(t, s, fmt.Sprint("u", n), fmt.Sprint("a", n))
			must(s.Append(t.Context(), step(fmt.Sprintf("%d-%s", n, id), []string{"loop", "input"}[n%2], n), entry.Custom("app.other", n)))(t)
			commit(t, s, state{Turns: n})
		}
		ok(t, s.Close())
	}
}

// found runs a query and returns the ids of entries that have one, else their session and ordinal.
func found(t testing.TB, st *coppice.Store, o coppice.QueryOptions) string {
	t.Helper()
	var list []string
	for _, m := range collect(t, st.Query(context.Background(), o)) {
		ok(t, m.Err)
		id := m.Entry.ID
		if !strings.Contains(id, m.Session) {
			id = fmt.Sprintf("%s@%d", m.Session, m.Entry.Ordinal)
		}
		list = append(list, id)
	}
	return strings.Join(list, " ")
}

func TestQuery(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		queryStore(t, st)
		for _, tt := range []struct {
			name string
			o    coppice.QueryOptions
			want string
		}{
			{
				"a custom type",
				coppice.QueryOptions{Type: "custom", Custom: "app.step"},
				"0-a-two 1-a-two 2-a-two 3-a-two 0-b-one 1-b-one 2-b-one 3-b-one 0-b-three 1-b-three 2-b-three 3-b-three",
			},
			{"metadata", coppice.QueryOptions{Custom: "app.step", Match: obj{"data.source": "input"}, Newest: true}, "3-b-three 1-b-three 3-b-one 1-b-one 3-a-two 1-a-two"},
			{"two members", coppice.QueryOptions{Match: obj{"data.source": "loop", "data.step": 2}}, "2-a-two 2-b-one 2-b-three"},
			{"a whole value", coppice.QueryOptions{Match: obj{"data.nested": obj{"b": nil, "a": []int{1, 3}}}}, "3-a-two 3-b-one 3-b-three"},
			{"no such member", coppice.QueryOptions{Match: obj{"data.nested.a.b": 1}}, ""},
			{"before", coppice.QueryOptions{Custom: "app.step", Type: "custom", Before: "1-b", Prefix: "b-"}, "0-b-one 0-b-three"},
			{"sessions", coppice.QueryOptions{Sessions: []string{"b-one", "nosuch", "a-two", "b-one"}, Match: obj{"data.step": 0}}, "0-a-two 0-b-one"},
			{"no sessions", coppice.QueryOptions{Sessions: []string{}}, ""},
			{"of a directory", coppice.QueryOptions{Cwd: "/a", Match: obj{"data.step": 1}}, "1-a-two"},
			{"by metadata of sessions", coppice.QueryOptions{Meta: map[string]string{"n": "2"}, Match: obj{"data.step": 1}}, "1-b-three"},
			{"limit", coppice.QueryOptions{Type: "message", Prefix: "b-o", Limit: 3}, "b-one@1 b-one@2 b-one@6"},
			{"newest", coppice.QueryOptions{Type: "message", Prefix: "b-o", Limit: 3, Newest: true}, "b-one@17 b-one@16 b-one@12"},
			{"a role", coppice.QueryOptions{Prefix: "b-o", Match: obj{"message.role": "user"}, Limit: 2}, "b-one@1 b-one@6"},
		} {
			same(t, tt.name, found(t, st, tt.o), tt.want)
		}
		ok(t, st.Delete(t.Context(), "b-one"))
		same(t, "after a deletion", found(t, st, coppice.QueryOptions{Match: obj{"data.step": 2}}), "2-a-two 2-b-three")
		for what, o := range map[string]coppice.QueryOptions{
			"limit": {Limit: -1}, "cursor": {Cursor: "x"}, "id": {Sessions: []string{"../x"}}, "match": {Match: obj{"a": func() {}}},
		} {
			for m, err := range st.Query(t.Context(), o) {
				if err == nil {
					t.Errorf("%s: got %v", what, m)
				}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range st.Query(ctx, coppice.QueryOptions{}) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		}
	})
}

// The pages of a query add up to its result without pages, whatever is appended between them, and no entry is repeated.
func TestQueryPages(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(rt *rapid.T) {
		b := backend.Backend(memory.New())
		if rapid.Bool().Draw(rt, "append") {
			b = memory.NewAppender()
		}
		st := newStore(t, b, &coppice.Options{Now: clock(), Rand: rand.NewChaCha8([32]byte{3}), Writer: "w"})
		names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}[:rapid.IntRange(1, 10).Draw(rt, "sessions")]
		open := map[string]*coppice.Session{}
		grow := func(id string) {
			if open[id] == nil {
				open[id] = create(t, st, id, nil)
			}
			must(open[id].Append(t.Context(), entry.Custom("k", rapid.IntRange(0, 2).Draw(rt, "v")), entry.User("u")))(t)
			commit(t, open[id], nil)
		}
		for range rapid.IntRange(0, 40).Draw(rt, "entries") {
			grow(rapid.SampledFrom(names).Draw(rt, "session"))
		}
		o := coppice.QueryOptions{
			Type: rapid.SampledFrom([]string{"", "custom", "message"}).Draw(rt, "type"), Newest: rapid.Bool().Draw(rt, "newest"),
		}
		if rapid.Bool().Draw(rt, "match") {
			o.Match = obj{"data": 1}
		}
		key := func(m coppice.Match) string { return fmt.Sprintf("%s@%d", m.Session, m.Entry.Ordinal) }
		var whole, paged []string
		for _, m := range collect(t, st.Query(t.Context(), o)) {
			whole = append(whole, key(m))
		}
		for o.Limit = rapid.IntRange(1, 7).Draw(rt, "limit"); ; {
			page := collect(t, st.Query(t.Context(), o))
			for _, m := range page {
				paged = append(paged, key(m))
				o.Cursor = m.Cursor
			}
			if len(page) < o.Limit {
				break
			}
			if rapid.Bool().Draw(rt, "grow") && len(paged) < 200 {
				grow(rapid.SampledFrom(names).Draw(rt, "session"))
			}
		}
		seen := map[string]bool{}
		var old []string
		for _, k := range paged {
			if seen[k] {
				rt.Fatalf("%s came twice", k)
			}
			if seen[k] = true; slices.Contains(whole, k) {
				old = append(old, k)
			}
		}
		if !slices.Equal(old, whole) {
			rt.Fatalf("pages: got %v, want %v", old, whole)
		}
		for _, s := range open {
			ok(t, s.Close())
		}
	})
}

// A damaged session is a separate result, and the others follow.
func TestQueryOverADamagedSession(t *testing.T) {
	b := memory.New()
	st := newStore(t, b, nil)
	queryStore(t, st)
	p, _, err := b.Get(t.Context(), "checkpoint_latest/b-one", backend.Range{})
	ok(t, err)
	p[len(p)-20] ^= 1
	must(b.Put(t.Context(), "checkpoint_latest/b-one", p, backend.Cond{}))(t)
	for _, newest := range []bool{false, true} {
		var got []string
		cursor := ""
		for range 2 { // the second one continues after the damage
			for _, m := range collect(t, st.Query(t.Context(), coppice.QueryOptions{Match: obj{"data.step": 1}, Newest: newest, Cursor: cursor})) {
				got = append(got, m.Session)
				if damaged := m.Session == "b-one"; damaged != errors.Is(m.Err, coppice.ErrCorrupt) {
					t.Errorf("%s: %v", m.Session, m.Err)
				} else if damaged {
					cursor = m.Cursor
				}
			}
		}
		want := "[a-two b-one b-three b-three]"
		if newest {
			want = "[b-three b-one a-two a-two]"
		}
		same(t, "sessions", got, want)
	}
}

// Entries of other types are skipped by their columns: their segments are not read. A page opens at most twice as many
// sessions more than it needs.
func TestQueryReadsWhatMayMatch(t *testing.T) {
	testutil.SkipLong(t)
	b := memory.NewAppender()
	counted := &sessiontest.Counting{Backend: b}
	st := newStore(t, b, nil)
	s := create(t, st, "long", nil)
	for i := range 14 {
		must(s.Append(t.Context(), entry.User(fmt.Sprint(i, strings.Repeat("x", 1<<20)))))(t)
		if i == 13 {
			must(s.Append(t.Context(), step("last", "loop", 1)))(t)
		}
		commit(t, s, nil)
	}
	ok(t, s.Close())
	for i := range 40 {
		s := create(t, st, fmt.Sprintf("s%02d", i), nil)
		must(s.Append(t.Context(), step("x", "loop", i)))(t)
		commit(t, s, nil)
		ok(t, s.Close())
	}
	looker := newStore(t, counted, nil)
	count := func(o coppice.QueryOptions) (results int, reads int64) {
		counted.Gets.Store(0)
		for _, m := range collect(t, looker.Query(t.Context(), o)) {
			ok(t, m.Err)
			results++
		}
		return results, counted.Gets.Load()
	}
	n, none := count(coppice.QueryOptions{Sessions: []string{"long"}, Type: "custom", Custom: "app.none"})
	same(t, "none", n, 0)
	n, one := count(coppice.QueryOptions{Sessions: []string{"long"}, Type: "custom", Custom: "app.step"})
	same(t, "one", n, 1)
	_, all := count(coppice.QueryOptions{Sessions: []string{"long"}, Type: "message"})
	if one > none+1 || all < one+2 {
		t.Errorf("%d reads to find nothing, %d for one entry, %d for all", none, one, all)
	}
	n, few := count(coppice.QueryOptions{Prefix: "s", Limit: 2})
	same(t, "a page", n, 2)
	_, whole := count(coppice.QueryOptions{Prefix: "s"})
	if few*40 > 3*whole {
		t.Errorf("%d reads for 2 of 40 sessions, %d for all", few, whole)
	}
}
