package integration

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/integration/s3test"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

var update = flag.Bool("update", false, "write the golden files of testdata")

// counter is the state of the agents of these tests.
type counter struct {
	Turns int `json:"turns"`
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newStore(t testing.TB, b backend.Backend, o *coppice.Options) *coppice.Store {
	t.Helper()
	s := must(coppice.New(b, o))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Logf("close: %v", err)
		}
	})
	return s
}

// talk appends one exchange and commits it.
func talk(t testing.TB, s *coppice.Session, n int) coppice.Receipt {
	t.Helper()
	must(s.Append(t.Context(), entry.User(fmt.Sprintf("question %d", n)), entry.Assistant(fmt.Sprintf("answer %d", n))))(t)
	return must(s.Commit(t.Context(), coppice.Turn{State: counter{Turns: n}}))(t)
}

func turns(t testing.TB, s interface{ State(any) error }) int {
	t.Helper()
	var st counter
	if err := s.State(&st); err != nil {
		t.Fatal(err)
	}
	return st.Turns
}

// A whole life of a session, by an address: everything that the local store supports.
func TestStory(t *testing.T) { s3test.Each(t, story) }

func story(t *testing.T, target *s3test.Target) {
	q := url.Values{"region": {target.Config.Region}, "path-style": {fmt.Sprint(target.PathStyle)}}
	if target.Endpoint != "" {
		q.Set("endpoint", target.Endpoint)
	}
	ctx := t.Context()
	for name, value := range must(target.Environ(ctx))(t) {
		t.Setenv(name, value)
	}
	store := must(coppice.Open(ctx, "s3://"+target.Bucket+"/"+target.Prefix(t)+"?"+q.Encode(), nil))(t)
	defer store.Close()
	s := must(store.Create("story", &coppice.SessionOptions{Title: "The story", Cwd: "/w"}))(t)
	var heads []coppice.Receipt
	for i := 1; i <= 20; i++ {
		heads = append(heads, talk(t, s, i))
	}
	must(s.Snapshot(ctx, "good"))(t)
	must(s.Branch(ctx, heads[4].Entry, &coppice.BranchOptions{Name: "other"}))(t)
	talk(t, s, 106)
	must(s.Label(ctx, heads[9].Entry, "mark"))(t)
	must(s.Switch(ctx, "main"))(t)
	if n := turns(t, s); n != 20 {
		t.Errorf("state %d after switching back, want 20: state follows the tree", n)
	}
	must(s.Rollback(ctx, coppice.Target{Seq: heads[6].Seq}))(t)
	if n := turns(t, s); n != 7 {
		t.Errorf("state %d after the rollback, want 7", n)
	}
	back := must(s.At(ctx, coppice.Target{Tag: "good"}))(t)
	if n := turns(t, back); n != 20 {
		t.Errorf("state %d at the snapshot, want 20", n)
	}
	tree := must(s.Tree(ctx))(t)
	if n := tree.Len(); n < 42 {
		t.Errorf("the tree has %d entries", n)
	}
	fork := must(s.Fork(ctx, coppice.Target{Seq: heads[2].Seq}, "fork", nil))(t)
	if n := turns(t, fork); n != 3 {
		t.Errorf("state %d of the fork, want 3", n)
	}
	if err := errors.Join(fork.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}

	again := must(store.Open(ctx, "story", nil))(t)
	if c := must(again.Context(ctx))(t); len(c.Messages) != 14 || turns(t, again) != 7 {
		t.Errorf("resumed with %d messages and state %d, want 14 and 7", len(c.Messages), turns(t, again))
	}
	if io := again.IO(); io != (backend.IO{Get: 1, BytesRead: io.BytesRead}) {
		t.Errorf("resume asked for %+v, want one get", io)
	}
	var text bytes.Buffer
	if err := store.ExportPi(ctx, "story", &text); err != nil || !strings.Contains(text.String(), "answer 20") || !strings.Contains(text.String(), "answer 106") {
		t.Errorf("export: %v, %d bytes", err, text.Len())
	}
	var listed []string
	for sum, err := range store.List(ctx, coppice.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, sum.ID)
	}
	if slices.Sort(listed); !slices.Equal(listed, []string{"fork", "story"}) {
		t.Errorf("listed %v", listed)
	}
	if r, err := store.Verify(ctx, "", true); err != nil || len(r.Problems) > 0 || r.Sessions != 2 {
		t.Errorf("verify: %+v, %v", r, err)
	}
	if err := store.Delete(ctx, "story"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(ctx, "story", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open after delete: %v", err)
	}
	if _, err := again.Commit(ctx, coppice.Turn{State: counter{}}); !errors.Is(err, coppice.ErrDeleted) {
		t.Errorf("commit after delete: %v, want ErrDeleted", err)
	}
}

