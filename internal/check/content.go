package check

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// tail checks the lines in the checkpoint, and whether the log ends at its head.
func (v *verifier) tail(context.Context) error {
	if v.st == nil {
		return nil
	}
	key := layout.CheckpointKey(v.id)
	if o := v.o; !v.disk && len(o.Tail.Lines) > 0 {
		r := &reading{after: v.at}
		if !v.at.known {
			r.after = place{next: o.Tail.First, seq: o.Tail.FirstSeq}
		}
		data := append(bytes.Join(o.Tail.Lines, []byte{'\n'}), '\n')
		self := v.at.self
		if base := firstBase(o); base != nil && !v.at.known {
			self = base.Self
		}
		if good := r.commits(data, o.Key, self, 0); good < len(data) && len(r.found) == 0 {
			r.wrong(Mismatch, 0, codec.ErrChecksum,
				"its tail does not go on from the segments: good for %d of %d bytes", good, len(data))
		}
		v.report(key, r)
		v.take(r.lines)
		v.at = r.after
	}
	if v.at.known && !v.broken {
		v.end(key)
	}
	return nil
}

// firstBase returns the description of the session before a checkpoint's tail, which the first commit of the tail has.
func firstBase(o *checkpoint.Object) *checkpoint.Base {
	for _, line := range o.Tail.Lines {
		if rec, ok, err := checkpoint.ParseRecord(line, o.Key); ok && err == nil {
			return rec.Base
		}
	}
	return nil
}

// end compares the end of the log with the head.
func (v *verifier) end(key string) {
	st, at := v.st, v.at
	if at.id != st.Summary.Commit || at.next != st.Next || at.session != st.HeadOrd || at.seq != st.Summary.Seq+1 {
		v.note(Mismatch, key, 0, nil, "the head is commit %s of seq %d, the log ends with %s of seq %d",
			st.Summary.Commit, st.Summary.Seq, at.id, int64(at.seq)-1)
	} else if at.document != nil && !bytes.Equal(at.document, st.DocJSON) {
		v.note(Mismatch, key, 0, nil, "the document of the head is not that of its commit %s", at.id)
	}
	if st.Next != st.Summary.Entries+st.Summary.Seq+1 {
		v.note(Mismatch, key, 0, nil, "%d entries and %d commits are said to be there, and %d lines are",
			st.Summary.Entries, st.Summary.Seq+1, st.Next)
	}
}

// snapshots checks each snapshot: shallow its summary, deep all of it.
func (v *verifier) snapshots(ctx context.Context) error {
	for _, info := range v.inv.Snapshots {
		rng := backend.Range{}
		if !v.deep {
			rng = backend.Bytes(0, min(info.Size, 4<<10))
		}
		p, _, err := v.get(ctx, info.Key, rng)
		if err != nil {
			return err
		}
		if p == nil {
			continue // pruned meanwhile
		}
		var sum checkpoint.Summary
		o := &checkpoint.Object{}
		if v.deep {
			if o, err = checkpoint.DecodeObject(p); err == nil {
				sum = o.Summary
			}
		} else {
			sum, err = checkpoint.DecodeSummary(p)
		}
		switch {
		case err != nil:
			v.note(Damaged, info.Key, 0, err, "the snapshot cannot be read")
		case !v.isSnapshot(info.Key, &sum):
			v.note(Mismatch, info.Key, 0, nil, "it is snapshot %s of session %q", sum.Snapshot, sum.ID)
		default:
			v.newer(&sum)
			if v.deep {
				v.snapshot(info.Key, o)
			}
		}
	}
	return nil
}

// isSnapshot reports whether a summary is of the snapshot that a key names.
func (v *verifier) isSnapshot(key string, sum *checkpoint.Summary) bool {
	return sum.ID == v.id && layout.SessionPrefix(v.id)+layout.Snapshots+sum.Snapshot == key
}

