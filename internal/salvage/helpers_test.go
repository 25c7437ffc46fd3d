package salvage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/segment"
)

// world is a store with what handles on it need: every run of it gives the same bytes.
type world struct {
	t   testing.TB
	b   backend.Backend
	lim journal.Limits

	mu   sync.Mutex
	rand io.Reader
	time time.Time
}

func newWorld(t testing.TB, b backend.Backend) *world {
	return &world{
		t: t, b: b, rand: rand.NewChaCha8([32]byte{9}), time: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
		lim: journal.Limits{SealEntries: 6, RollEntries: 6, PublishCommits: 2, Keyframe: 8, WholeDoc: 16, Attempts: 4},
	}
}

func (w *world) Read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return io.ReadFull(w.rand, p)
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.time = w.time.Add(time.Millisecond)
	return w.time
}

func (w *world) config(id string) journal.Config {
	return journal.Config{
		Backend: w.b, Session: id, Writer: "test", Now: w.now, Rand: w, Limits: w.lim,
		Go:    func(job func()) { job() },
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

// kinds are the stores that every behaviour holds on.
var kinds = []string{"replace", "append"}

func storeOf(kind string) backend.Backend {
	if kind == "append" {
		return memory.NewAppender()
	}
	return memory.New()
}

func objects(t testing.TB, b backend.Backend) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for info, err := range b.List(context.Background(), backend.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		p, _, err := b.Get(context.Background(), info.Key, backend.Range{})
		if err != nil {
			t.Fatal(err)
		}
		all[info.Key] = p
	}
	return all
}

func keys(all map[string][]byte, prefix string) []string {
	var out []string
	for k := range all {
		if strings.Contains(k, prefix) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

func put(t testing.TB, b backend.Backend, key string, p []byte) {
	t.Helper()
	if _, err := b.Put(context.Background(), key, p, backend.Cond{}); err != nil {
		t.Fatal(err)
	}
}

func header(id string) []byte {
	return fmt.Appendf(nil, `{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`, id)
}

func (w *world) open(id string) *journal.Journal {
	w.t.Helper()
	j, err := journal.Open(context.Background(), w.config(id))
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

func (w *world) commit(j *journal.Journal, s *journal.Step) journal.Result {
	w.t.Helper()
	if s.Reason == "" {
		s.Reason = "turn"
	}
	r, err := j.Commit(context.Background(), s)
	if err != nil {
		w.t.Fatalf("commit: %v", err)
	}
	return r
}

func message(j *journal.Journal, id, text string) *journal.Entry {
	st := j.State()
	parent := "null"
	if st.Summary.Entry != "" {
		parent = fmt.Sprintf("%q", st.Summary.Entry)
	}
	return &journal.Entry{
		ID: id, ParentID: st.Summary.Entry, ParentOrd: st.HeadOrd,
		Raw: fmt.Appendf(nil, `{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":%q}}`, id, parent, text),
	}
}

func state(raw string) func(checkpoint.Document) checkpoint.Document {
	return func(d checkpoint.Document) checkpoint.Document {
		d.State = json.RawMessage(raw)
		return d
	}
}

// turn commits one entry and a state that is large enough to go as a patch.
func (w *world) turn(j *journal.Journal, id string) {
	w.t.Helper()
	w.commit(j, &journal.Step{
		Entries: []*journal.Entry{message(j, id, "text of "+id)},
		Edit:    state(fmt.Sprintf(`{"turn":%q,"rest":%q}`, id, strings.Repeat("x", 200))),
	})
}

// session makes a session of so many turns with everything that a session can have: an image that an entry
// shows, an imported original, snapshots.
func (w *world) session(id string, turns int) {
	w.t.Helper()
	ctx := context.Background()
	j := journal.Create(w.config(id), journal.Genesis{Header: header(id), Title: "t", Cwd: "/w"})
	original, err := j.PutOriginal(ctx, []byte("the original of "+id))
	if err != nil {
		w.t.Fatal(err)
	}
	image := []byte(strings.Repeat("an image of "+id, 100))
	sum, err := j.PutBlob(ctx, image)
	if err != nil {
		w.t.Fatal(err)
	}
	w.commit(j, &journal.Step{Reason: "import", Original: original})
	w.commit(j, &journal.Step{Entries: []*journal.Entry{message(j, id+"-image", fmt.Sprintf("coppice-blob:sha256:%s:%d", sum, len(image)))}})
	for i := range turns {
		w.turn(j, fmt.Sprintf("%s-e%d", id, i))
		if i%8 == 3 {
			if _, err := j.Snapshot(ctx, j.State(), ""); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	if err := j.Close(ctx); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) verify(id string, deep bool) check.Report {
	w.t.Helper()
	r, err := check.Verify(context.Background(), w.config(id), deep)
	if err != nil {
		w.t.Fatalf("verify: %v", err)
	}
	return r
}

func list(r check.Report) string {
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

// ids are the entries of a session in order, commits left out.
func (w *world) ids(id string) []string {
	w.t.Helper()
	j := w.open(id)
	var out []string
	for l, err := range j.Lines(context.Background(), j.State(), nil) {
		if err != nil {
			w.t.Fatal(err)
		}
		if l.Commit {
			continue
		}
		e, err := segment.Entry(l.Ord, l.Raw)
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, e.ID)
	}
	return out
}
