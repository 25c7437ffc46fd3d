package state

import (
	"encoding/json"
	"maps"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
)

// Fits holds a commit against the limits of the next checkpoint and the next segment: what these refuse must not be
// acknowledged. before is the state that the commit follows; what was over a limit there may stay. Title and working
// directory always fit, because Advance cuts them. Other limits are those of the line: names, documents, keys.
func (st *State) Fits(before *State) error {
	for _, f := range [...]struct {
		what             string
		limit, was, size int
	}{
		{"branches", checkpoint.MaxBranches, len(before.Branches), len(st.Branches)},
		{"parent session id", checkpoint.MaxName, len(before.Summary.Parent), len(st.Summary.Parent)},
		{"metadata keys", checkpoint.MaxMetaKeys, len(before.Summary.Meta), len(st.Summary.Meta)},
	} {
		if f.size > f.limit && (f.size > f.was || before.Summary.Commit == "") {
			return &codec.LimitError{What: f.what, Limit: int64(f.limit), Value: int64(f.size)}
		}
	}
	if maps.Equal(before.Summary.Meta, st.Summary.Meta) {
		return nil
	}
	if size := sizeOf(st.Summary.Meta); size > checkpoint.MaxMeta && size > sizeOf(before.Summary.Meta) {
		return &codec.LimitError{What: "metadata", Limit: checkpoint.MaxMeta, Value: int64(size)}
	}
	return nil
}

// sizeOf returns the size of metadata as JSON.
func sizeOf(meta map[string]string) int {
	p, err := json.Marshal(meta)
	if err != nil {
		return 0 // texts that are no JSON do not exist
	}
	return len(p)
}

// objectSlack is what a checkpoint holds besides the parts that MayPass adds up, at most about: numbers, references,
// keys, names of writers.
const objectSlack = 256 << 10

// MayPass reports whether the checkpoint of a state may be over its limit, so that it has to be encoded to know. It
// adds up what can grow large, before compression.
func (st *State) MayPass() bool {
	size := len(st.DocJSON) + len(st.Header) + len(st.Summary.Entry) + objectSlack
	for i := range st.Branches {
		size += len(st.Branches[i].Name) + len(st.Branches[i].Head) + 16
	}
	for i := range st.Lineage {
		size += len(st.Lineage[i].Entry) + 2*checkpoint.MaxName
	}
	if w := st.Window; w != nil {
		size += w.Bytes()/4*5 + checkpoint.MaxBlobs // and ordinals, sizes, ids of amendments
	}
	return size > checkpoint.MaxObject
}
