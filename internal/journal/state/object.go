package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// Object makes the checkpoint of a state, for Encode: its pool is not filled. withTail: the tail rides in it (replace
// strategy).
func (st *State) Object(withTail bool) *checkpoint.Object {
	if st.Summary.Tombstone {
		return st.tombstone()
	}
	o := &checkpoint.Object{
		Summary: st.Summary, Document: st.DocJSON, Header: st.Header, Lineage: st.Lineage, HeadOrd: st.HeadOrd,
		Branches: st.Branches, Segments: st.Segments, Plain: st.Plain, Key: st.Key, Prev: st.Self,
		CAS: st.CAS, Original: st.Original, Claimed: st.Claimed, SinceKey: st.SinceKey, Opening: st.Opening,
		LastLine: st.LastLine, Keys: st.Keys, Meta: st.Meta, IDs: st.IDs, Source: st.Source,
		Since: st.Since, Erased: st.Erased,
	}
	if a := st.Active(); a != nil {
		o.Summary.LogName, o.Summary.LogBytes = a.Name, a.Bytes
	}
	if w := st.Window; w != nil {
		o.Window = checkpoint.WindowState{
			Profile: string(w.Profile()), MaxBytes: w.MaxBytes(), Base: w.Base(), Omitted: w.Omitted(), Known: true,
		}
		o.Show(w.Lines())
		o.Window.Amended, o.Window.AmendedBy = amended(w)
		o.Blobs = st.blobsShown()
	} else {
		o.Window.Profile, o.Window.MaxBytes = string(st.rules.Profile), st.rules.MaxBytes
	}
	if !withTail || len(st.Tail) == 0 {
		return o
	}
	o.Tail = checkpoint.TailState{First: st.Tail[0].Ord, Lines: make([][]byte, len(st.Tail))}
	for i, l := range st.Tail {
		o.Tail.Lines[i] = l.Raw
	}
	o.Tail.FirstSeq = st.TailSeq()
	return o
}

// amended returns the ordinals of the entries in a window that are amended, root first, and the ids of their
// amendments.
func amended(w *transcript.WorkingContext) (ords []uint64, by []string) {
	for e := range w.All {
		if e.AmendedBy != "" {
			ords, by = append(ords, e.Ordinal), append(by, e.AmendedBy)
		}
	}
	return ords, by
}

// TailSeq is the seq of the first commit in the tail.
func (st *State) TailSeq() uint64 {
	n := uint64(0)
	for _, l := range st.Tail {
		if l.Commit {
			n++
		}
	}
	return st.Summary.Seq + 1 - n
}

// blobsShown are the small images that the window refers to, newest first up to the bound.
func (st *State) blobsShown() map[string][]byte {
	if len(st.Blobs) == 0 {
		return nil
	}
	shown, total := map[string][]byte{}, 0
	entries := st.Window.Entries()
	for i := len(entries) - 1; i >= 0; i-- {
		for _, ref := range blob.Refs(entries[i].Raw) {
			data, ok := st.Blobs[ref.Sum]
			if _, dup := shown[ref.Sum]; !ok || dup || total+len(data) > checkpoint.MaxBlobs {
				continue
			}
			shown[ref.Sum], total = data, total+len(data)
		}
	}
	return shown
}

// Restore makes the state that a checkpoint holds. Its tail, where there is one, is played back, so that
// parents are resolved by the code that committed them.
func Restore(o *checkpoint.Object, info backend.Info) (*State, error) {
	doc, err := checkpoint.DecodeDocument(o.Document)
	if err != nil {
		return nil, err
	}
	st := &State{
		Summary: o.Summary, Header: o.Header, Doc: doc, DocJSON: json.RawMessage(o.Document), HeadOrd: o.HeadOrd,
		Branches: o.Branches, Lineage: o.Lineage, Segments: o.Segments, Plain: o.Plain, Blobs: o.Blobs,
		Original: o.Original, Claimed: o.Claimed, CAS: o.CAS, Key: o.Key, Self: o.Prev,
		SinceKey: o.SinceKey, Opening: o.Opening, LastLine: o.LastLine, Version: info.Version, Keys: o.Keys,
		Meta: o.Meta, IDs: o.IDs, Source: o.Source, Since: o.Since, Erased: o.Erased,
		Saved: Saved{Exists: true, Seq: o.Summary.Seq, Bytes: o.Summary.Bytes, IDs: o.IDs},
	}
	st.Summary.LogName, st.Summary.LogBytes = "", 0 // Plain has them
	st.rules = Rules{transcript.Profile(o.Window.Profile), o.Window.MaxBytes}
	st.keysOfLineage()
	if last := st.Newest(); last.Kept != "" && last.Kept == last.Branch {
		st.AfterKept, st.lineHead = true, last.HeadOrd
	}
	if st.Window, err = window(o); err != nil {
		return nil, err
	}
	if a := st.Active(); a != nil {
		st.Next, st.Durable = a.First+a.Count, a.Bytes
		st.Amended = st.Next
		return st, nil
	}
	st.Next = o.Segments.Next()
	st.Amended = st.Next + uint64(len(o.Tail.Lines))
	if len(o.Tail.Lines) == 0 {
		return st, nil
	}
	if o.Tail.First != st.Next {
		return nil, fmt.Errorf("tail begins at ordinal %d, the segments end at %d", o.Tail.First, st.Next)
	}
	if st.Tail, err = placeTail(o, st.Window); err != nil {
		return nil, err
	}
	for _, l := range st.Tail {
		st.TailBytes += int64(len(l.Raw)) + 1
	}
	st.Next += uint64(len(st.Tail))
	return st, nil
}

