package transcript

import (
	"bytes"
	"testing"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/testutil"
)

// Every line of real session files: read as encoding/json reads it, and
// its row taken by a skeleton.
func TestRealFiles(t *testing.T) {
	testutil.SkipLong(t)
	for _, name := range testutil.RealFiles() {
		t.Run(name, func(t *testing.T) {
			var rows []codec.Row
			previews := 0
			for line := range bytes.Lines(testutil.SharedFile(t, name)) {
				line = bytes.TrimRight(line, "\n")
				sameAsReference(t, line)
				l, err := ParseLine(line)
				if err != nil {
					continue
				}
				r := RowOf(l, int64(len(rows))-1)
				if r.Preview != "" {
					previews++
				}
				rows = append(rows, r)
			}
			if _, err := codec.EncodeSkeleton(0, rows); err != nil {
				t.Error(err)
			}
			t.Logf("%d lines, %d with a preview", len(rows), previews)
		})
	}
}
