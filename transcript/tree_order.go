package transcript

import (
	"cmp"
	"slices"
	"time"
)

// SortByTime puts entries that stand beside one another into the order in which peers show them: oldest first, and
// of one time in append order. An entry without a time stays after the one that was appended before it.
func SortByTime(nodes []Node) {
	if len(nodes) < 2 {
		return
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	type dated struct {
		Node
		at time.Time
	}
	list := make([]dated, len(nodes))
	var at time.Time
	for i, n := range nodes {
		if !untimed(n) {
			at = n.Time
		}
		list[i] = dated{n, at}
	}
	slices.SortStableFunc(list, func(a, b dated) int { return a.at.Compare(b.at) })
	for i := range list {
		nodes[i] = list[i].Node
	}
}

func untimed(n Node) bool { return n.Time.IsZero() }
