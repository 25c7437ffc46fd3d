package rows_test

import (
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/rows"
)

// BenchmarkRows builds the rows of 1,000,000 entries with 2,000 forks. Targets: 300 ms, 16 MiB. The floor of the ratio
// asks the tree for the parent and the filter of every entry, and nothing more.
func BenchmarkRows(b *testing.B) {
	tree := longTree(1_000_000)
	for name, order := range map[string]rows.Order{"drawn": rows.Drawn, "active-first": rows.ActiveFirst} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var ours, bare time.Duration
			for b.Loop() {
				begun := time.Now()
				if _, err := rows.New(tree, rows.Options{Order: order}); err != nil {
					b.Fatal(err)
				}
				ours, begun = ours+time.Since(begun), time.Now()
				for i := range uint64(tree.Len()) {
					tree.Parent(i)
					tree.Shows("", i)
				}
				bare += time.Since(begun)
			}
			b.ReportMetric(float64(ours)/float64(bare), "x-bare")
			b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms-build")
		})
	}
}
