package state

import (
	"slices"

	"github.com/coppice-go/coppice/codec"
)

const (
	runUnit  = 256 // lines of the smallest run that is not merged at once
	runsOpen = 3   // runs at most, but for those that are full
	oneRun   = 16 * runUnit
)

// endOf returns the ordinal after the last that runs of the id index cover.
func endOf(runs []codec.Ref) uint64 {
	if n := len(runs); n > 0 {
		return runs[n-1].First + uint64(runs[n-1].Count)
	}
	return 0
}

// Indexed returns the ordinal after the last that the id index covers.
func (st *State) Indexed() uint64 { return endOf(st.IDs) }

// Named returns st with the runs of the id index that a checkpoint names, as far as st has sealed what they cover.
func (st *State) Named(runs []codec.Ref) *State {
	n := len(runs)
	for n > 0 && endOf(runs[:n]) > st.Segments.Next() {
		n--
	}
	next := *st
	next.IDs = runs[:n:n]
	return &next
}

// Superseded returns the runs that are named in old and not in now.
func Superseded(old, now []codec.Ref) (gone []codec.Ref) {
	for _, ref := range old {
		if !slices.Contains(now, ref) {
			gone = append(gone, ref)
		}
	}
	return gone
}

// MergeRuns returns how many of the oldest runs of the id index stay as they are where add more lines come: the others
// and these lines become one run. What together has at most codec.MaxIDs lines is at most three runs, whose sizes are
// such that a line is rewritten as seldom as three runs allow.
func MergeRuns(runs []codec.Ref, add uint64) (stay int) {
	total := add
	for _, r := range runs {
		total += uint64(r.Count)
	}
	full := 0
	for ; full < len(runs) && total > codec.MaxIDs; full++ {
		total -= uint64(runs[full].Count)
	}
	if total <= oneRun {
		return full
	}
	r, unit := uint64(1), max(runUnit, add)
	for r*r*r*unit < total {
		r++
	}
	most := [runsOpen]uint64{codec.MaxIDs, r * r * unit, r * unit}
	for stay = len(runs); stay > full; stay-- {
		if at := stay - full; at < runsOpen && add <= most[at] {
			return stay
		}
		add += uint64(runs[stay-1].Count)
	}
	return stay
}
