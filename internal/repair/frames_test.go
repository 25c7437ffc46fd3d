package repair

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/coppice-go/coppice/codec"
)

// A flipped bit in the index of a sealed segment, or in one of its frames, costs no line of the other frames.
func TestLinesOfADamagedSegment(t *testing.T) {
	for _, size := range []int{60, 3000} { // one frame, or several
		var raw []byte
		var rows []codec.Row
		for i := range 200 {
			line := fmt.Sprintf(`{"type":"custom","id":"%d","data":%q}`, i, bytes.Repeat([]byte{'a' + byte(i%23)}, size))
			raw = append(append(raw, line...), '\n')
			rows = append(rows, codec.Row{ID: fmt.Sprint(i), Parent: int64(i) - 1, Type: "custom", Size: uint32(len(line))})
		}
		p, err := codec.EncodeSegment(codec.SegmentSpec{Raw: raw, First: 0, Rows: rows})
		if err != nil {
			t.Fatal(err)
		}
		idx, _, err := codec.DecodeSegmentIndex(p, int64(len(p)))
		if err != nil {
			t.Fatal(err)
		}
		frames := make([][]byte, 0, 8)
		for i := range idx.Frames() {
			off, n := idx.FrameRange(i)
			want, _, err := idx.DecodeFrame(i, p[off:off+n])
			if err != nil {
				t.Fatal(err)
			}
			frames = append(frames, want)
		}
		for at := 0; at < len(p); at += 1 + len(p)/2000 {
			for _, bit := range []byte{1, 1 << (at % 8)} {
				q := bytes.Clone(p)
				q[at] ^= bit
				got := lines(q)
				for i, want := range frames {
					off, n := idx.FrameRange(i)
					if (int64(at) < off || int64(at) >= off+n) && !bytes.Contains(got, want) {
						t.Fatalf("lines of %d bytes, bit %d of byte %d of %d: frame %d is lost", size, bit, at, len(p), i)
					}
				}
			}
		}
	}
}
