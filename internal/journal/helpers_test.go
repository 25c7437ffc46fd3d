package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/internal/testutil"
)

// world is a store, and clocks and randomness for handles on it.
type world struct {
	t      testing.TB
	b      backend.Backend
	rand   io.Reader
	now    func() time.Time
	lim    Limits
	inline bool // background work is done at once: one order of events
}

type lockedReader struct {
	mu sync.Mutex
	r  io.Reader
}

func (l *lockedReader) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(p)
}

func newWorld(t testing.TB, b backend.Backend) *world {
	return &world{
		t: t, b: b, now: testutil.Clock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Millisecond),
		rand: &lockedReader{r: rand.NewChaCha8([32]byte{1})},
	}
}

// backends are the stores that every test of the protocol runs on.
func backends(t *testing.T, test func(t *testing.T, b backend.Backend)) {
	t.Run("replace", func(t *testing.T) { test(t, memory.New()) })
	t.Run("append", func(t *testing.T) { test(t, memory.NewAppender()) })
	t.Run("local", func(t *testing.T) {
		b, err := local.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		test(t, b)
	})
}

func (w *world) config(id string) Config {
	var run func(func())
	if w.inline {
		run = func(job func()) { job() }
	}
	return Config{
		Go:      run,
		Backend: w.b, Session: id, Writer: "test", Now: w.now, Rand: w.rand, Limits: w.lim,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

func header(id string) []byte {
	return fmt.Appendf(nil, `{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`, id)
}

func (w *world) create(id string) *Journal {
	j := Create(w.config(id), state.Genesis{Header: header(id), Title: "t", Cwd: "/w"})
	w.closes(j)
	return j
}

func (w *world) open(id string) *Journal {
	w.t.Helper()
	j, err := Open(w.t.Context(), w.config(id))
	if err != nil {
		w.t.Fatal(err)
	}
	w.closes(j)
	return j
}

func (w *world) closes(j *Journal) {
	w.t.Cleanup(func() {
		if err := j.Close(context.Background()); err != nil {
			w.t.Logf("close: %v", err)
		}
	})
}

// say makes an entry whose parent is the head of j.
func say(j *Journal, id, text string) *Entry {
	st := j.State()
	return under(id, text, st.Summary.Entry, st.HeadOrd)
}

func under(id, text, parent string, ord int64) *Entry {
	p := "null"
	if parent != "" {
		p = fmt.Sprintf("%q", parent)
	}
	return &Entry{
		ID: id, Parent: Place{ID: parent, Ord: ord},
		Raw: fmt.Appendf(nil, `{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":%q}}`, id, p, text),
	}
}

func setState(raw string) func(checkpoint.Document) checkpoint.Document {
	return func(d checkpoint.Document) checkpoint.Document {
		d.State = json.RawMessage(raw)
		return d
	}
}

func (w *world) commit(j *Journal, step *Step) Outcome {
	w.t.Helper()
	if step.Reason == "" {
		step.Reason = "turn"
	}
	r, err := j.Commit(w.t.Context(), step)
	if err != nil {
		w.t.Fatalf("commit: %v", err)
	}
	return r
}

// turn commits one entry and a state.
func (w *world) turn(j *Journal, id, raw string) Outcome {
	w.t.Helper()
	return w.commit(j, &Step{Entries: []*Entry{say(j, id, "text of "+id)}, Edit: setState(raw)})
}

// ids are the entries of the session in order, commits left out.
func (w *world) ids(j *Journal) []string {
	w.t.Helper()
	st, err := j.Latest(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for l, err := range j.Lines(w.t.Context(), st, nil) {
		if err != nil {
			w.t.Fatal(err)
		}
		if !l.Commit {
			e, err := segment.Entry(l.Ord, l.Raw)
			if err != nil {
				w.t.Fatal(err)
			}
			out = append(out, e.ID)
		}
	}
	return out
}
