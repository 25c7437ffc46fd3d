package searchindex

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// vocabulary of the random sessions: words that hold each other, short ones, other scripts, tricky case.
var vocabulary = []string{
	"alpha", "alphabet", "beta", "a", "be", "go", "GO!", "Kelvin \u212a", "\u0130st", "straße", "日本", "日本語", "测试", "x\ny", "tab\tbed",
	"\"q\"", "AND", "100%", "a_b", "\\", "ΣΊΣΥΦΟΣ", "\u2126", "e\u0301", "\U0001F600", "", "s\u017f",
}

// life makes random sessions step by step, calling after each.
func life(t *testing.T, st *coppice.Store, rng *rand.Rand, steps int, after func()) {
	t.Helper()
	open := map[string]*coppice.Session{}
	words := func() string {
		var out []string
		for range 1 + rng.IntN(6) {
			out = append(out, vocabulary[rng.IntN(len(vocabulary))])
		}
		return strings.Join(out, []string{" ", "\n", "  "}[rng.IntN(3)])
	}
	for range steps {
		id := fmt.Sprintf("s%d", rng.IntN(4))
		s := open[id]
		if s == nil {
			s = testutil.Must(st.OpenOrCreate(t.Context(), id, &coppice.SessionOptions{Cwd: "/" + id}))(t)
			open[id] = s
		}
		var nodes []transcript.Node
		if s.Head().Seq > 0 {
			nodes = slices.Collect(testutil.Must(s.Tree(t.Context()))(t).Nodes(transcript.FilterAll))
		}
		messages := slices.DeleteFunc(slices.Clone(nodes), func(n transcript.Node) bool { return n.Type != "message" })
		switch n := rng.IntN(12); {
		case n == 0 && len(nodes) > 0:
			testutil.Must(
				s.Branch(t.Context(), nodes[rng.IntN(len(nodes))].ID,
					&coppice.BranchOptions{Name: fmt.Sprint("b", rng.Uint32())}))(t)
		case n == 1 && len(nodes) > 0:
			testutil.Must(s.Label(t.Context(), nodes[rng.IntN(len(nodes))].ID, words()+"."))(t)
		case n == 2 && s.Head().Seq > 0:
			testutil.Must(s.Rollback(t.Context(), coppice.Target{Seq: 1}))(t)
		case n == 4 && len(messages) > 0:
			testutil.Must(s.Amend(t.Context(), messages[rng.IntN(len(messages))].ID, entry.User(words())))(t)
		case n == 5 && len(messages) > 0:
			testutil.Must(s.Hide(t.Context(), messages[rng.IntN(len(messages))].ID))(t)
		case n == 3:
			testutil.OK(t, s.Close())
			delete(open, id)
		default:
			testutil.Must(s.Append(t.Context(), entry.User(words()), entry.Assistant(words())))(t)
			testutil.Must(s.Commit(t.Context(), coppice.Turn{}))(t)
		}
		after()
	}
}

// naive returns the result of a scan of all entries.
func naive(t *testing.T, st *coppice.Store, q Query) []string {
	t.Helper()
	var out []string
	for sum, err := range st.List(t.Context(), coppice.ListOptions{}) {
		testutil.OK(t, err)
		s := testutil.Must(st.Open(t.Context(), sum.ID, &coppice.SessionOptions{ReadOnly: true}))(t)
		for e, err := range s.Entries(t.Context()) {
			testutil.OK(t, err)
			if text, _ := EntryText(e); text != "" {
				if _, _, found := q.Find(text); found {
					out = append(out, sum.ID+"/"+e.ID)
				}
			}
		}
		testutil.OK(t, s.Close())
	}
	slices.Sort(out)
	return out
}

