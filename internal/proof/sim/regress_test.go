package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	faulty "github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// Faults that the simulation has found, step by step, without a network: these stay reproducible when a change of the
// simulation changes its seeds.

var checkpointKey = layout.CheckpointKey(session)

func plain(b backend.Backend, n byte) journal.Config {
	return journal.Config{
		Backend: b, Session: session, Writer: "w", Now: func() time.Time { return time.Unix(int64(n), 0) },
		Rand:   rand.NewChaCha8([32]byte{n}),
		Sleep:  func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Go:     func(job func()) { job() },
		Limits: journal.Limits{Attempts: 3},
	}
}

func made(t *testing.T, b backend.Backend) *journal.Journal {
	t.Helper()
	j := journal.Create(plain(b, 1), state.Genesis{Header: header})
	commitOne(t, j, "first")
	return j
}

func stepOf(j *journal.Journal, id string) *journal.Step {
	st := j.State()
	e := &journal.Entry{ID: id, Parent: journal.Place{ID: st.Summary.Entry, Ord: st.HeadOrd}}
	e.Raw = fmt.Appendf(nil, `{"type":"message","id":%q,"parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"x"}}`, id)
	return &journal.Step{Reason: "turn", Entries: []*journal.Entry{e}}
}

func commitOne(t *testing.T, j *journal.Journal, id string) {
	t.Helper()
	if _, err := j.Commit(t.Context(), stepOf(j, id)); err != nil {
		t.Fatal(err)
	}
}

// times counts an entry in the history.
func times(t *testing.T, b backend.Backend, id string) int {
	t.Helper()
	j, err := journal.Open(t.Context(), plain(b, 9))
	if err != nil {
		t.Fatal(err)
	}
	ids, err := entriesOf(t.Context(), j, j.State())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, have := range ids {
		if have == id {
			n++
		}
	}
	return n
}

// The answer is lost, and the head cannot be read at that moment: the commit is in doubt, not corrupt, and Settle finds
// it.
func TestDoubtThenUnreadable(t *testing.T) {
	inner := memory.New()
	f := faulty.New(inner, 1)
	j := made(t, f)
	f.Add(faulty.Rule{When: faulty.On("put", checkpointKey), Kind: faulty.After},
		faulty.Rule{When: faulty.On("get", checkpointKey), Kind: faulty.Damage})
	_, err := j.Commit(t.Context(), stepOf(j, "a"))
	if !errors.Is(err, journal.ErrUnknown) {
		t.Errorf("got %v, want %v", err, journal.ErrUnknown)
	}
	if _, err := j.Settle(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if n := times(t, inner, "a"); n != 1 {
		t.Errorf("the entry stands %d times in the history", n)
	}
}

// again is a client that retries when an answer is lost, as SDKs do.
type again struct{ backend.Backend }

func (a again) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	if _, err := a.Backend.Put(ctx, key, p, c); err != nil {
		return backend.Info{}, err
	}
	return a.Backend.Put(ctx, key, p, c)
}

// A 412 that no read explains is no refusal: the first copy of the same request may have been applied.
func TestRefusedByItsOwnCopy(t *testing.T) {
	for name, kind := range map[string]faulty.Kind{"no answer": faulty.Before, "unreadable": faulty.Damage} {
		t.Run(name, func(t *testing.T) {
			inner := memory.New()
			if err := made(t, inner).Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			f := faulty.New(again{inner}, 1)
			j, err := journal.Open(t.Context(), plain(f, 2))
			if err != nil {
				t.Fatal(err)
			}
			f.Add(faulty.Rule{When: faulty.On("get", checkpointKey), Kind: kind, Count: 3, Outcome: backend.NotApplied})
			_, err = j.Commit(t.Context(), stepOf(j, "a"))
			if !errors.Is(err, journal.ErrUnknown) {
				t.Errorf("got %v, want %v", err, journal.ErrUnknown)
			}
			f.Clear()
			if _, err := j.Settle(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			if n := times(t, inner, "a"); n != 1 {
				t.Errorf("the entry stands %d times in the history", n)
			}
		})
	}
}

// meanwhile calls f before the next read of checkpoint_latest, and g before the next write of it.
type meanwhile struct {
	backend.Backend
	f, g func()
}

func (m *meanwhile) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	if g := m.g; g != nil && key == checkpointKey {
		m.g = nil
		g()
	}
	return m.Backend.Put(ctx, key, p, c)
}

