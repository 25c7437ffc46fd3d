package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// noted returns small entries with these ids that are not part of the context.
func noted(ids ...string) []transcript.Draft {
	list := make([]transcript.Draft, len(ids))
	for i, id := range ids {
		list[i] = transcript.Draft{Type: "custom", ID: id, Body: []byte(`{"customType":"note"}`)}
	}
	return list
}

// noteID returns the id of the n-th entry of a session that noteMany made.
func noteID(n int) string { return fmt.Sprintf("note-%07d", n) }

// noteMany makes a session of n entries, in commits of each entries.
func noteMany(t testing.TB, store *coppice.Store, id string, n, each int) *coppice.Session {
	t.Helper()
	inline(store)
	s := create(t, store, id, noSnapshots)
	noteMore(t, s, n, each)
	return s
}

// noteMore adds n entries to a session, in commits of each entries.
func noteMore(t testing.TB, s *coppice.Session, n, each int) {
	t.Helper()
	for at := 0; at < n; at += each {
		list := make([]string, min(each, n-at))
		for i := range list {
			list[i] = noteID(at + i)
		}
		must(s.Commit(bg, coppice.Turn{Entries: known(transcript.KnownIgnore, noted(list...)...)}))(t)
	}
}

// rested runs pending background work, and closes the session.
func rested(t testing.TB, store *coppice.Store, s *coppice.Session) {
	t.Helper()
	ok(t, s.Close())
	for range 2 { // on a store that only replaces, the second names the objects that the first made
		s = must(store.Open(bg, s.ID(), noSnapshots))(t)
		commit(t, s, nil)
		ok(t, s.Close())
	}
}

// spread returns 500 numbers spread over 0 to n.
func spread(n int) []int {
	list := make([]int, 500)
	for i := range list {
		list[i] = i * (n - 1) / 499
	}
	return list
}

// asked commits a turn that contains 500 known entries, which are ignored, and as many new ones.
func asked(s *coppice.Session, hits []int, misses ...string) (coppice.Receipt, error) {
	var list []string
	for _, n := range hits {
		list = append(list, noteID(n))
	}
	return s.Commit(bg, coppice.Turn{Entries: known(transcript.KnownIgnore, noted(append(list, misses...)...)...)})
}

func newNotes(prefix string) []string {
	list := make([]string, 500)
	for i := range list {
		list[i] = fmt.Sprint(prefix, i)
	}
	return list
}

// A search for 500 ids takes at most 4 reads, hits and misses alike; the handle caches them.
func TestKnownIDsCost(t *testing.T) {
	testutil.SkipLong(t)
	n := 50_000
	if testing.Short() {
		n = 20_000
	}
	for _, kind := range []string{"replace", "local"} {
		t.Run(kind, func(t *testing.T) {
			store := newStore(t, backends[kind](t), nil)
			rested(t, store, noteMany(t, store, "s", n, 250))
			reads := func(s *coppice.Session, f func()) int {
				before := s.IO()
				f()
				io := s.IO().Sub(before)
				if io.List+io.Stat+io.Delete > 0 {
					t.Errorf("%s", cost(io))
				}
				return io.Get
			}
			s := must(store.Open(bg, "s", noSnapshots))(t)
			if got := reads(s, func() {
				r := must(asked(s, spread(n)))(t)
				same(t, "what is known", fmt.Sprint(r.Entries, r.Repeated, len(r.IDs)), "0 true 500")
			}); got > 4 || got < 1 {
				t.Errorf("500 hits: %d reads", got)
			}
			same(t, "reads for 500 others", reads(s, func() { must(asked(s, spread(n-7)))(t) }), 0)

			s = must(store.Open(bg, "s", noSnapshots))(t)
			if got := reads(s, func() {
				same(t, "what is new", len(must(s.Append(bg, noted(newNotes("new-")...)...))(t)), 500)
			}); got > 4 {
				t.Errorf("500 misses: %d reads", got)
			}
			same(t, "reads for 500 others", reads(s, func() { must(s.Append(bg, noted(newNotes("more-")...)...))(t) }), 0)
			commit(t, s, nil)
			same(t, "reads for 500 that are stored since", reads(s, func() {
				if _, err := s.Append(bg, noted(newNotes("more-")...)...); !errors.Is(err, fs.ErrExist) {
					t.Errorf("append: %v", err)
				}
			}), 0)
			ok(t, s.Close())

			s = must(store.Open(bg, "s", noSnapshots))(t)
			if got := reads(s, func() {
				_, err := s.Append(bg, noted(noteID(n/2))...)
				if !errors.Is(err, fs.ErrExist) {
					t.Errorf("append: %v", err)
				}
			}); got > 4 {
				t.Errorf("append of a known id: %d reads", got)
			}
			d := entry.User("an answer to something old")
			d.Parent = noteID(n / 3)
			same(t, "reads for a parent", reads(s, func() { must(s.Append(bg, d))(t) }), 0)
			commit(t, s, nil)
			same(t, "parent", must(s.Entry(bg, s.Head().Entry))(t).ParentID, noteID(n/3))
		})
	}
}

