package flip

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// stored is a store as the product wrote it, with what its readers may assume.
type stored struct {
	name    string
	disk    bool
	objects map[string][]byte
	older   map[string][]byte // earlier contents of objects that were replaced
	active  string            // disk: key of the active log
}

// The sessions of a built store: one with a long history, one imported from a file with an image, a deleted one.
const (
	sid      = "s"
	pictures = "pictures"
	parted   = "parted"
	deleted  = "gone"
)

// sessionOf returns the session to which an object belongs.
func sessionOf(key string) string {
	for _, id := range []string{sid, pictures, parted, deleted} {
		if key == layout.CheckpointKey(id) || strings.HasPrefix(key, layout.SessionPrefix(id)) {
			return id
		}
	}
	return ""
}

func (s *stored) frozen() *Frozen {
	f := Freeze(s.objects)
	f.Limit = 20_000
	return f
}

func (s *stored) backend(f *Frozen) backend.Backend {
	if s.disk {
		return f.Appends()
	}
	return f
}

// lockedRand is a random source for concurrent use, the same in every run.
type lockedRand struct {
	mu sync.Mutex
	r  io.Reader
}

func (l *lockedRand) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(p)
}

func chance(seed byte) io.Reader { return &lockedRand{r: rand.NewChaCha8([32]byte{seed})} }

// clock advances by a millisecond with each call.
func clock() func() time.Time {
	return testutil.Clock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), time.Millisecond)
}

// built returns the stores that the suites damage; they are never changed.
func built(t testing.TB) []*stored {
	once.Do(func() { originals = []*stored{build(t, "replace", memory.New(), 1), build(t, "disk", disk(t), 1)} })
	if len(originals) != 2 {
		t.Fatal("the stores could not be built")
	}
	return originals
}

var (
	once      sync.Once
	originals []*stored
)

func disk(t testing.TB) backend.Backend {
	b := testutil.Must(local.Open(t.TempDir(), nil))(t)
	t.Cleanup(func() { testutil.OK(t, b.Close()) })
	return b
}

// builder writes a store: with the facade, as users do, and with a handle of the journal with small limits for what
// otherwise takes many commits.
type builder struct {
	t     testing.TB
	b     backend.Backend
	store *coppice.Store
	now   func() time.Time
	rand  io.Reader
	out   *stored
}

func build(t testing.TB, name string, b backend.Backend, seed byte) *stored {
	now := clock()
	_, appends := b.(backend.Appender)
	w := &builder{t: t, b: b, now: now, rand: chance(100 + seed), out: &stored{name: name, disk: appends, objects: map[string][]byte{}, older: map[string][]byte{}}}
	w.store = testutil.Must(coppice.New(b, &coppice.Options{Now: now, Rand: chance(seed), Writer: "w"}))(t)
	w.imported()
	w.large()
	w.lived()
	w.aged()
	w.keep(layout.CheckpointKey(sid))
	w.latest()
	w.others()
	for info, err := range b.List(t.Context(), backend.ListOptions{}) {
		testutil.OK(t, err)
		w.out.objects[info.Key] = w.read(info.Key)
	}
	return w.out
}

func (w *builder) read(key string) []byte {
	p, _, err := w.b.Get(w.t.Context(), key, backend.Range{})
	testutil.OK(w.t, err)
	return p
}

func (w *builder) keep(key string) { w.out.older[key] = w.read(key) }

// imported makes a session from a file in a foreign format, so that it has an original, and an image.
func (w *builder) imported() {
	t, ctx := w.t, w.t.Context()
	raw := []byte("a file of some other program\r\nwith two lines\r\n")
	picture := bytes.Repeat([]byte("a picture of nothing much, "), 1000)[:24_800]
	lines := func(yield func(transcript.Draft, error) bool) {
		for _, d := range []transcript.Draft{entry.User("look at this", entry.Image("image/png", picture)), entry.Assistant("I see")} {
			if !yield(d, nil) {
				return
			}
		}
	}
	s := testutil.Must(w.store.Import(ctx, iter.Seq2[transcript.Draft, error](lines), &coppice.SessionOptions{
		ID: pictures, Title: "a title", Cwd: "/w",
		Original: func() (io.Reader, error) { return bytes.NewReader(raw), nil },
	}))(t)
	testutil.Must(s.Snapshot(ctx, "tagged"))(t)
	testutil.OK(t, s.Close())
}