// Over random changes of sessions, with branches, labels, amendments and rollbacks: an index updated at random moments
// equals one built at once, and it finds exactly what a scan of all entries finds.
func TestIncrementalIsRebuiltIsNaive(t *testing.T) {
	testutil.SkipLong(t)
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 5))
			kinds := []backend.Backend{memory.New(), memory.NewAppender()}
			x := index(t)
			st := storeOn(t, kinds[seed%2])
			life(t, st, rng, 30, func() {
				if rng.IntN(5) == 0 {
					_ = testutil.Must(x.Update(t.Context(), st, &UpdateOptions{Shallow: seed%2 == 0}))(t)
				}
			})
			update(t, x, st)
			fresh := testutil.Must(Open(t.Context(), ""))(t)
			update(t, fresh, st)
			want := dump(t, fresh)
			same(t, "the index", dump(t, x), want)
			testutil.OK(t, fresh.Close())
			queries := []string{"re:a.b", "re:(alpha|日)b?", "re:k", "re:s\u017f", "re:x\\s+y", "re:Kelvin +k", "re:^beta$"}
			for range 20 {
				v := []rune(vocabulary[rng.IntN(len(vocabulary))] + " " + vocabulary[rng.IntN(len(vocabulary))])
				from := rng.IntN(len(v))
				part := string(v[from:min(len(v), from+1+rng.IntN(5))])
				if rng.IntN(2) == 0 {
					part = `"` + part + `"`
				}
				queries = append(queries, strings.ToUpper(part))
			}
			for _, text := range queries {
				q, err := Parse(text)
				if err != nil || q.Empty() {
					continue
				}
				var got []string
				for _, h := range find(t, x, text, nil) {
					got = append(got, h.Session+"/"+h.Entry)
				}
				slices.Sort(got)
				same(t, fmt.Sprintf("query %q", text), got, naive(t, st, q))
			}
			_ = testutil.Must(x.Rebuild(t.Context(), st, nil))(t)
			same(t, "rebuilt", dump(t, x), want)
		})
	}
}

// A deleted session is removed; a session restored to an earlier state is read again.
func TestGoneAndPutBack(t *testing.T) {
	t.Parallel()
	dir, old := t.TempDir(), t.TempDir()
	open := func(dir string) *coppice.Store {
		return storeOn(t, testutil.Must(local.Open(dir, nil))(t))
	}
	st, x := open(dir), index(t)
	keep := create(t, st, "keep", "/a", "> kept words")
	testutil.OK(t, keep.Close())
	gone := create(t, st, "gone", "/a", "> lost words")
	testutil.OK(t, gone.Close())
	testutil.OK(t, os.CopyFS(filepath.Join(old, "store"), os.DirFS(dir)))
	keep = testutil.Must(st.Open(t.Context(), "keep", nil))(t)
	say(t, keep, "one way")
	testutil.OK(t, keep.Close())
	update(t, x, st)
	testutil.OK(t, st.Delete(t.Context(), "gone"))
	if r := update(t, x, st); r.Removed != 1 || r.Sessions != 1 || r.Entries != 0 {
		t.Errorf("%+v", r)
	}
	same(t, "deleted", snippets(find(t, x, "words", nil)), "kept words")
	same(t, "prompts", len(must2(x.Recall(t.Context(), "", nil))(t)), 1)
	back := open(filepath.Join(old, "store"))
	keep = testutil.Must(back.Open(t.Context(), "keep", nil))(t)
	say(t, keep, "another way", "and further")
	testutil.OK(t, keep.Close())
	update(t, x, back)
	same(t, "put back", snippets(find(t, x, "way", nil)), "another way")
	same(t, "again there", len(find(t, x, "words", nil)), 2)
	fresh := index(t)
	update(t, fresh, back)
	same(t, "the index", dump(t, x), dump(t, fresh))
}