// newer compares the head with a snapshot. Snapshots are taken of acknowledged commits, so one that is newer than the
// head proves that commits are lost.
func (v *verifier) newer(sum *checkpoint.Summary) {
	if v.st == nil || sum.Seq <= v.st.Summary.Seq || v.stale {
		return
	}
	v.stale = true
	key := layout.CheckpointKey(v.id)
	if v.disk && len(v.st.Plain) > 0 {
		key = plainKey(v.id, v.st.Plain[len(v.st.Plain)-1].Name)
	}
	v.note(Missing, key, 0, nil, "the session ends with commit %d, and snapshot %s is of commit %d", v.st.Summary.Seq,
		sum.Snapshot, sum.Seq)
}

func (v *verifier) snapshot(key string, o *checkpoint.Object) {
	if _, err := state.FromObject(o); err != nil {
		v.note(Mismatch, key, 0, err, "its parts do not agree")
		return
	}
	v.wishFor(key, "its head", o.Summary.Entry, o.HeadOrd)
	for _, ord := range o.Window.Ords {
		v.wishForLine(key, "its working window", ord, o.Pool[ord])
	}
}

// content checks the objects that are stored under their hash, images and imported files, and that all objects exist to
// which the transcript refers.
func (v *verifier) content(ctx context.Context) error {
	if v.st != nil && v.st.Original != "" {
		_, one := v.inv.Originals[v.st.Original]
		if _, list := v.inv.Lists[v.st.Original]; !one && !list {
			key := layout.OriginalKey(v.id, v.since, v.st.Original)
			if len(v.inv.Originals) > 0 { // parts without a list
				key = layout.OriginalListKey(v.id, v.since, v.st.Original)
			}
			sum := v.st.Original
			whole, list := layout.OriginalKey(v.id, v.since, sum), layout.OriginalListKey(v.id, v.since, sum)
			if !v.recorded(whole) && !v.recorded(list) {
				v.note(Missing, key, 0, errGone, "the bytes that were imported")
			}
		}
	}
	for _, name := range sorted(v.aside) {
		if _, ok := v.inv.Torn[name]; !ok && !v.recorded(layout.SessionPrefix(v.id)+name) {
			v.note(Missing, layout.SessionPrefix(v.id)+name, 0, errGone, "bytes that were moved aside")
		}
	}
	for _, sum := range sorted(v.blobs) {
		if _, ok := v.inv.Blobs[sum]; !ok && !v.recorded(layout.BlobKey(v.id, v.since, sum)) {
			v.note(Missing, layout.BlobKey(v.id, v.since, sum), 0, errGone, "an image that an entry shows")
		}
	}
	if err := v.originals(ctx); err != nil || !v.deep {
		return err
	}
	for _, sum := range sorted(v.inv.Blobs) {
		key := layout.BlobKey(v.id, v.since, sum)
		p, _, err := v.get(ctx, key, backend.Range{})
		if err != nil {
			return err
		}
		if p != nil && !hashes(p, sum) {
			v.note(Damaged, key, 0, codec.ErrChecksum, "the image is not what its name says")
		}
	}
	return nil
}

func hashes(p []byte, sum string) bool {
	h := sha256.Sum256(p)
	return hex.EncodeToString(h[:]) == sum
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// places reports the claims about entries that remain after the log was read: there are no such entries.
func (v *verifier) places() {
	if v.broken {
		return
	}
	for _, ord := range sorted(v.wishes) {
		for _, w := range v.wishes[ord] {
			v.note(Mismatch, w.object, 0, nil, "%s: entry %d, %s, does not exist", w.what, ord, w.id)
		}
	}
}

// diagnostics reports entries without a parent and cycles in the tree.
func (v *verifier) diagnostics() {
	if v.tree == nil || v.st == nil {
		return
	}
	var branches []transcript.Branch
	for _, b := range v.st.Branches {
		branches = append(branches, transcript.Branch{Name: b.Name, Head: b.Head})
	}
	const most = 100
	list := v.tree.Tree(v.st.Summary.Entry, branches, nil).Diagnostics()
	for i, d := range list {
		if i == most {
			v.note(Tree, layout.SessionPrefix(v.id)+layout.Transcript, 0, nil, "%d more findings in the tree",
				len(list)-most)
			return
		}
		v.note(Tree, layout.SessionPrefix(v.id)+layout.Transcript, 0, nil, "%s",
			fmt.Sprintf("entry %s (%d): %s: %s", d.Entry, d.Ordinal, d.Kind, d.Detail))
	}
}