// large makes a session from a file that is stored in parts.
func (w *builder) large() {
	t, ctx := w.t, w.t.Context()
	cfg := w.config(journal.Limits{PartBytes: 50}, func(job func()) { job() })
	cfg.Session = parted
	header := fmt.Appendf(nil, `{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`, parted)
	j := journal.Create(cfg, state.Genesis{Header: header, Title: "a title", Cwd: "/w"})
	sum := testutil.Must(
		j.PutOriginal(ctx, strings.NewReader(strings.Repeat("a large file of some other program, ", 4))))(t)
	_, err := j.Commit(ctx, &journal.Step{Reason: "import", Original: sum})
	testutil.OK(t, err)
	w.say(j, "of-the-large")
	testutil.OK(t, j.Tidy(ctx))
	testutil.OK(t, j.Close(ctx))
}

// lived makes a session in use: turns with state, a branch, a label, a snapshot, a rollback.
func (w *builder) lived() {
	t, ctx := w.t, w.t.Context()
	s := testutil.Must(w.store.Create(sid, &coppice.SessionOptions{Title: "a title", Cwd: "/w"}))(t)
	turn := func(state string, d ...transcript.Draft) {
		testutil.Must(s.Append(ctx, d...))(t)
		testutil.Must(s.Commit(ctx, coppice.Turn{State: []byte(state)}))(t)
	}
	turn(`"one"`, entry.User("first question"), entry.Assistant("first answer"))
	ids := testutil.Must(s.Append(ctx, entry.User("second question"), entry.Assistant("second answer")))(t)
	testutil.Must(s.Commit(ctx, coppice.Turn{State: []byte(`"two"`)}))(t)
	testutil.Must(s.Snapshot(ctx, "tagged"))(t)
	testutil.Must(s.Branch(ctx, ids[0], &coppice.BranchOptions{Name: "side"}))(t)
	turn(`"side"`, entry.Assistant("another answer"))
	testutil.Must(s.Label(ctx, ids[0], "a label"))(t)
	if r := testutil.Must(s.Rollback(ctx, coppice.Target{Tag: "tagged"}))(t); r.Kept == "" {
		t.Fatal("the rollback kept nothing")
	}
	testutil.Must(s.Snapshot(ctx, ""))(t)
	testutil.OK(t, s.Close())
}

func (w *builder) config(limits journal.Limits, background func(func())) journal.Config {
	return journal.Config{
		Backend: w.b, Session: sid, Writer: "w", Now: w.now, Rand: w.rand, Limits: limits,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Go:    background,
	}
}

func (w *builder) say(j *journal.Journal, id string) {
	st := j.State()
	_, err := j.Commit(w.t.Context(), &journal.Step{Reason: "turn", Entries: []*journal.Entry{{
		ID: id, Parent: journal.Place{ID: st.Summary.Entry, Ord: st.HeadOrd},
		Raw: fmt.Appendf(nil, `{"type":"message","id":%q,"parentId":%q,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"text of %s"}}`, id, st.Summary.Entry, id),
	}}})
	testutil.OK(w.t, err)
}

// aged adds several segments and an index object to the session.
func (w *builder) aged() {
	t := w.t
	small := journal.Limits{SealBytes: 1500, SealEntries: 6, RollBytes: 1500, RollEntries: 6}
	j := testutil.Must(journal.Open(t.Context(), w.config(small, func(job func()) { job() })))(t)
	for i := range 9 {
		w.say(j, fmt.Sprintf("aged-%02d", i))
	}
	testutil.OK(t, j.Tidy(t.Context()))
	for i := range 5 {
		w.say(j, fmt.Sprintf("late-%02d", i))
	}
	testutil.OK(t, j.Close(t.Context()))
}

