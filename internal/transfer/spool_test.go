package transfer

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// Lines are returned unchanged, from memory and from the file; the file is removed with the spool.
func TestSpool(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := spool{most: 100}
	var want [][]byte
	for i := range 50 {
		want = append(want, fmt.Appendf(nil, "%d%s", i, bytes.Repeat([]byte("x"), i)))
		if err := s.add(want[i]); err != nil {
			t.Fatal(err)
		}
	}
	if s.bytes > 100 || s.file == nil {
		t.Fatalf("%d bytes in memory", s.bytes)
	}
	for i := len(want) - 1; i >= 0; i-- {
		got, err := s.get(i)
		if err != nil || !bytes.Equal(got, want[i]) || s.size(i) != len(want[i]) {
			t.Errorf("line %d: got %q of %d, want %q, %v", i, got, s.size(i), want[i], err)
		}
	}
	s.drop(0, 50)
	if s.held[0] != nil {
		t.Error("a line that was dropped is held")
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// An import whose lines do not fit into memory results in the same session, forward references included, and leaves no
// file.
func TestImportThroughAFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	lines := func(yield func(transcript.Draft, error) bool) {
		for i := range 200 {
			parent := (i + 7) % 200 // some follow their child
			if i == 5 {
				parent = 1000 // missing: a root
			}
			raw := fmt.Appendf(nil, `{"type":"message","id":"e%d","parentId":"e%d","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"%d"}}`, i, parent, i)
			if !yield(transcript.Draft{Raw: raw}, nil) {
				return
			}
		}
	}
	read := func(most int64) (all []string) {
		clock := time.UnixMilli(1_800_000_000_000)
		cfg := journal.Config{
			Backend: memory.New(), Session: "s", Writer: "w", Now: func() time.Time { return clock }, Rand: rand.NewChaCha8([32]byte{3}),
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, Go: func(job func()) { job() },
		}
		genesis := state.Genesis{Header: []byte(`{"type":"session","version":3,"id":"s"}`)}
		j, err := Import(t.Context(), Into{Config: cfg, Fresh: true, Memory: most}, lines, genesis, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close(t.Context())
		for l, err := range j.Lines(t.Context(), j.State(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if !l.Commit {
				all = append(all, fmt.Sprintf("%d %d %s", l.Ord, l.Parent, l.Raw))
			}
		}
		return all
	}
	want, got := read(0), read(1000)
	if len(want) != 200 || !slices.Equal(got, want) {
		t.Errorf("%d lines through a file, %d in memory", len(got), len(want))
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