// Two hosts resume one session: the first commit wins, the other gets an error, and both turns are kept. A claim fences
// the old host before its next side effect.
func TestTwoHosts(t *testing.T) { s3test.Each(t, twoHosts) }

func twoHosts(t *testing.T, target *s3test.Target) {
	prefix := target.Prefix(t)
	host := func(name string) *coppice.Store {
		return newStore(t, backend.WithPrefix(target.Open(t, nil), prefix), &coppice.Options{Writer: name})
	}
	ctx := t.Context()
	one, two := host("one"), host("two")
	s := must(one.Create("shared", nil))(t)
	talk(t, s, 1)
	a := must(one.Open(ctx, "shared", nil))(t)
	b := must(two.Open(ctx, "shared", nil))(t)
	kept := must(two.Open(ctx, "shared", &coppice.SessionOptions{KeepBoth: true}))(t)

	won := talk(t, a, 2)
	must(b.Append(ctx, entry.User("late")))(t)
	_, err := b.Commit(ctx, coppice.Turn{State: counter{Turns: 20}})
	var failure *coppice.Error
	if !errors.Is(err, coppice.ErrConflict) || !errors.As(err, &failure) || failure.Winner == nil || failure.Winner.Commit != won.Commit {
		t.Fatalf("the second commit: %v", err)
	}
	r := must(b.Commit(ctx, coppice.Turn{State: counter{Turns: 20}, KeepBoth: true}))(t)
	if !strings.HasPrefix(r.Kept, "conflict-") || r.IO.Get != 0 || r.IO.Put != 1 {
		t.Errorf("kept: %+v", r)
	}
	must(kept.Append(ctx, entry.User("later")))(t)
	if r := must(kept.Commit(ctx, coppice.Turn{State: counter{Turns: 30}}))(t); r.Kept == "" {
		t.Errorf("KeepBoth: %+v", r)
	}
	fresh := must(one.Open(ctx, "shared", nil))(t)
	if n := turns(t, fresh); n != 2 {
		t.Errorf("state %d, want the winner's 2", n)
	}
	for branch, want := range map[string]int{r.Kept: 20, "main": 2} {
		if must(fresh.Switch(ctx, branch))(t); turns(t, fresh) != want {
			t.Errorf("state %d on %s, want %d", turns(t, fresh), branch, want)
		}
	}

	if err := b.Reload(ctx); err != nil {
		t.Fatal(err)
	}
	must(fresh.Claim(ctx))(t)
	if _, err := b.Claim(ctx); err != nil { // the newest claim holds
		t.Fatal(err)
	}
	must(fresh.Append(ctx, entry.User("side effect")))(t)
	if _, err := fresh.Commit(ctx, coppice.Turn{}); !errors.Is(err, coppice.ErrFenced) {
		t.Errorf("commit of the fenced host: %v", err)
	}
}

// A resume is one GET and a commit one PUT, whatever the length of the history.
func TestCosts(t *testing.T) { s3test.Each(t, costs) }