// latest leaves the session as a crash does: on a disk with a closed segment that is still plain, a log that continues
// after the checkpoint, and a torn object.
func (w *builder) latest() {
	t := w.t
	never := journal.Limits{SealBytes: 1 << 30, SealEntries: 1 << 20, RollBytes: 1500, RollEntries: 6, PublishCommits: 1 << 20, PublishBytes: 1 << 40}
	j := testutil.Must(journal.Open(t.Context(), w.config(never, func(func()) {})))(t)
	for i := range 4 {
		w.say(j, fmt.Sprintf("new-%02d", i))
	}
	if a, disk := w.b.(backend.Appender); disk {
		for len(j.State().Plain) < 2 || j.State().Active().Count != 2 {
			w.say(j, fmt.Sprintf("more-%02d", j.State().Next))
		}
		key := w.activeKey(j)
		end := j.State().Active().Bytes
		testutil.Must(a.Append(t.Context(), key, end, []byte(`{"type":"message","id":"torn","par`)))(t)
		never.RollBytes, never.RollEntries = 1<<30, 1<<20
		j = testutil.Must(journal.Open(t.Context(), w.config(never, func(func()) {})))(t)
		w.out.active = key
		for i := range 3 {
			w.say(j, fmt.Sprintf("last-%02d", i))
			if st := j.State(); w.activeKey(j) != key {
				t.Fatalf("the last commits rolled over to %s", st.Active().Name)
			}
		}
	}
}

func (w *builder) activeKey(j *journal.Journal) string {
	seg, good := layout.ParseSegment(j.State().Active().Name)
	if !good {
		w.t.Fatalf("active segment %q", j.State().Active().Name)
	}
	return seg.PlainKey(sid)
}

// others makes the deleted session.
func (w *builder) others() {
	t, ctx := w.t, w.t.Context()
	s := testutil.Must(w.store.Create(deleted, nil))(t)
	testutil.Must(s.Append(ctx, entry.User("to be deleted")))(t)
	testutil.Must(s.Commit(ctx, coppice.Turn{}))(t)
	testutil.OK(t, s.Close())
	testutil.OK(t, w.store.Delete(ctx, deleted))
}

// kindOf returns the kind of the object with a key.
func kindOf(s *stored, key string) string {
	switch {
	case strings.HasPrefix(key, layout.CAS):
		return "proof"
	case key == layout.CheckpointKey(deleted):
		return "tombstone"
	case strings.HasPrefix(key, layout.Checkpoints):
		return "checkpoint"
	case key == s.active:
		return "active log"
	case strings.HasSuffix(key, ".jsonl"):
		return "plain segment"
	case strings.HasSuffix(key, ".jsonl.zst"):
		return "sealed segment"
	}
	if strings.HasSuffix(key, ".parts") {
		return "list of parts"
	}
	if strings.Contains(key, "/ids/") {
		return "run of ids"
	}
	for _, kind := range []string{"index", "snapshots", "blobs", "originals", "torn"} {
		if strings.Contains(key, "/"+kind+"/") {
			return strings.TrimSuffix(kind, "s")
		}
	}
	return "unknown"
}

// TestEveryKind compares the built stores with the list of kinds, so that no kind is left out.
func TestEveryKind(t *testing.T) {
	want := map[string][]string{
		"replace": {"blob", "checkpoint", "index", "list of parts", "original", "proof", "run of ids", "sealed segment", "snapshot", "tombstone"},
		"disk":    {"active log", "blob", "checkpoint", "index", "list of parts", "original", "plain segment", "run of ids", "sealed segment", "snapshot", "tombstone", "torn"},
	}
	for _, s := range built(t) {
		have := map[string]int{}
		for key, p := range s.objects {
			have[kindOf(s, key)] += len(p)
			t.Logf("%s %-15s %6d %s", s.name, kindOf(s, key), len(p), key)
		}
		for _, kind := range want[s.name] {
			if have[kind] == 0 {
				t.Errorf("%s has no %s", s.name, kind)
			}
			delete(have, kind)
		}
		if len(have) != 0 {
			t.Errorf("%s has %v as well", s.name, have)
		}
	}
}