// Nothing of a deleted session is in the files of the index, neither its text nor the words of the full-text index, not
// in free pages and not in the log, while the index is open, and also after an interrupted erasure.
func TestErased(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(t *testing.T, x *Index, st *coppice.Store){
		"by an update": func(t *testing.T, x *Index, st *coppice.Store) { update(t, x, st) },
		"at once":      func(t *testing.T, x *Index, _ *coppice.Store) { testutil.OK(t, x.Erase(t.Context(), "gone")) },
		"of one": func(t *testing.T, x *Index, st *coppice.Store) {
			testutil.Must(x.Update(t.Context(), st, &UpdateOptions{Session: "gone"}))(t)
		},
		"in two steps": func(t *testing.T, x *Index, st *coppice.Store) {
			testutil.OK(t, x.erase(t.Context(), "gone"))
			testutil.Must(x.merge(t.Context()))(t)
			testutil.OK(t, x.erase(t.Context(), "too"))
			update(t, x, st)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, x := store(t), index(t)
			create(t, st, "keep", "/a", "> kept words")
			create(t, st, "too", "/a", "> more words")
			s := create(t, st, "gone", "/a/zorbalonquist", "> zorbalonquist", strings.Repeat("zorbalonquist ", 400))
			for range 3 {
				say(t, s, "zorbalonquist again")
				update(t, x, st)
			}
			testutil.OK(t, s.Close())
			testutil.OK(t, st.Delete(t.Context(), "gone"))
			erase(t, x, st)
			noTrace(t, x)
			same(t, "found", snippets(find(t, x, "kept", nil)), "kept words")
		})
	}
}

// An entry that was erased leaves nothing in the index either, and the rest of its session is found.
func TestErasedEntry(t *testing.T) {
	t.Parallel()
	st, x := store(t), index(t)
	s := create(t, st, "s", "/a", "> kept words")
	ids := say(t, s, "> zorbalonquist", strings.Repeat("zorbalonquist ", 400))
	testutil.OK(t, s.Close())
	update(t, x, st)
	same(t, "before", len(find(t, x, "zorbalonquist", nil)), 2)
	same(t, "holds it", testutil.Must(x.Holds(t.Context(), "balonq"))(t), true)
	testutil.Must(st.Erase(t.Context(), "s", ids, nil))(t)
	update(t, x, st)
	noTrace(t, x)
	same(t, "holds it still", testutil.Must(x.Holds(t.Context(), "balonq"))(t), false)
	same(t, "found", snippets(find(t, x, "kept", nil)), "kept words")
	same(t, "prompts", len(must2(x.Recall(t.Context(), "", nil))(t)), 1)
	fresh := index(t)
	update(t, fresh, st)
	same(t, "the index", dump(t, x), dump(t, fresh))
}

// noTrace fails if the files of an index have the word zorbalonquist, or a token of it.
func noTrace(t *testing.T, x *Index) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-journal"} {
		raw, err := os.ReadFile(x.path + suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if n := bytes.Count(raw, []byte("zorbalonquist")); n > 0 {
			t.Errorf("%d times in the file%s", n, suffix)
		}
	}
	same(t, "words in the index", terms(t, x, "onq", "kep"), "kep")
}

// terms returns those of the tokens that the full-text index holds, whether a row of theirs is deleted or not.
func terms(t testing.TB, x *Index, tokens ...string) string {
	t.Helper()
	var pages []byte
	testutil.OK(t, eachRow(t.Context(), x.db, func(scan func(...any) error) error {
		var page []byte
		err := scan(&page)
		pages = append(pages, page...)
		return err
	}, "SELECT block FROM words_data"))
	var out []string
	for _, token := range tokens {
		if bytes.Contains(pages, []byte(token)) || bytes.Contains(pages, []byte(token[1:])) {
			out = append(out, token)
		}
	}
	return strings.Join(out, " ")
}

func must2[T any](v T, _ bool, err error) func(t testing.TB) T { return testutil.Must(v, err) }

// Only what is new is read: an update without news reads no entries, one with news only those.
func TestOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	st, x := store(t), index(t)
	s := create(t, st, "s", "/a", "> one", "two")
	same(t, "first", update(t, x, st).Entries, 2)
	same(t, "nothing new", update(t, x, st).Entries, 0)
	say(t, s, "> three")
	var done int64
	r := testutil.Must(x.Update(t.Context(), st, &UpdateOptions{Progress: func(d, _ int64) { done = d }}))(t)
	if r.Entries != 1 || done == 0 {
		t.Errorf("%+v, %d bytes", r, done)
	}
}

