package state

import (
	"maps"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/transcript"
)

// erase updates the state for a commit that erased entries. A state that is advanced over such a commit still refers to
// segments with their content. It is Stale: it is written nowhere, and is replaced by a state that is rebuilt from the
// log.
func (st *State) erase(rec *checkpoint.Record, entries []transcript.Entry) {
	st.Erased, st.Amended = rec.Seq, st.Next
	if st.Replaced = maps.Clone(st.Replaced); st.Replaced == nil {
		st.Replaced = map[string]string{}
	}
	for i := range entries {
		if e, ok := entries[i].Erasure(); ok {
			replace(st.Replaced, e)
		}
	}
}

// replace adds the segments that an erasure replaced to names by old names.
func replace(names map[string]string, e transcript.Erasure) {
	for _, s := range e.Segments {
		names[s[0]] = s[1]
	}
}

// ReplacedBy returns the new names of the segments that erasures among the commits in lines replaced, by old names.
func ReplacedBy(lines []Line) map[string]string {
	by, began := map[string]string{}, 0
	for i, l := range lines {
		if !l.Commit {
			continue
		}
		if rec, err := checkpoint.VerifiedRecord(l.Raw); err == nil && rec.Erase {
			for _, own := range lines[began:i] {
				if head, err := transcript.ParseLine(own.Raw); err == nil {
					if e, ok := head.Entry(own.Ord).Erasure(); ok {
						replace(by, e)
					}
				}
			}
		}
		began = i + 1
	}
	return by
}

// Stale reports whether a commit after what the state was made of erased entries, so that the state may have their
// content, and refer to segments that are gone.
func (st *State) Stale() bool { return st.Replaced != nil }

// Fresh returns the state as one that has nothing of what was erased.
func (st *State) Fresh() *State {
	next := *st
	next.Replaced = nil
	return &next
}
