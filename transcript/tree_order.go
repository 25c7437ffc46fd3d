package transcript

import (
	"cmp"
	"slices"
	"time"
)

// SortByTime puts siblings into the order in which peers show them: oldest first, and
// of one time in append order. An entry without a time stays after the one that was appended before it.
func SortByTime(nodes []Node) {
	sortByTime(nodes, func(n Node) uint64 { return n.Ordinal }, func(n Node) time.Time { return n.Time })
}

// inTime puts ordinals into the order of SortByTime.
func (t *Tree) inTime(ordinals []uint64) {
	sortByTime(ordinals, func(ord uint64) uint64 { return ord }, t.Time)
}

func sortByTime[T any](entries []T, ordinal func(T) uint64, date func(T) time.Time) {
	if len(entries) < 2 {
		return
	}
	slices.SortFunc(entries, func(a, b T) int { return cmp.Compare(ordinal(a), ordinal(b)) })
	type dated struct {
		entry T
		at    time.Time
	}
	list := make([]dated, len(entries))
	var at time.Time
	for i, e := range entries {
		if date := date(e); !date.IsZero() {
			at = date
		}
		list[i] = dated{e, at}
	}
	slices.SortStableFunc(list, func(a, b dated) int { return a.at.Compare(b.at) })
	for i := range list {
		entries[i] = list[i].entry
	}
}