func (m *meanwhile) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	if f := m.f; f != nil && key == checkpointKey {
		m.f = nil
		f()
	}
	return m.Backend.Get(ctx, key, r)
}

// The answer to a session's first commit is lost, and other writers commit until the newest checkpoint no longer
// contains the first commit.
func TestFirstCommitLeftBehind(t *testing.T) {
	inner := memory.New()
	m := &meanwhile{Backend: inner}
	m.f = func() {
		j, err := journal.Open(t.Context(), plain(inner, 2))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 70 {
			commitOne(t, j, fmt.Sprintf("b%d", i))
		}
	}
	j := journal.Create(plain(faulty.New(m, 1, faulty.Rule{When: faulty.On("put", checkpointKey), Kind: faulty.After}), 1), state.Genesis{Header: header})
	_, err := j.Commit(t.Context(), stepOf(j, "a"))
	if n := times(t, inner, "a"); err != nil || n != 1 {
		t.Errorf("the entry stands %d times in the history, and its commit was said to be %v", n, err)
	}
	// A writer that really is second gets the error.
	j = journal.Create(plain(inner, 3), state.Genesis{Header: header})
	if _, err := j.Commit(t.Context(), stepOf(j, "c")); !errors.Is(err, fs.ErrExist) || backend.OutcomeOf(err) != backend.NotApplied {
		t.Errorf("a second first commit: %v", err)
	}
}

// A Tidy that meets another commit is made on that commit.
func TestTidyMeetsACommit(t *testing.T) {
	inner := memory.New()
	made(t, inner)
	other, err := journal.Open(t.Context(), plain(inner, 2))
	if err != nil {
		t.Fatal(err)
	}
	commitOne(t, other, "b")
	limits := plain(inner, 3)
	limits.Limits.SealEntries = 5 // the history has 5 lines, and 7 with the next commit
	j, err := journal.Open(t.Context(), limits)
	if err != nil {
		t.Fatal(err)
	}
	commitOne(t, other, "c")
	if err := j.Tidy(t.Context()); err != nil {
		t.Fatalf("tidy: %v", err)
	}
	if st := j.Tip(); len(st.Tail) > 2 {
		t.Errorf("%d lines are in no segment, of %d", len(st.Tail), st.Next)
	}
}

// The session is deleted while a losing turn is being kept: nothing of a deleted session is acknowledged.
func TestKeepingMeetsDeletion(t *testing.T) {
	inner := memory.New()
	m := &meanwhile{Backend: inner}
	j := made(t, m)
	other, err := journal.Open(t.Context(), plain(inner, 2))
	if err != nil {
		t.Fatal(err)
	}
	commitOne(t, other, "b")
	lost := stepOf(j, "a")
	if _, err := j.Commit(t.Context(), lost); !errors.Is(err, journal.ErrConflict) {
		t.Fatal(err)
	}
	m.g = func() {
		if err := journal.Delete(t.Context(), plain(inner, 3)); err != nil {
			t.Error(err)
		}
	}
	lost.KeepBoth = true
	if _, err := j.Commit(t.Context(), lost); !errors.Is(err, store.ErrDeleted) {
		t.Errorf("got %v, want %v", err, store.ErrDeleted)
	}
	if _, err := j.Commit(t.Context(), stepOf(j, "c")); err == nil {
		t.Error("a commit was acknowledged of a session that is deleted")
	}
}