// idObjects returns the keys of the runs of the id index in a store.
func idObjects(t testing.TB, b backend.Backend) (keys []string) {
	t.Helper()
	for info, err := range b.List(bg, backend.ListOptions{Prefix: "sessions/"}) {
		ok(t, err)
		if strings.Contains(info.Key, "/ids/") {
			keys = append(keys, info.Key)
		}
	}
	return keys
}

// With a damaged or missing run the answers are the same; verify reports it, and repair writes it again.
func TestKnownIDsDamage(t *testing.T) {
	testutil.SkipLong(t)
	const n = 3000
	for _, kind := range []string{"replace", "append"} {
		for _, how := range []string{"gone", "flipped", "another run"} {
			t.Run(kind+" "+how, func(t *testing.T) {
				b := backends[kind](t)
				store := newStore(t, b, nil)
				ok(t, noteMany(t, store, "s", n, 300).Close())
				keys := idObjects(t, b)
				if len(keys) == 0 {
					t.Fatal("no run was written")
				}
				for _, key := range keys {
					hurt(t, b, key, how)
				}
				s := open(t, store, "s")
				r := must(asked(s, spread(n), "new"))(t)
				same(t, "stored", r.Entries, 1)
				ok(t, s.Close())
				report := must(store.Verify(bg, "s", true))(t)
				found := slices.ContainsFunc(report.Problems, func(p *coppice.Error) bool {
					return slices.Contains(keys, p.Object) && errors.Is(p, coppice.ErrCorrupt)
				})
				if !found {
					t.Fatalf("verify: %v", report.Problems)
				}
				must(store.Repair(bg, "s", false))(t)
				report = must(store.Verify(bg, "s", true))(t)
				for _, p := range report.Problems {
					t.Errorf("after the repair: %v", p)
				}
				s = open(t, store, "s")
				before := s.IO()
				same(t, "stored after the repair", must(asked(s, spread(n), "new"))(t).Entries, 0)
				if got := s.IO().Sub(before).Get; got > 4 {
					t.Errorf("%d reads after the repair", got)
				}
			})
		}
	}
}

func hurt(t testing.TB, b backend.Backend, key, how string) {
	t.Helper()
	p, info, err := b.Get(bg, key, backend.Range{})
	ok(t, err)
	p = slices.Clone(p)
	switch how {
	case "gone":
		ok(t, b.Delete(bg, key))
		return
	case "flipped":
		p[len(p)/2] ^= 4
	default:
		other := memory.New()
		ok(t, noteMany(t, newStore(t, other, nil), "s", 2000, 300).Close())
		p, _, err = other.Get(bg, idObjects(t, other)[0], backend.Range{})
		ok(t, err)
	}
	_, err = b.Put(bg, key, p, backend.IfMatch(info.Version))
	ok(t, err)
}