// An update that is stopped in the middle of a session keeps what it read, and the next one continues.
func TestStopped(t *testing.T) {
	testutil.SkipLong(t)
	t.Parallel()
	st, x, fresh := store(t), index(t), index(t)
	s := testutil.Must(st.Create("s", nil))(t)
	var d []transcript.Draft
	for i := range batchEntries + batchEntries/2 {
		d = append(d, entry.User(fmt.Sprint("prompt ", i)))
	}
	testutil.Must(s.Append(t.Context(), d...))(t)
	testutil.Must(s.Commit(t.Context(), coppice.Turn{}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := x.Update(ctx, st, &UpdateOptions{Progress: func(_, _ int64) {
		if n++; n > batchEntries+10 {
			cancel()
		}
	}})
	if err == nil && ctx.Err() != nil {
		t.Fatal("no error")
	}
	same(t, "kept", len(find(t, x, "prompt", nil)), batchEntries)
	testutil.Must(s.Branch(t.Context(), "", nil))(t)
	say(t, s, "> another root")
	update(t, x, st)
	update(t, fresh, st)
	same(t, "the index", dump(t, x), dump(t, fresh))
}

// A file that is not an index, a torn one, and one of another version are rebuilt.
func TestDamage(t *testing.T) {
	t.Parallel()
	st := store(t)
	create(t, st, "s", "/a", "> "+strings.Repeat("many words of no use ", 200), "a needle")
	for name, spoil := range map[string]func(t *testing.T, path string, p []byte) []byte{
		"garbage":   func(_ *testing.T, _ string, _ []byte) []byte { return []byte(strings.Repeat("no database ", 500)) },
		"empty":     func(*testing.T, string, []byte) []byte { return nil },
		"truncated": func(_ *testing.T, _ string, p []byte) []byte { return p[:len(p)/2] },
		"header":    func(_ *testing.T, _ string, p []byte) []byte { return append(make([]byte, 200), p[200:]...) },
		"schema":    func(_ *testing.T, _ string, p []byte) []byte { clear(p[100:4096]); return p },
		"middle":    func(_ *testing.T, _ string, p []byte) []byte { clear(p[4096:]); return p },
		"version":   func(_ *testing.T, _ string, p []byte) []byte { p[63]++; return p },
		"foreign":   func(_ *testing.T, _ string, p []byte) []byte { p[68]++; return p },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "h.db")
			x := testutil.Must(Open(t.Context(), path))(t)
			update(t, x, st)
			testutil.OK(t, x.Close())
			p := testutil.Must(os.ReadFile(path))(t)
			testutil.OK(t, os.WriteFile(path, spoil(t, path, p), 0o600))
			x = reopen(t, path)
			r, err := x.Update(t.Context(), st, nil)
			testutil.OK(t, err)
			if r.Entries == 0 {
				t.Errorf("it was trusted: %+v", r)
			}
			same(t, "found", snippets(find(t, x, "needle", nil)), "a needle")
		})
	}
	info := testutil.Must(os.Stat(index(t).path))(t)
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read the index: %v", info.Mode())
	}
}

// Two handles of one file, as of two processes, update and search at once: both have the same result.
func TestTwoHandles(t *testing.T) {
	t.Parallel()
	st := store(t)
	for i := range 3 {
		s := create(t, st, fmt.Sprint("s", i), "/a", "> first")
		for j := range 4 {
			say(t, s, fmt.Sprintf("> needle %d of %d", j, i), "thread")
		}
	}
	path := filepath.Join(t.TempDir(), "h.db")
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			x, err := Open(context.Background(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = x.Close() }()
			for range 2 {
				if _, err := x.Update(t.Context(), st, nil); err != nil {
					t.Error(err)
				}
				// The other one may just have emptied it.
				if _, _, err := x.Search(t.Context(), Words("needle"), nil); err != nil {
					t.Error(err)
				}
				if i == 0 {
					if _, err := x.Rebuild(t.Context(), st, nil); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	x, fresh := reopen(t, path), index(t)
	update(t, x, st)
	update(t, fresh, st)
	same(t, "the index", dump(t, x), dump(t, fresh))
}
