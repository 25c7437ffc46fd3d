package integration

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/integration/faultproxy"
	"github.com/coppice-go/coppice/integration/s3test"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/segment"
)

const sid = "session-1"

// world is one session on a real server, with two kinds of handles: direct ones, and those behind a proxy that makes
// faults.
type world struct {
	t      testing.TB
	proxy  *faultproxy.Proxy
	direct backend.Backend
	faulty backend.Backend
	limits journal.Limits

	background func(job func()) // runs the background work of handles; nil = on goroutines
}

func newWorld(t testing.TB) *world {
	t.Helper()
	target := s3test.For(t)
	if target.Plain() == "" {
		t.Skip("faults are injected before a server on this machine only")
	}
	proxy, err := faultproxy.New(target.Plain())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	prefix := target.Prefix(t)
	return &world{
		t: t, proxy: proxy,
		direct: backend.WithPrefix(target.Open(t, nil), prefix),
		faulty: backend.WithPrefix(target.Behind(t, proxy.URL).Open(t, nil), prefix),
	}
}

func (w *world) config(b backend.Backend) journal.Config {
	return journal.Config{
		Backend: b, Session: sid, Writer: "test", Now: time.Now, Rand: rand.Reader, Sleep: s3test.Quick, Limits: w.limits,
		Go: w.background,
	}
}

// create returns a handle on a new session; its first commit creates it.
func (w *world) create(b backend.Backend) *journal.Journal {
	header := fmt.Appendf(nil, `{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`, sid)
	return w.closes(journal.Create(w.config(b), state.Genesis{Header: header, Title: "t", Cwd: "/w"}))
}

func (w *world) open(b backend.Backend) *journal.Journal {
	w.t.Helper()
	j, err := journal.Open(w.t.Context(), w.config(b))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.closes(j)
}

func (w *world) closes(j *journal.Journal) *journal.Journal {
	w.t.Cleanup(func() {
		if err := j.Close(context.Background()); err != nil {
			w.t.Logf("close: %v", err)
		}
	})
	return j
}

// step returns a turn of one message and a state.
func step(j *journal.Journal, id string) *journal.Step {
	st := j.State()
	parent, link := "null", st.Summary.Entry
	if link != "" {
		parent = fmt.Sprintf("%q", link)
	}
	e := &journal.Entry{
		ID: id, Parent: journal.PlaceOf(st),
		Raw: fmt.Appendf(nil, `{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"text of %s"}}`, id, parent, id),
	}
	return &journal.Step{Reason: "turn", Entries: []*journal.Entry{e}, Edit: func(d checkpoint.Document) checkpoint.Document {
		d.State = json.RawMessage(fmt.Sprintf(`{"last":%q}`, id))
		return d
	}}
}

// keepBoth stores a step that meets a conflict as a branch.
func keepBoth(ctx context.Context, j *journal.Journal, s *journal.Step) (journal.Outcome, error) {
	s.KeepBoth, s.KeepFenced = true, true
	return j.Commit(ctx, s)
}

func (w *world) turn(j *journal.Journal, id string) journal.Outcome {
	w.t.Helper()
	r, err := j.Commit(w.t.Context(), step(j, id))
	if err != nil {
		w.t.Fatalf("turn %s: %v", id, err)
	}
	return r
}

// ledger records the answers of callers.
type ledger struct {
	mu     sync.Mutex
	acked  map[string]string // entry -> commit
	failed map[string]error  // entries that were reported as not applied, and dropped
	doubt  map[string]error  // entries with an unknown outcome
	deaths bool              // writers died before they could report all of their acknowledgements
}

func newLedger() *ledger {
	return &ledger{acked: map[string]string{}, failed: map[string]error{}, doubt: map[string]error{}}
}

func (l *ledger) note(entry string, r journal.Outcome, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.acked[entry] = r.Commit.Commit
	case errors.Is(err, journal.ErrUnknown), backend.OutcomeOf(err) == backend.Unknown && !errors.Is(err, journal.ErrConflict) && !errors.Is(err, journal.ErrFenced):
		l.doubt[entry] = err
	default:
		l.failed[entry] = err
	}
}

// history reads the whole session by a fresh handle, and checks that it is consistent.
func (w *world) history() (entries, commits map[string]int, last journal.Outcome) {
	w.t.Helper()
	j := w.open(w.direct)
	st := j.State()
	entries, commits = map[string]int{}, map[string]int{}
	seq := int64(-1)
	for b, err := range j.Since(w.t.Context(), st, -1, nil) {
		if err != nil {
			w.t.Fatalf("history: %v", err)
		}
		if seq++; int64(b.Commit.Seq) != seq {
			w.t.Fatalf("commit %d where %d is due", b.Commit.Seq, seq)
		}
		commits[b.Commit.Commit]++
		for _, line := range b.Lines {
			if line.Commit {
				continue
			}
			e, err := segment.Entry(line.Ord, line.Raw)
			if err != nil {
				w.t.Fatalf("line %d: %v", line.Ord, err)
			}
			entries[e.ID]++
		}
	}
	if seq != int64(st.Summary.Seq) {
		w.t.Fatalf("the history ends with %d, the head is %d", seq, st.Summary.Seq)
	}
	return entries, commits, journal.Outcome{State: st}
}

// check compares the ledger with the history: every acknowledged entry is there once, every failed one is not.
func (w *world) check(l *ledger) *state.State {
	w.t.Helper()
	entries, commits, last := w.history()
	for e, c := range l.acked {
		if entries[e] != 1 || commits[c] != 1 {
			w.t.Errorf("I1: %s was acknowledged by %s; they stand %d and %d times in the history", e, c, entries[e], commits[c])
		}
	}
	for e, err := range l.failed {
		if entries[e] != 0 {
			w.t.Errorf("I2: %s was reported as not applied (%v) and is in the history", e, err)
		}
	}
	for e, n := range entries {
		if n != 1 {
			w.t.Errorf("%s stands %d times in the history", e, n)
		}
		if l.doubt[e] == nil && l.acked[e] == "" && !l.deaths {
			w.t.Errorf("%s is in the history, and nobody was told", e)
		}
	}
	return last.State
}
