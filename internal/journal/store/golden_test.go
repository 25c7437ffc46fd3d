package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-go/coppice/internal/layout"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The lists of a file's parts are the bytes that docs/format/original.md describes, and stay readable: of parts of one
// size, and of a file that grew.
func TestGoldenList(t *testing.T) {
	s, raw := newStore(), bytesOf(2*partSize+50)
	sum, err := s.PutOriginal(t.Context(), bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	goldenList(t, "list.bin", s, sum, raw, []int{partSize, partSize, 50})
	grown := append(bytes.Clone(raw), bytesOf(7)...)
	h := sha256.Sum256(grown)
	now := Original{hex.EncodeToString(h[:]), int64(len(grown))}
	err = s.GrowOriginal(t.Context(), Original{sum, int64(len(raw))}, now, bytes.NewReader(bytesOf(7)))
	if err != nil {
		t.Fatal(err)
	}
	goldenList(t, "list-grown.bin", s, now.Sum, grown, []int{partSize, partSize, 50, 7})
}

func goldenList(t *testing.T, name string, s *Store, sum string, raw []byte, sizes []int) {
	t.Helper()
	got := get(t, s.Backend, layout.OriginalListKey("s", 0, sum))
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("encoded %x, the golden file has %x, %v", got, want, err)
	}
	parts, size, err := DecodeOriginalList(want, sum)
	if err != nil || size != int64(len(raw)) || len(parts) != len(sizes) {
		t.Fatalf("%q of %d bytes, %v", parts, size, err)
	}
	for i, part := range parts {
		h := sha256.Sum256(raw[:sizes[i]])
		if raw = raw[sizes[i]:]; part != hex.EncodeToString(h[:]) {
			t.Errorf("part %d is %s", i, part)
		}
	}
}

// FuzzOriginalList decodes anything without a panic, and nothing that contradicts itself.
func FuzzOriginalList(f *testing.F) {
	p, err := os.ReadFile(filepath.Join("testdata", "list.bin"))
	if err != nil {
		f.Fatal(err)
	}
	h := sha256.Sum256(bytesOf(2*partSize + 50))
	sum := hex.EncodeToString(h[:])
	f.Add(p)
	f.Add(p[:len(p)-1])
	if p, err = os.ReadFile(filepath.Join("testdata", "list-grown.bin")); err != nil {
		f.Fatal(err)
	}
	f.Add(p)
	f.Fuzz(func(t *testing.T, p []byte) {
		parts, size, err := DecodeOriginalList(p, sum)
		if err == nil && (len(parts) == 0 || size <= 0) {
			t.Fatalf("%d parts of %d bytes", len(parts), size)
		}
	})
}
