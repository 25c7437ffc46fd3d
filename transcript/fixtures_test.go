package transcript

import (
	"bytes"
	"testing"

	"github.com/coppice-go/coppice/codec"
)

// Every line of real session files: read as encoding/json reads it, stored and restored to the byte, and
// its row taken by a skeleton.
func TestRealFiles(t *testing.T) {
	for _, name := range []string{
		"fixtures/pi/before-compaction.jsonl", "fixtures/pi/large-session.jsonl", "fixtures/pi/prompt-cache-replay-session.v1.jsonl",
		"fixtures/claude-code/edge_cases.jsonl", "fixtures/claude-code/representative_messages.jsonl",
		"fixtures/claude-code/fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl",
	} {
		t.Run(name, func(t *testing.T) {
			var rows []codec.Row
			previews := 0
			for line := range bytes.Lines(sharedFile(t, name)) {
				line = bytes.TrimRight(line, "\n")
				sameAsReference(t, line)
				roundTrip(t, line)
				l, err := ParseLine(line)
				if err != nil {
					continue
				}
				r := Row(l, int64(len(rows))-1)
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