// A batch that is sent again stores nothing twice: on the same handle, on one that is behind, on a new one, with and
// without KeepBoth, and twice at once.
func TestKnownIDsRetry(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		for _, keep := range []bool{false, true} {
			id := fmt.Sprint("keep-", keep)
			o := &coppice.SessionOptions{KeepBoth: keep}
			s := create(t, store, id, o)
			say(t, s, "u1")
			commit(t, s, state{Turns: 1})
			behind := must(store.Open(bg, id, o))(t)
			turn := coppice.Turn{Entries: known(transcript.KnownIgnore, noted("a", "b", "c")...)}
			first := must(s.Commit(bg, turn))(t)
			same(t, "first", fmt.Sprint(first.Entries, first.IDs), "3 [a b c]")
			for name, h := range map[string]*coppice.Session{"same": s, "behind": behind, "new": open(t, store, id)} {
				r, err := h.Commit(bg, turn)
				if err != nil || r.Entries != 0 || !r.Repeated || fmt.Sprint(r.IDs) != "[a b c]" || r.Commit != first.Commit {
					t.Errorf("%s: %+v, %v", name, r, err)
				}
			}
			turn.Entries = known(transcript.KnownIgnore, noted("b", "c", "d")...)
			if _, err := behind.Commit(bg, turn); !keep && !errors.Is(err, coppice.ErrConflict) {
				t.Errorf("one more, on a handle that is behind: %v, want ErrConflict", err)
			}
			if keep {
				continue // it is a branch now
			}
			ok(t, behind.Reload(bg))
			r := must(behind.Commit(bg, turn))(t)
			same(t, "one more", fmt.Sprint(r.Entries, r.IDs, r.Entry), "1 [b c d]d")
			same(t, "it grows from the one before", must(behind.Entry(bg, "d"))(t).ParentID, "c")

			known(transcript.KnownError, turn.Entries...)
			if _, err := behind.Commit(bg, turn); !errors.Is(err, fs.ErrExist) {
				t.Errorf("KnownError: %v", err)
			}
			known(transcript.KnownAmend, turn.Entries...)
			r = must(behind.Commit(bg, turn))(t)
			same(t, "entries that say it already", fmt.Sprint(r.Entries, r.IDs), "0 [b c d]")
			known(7, turn.Entries...)
			if _, err := behind.Commit(bg, turn); err == nil {
				t.Error("OnKnownID 7 passed")
			}
			same(t, "all", ids(collect(t, open(t, store, id).Entries(bg)))[1:], "[a b c d]")
		}
	})
}

// The other parts of a turn are committed even if all its entries are known; with a key it is remembered.
func TestKnownIDsState(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		turn := coppice.Turn{Entries: known(transcript.KnownIgnore, noted("a")...), State: state{Turns: 1}}
		must(s.Commit(bg, turn))(t)
		r := must(s.Commit(bg, turn))(t)
		same(t, "the same state", fmt.Sprint(r.Entries, r.Repeated), "0 true")
		turn.State = state{Turns: 2}
		r = must(s.Commit(bg, turn))(t)
		same(t, "another state", fmt.Sprint(r.Entries, r.Repeated, r.IDs), "0 false [a]")
		same(t, "state", stateOf(t, s).Turns, 2)
		turn.Key = "k"
		r = must(s.Commit(bg, turn))(t)
		same(t, "with a key", r.Repeated, false)
		r = must(s.Commit(bg, turn))(t)
		same(t, "with it again", r.Repeated, true)

		pending := noted("p")
		must(s.Append(bg, pending...))(t)
		all := known(transcript.KnownIgnore, append(pending, noted("q", "q")...)...)
		r = must(s.Commit(bg, coppice.Turn{Entries: all}))(t)
		same(t, "a pending one", fmt.Sprint(r.Entries, r.IDs), "2 [p q q]")
		same(t, "what grows from it", must(s.Entry(bg, "q"))(t).ParentID, "p")

		_, err := s.Commit(bg, coppice.Turn{Entries: known(transcript.KnownIgnore, noted(r.Commit)...)})
		if !errors.Is(err, fs.ErrExist) {
			t.Errorf("the id of a commit: %v", err)
		}
		same(t, "all", ids(collect(t, s.Entries(bg))), "[a p q]")
	})
}

