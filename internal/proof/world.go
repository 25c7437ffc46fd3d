package proof

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/segment"
)

// World is a store with what handles on it need: every run of it returns the same bytes.
type World struct {
	T   testing.TB
	B   backend.Backend
	Lim journal.Limits

	mu   sync.Mutex
	Rand io.Reader
	time time.Time
}

// NewWorld makes a world on a store, with limits small enough that a few turns seal, roll and publish.
func NewWorld(t testing.TB, b backend.Backend) *World {
	return &World{
		T: t, B: b, Rand: rand.NewChaCha8([32]byte{9}), time: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
		Lim: journal.Limits{SealEntries: 6, RollEntries: 6, PublishCommits: 2, Keyframe: 8, WholeDoc: 16, Attempts: 4},
	}
}

func (w *World) Read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return io.ReadFull(w.Rand, p)
}

// Now returns a time that is a millisecond after the one before.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.time = w.time.Add(time.Millisecond)
	return w.time
}

// Config is what a handle on a session is made of; background work is done at once.
func (w *World) Config(id string) journal.Config {
	return journal.Config{
		Backend: w.B, Session: id, Writer: "test", Now: w.Now, Rand: w, Limits: w.Lim,
		Go:    func(job func()) { job() },
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

// StoreKinds are the stores that every behaviour holds on.
var StoreKinds = []string{"replace", "append"}

// StoreOf makes an empty store of one of Kinds.
func StoreOf(kind string) backend.Backend {
	if kind == "append" {
		return memory.NewAppender()
	}
	return memory.New()
}

// Objects returns the bytes of every object of a store by its key.
func Objects(t testing.TB, b backend.Backend) map[string][]byte {
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

// KeysWith returns the sorted keys in which a text is.
func KeysWith(all map[string][]byte, prefix string) []string {
	var out []string
	for k := range all {
		if strings.Contains(k, prefix) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// Put sets an object, whatever is there.
func Put(t testing.TB, b backend.Backend, key string, p []byte) {
	t.Helper()
	if _, err := b.Put(context.Background(), key, p, backend.Cond{}); err != nil {
		t.Fatal(err)
	}
}

// Header is the header line of a session.
func Header(id string) []byte {
	return fmt.Appendf(nil, `{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`,
		id)
}

// Open resumes a session.
func (w *World) Open(id string) *journal.Journal {
	w.T.Helper()
	j, err := journal.Open(context.Background(), w.Config(id))
	if err != nil {
		w.T.Fatal(err)
	}
	return j
}

// Commit commits a step, with the reason "turn" unless it has another.
func (w *World) Commit(j *journal.Journal, s *journal.Step) journal.Outcome {
	w.T.Helper()
	if s.Reason == "" {
		s.Reason = "turn"
	}
	r, err := j.Commit(context.Background(), s)
	if err != nil {
		w.T.Fatalf("commit: %v", err)
	}
	return r
}

// Message returns a user message below a journal's head.
func Message(j *journal.Journal, id, text string) *journal.Entry {
	st := j.State()
	parent := "null"
	if st.Summary.Entry != "" {
		parent = fmt.Sprintf("%q", st.Summary.Entry)
	}
	return &journal.Entry{
		ID: id, Parent: journal.Place{ID: st.Summary.Entry, Ord: st.HeadOrd},
		Raw: fmt.Appendf(nil, `{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z",`+
			`"message":{"role":"user","content":%q}}`, id, parent, text),
	}
}

// State is an edit that sets the agent's state.
func State(raw string) func(checkpoint.Document) checkpoint.Document {
	return func(d checkpoint.Document) checkpoint.Document {
		d.State = json.RawMessage(raw)
		return d
	}
}

// Turn commits one entry and a state that is large enough to go as a patch.
func (w *World) Turn(j *journal.Journal, id string) {
	w.T.Helper()
	w.Commit(j, &journal.Step{
		Entries: []*journal.Entry{Message(j, id, "text of "+id)},
		Edit:    State(fmt.Sprintf(`{"turn":%q,"rest":%q}`, id, strings.Repeat("x", 200))),
	})
}

// Session makes a session of so many turns with everything that a session can have: an image that an entry
// shows, an imported original, snapshots.
func (w *World) Session(id string, turns int) {
	w.T.Helper()
	ctx := context.Background()
	j := journal.Create(w.Config(id), state.Genesis{Header: Header(id), Title: "t", Cwd: "/w"})
	original, err := j.PutOriginal(ctx, strings.NewReader("the original of "+id))
	if err != nil {
		w.T.Fatal(err)
	}
	image := []byte(strings.Repeat("an image of "+id, 100))
	sum, err := j.PutBlob(ctx, image)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Commit(j, &journal.Step{Reason: "import", Original: original})
	w.Commit(j, &journal.Step{Entries: []*journal.Entry{Message(j, id+"-image",
		fmt.Sprintf("coppice-blob:sha256:%s:%d", sum, len(image)))}})
	for i := range turns {
		w.Turn(j, fmt.Sprintf("%s-e%d", id, i))
		if i%8 == 3 {
			if _, err := j.Snapshot(ctx, j.State(), ""); err != nil {
				w.T.Fatal(err)
			}
		}
	}
	if err := j.Close(ctx); err != nil {
		w.T.Fatal(err)
	}
}

// Verify checks a session.
func (w *World) Verify(id string, deep bool) check.Report {
	w.T.Helper()
	r, err := check.Verify(context.Background(), w.Config(id), deep)
	if err != nil {
		w.T.Fatalf("verify: %v", err)
	}
	return r
}

// ListProblems returns the problems of a report, a line each.
func ListProblems(r check.Report) string {
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

// IDs are the entries of a session in order, commits left out.
func (w *World) IDs(id string) []string {
	w.T.Helper()
	j := w.Open(id)
	var out []string
	for l, err := range j.Lines(context.Background(), j.State(), nil) {
		if err != nil {
			w.T.Fatal(err)
		}
		if l.Commit {
			continue
		}
		e, err := segment.Entry(l.Ord, l.Raw)
		if err != nil {
			w.T.Fatal(err)
		}
		out = append(out, e.ID)
	}
	return out
}

// ErrDead is the cause of each failure after a death.
var ErrDead = errors.New("the process is dead")

// DeadFrom are the rules of a process that dies at its nth change of the store: before it, or after it without the
// answer.
func DeadFrom(n int, kind fault.Kind) (rules []fault.Rule, changes *int) {
	changes = new(int)
	dead := false
	at := func(c fault.Call) bool {
		if dead || c.Op == "get" || c.Op == "stat" || c.Op == "list" {
			return false
		}
		if *changes++; *changes == n {
			dead = true
			return true
		}
		return false
	}
	return []fault.Rule{
		{When: func(fault.Call) bool { return dead }, Count: -1, Err: ErrDead},
		{When: at, Kind: kind, Err: ErrDead},
	}, changes
}
