package codex

import (
	"errors"
	"io"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// FuzzRead: for any file, compressed or not, a reader returns whole lines, parents first, and reaches the end.
func FuzzRead(f *testing.F) {
	for _, data := range testutil.Samples(f) {
		f.Add(string(data))
		f.Add(string(pack(f, data)))
	}
	f.Fuzz(check)
}

func check(t *testing.T, text string) {
	t.Helper()
	Detect([]byte(text))
	src := source(text)
	around := folder{"rollout-1-0198aaaa-0000-7000-8000-000000000009.jsonl": text} // base of a seed
	src.List, src.Beside = around.List, around.Open
	r := NewReader(src, interop.Options{Now: now})
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := r.Header(); err != nil {
		packed := len(text) >= len(zstdMagic) && text[:len(zstdMagic)] == string(zstdMagic)
		if !errors.Is(err, interop.ErrNotSession) && !packed {
			t.Fatal(err)
		}
		return
	}
	ids := map[string]bool{"": true}
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return // a damaged frame
		}
		raw, err := d.Line("", "", now)
		if err != nil {
			t.Fatalf("%v: %.300s", err, d.Raw)
		}
		l, err := transcript.ParseLine(raw)
		if err != nil || !ids[l.ParentID] || ids[l.ID] {
			t.Fatalf("%v: %s", err, raw)
		}
		ids[l.ID] = true
	}
}

// TestMutations runs the fuzz target on a bounded number of mutated seeds.
func TestMutations(t *testing.T) { testutil.Mutations(t, check) }