func costs(t *testing.T, target *s3test.Target) {
	sizes := []int{10, 10_000}
	if long() {
		sizes = append(sizes, 300_000)
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			b := target.Store(t)
			quiet := &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}, ContextBytes: 64 << 10}
			store := newStore(t, b, nil)
			s := must(store.Create("long", quiet))(t)
			grow(t, s, size)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			s = must(store.Open(t.Context(), "long", quiet))(t)
			c := must(s.Context(t.Context()))(t)
			took := time.Since(begun)
			if got := s.IO(); got != (backend.IO{Get: 1, BytesRead: got.BytesRead}) || len(c.Messages) == 0 {
				t.Errorf("resume: %+v, %d messages; want one get", got, len(c.Messages))
			}
			t.Logf("%d entries: resumed with %d bytes in %v", s.Info().Entries, s.IO().BytesRead, took.Round(10*time.Microsecond))
			// Lines that the previous process left unsealed, in its last large turn, are sealed first, and reported: a
			// segment, and a run of its ids, into which at most two older ones are merged.
			r, late := talk(t, s, 1), 0
			if late = len(r.Warnings); late > 1 || r.IO.Put != 1+2*late || r.IO.Get > 2*late || r.IO.List+r.IO.Stat > 0 {
				t.Errorf("the first commit asked for %+v, want one put: %v", r.IO, r.Warnings)
			}
			if r := talk(t, s, 2); r.IO != (backend.IO{Put: 1, BytesWritten: r.IO.BytesWritten}) {
				t.Errorf("the second commit asked for %+v, want one put", r.IO)
			}
		})
	}
}

// grow fills a session with size entries, in turns of at most a thousand.
func grow(t *testing.T, s *coppice.Session, size int) {
	t.Helper()
	for n := 0; n < size; {
		var d []transcript.Draft
		for ; len(d) < 1000 && n < size; n += 2 {
			d = append(d, entry.User(fmt.Sprintf("question %d", n)), entry.Assistant(fmt.Sprintf("answer %d, which is a little longer", n)))
		}
		must(s.Append(t.Context(), d...))(t)
		must(s.Commit(t.Context(), coppice.Turn{State: counter{Turns: n}}))(t)
	}
}

// The requests of a session's life, by phase: the probe before a store's first session, create, a hundred turns, the
// segment that is sealed meanwhile, a snapshot, a rollback, a resume. Within a phase they are sorted by their text,
// since background work may run a little earlier or later.
func TestGoldenTrace(t *testing.T) { s3test.Each(t, goldenTrace) }

func goldenTrace(t *testing.T, target *s3test.Target) {
	b := &recorder{Backend: target.Store(t)}
	var mu sync.Mutex // background work uses the clock as well
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	options := &coppice.Options{Writer: "golden", Rand: rand.NewChaCha8([32]byte{7}), Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Millisecond)
		return now
	}}
	ctx := t.Context()
	var out strings.Builder
	phase := func(name string, f func()) {
		before := len(b.all())
		f()
		lines := map[string]int{}
		for _, op := range b.all()[before:] {
			lines[random.ReplaceAllString(op, "-*")]++
		}
		fmt.Fprintf(&out, "# %s\n", name)
		for _, line := range slices.Sorted(maps.Keys(lines)) {
			fmt.Fprintf(&out, "%3d x %s\n", lines[line], line)
		}
	}
	store := newStore(t, b, options)
	quiet := &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}}
	var s *coppice.Session
	phase("a store's first session", func() {
		s = must(store.Create("first", quiet))(t)
		talk(t, s, 1)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
	phase("create", func() { s = must(store.Create("golden", quiet))(t); talk(t, s, 1) })
	phase("100 turns, and close", func() {
		for i := range 100 {
			talk(t, s, i+2)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
	phase("resume", func() { s = must(store.Open(ctx, "golden", quiet))(t); must(s.Context(ctx))(t) })
	phase("turn", func() { talk(t, s, 102) })
	phase("snapshot", func() { must(s.Snapshot(ctx, "tag"))(t) })
	phase("rollback to seq 50", func() { must(s.Rollback(ctx, coppice.Target{Seq: 50}))(t) })
	phase("claim", func() { must(s.Claim(ctx))(t) })
	phase("delete", func() {
		if err := store.Delete(context.Background(), "golden"); err != nil {
			t.Fatal(err)
		}
	})
	golden := filepath.Join("testdata", "trace.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := must(os.ReadFile(golden))(t)
	if out.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// random matches the part of a key that differs from run to run.
var random = regexp.MustCompile(`-[0-9a-f]{16}|-[0-9a-f]{8}\b`)
