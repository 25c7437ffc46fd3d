package codex

import (
	"testing"

	"github.com/coppice-go/coppice/transcript"
)

// TestNotes: findings between two objects are held up to the bound of the list; the rest is counted.
func TestNotes(t *testing.T) {
	var n lineNotes
	const many = 10_000
	for i := range many {
		n.add(i, transcript.DiagBadLine, "x", i%2)
	}
	if len(n.List) != transcript.MaxDiagnostics || n.More != many-transcript.MaxDiagnostics || n.Bad != many/2 {
		t.Errorf("%d are held, %d more, %d bad lines", len(n.List), n.More, n.Bad)
	}
}
