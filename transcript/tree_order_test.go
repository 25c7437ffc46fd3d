package transcript

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/codec"
)

// Children and versions are ordered by time, as pi's getTree has them; where times are equal or absent, as they came.
func TestOldestFirst(t *testing.T) {
	for _, tt := range []struct {
		name  string
		times []int64 // seconds; 0 = none
		want  string
	}{
		{"in append order", []int64{1, 2, 3, 4}, "a b c d"},
		{"the other way round", []int64{4, 3, 2, 1}, "d c b a"},
		{"equal", []int64{2, 2, 1, 2}, "c a b d"},
		{"none has a time", []int64{0, 0, 0, 0}, "a b c d"},
		{"behind the one before", []int64{5, 0, 1, 0}, "c d a b"},
		{"the first has none", []int64{0, 5, 1, 0}, "a c d b"},
	} {
		rows := []codec.Row{{ID: "top", Parent: codec.NoParent, Type: "message", Role: "user"}}
		for i, s := range tt.times {
			rows = append(rows, codec.Row{ID: string(rune('a' + i)), Parent: 0, Type: "message", Role: "user", Time: 1000 * s})
		}
		tree := treeOf(t, "", rows, 2, 2)
		if got := ids(tree.Children("top")); got != tt.want {
			t.Errorf("%s: children %s, want %s", tt.name, got, tt.want)
		}
		for at, id := range strings.Fields(tt.want) {
			if versions, k := tree.Siblings(id); ids(versions) != tt.want || k != at {
				t.Errorf("%s: versions %s at %d of %s, want %s at %d", tt.name, ids(versions), k, id, tt.want, at)
			}
		}
	}
}

// Whatever the times, all stay, the dated ones ascend, and the order that a list is given in means nothing.
func TestSortByTimeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []Node
		for i, s := range rapid.SliceOfN(rapid.Int64Range(0, 5), 0, 12).Draw(t, "times") {
			n := Node{Ordinal: uint64(i)}
			if s > 0 {
				n.Time = time.Unix(s, 0)
			}
			nodes = append(nodes, n)
		}
		mixed := append([]Node(nil), rapid.Permutation(nodes).Draw(t, "mixed")...)
		SortByTime(nodes)
		SortByTime(mixed)
		var last time.Time
		seen := map[uint64]bool{}
		for i, n := range nodes {
			if mixed[i] != n {
				t.Fatalf("place %d: %d and %d", i, n.Ordinal, mixed[i].Ordinal)
			}
			seen[n.Ordinal] = true
			if n.Time.IsZero() {
				continue
			}
			if n.Time.Before(last) {
				t.Fatalf("%v stands behind %v", n.Time, last)
			}
			last = n.Time
		}
		if len(seen) != len(nodes) {
			t.Fatalf("%d of %d are left", len(seen), len(nodes))
		}
	})
}
