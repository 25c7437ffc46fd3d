package transfer

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// Lines come back as they went in, those in memory and those put aside; the file goes with the spool.
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
