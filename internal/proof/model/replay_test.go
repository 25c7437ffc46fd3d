package model

import (
	"context"
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
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// scripted is a store on which a test decides the outcome of the reads and writes of checkpoint_latest.
type scripted struct {
	backend.Backend
	put func(call func() (backend.Info, error)) (backend.Info, error)
	get func() error
}

func (s *scripted) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	late := context.WithoutCancel(ctx) // a PUT may arrive after its caller gave up
	call := func() (backend.Info, error) { return s.Backend.Put(late, key, p, c) }
	if s.put == nil || !strings.HasPrefix(key, layout.Checkpoints) {
		return call()
	}
	return s.put(call)
}

func (s *scripted) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	if s.get != nil && strings.HasPrefix(key, layout.Checkpoints) {
		if err := s.get(); err != nil {
			return nil, backend.Info{}, err
		}
	}
	return s.Backend.Get(ctx, key, r)
}

var (
	errNoAnswer = &backend.Error{Op: "put", Outcome: backend.Unknown, Err: errors.New("no answer")}
	errNoReads  = &backend.Error{Op: "get", Outcome: backend.NotApplied, Err: errors.New("no answer")}
)

type lockedRand struct {
	mu sync.Mutex
	r  io.Reader
}

func (l *lockedRand) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(p)
}

// config returns the configuration of a handle that does background work at once and never waits.
func config(b backend.Backend) journal.Config {
	var clock sync.Mutex
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return journal.Config{
		Backend: b, Session: "s", Writer: "w", Rand: &lockedRand{r: rand.NewChaCha8([32]byte{1})},
		Now: func() time.Time {
			clock.Lock()
			defer clock.Unlock()
			at = at.Add(time.Millisecond)
			return at
		},
		Sleep:  func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Go:     func(job func()) { job() },
		Limits: journal.Limits{Attempts: 3},
	}
}

func create(cfg journal.Config) *journal.Journal {
	return journal.Create(cfg, state.Genesis{
		Header: []byte(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`),
	})
}

// saying returns a turn of one message after the head of j.
func saying(j *journal.Journal, id string) *journal.Step {
	st := j.State()
	parent := "null"
	if st.Summary.Entry != "" {
		parent = fmt.Sprintf("%q", st.Summary.Entry)
	}
	return &journal.Step{Reason: "turn", Entries: []*journal.Entry{{
		ID: id, Parent: journal.Place{ID: st.Summary.Entry, Ord: st.HeadOrd},
		Raw: fmt.Appendf(nil, `{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":%q}}`, id, parent, id),
	}}}
}

func commitOf(t *testing.T, j *journal.Journal, id string) {
	t.Helper()
	if _, err := j.Commit(t.Context(), saying(j, id)); err != nil {
		t.Fatalf("commit %s: %v", id, err)
	}
}

// said returns the ids of all entries of the session in a new handle.
func said(t *testing.T, cfg journal.Config) (ids []string) {
	t.Helper()
	cfg.ReadOnly = true
	j, err := journal.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for l, err := range j.Lines(t.Context(), j.State(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if e, err := segment.Entry(l.Ord, l.Raw); err != nil {
			t.Fatal(err)
		} else if !l.Commit {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// TestSettleLooksAgain is the trace of "rebase looks once": the PUT in doubt arrives after Settle has searched for it,
// and before Settle ends.
func TestSettleLooksAgain(t *testing.T) {
	store := &scripted{Backend: memory.New()}
	cfg := config(store)
	j := create(cfg)
	commitOf(t, j, "a")

	var late func() (backend.Info, error)
	store.put = func(call func() (backend.Info, error)) (backend.Info, error) {
		if late == nil {
			late = call
		}
		return backend.Info{}, errNoAnswer
	}
	store.get = func() error { return errNoReads }
	if _, err := j.Commit(t.Context(), saying(j, "b")); !errors.Is(err, journal.ErrUnknown) {
		t.Fatalf("commit without an answer: %v", err)
	}
	store.get = nil
	store.put = func(call func() (backend.Info, error)) (backend.Info, error) {
		if late != nil {
			if _, err := late(); err != nil {
				t.Errorf("the late PUT: %v", err)
			}
			late = nil
		}
		return call()
	}
	if _, err := j.Settle(t.Context(), ""); err != nil {
		t.Fatalf("settle: %v", err)
	}
	if got, want := said(t, cfg), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("the session holds %v, want %v: Settle repeats only what is missing", got, want)
	}
}

// TestCreateIsFoundInTheLog is the trace of "a first commit does not look in the log": its answer is lost, and before
// the search so many commits follow that the lineage no longer contains it.
func TestCreateIsFoundInTheLog(t *testing.T) {
	store := &scripted{Backend: memory.New()}
	cfg := config(store)
	store.put = func(call func() (backend.Info, error)) (backend.Info, error) {
		store.put = nil
		if _, err := call(); err != nil {
			t.Errorf("the first PUT: %v", err)
		}
		other := config(store)
		other.Rand = &lockedRand{r: rand.NewChaCha8([32]byte{2})}
		j, err := journal.Open(t.Context(), other)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 70 {
			commitOf(t, j, fmt.Sprintf("o%d", i))
		}
		return backend.Info{}, errNoAnswer
	}
	j := create(cfg)
	if _, err := j.Commit(t.Context(), saying(j, "a")); err != nil {
		t.Errorf("the commit is in the history (%v...), and is reported as %v", said(t, cfg)[:1], err)
	}
}

// TestRefusedIsInDoubt is the trace of "412 is certain": the network sends the PUT twice, the second conflicts with the
// first, and no read can decide.
func TestRefusedIsInDoubt(t *testing.T) {
	store := &scripted{Backend: memory.New()}
	cfg := config(store)
	j := create(cfg)
	commitOf(t, j, "a")
	store.put = func(call func() (backend.Info, error)) (backend.Info, error) {
		_, _ = call()
		return call()
	}
	store.get = func() error { return errNoReads }
	_, err := j.Commit(t.Context(), saying(j, "b"))
	store.put, store.get = nil, nil
	if got := said(t, cfg); slices.Contains(got, "b") && !errors.Is(err, journal.ErrUnknown) {
		t.Errorf("the session holds %v, and the commit of b is reported as %v, not as in doubt", got, err)
	}
}
