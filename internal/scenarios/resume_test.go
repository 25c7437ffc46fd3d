package scenarios_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// long yields a session of n entries that compacts every 30: however long it is, it ends alike.
func long(n int) iter.Seq2[transcript.Draft, error] {
	words := rand.New(rand.NewPCG(1, 2)) // text that compresses as text does
	say := func() string {
		var b strings.Builder
		for b.Len() < 1200 {
			fmt.Fprintf(&b, "%x ", words.Uint32()>>(words.IntN(4)*8))
		}
		return b.String()
	}
	return func(yield func(transcript.Draft, error) bool) {
		yield(entry.Line([]byte(`{"type":"session","version":3,"id":"long","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`)), nil)
		parent := "null"
		for i := range n {
			id := fmt.Sprintf("%08x", i)
			head := fmt.Sprintf(`,"id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z",`, id, parent)
			body := ""
			switch at := (n - i) % 30; {
			case at == 15:
				body = `{"type":"compaction"` + head + fmt.Sprintf(`"summary":"so far","firstKeptEntryId":"%08x","tokensBefore":1000}`, max(0, i-10))
			case at%2 == 0:
				body = `{"type":"message"` + head + `"message":{"role":"user","content":"` + say() + `"}}`
			default:
				body = `{"type":"message"` + head + `"message":{"role":"assistant","content":[{"type":"text","text":"` + say() + `"}],"provider":"p","model":"m"}}`
			}
			if !yield(entry.Line([]byte(body)), nil) {
				return
			}
			parent = strconv.Quote(id)
		}
	}
}

// longStore keeps sessions of the given lengths on disk, and returns their ids.
func longStore(t testing.TB, lengths ...int) (*coppice.Store, []string) {
	t.Helper()
	b, err := local.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	store := newStore(t, b, nil)
	ids := make([]string, len(lengths))
	for i, n := range lengths {
		s, err := store.Import(t.Context(), long(n), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		ids[i] = s.ID()
	}
	return store, ids
}

// resume opens a session and reads its context, and returns what that cost and the number of messages.
func resume(t testing.TB, store *coppice.Store, id string) (backend.IO, int) {
	t.Helper()
	s, err := store.Open(t.Context(), id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Context(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	io := s.IO()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return io, len(c.Messages)
}

// lengths that a resume is held against. COPPICE_LONG adds 1,000,000 entries (about a minute).
func lengths() []int {
	if os.Getenv("COPPICE_LONG") != "" {
		return []int{1000, 10000, 1000000}
	}
	if testing.Short() {
		return []int{1000, 5000}
	}
	return []int{1000, 10000, 50000}
}

// Resume costs the same requests and the same bytes, whatever the length of the history.
func TestResumeDoesNotGrow(t *testing.T) {
	testutil.SkipLong(t)
	all := lengths()
	store, ids := longStore(t, append([]int{10}, all...)...)
	short, _ := resume(t, store, ids[0])
	want, messages := resume(t, store, ids[1])
	if want.Get != short.Get {
		t.Errorf("%d reads for 10 entries, %d for %d", short.Get, want.Get, all[0])
	}
	for i, n := range all[1:] {
		got, count := resume(t, store, ids[i+2])
		t.Logf("%d entries: %d reads, %d bytes, %d messages", n, got.Get, got.BytesRead, count)
		if ratio := float64(got.BytesRead) / float64(want.BytesRead); ratio > 1.1 || ratio < 0.9 {
			t.Errorf("%d entries: %d bytes read, %d entries: %d", n, got.BytesRead, all[0], want.BytesRead)
		}
		got.BytesRead = want.BytesRead
		if got != want || count != messages {
			t.Errorf("%d entries: %+v and %d messages, want %+v and %d", n, got, count, want, messages)
		}
	}
}

// A new process finds what the one before committed: messages, state, head (WANTED 9).
func TestResume(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", &coppice.SessionOptions{Title: "t", Cwd: "/w"})
		same(t, "a new session's context", texts(t, s), "")
		same(t, "a new session's seq", s.Head().Seq, 0)
		say(t, s, "u1", "a1")
		r := commit(t, s, state{Turns: 1})
		same(t, "entries", r.Entries, 2)
		say(t, s, "u2")
		r2 := commit(t, s, state{Turns: 2})
		same(t, "head", s.Head(), r2.Head)
		ok(t, s.Close())

		again := open(t, store, "s")
		same(t, "context", texts(t, again), "u1 a1 u2")
		same(t, "state", stateOf(t, again), state{Turns: 2})
		same(t, "head", again.Head(), r2.Head)
		same(t, "title", again.Info().Title+again.Info().Cwd, "t/w")
		tree := must(again.Tree(bg))(t)
		same(t, "path", len(slices.Collect(tree.Path(tree.Head()))), 3)
		ok(t, again.Close())
	})
}
