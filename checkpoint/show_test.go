package checkpoint

import (
	"bytes"
	"testing"
)

// TestShownLinesAreThePool compares the lines set by Show with a pool of the same lines, with and without a tail that
// shares some of them, and in an order that does not ascend.
func TestShownLinesAreThePool(t *testing.T) {
	lines := map[uint64][]byte{3: []byte(`{"a":3}`), 5: []byte(`{"a":5}`), 8: []byte(`{"a":8}`)}
	for _, ords := range [][]uint64{{3, 5, 8}, {5, 3, 8}, {}} {
		for _, tail := range []TailState{{}, {First: 4, Lines: [][]byte{[]byte("x"), lines[5], []byte("y"), []byte("z"), lines[8], []byte("end")}}} {
			pooled := &Object{Document: []byte("{}"), HeadOrd: -1, Tail: tail, Pool: map[uint64][]byte{}}
			shown := &Object{Document: []byte("{}"), HeadOrd: -1, Tail: tail}
			var list [][]byte
			for _, ord := range ords {
				pooled.Window.Ords, pooled.Pool[ord] = append(pooled.Window.Ords, ord), lines[ord]
				list = append(list, lines[ord])
			}
			shown.Show(ords, list)
			want, err := pooled.Encode()
			if err != nil {
				t.Fatal(err)
			}
			got, err := shown.Encode()
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("window %v, tail of %d lines: other bytes, %v", ords, len(tail.Lines), err)
			}
		}
	}
}
