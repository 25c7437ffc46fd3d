package transcript

import (
	"testing"
	"time"
)

// BenchmarkNodes is one pass over the nodes of a session of 1,000,000 rows by each filter, and over its longest path,
// as a ratio to a pass that only reads the columns: parent, kind, flags, size and time of every row. Target: 300 ms.
// The first ten nodes of that path cost the same in any tree; a pass allocates once for each node.
func BenchmarkNodes(b *testing.B) {
	const n = 1_000_000
	encoded := largeSkeletons(b, n, inTurn)
	tree := buildLarge(b, encoded, "")
	leaf, _ := tree.Newest("")
	tree = buildLarge(b, encoded, leaf.ID)
	passes := []struct {
		name string
		pass func() int
	}{{"path", func() (count int) {
		for range tree.Path(leaf.ID) {
			count++
		}
		return count
	}}, {"ten of path", func() (count int) {
		for range tree.Path(leaf.ID) {
			if count++; count == 10 {
				break
			}
		}
		return count
	}}}
	for _, f := range []Filter{FilterDefault, FilterNoTools, FilterUserOnly, FilterLabeledOnly, FilterAll} {
		passes = append(passes, struct {
			name string
			pass func() int
		}{string(f), func() (count int) {
			for range tree.Nodes(f) {
				count++
			}
			return count
		}})
	}
	for _, p := range passes {
		b.Run(p.name, func(b *testing.B) {
			b.ReportAllocs()
			var ours, bare time.Duration
			for b.Loop() {
				start := time.Now()
				count := p.pass()
				ours += time.Since(start)
				start = time.Now()
				columns(tree)
				bare += time.Since(start)
				b.ReportMetric(float64(count), "nodes")
			}
			b.ReportMetric(float64(ours)/float64(bare), "x-columns")
			b.ReportMetric(float64(bare.Milliseconds())/float64(b.N), "columns-ms")
		})
	}
}

// columns reads the columns of all rows, and makes nothing of them.
func columns(t *Tree) (sum int64) {
	for i := range t.chunks {
		sk := t.chunks[i].sk
		for k := range sk.Len() {
			sum += sk.Parent(k) + int64(sk.KindIndex(k)) + int64(sk.Flags(k)) + int64(sk.Size(k)) + sk.Time(k)
		}
	}
	return sum
}
