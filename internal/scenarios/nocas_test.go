package scenarios_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/trace"
)

// careless is a store that accepts every write, whatever its condition, like several that claim to be compatible with
// S3.
type careless struct{ backend.Backend }

func (c careless) Put(ctx context.Context, key string, p []byte, _ backend.Cond) (backend.Info, error) {
	return c.Backend.Put(ctx, key, p, backend.Cond{})
}

// No session is created on a store that ignores conditions, unless the caller insists; a session created that way can
// be continued only with the same option.
func TestStoreThatIgnoresConditions(t *testing.T) {
	b := careless{memory.New()}
	store := newStore(t, b, nil)
	s := create(t, store, "s", nil)
	say(t, s, "u1")
	_, err := s.Commit(bg, coppice.Turn{})
	var e *coppice.Error
	if !errors.Is(err, backend.ErrNoCAS) || !errors.As(err, &e) || !strings.Contains(e.Hint, "SingleWriter") {
		t.Fatalf("commit: %v", err)
	}
	same(t, "objects", len(objects(t, b)), 0)

	alone := newStore(t, b, &coppice.Options{SingleWriter: true})
	s = create(t, alone, "s", nil)
	say(t, s, "u1")
	commit(t, s, nil)
	same(t, "resumed", texts(t, open(t, alone, "s")), "u1")

	s = open(t, store, "s")
	same(t, "a resume asks nothing", texts(t, s), "u1")
	say(t, s, "u2")
	if _, err := s.Commit(bg, coppice.Turn{}); !errors.Is(err, backend.ErrNoCAS) {
		t.Errorf("commit without insisting: %v", err)
	}
}

// The proof is made once for a store, and is stored in each checkpoint: a resume is one read and a commit one write, in
// any process.
func TestProofRidesInTheCheckpoint(t *testing.T) {
	b := memory.New()
	first := create(t, newStore(t, b, nil), "s", nil)
	say(t, first, "u1")
	commit(t, first, nil)
	o, err := checkpoint.DecodeObject([]byte(objects(t, b)["checkpoint_latest/s"]))
	ok(t, err)
	same(t, "proof", o.CAS, true)

	counted := trace.New(b)
	s := open(t, newStore(t, counted, nil), "s")
	say(t, s, "u2")
	commit(t, s, nil)
	io := counted.IO()
	same(t, "requests of a resume and a commit", []int{io.Get, io.Put, io.List, io.Stat, io.Delete}, []int{1, 1, 0, 0, 0})

	for id, lists := range map[string]int{"": 0, "another": 1} { // segments may exist under an id of the caller's
		counted = trace.New(b)
		s = create(t, newStore(t, counted, nil), id, nil)
		say(t, s, "u1")
		commit(t, s, nil)
		io = counted.IO()
		same(t, "requests of a new session", []int{io.Get, io.Put, io.List, io.Stat, io.Delete}, []int{1, 1, lists, 0, 0})
	}
}
