package checkpoint

import (
	"maps"
	"slices"

	"github.com/coppice-go/coppice/checkpoint/internal/body"
	"github.com/coppice-go/coppice/codec"
)

// wire returns the body of o, as pack would write it, for tests that corrupt it.
func (o *Object) wire() (*body.Body, error) {
	w := &body.Body{
		Entry: o.Summary.Entry, HeadOrd: o.HeadOrd, Document: o.Document, Header: o.Header, Key: o.Key, Prev: o.Prev, CAS: o.CAS,
		Profile: o.Window.Profile, MaxBytes: o.Window.MaxBytes, Omitted: o.Window.Omitted, Known: o.Window.Known,
		Base: [3]string{o.Window.Base.Model, o.Window.Base.ThinkingLevel, o.Window.Base.Mode}, Ords: differences(o.Window.Ords),
		TailFirst: o.Tail.First, TailSeq: o.Tail.FirstSeq,
		Original: o.Original, Claimed: o.Claimed, SinceKey: o.SinceKey, Opening: o.Opening, LastLine: o.LastLine,
		Source: encodeSource(o.Source),
	}
	commits := make([]body.Commit, len(o.Lineage))
	for i, c := range o.Lineage {
		commits[i] = body.Commit{
			Seq: c.Seq, Epoch: c.Epoch, ID: c.Commit, Parent: c.Parent, Entry: c.Entry, HeadOrd: c.HeadOrd, Branch: c.Branch,
			Reason: c.Reason, Writer: c.Writer, Snapshot: c.Snapshot, Key: c.Key, Kept: c.Kept,
			Time: millis(c.Time), Entries: c.Entries, Keyframe: c.Keyframe,
		}
	}
	var err error
	if w.Lineage, err = codec.Marshal(commits); err != nil {
		return nil, err
	}
	if w.Branches, err = codec.Marshal(o.Branches); err != nil {
		return nil, err
	}
	if w.Plain, err = codec.Marshal(o.Plain); err != nil {
		return nil, err
	}
	for _, level := range o.Segments.Levels {
		p, err := codec.Marshal(level)
		if err != nil {
			return nil, err
		}
		w.Levels = append(w.Levels, p)
	}
	ords := slices.Sorted(maps.Keys(o.Pool))
	w.PoolOrds = differences(ords)
	for _, ord := range ords {
		w.PoolSizes, w.Pool = appendSized(w.PoolSizes, w.Pool, o.Pool[ord])
	}
	w.BlobSums = slices.Sorted(maps.Keys(o.Blobs))
	for _, sum := range w.BlobSums {
		w.BlobSizes, w.Blobs = appendSized(w.BlobSizes, w.Blobs, o.Blobs[sum])
	}
	for i, line := range o.Tail.Lines {
		if string(o.Pool[o.Tail.First+uint64(i)]) == string(line) {
			line = nil // it is in the pool
		}
		w.TailSizes, w.Tail = appendSized(w.TailSizes, w.Tail, line)
	}
	return w, nil
}

func differences(ords []uint64) []int64 {
	out, last := make([]int64, len(ords)), uint64(0)
	for i, ord := range ords {
		out[i], last = int64(ord-last), ord
	}
	return out
}

func appendSized(sizes []uint32, data, p []byte) ([]uint32, []byte) {
	return append(sizes, uint32(len(p))), append(data, p...)
}
