package state

import (
	"testing"

	"github.com/coppice-go/coppice/codec"
)

// grown adds so many lines, n at a time, and returns the runs, and how often a line was written on average.
func grownRuns(t *testing.T, total, n uint64) (runs []codec.Ref, written float64) {
	t.Helper()
	rows := uint64(0)
	for at := uint64(0); at < total; at += n {
		stay := MergeRuns(runs, n)
		first := endOf(runs[:stay])
		runs = append(runs[:stay:stay], codec.Ref{First: first, Count: uint32(at + n - first)})
		if rows += at + n - first; at+n-first > codec.MaxIDs {
			t.Fatalf("a run of %d lines", at+n-first)
		}
		if limit := 3 + int((at+n)/1_900_000); len(runs) > limit {
			t.Fatalf("%d runs for %d lines: %v", len(runs), at+n, runs)
		}
	}
	return runs, float64(rows) / float64(total)
}

// However a session grows, there are at most three runs up to 2,097,152 lines, and a line is rewritten a few times.
func TestMergeRuns(t *testing.T) {
	for _, tt := range []struct {
		total, n uint64
		most     float64
	}{{4096, 256, 9}, {1_000_000, 256, 30}, {1_000_000, 3500, 12}, {2_000_000, 16384, 8}, {9_000_000, 5000, 13}} {
		runs, written := grownRuns(t, tt.total, tt.n)
		if written > tt.most {
			t.Errorf("%d lines, %d at a time: each was written %.1f times", tt.total, tt.n, written)
		}
		if endOf(runs) < tt.total {
			t.Errorf("%d of %d lines are covered", endOf(runs), tt.total)
		}
	}
}
