package state

import (
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
)

// Fits holds a commit against the limits of the next checkpoint and the next segment: what these refuse must not be
// acknowledged. before is the state that the commit follows; what was over a limit there may stay.
func (st *State) Fits(before *State) error {
	for _, f := range [...]struct {
		what             string
		limit, was, size int
	}{
		{"branches", checkpoint.MaxBranches, len(before.Branches), len(st.Branches)},
		{"parent session id", checkpoint.MaxName, len(before.Summary.Parent), len(st.Summary.Parent)},
	} {
		if f.size > f.limit && (f.size > f.was || before.Summary.Commit == "") {
			return &codec.LimitError{What: f.what, Limit: int64(f.limit), Value: int64(f.size)}
		}
	}
	return nil
}

// objectSlack is what a checkpoint holds besides the parts that Weight adds up, at most about: names, references,
// lineage, keys.
const objectSlack = 1 << 20

// MayPass reports whether the checkpoint of a state may be over its limit, so that it has to be encoded to know. It
// adds up what can grow large, before compression.
func (st *State) MayPass() bool {
	size := len(st.DocJSON) + objectSlack
	if st.Window != nil {
		size += st.Window.Bytes() + checkpoint.MaxBlobs
	}
	return size > checkpoint.MaxObject
}