// An id that another writer stores outside of a turn causes no conflict, and the index has it.
func TestKnownIDsOfAnotherWriter(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		say(t, s, "u1", "a1")
		commit(t, s, nil)
		for name, policy := range map[string]transcript.KnownID{
			"error": transcript.KnownError, "ignore": transcript.KnownIgnore,
		} {
			mine, other := open(t, store, "s"), open(t, store, "s")
			must(mine.Commit(bg, coppice.Turn{Entries: known(policy, noted(name+"-first")...)}))(t)
			must(other.Commit(bg, coppice.Turn{Entries: known(transcript.KnownIgnore, noted(name+"-first")...)}))(t)
			// the other's label moves neither head nor document, and the next commit begins at both
			must(other.Label(bg, name+"-first", "x"))(t)
			_, err := mine.Commit(bg, coppice.Turn{Entries: known(policy, noted(name+"-first", name+"-next")...)})
			refused := errors.Is(err, fs.ErrExist)
			if policy == transcript.KnownError && !refused || policy == transcript.KnownIgnore && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		all := ids(collect(t, open(t, store, "s").Entries(bg)))
		for _, id := range all {
			if n := len(slices.DeleteFunc(slices.Clone(all), func(o string) bool { return o != id })); n != 1 {
				t.Errorf("%s is there %d times", id, n)
			}
		}
	})
}

// Of concurrent turns of one handle with the same entries, one stores each.
func TestKnownIDsTogether(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", &coppice.SessionOptions{KeepBoth: true})
		commit(t, s, state{Turns: 1})
		const callers = 8
		errs := make(chan error, callers)
		for range callers {
			go func() {
				list := known(transcript.KnownIgnore, noted("a", "b")...)
				_, err := s.Commit(context.Background(), coppice.Turn{Entries: list})
				errs <- err
			}()
		}
		for range callers {
			ok(t, <-errs)
		}
		same(t, "all", ids(collect(t, s.Entries(bg))), "[a b]")
	})
}

// For any batches of known and new ids that two writers send: no id is stored twice, and everything acknowledged is
// stored, under the ids of its receipt.
func TestKnownIDsModel(t *testing.T) {
	testutil.SkipLong(t)
	for kind, begin := range map[string]func() backend.Backend{
		"replace": func() backend.Backend { return memory.New() },
		"append":  func() backend.Backend { return memory.NewAppender() },
	} {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				store := newStore(t, begin(), nil)
				inline(store)
				m := &idModel{t: t, store: store, known: map[string]bool{}}
				m.handles = [2]*coppice.Session{create(t, store, "s", keepBoth(r)), nil}
				must(m.handles[0].Commit(bg, coppice.Turn{State: state{Turns: 1}}))(t)
				m.handles[1] = must(store.Open(bg, "s", keepBoth(r)))(t)
				r.Repeat(map[string]func(*rapid.T){"batch": m.batch, "more": m.more, "reopen": m.reopen, "": m.check})
				ok(t, store.Close())
			})
		})
	}
}

func keepBoth(r *rapid.T) *coppice.SessionOptions {
	return &coppice.SessionOptions{KeepBoth: rapid.Bool().Draw(r, "keepBoth")}
}

// idModel is a session with two writers, and the ids that were acknowledged.
type idModel struct {
	t       *testing.T
	store   *coppice.Store
	handles [2]*coppice.Session
	known   map[string]bool
	most    int
	steps   int
}

func (m *idModel) batch(r *rapid.T) {
	h := m.handles[rapid.IntRange(0, 1).Draw(r, "handle")]
	n := rapid.IntRange(1, 5).Draw(r, "entries")
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("e", rapid.IntRange(0, 30).Draw(r, "id"))
	}
	turn := coppice.Turn{Entries: noted(names...)}
	if rapid.Bool().Draw(r, "state") {
		turn.State = state{Turns: rapid.IntRange(1, 3).Draw(r, "turns")}
	}
	taken, refused, fresh := 0, false, map[string]bool{}
	some := rapid.IntRange(0, 2).Draw(r, "drafts that may be known") // none, some, all
	for i, id := range names {
		mayBe := some == 2 || some == 1 && rapid.Bool().Draw(r, "may be known")
		if mayBe {
			known(transcript.KnownIgnore, turn.Entries[i:i+1]...)
		}
		if m.known[id] || fresh[id] {
			taken++
			refused = refused || !mayBe
		}
		fresh[id] = true
	}
	rec, err := h.Commit(bg, turn)
	switch {
	case errors.Is(err, coppice.ErrConflict):
		ok(m.t, h.Reload(bg))
	case refused:
		if !errors.Is(err, fs.ErrExist) {
			r.Fatalf("%v of %v: %v", names, m.known, err)
		}
	case err != nil:
		r.Fatalf("%v: %v", names, err)
	default:
		if fmt.Sprint(rec.IDs) != fmt.Sprint(names) || !rec.Repeated && rec.Entries != n-taken || rec.Repeated && n != taken {
			r.Fatalf("%v, of which %d are known: %+v", names, taken, rec)
		}
		for _, id := range names {
			m.known[id] = true
		}
	}
}