// keysOfLineage takes the keys of the lineage, where a release that did not store keys wrote the checkpoint.
func (st *State) keysOfLineage() {
	if len(st.Keys) > 0 {
		return
	}
	for i := range st.Lineage {
		if c := &st.Lineage[i]; c.Key != "" {
			st.Keys = append(st.Keys, checkpoint.KeyRef{Hash: checkpoint.KeyHash(c.Key), Seq: c.Seq})
		}
	}
}

// window puts the working window together from the pool.
func window(o *checkpoint.Object) (*transcript.WorkingContext, error) {
	if !o.Window.Known {
		return nil, nil
	}
	entries := make([]transcript.Entry, 0, len(o.Window.Ords))
	amended, by := o.Window.Amended, o.Window.AmendedBy // in the order of the window
	for _, ord := range o.Window.Ords {
		raw, ok := o.Pool[ord]
		if !ok {
			return nil, fmt.Errorf("the body of entry %d is missing from the pool", ord)
		}
		e, err := segment.Entry(ord, raw)
		if err != nil {
			return nil, err
		}
		if len(amended) > 0 && amended[0] == ord {
			e.AmendedBy, e.Hidden = by[0], e.Type == "custom" // a custom entry of its own is silent, hidden or not
			amended, by = amended[1:], by[1:]
		}
		entries = append(entries, e)
	}
	w := o.Window
	return transcript.RestoreWorkingContext(transcript.Profile(w.Profile), w.MaxBytes, w.Base, w.Omitted, entries), nil
}

// placeTail sets the parents of the lines of a checkpoint's tail. The first commit in it is the first of a future
// segment, and has the head before it. Lines that the window shares are not read again.
func placeTail(o *checkpoint.Object, w *transcript.WorkingContext) ([]Line, error) {
	heads := make([]transcript.Line, len(o.Tail.Lines))
	if w != nil {
		for e := range w.All {
			if i := e.Ordinal - o.Tail.First; i < uint64(len(heads)) {
				heads[i] = transcript.Line{Type: e.Type, ID: e.ID, ParentID: e.ParentID, Time: e.Time, Raw: e.Raw}
			}
		}
	}
	tail := make([]Line, 0, len(o.Tail.Lines))
	begin, prev := &State{HeadOrd: -1, Next: o.Tail.First}, 0
	for i, raw := range o.Tail.Lines {
		rec, ok, err := checkpoint.ParseRecord(raw, o.Key)
		if err != nil || !ok {
			continue
		}
		if rec.Base != nil {
			begin.HeadOrd = rec.Base.HeadOrd
		}
		lines, _, err := segment.Place(begin.Next, begin.HeadOrd,
			&segment.Commit{Record: rec, Entries: o.Tail.Lines[prev:i], Heads: heads[prev:i], Line: raw})
		if err != nil {
			return nil, err
		}
		begin.Next += uint64(len(lines))
		tail = append(tail, lines...)
		begin.HeadOrd, prev = rec.HeadOrd, i+1
	}
	if prev != len(o.Tail.Lines) {
		return nil, fmt.Errorf("%d lines of the tail belong to no commit", len(o.Tail.Lines)-prev)
	}
	return tail, nil
}

// tombstone is all that is kept of a deleted session.
func (st *State) tombstone() *checkpoint.Object {
	o := &checkpoint.Object{HeadOrd: -1, Document: []byte("{}"), CAS: st.CAS, Since: st.Since}
	if st.Source != nil {
		source := *st.Source
		source.Size, source.Changed, source.Resume = 0, time.Time{}, nil
		o.Source = &source
	}
	o.Summary = checkpoint.Summary{
		ID: st.Summary.ID, Updated: st.Summary.Updated, Tombstone: true,
		Reason: ReasonDelete,
	}
	o.Summary.Seq, o.Summary.Epoch, o.Summary.Commit = st.Summary.Seq, st.Summary.Epoch, st.Summary.Commit
	o.Lineage = slices.Clone(st.Lineage)
	for i := range o.Lineage {
		c := &o.Lineage[i]
		c.Writer, c.Key, c.Branch, c.Entry, c.Kept = "", "", "", "", ""
	}
	return o
}

// FromObject makes the state that a checkpoint or a snapshot holds, and with it finds out whether its
// window, its pool and its tail agree. It reads nothing else: on a disk the log may be ahead of it.
func FromObject(o *checkpoint.Object) (*State, error) { return Restore(o, backend.Info{}) }