// more adds entries until the session seals.
func (m *idModel) more(*rapid.T) {
	if m.most++; m.most > 2 {
		return
	}
	_, err := m.handles[0].Commit(bg, coppice.Turn{Entries: []transcript.Draft{entry.User(strings.Repeat("x", 300<<10))}})
	if errors.Is(err, coppice.ErrConflict) {
		err = m.handles[0].Reload(bg)
	}
	ok(m.t, err)
}

func (m *idModel) reopen(r *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(r, "which")
	ok(m.t, m.handles[i].Close())
	m.handles[i] = must(m.store.Open(bg, "s", keepBoth(r)))(m.t)
}

func (m *idModel) check(r *rapid.T) {
	if m.steps++; m.steps%4 != 0 {
		return
	}
	s := open(m.t, m.store, "s")
	seen := map[string]bool{}
	for n := range must(s.Tree(bg))(m.t).Nodes(transcript.FilterAll) { // without reading their bodies
		if seen[n.ID] {
			r.Fatalf("%s is there twice", n.ID)
		}
		seen[n.ID] = true
	}
	for id := range m.known {
		if !seen[id] {
			r.Fatalf("%s was acknowledged, and is not there", id)
		}
	}
	ok(m.t, s.Close())
}

// BenchmarkKnownIDs opens a session of 1,000,000 entries and searches 500 of them, spread over its history, and 500
// that do not exist. Building it takes a minute.
func BenchmarkKnownIDs(b *testing.B) {
	const n = 1_000_000
	for name, begin := range map[string]func() backend.Backend{
		"replace": func() backend.Backend { return memory.New() },
		"append":  func() backend.Backend { return memory.NewAppender() },
	} {
		b.Run(name, func(b *testing.B) {
			store := newStore(b, begin(), nil)
			rested(b, store, noteMany(b, store, "s", n, 2500))
			b.ResetTimer()
			for range b.N {
				s := must(store.Open(bg, "s", noSnapshots))(b)
				before := s.IO()
				same(b, "stored again", must(asked(s, spread(n)))(b).Entries, 0)
				must(s.Append(bg, noted(newNotes("new-")...)...))(b)
				io := s.IO().Sub(before)
				if io.Get > 4 {
					b.Errorf("%d reads", io.Get)
				}
				b.ReportMetric(float64(io.Get), "gets/op")
				b.ReportMetric(float64(io.BytesRead), "bytes-read/op")
				_ = s.Close() // the appended entries are not committed
			}
		})
	}
}

// A repeated turn that ignores known ids returns the ids of the first time: of the entries stored then, and of those
// that existed before.
func TestRepeatedIgnoreHasTheSameIDs(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		must(s.Commit(bg, coppice.Turn{Entries: noted("a", "b")}))(t)
		for i, list := range [][]transcript.Draft{
			append(noted("a"), entry.User("x")), append([]transcript.Draft{entry.User("y")}, noted("b", "c", "a")...), noted("b", "a"),
		} {
			say(t, s, "pending")
			turn := coppice.Turn{Key: fmt.Sprint("k", i), Entries: known(transcript.KnownIgnore, list...)}
			first := must(s.Commit(bg, turn))(t)
			same(t, "ids", len(first.IDs), len(list))
			for _, h := range []*coppice.Session{s, open(t, store, "s")} {
				say(t, h, "pending") // the turn is the same as the first time, earlier appended entries included
				again := must(h.Commit(bg, turn))(t)
				same(t, "repeated", again.Repeated, true)
				same(t, "ids again", again.IDs, first.IDs)
			}
		}
	})
}
