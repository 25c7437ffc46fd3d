package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// segments checks the segments of the log from the first one on.
func (v *verifier) segments(ctx context.Context) error {
	if err := v.links(ctx); err != nil {
		return err
	}
	for i := range v.chain {
		l := &v.chain[i]
		if l.seg.First != v.at.next {
			if !v.broken {
				v.note(Missing, layout.SessionPrefix(v.id)+layout.Transcript, 0, nil,
					"entries %d to %d are in no segment", v.at.next, int64(l.seg.First)-1)
			}
			v.gap(l.seg.First)
		}
		var err error
		if l.plain != nil {
			err = v.plainSegment(ctx, l, i == len(v.chain)-1)
		} else {
			err = v.sealedSegment(ctx, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// gap lets the check continue after bytes that cannot be read.
func (v *verifier) gap(next uint64) {
	v.at, v.broken, v.tree = place{next: next}, true, nil
}

// links returns the segments of the log in order: those to which the newest state refers, or without a state those that
// trace finds.
func (v *verifier) links(ctx context.Context) error {
	if v.st == nil {
		t, err := trace(ctx, v.b, v.id, v.inv)
		v.chain, v.broken = t.links, true
		for _, m := range t.missing {
			v.note(Missing, m, 0, errGone, "a segment goes on from it")
		}
		return err
	}
	v.chain = leaves(ctx, v.b, v.id, v.st.Segments, func(key string, ref codec.Ref, err error) {
		kind := Damaged
		if errors.Is(err, fs.ErrNotExist) {
			kind = Missing
		}
		v.note(kind, key, 0, err, "the index object of entries %d to %d", ref.First, ref.First+uint64(ref.Count)-1)
	})
	for i := range v.st.Plain {
		ref := &v.st.Plain[i]
		seg, _ := layout.ParseSegment(ref.Name)
		v.chain = append(v.chain, link{seg: seg, plain: ref})
	}
	return nil
}

// report adds the findings of an object to the report.
func (v *verifier) report(key string, r *reading) {
	for _, f := range r.found {
		v.note(f.kind, key, f.offset, f.err, "%s", f.text)
	}
	for _, name := range r.torn {
		v.aside[name] = true
	}
	for _, seq := range r.lost {
		v.stateless = extended(v.stateless, seq)
	}
}

// plainSegment checks a segment that is not sealed.
func (v *verifier) plainSegment(ctx context.Context, l *link, last bool) error {
	key := l.seg.PlainKey(v.id)
	raw, _, err := v.get(ctx, key, backend.Range{})
	if err != nil {
		return err
	}
	end := l.seg.First + l.plain.Count
	if raw == nil { // a state that was built from the log names its first segment like that
		sealed, err := v.sealedForm(ctx, l)
		if sealed && last && !v.goesOn(l.seg.First) { // a repair ended here
			v.note(Missing, key, 0, errGone, "the log has no active segment: it ends with this one, which is sealed")
		}
		if err != nil || sealed {
			return err
		}
	}
	if raw == nil {
		v.note(Missing, key, 0, errGone, "the segment of entries %d to %d", l.seg.First, int64(end)-1)
		v.gap(end)
		return nil
	}
	r := read(raw, v.id, l.seg, v.at)
	switch {
	case int64(len(raw)) < l.plain.Bytes:
		r.wrong(Damaged, len(raw), codec.ErrFormat, "it is cut off: it had %d committed bytes", l.plain.Bytes)
	case int64(r.end) < l.plain.Bytes && len(r.found) == 0:
		r.wrong(Damaged, r.end, codec.ErrChecksum, "the commits end here, and were %d bytes", l.plain.Bytes)
	case int64(r.end) >= l.plain.Bytes:
		r.checkTail(raw, last && v.o != nil && v.o.Summary.Seq >= r.after.seq)
	}
	v.report(key, r)
	v.take(r.lines)
	if v.at = r.after; v.at.next < end {
		v.gap(end)
	}
	return nil
}

// goesOn reports whether any segment begins after ordinal first.
func (v *verifier) goesOn(first uint64) bool {
	return slices.ContainsFunc(v.inv.Segments(), func(s layout.Segment) bool { return s.First > first })
}

// sealedForm checks the sealed form of a segment that should be plain; false if there is none.
func (v *verifier) sealedForm(ctx context.Context, l *link) (bool, error) {
	if _, there := v.inv.Sealed[l.seg]; !there {
		return false, nil
	}
	return true, v.foundSegment(ctx, l)
}

// sealedSegment checks a sealed segment: shallow its length and its index, deep all of it.
func (v *verifier) sealedSegment(ctx context.Context, l *link) error {
	if l.ref == nil {
		return v.foundSegment(ctx, l)
	}
	key, ref := l.seg.SealedKey(v.id), l.ref
	end := ref.First + uint64(ref.Count)
	rng := backend.Range{}
	if !v.deep {
		rng = backend.Tail(indexGuess)
	}
	p, info, err := v.get(ctx, key, rng)
	if err != nil {
		return err
	}
	if p == nil {
		v.note(Missing, key, 0, errGone, "the segment of entries %d to %d", ref.First, int64(end)-1)
		v.gap(end)
		return nil
	}
	if info.Size != ref.Bytes {
		v.note(Damaged, key, min(info.Size, ref.Bytes), codec.ErrFormat, "it has %d bytes instead of %d", info.Size,
			ref.Bytes)
		v.gap(end)
		return nil
	}
	if v.deep {
		v.sealedWhole(key, l, p)
	} else if err := v.sealedIndex(ctx, key, l, p, info); err != nil {
		return err
	}
	if v.at.next != end {
		v.gap(end)
	}
	return nil
}

// foundSegment checks a sealed segment to which no reference is known.
func (v *verifier) foundSegment(ctx context.Context, l *link) error {
	key := l.seg.SealedKey(v.id)
	p, _, err := v.get(ctx, key, backend.Range{})
	if err != nil || p == nil {
		return err
	}
	raw, _, err := codec.DecodeSegment(p, MaxRaw)
	if err != nil {
		v.note(Damaged, key, damageAt(p), err, "it cannot be read")
		v.gap(l.seg.First)
		return nil
	}
	r := read(raw, v.id, l.seg, v.at)
	if r.end < len(raw) && len(r.found) == 0 {
		r.wrong(Damaged, r.end, codec.ErrChecksum, "the commits of its lines end at byte %d of %d", r.end, len(raw))
	}
	v.report(key, r)
	v.take(r.lines)
	v.at = r.after
	return nil
}

// indexGuess is the first suffix read of a sealed segment.
const indexGuess = 32 << 10

// sealedIndex checks the index at the end of a sealed segment.
func (v *verifier) sealedIndex(ctx context.Context, key string, l *link, p []byte, info backend.Info) error {
	idx, need, err := codec.DecodeSegmentIndex(p, info.Size)
	if err == nil && need > 0 {
		if p, info, err = v.get(ctx, key, backend.Tail(need)); err != nil {
			return err
		}
		if idx, need, err = codec.DecodeSegmentIndex(p, info.Size); err == nil && need > 0 {
			err = errIndex
		}
	}
	if err != nil {
		v.note(Damaged, key, info.Size, err, "its index")
		return nil
	}
	sk, ok := v.index(key, l, idx)
	if !ok {
		return nil
	}
	if v.at.known && idx.FirstSeq != v.at.seq {
		v.note(Mismatch, key, 0, nil, "it begins with commit %d where %d comes next", idx.FirstSeq, v.at.seq)
	}
	v.takeSkeleton(sk)
	v.at = place{next: v.at.next + uint64(idx.Count)}
	return nil
}

// index compares a segment's index with the reference to it.
func (v *verifier) index(key string, l *link, idx *codec.SegmentIndex) (*codec.Skeleton, bool) {
	ref := l.ref
	if idx.First != ref.First || uint32(idx.Count) != ref.Count || idx.FirstSeq != ref.FirstSeq ||
		idx.RawBytes != ref.RawBytes {
		v.note(Mismatch, key, 0, nil, "it holds entries %d+%d from commit %d instead of %d+%d from %d", idx.First,
			idx.Count, idx.FirstSeq, ref.First, ref.Count, ref.FirstSeq)
		return nil, false
	}
	sk, err := idx.Skeleton()
	if err == nil {
		err = sk.Verify()
	}
	if err != nil {
		v.note(Damaged, key, idx.Bytes, err, "its skeleton")
		return nil, false
	}
	return sk, true
}

// sealedWhole checks every byte of a sealed segment.
func (v *verifier) sealedWhole(key string, l *link, p []byte) {
	if err := l.ref.Verify(p); err != nil {
		v.note(Damaged, key, damageAt(p), err, "it is not the object that was sealed")
		return
	}
	raw, idx, err := codec.DecodeSegment(p, MaxRaw)
	if err != nil {
		v.note(Damaged, key, damageAt(p), err, "it cannot be read")
		return
	}
	sk, ok := v.index(key, l, idx)
	r := read(raw, v.id, l.seg, v.at)
	if r.end < len(raw) && len(r.found) == 0 {
		r.wrong(Damaged, r.end, codec.ErrChecksum, "the commits of its lines end at byte %d of %d", r.end, len(raw))
	}
	if ok && len(r.found) == 0 {
		r.compare(sk)
	}
	v.report(key, r)
	v.take(r.lines)
	v.at = r.after
}

// compare compares a skeleton with the lines from which it was made.
func (r *reading) compare(sk *codec.Skeleton) {
	if sk.Len() != len(r.lines) {
		r.wrong(Mismatch, r.end, nil, "its skeleton has %d rows for %d lines", sk.Len(), len(r.lines))
		return
	}
	for i, l := range r.lines {
		if sk.Parent(i) != l.Parent || int(sk.Size(i)) != len(l.Raw) ||
			(sk.Flags(i)&codec.FlagCommit != 0) != l.Commit {
			r.wrong(Mismatch, r.end, nil, "row %d of its skeleton does not fit its line", i)
			return
		}
	}
}

// take adds lines to the tree, in order, records the images to which they refer, and compares them with the claims of
// other objects about them.
func (v *verifier) take(lines []segment.Line) {
	if len(lines) == 0 {
		return
	}
	sk, err := segment.Skeleton(lines)
	if err != nil {
		v.tree = nil
		return
	}
	v.takeSkeleton(sk)
	if !v.deep {
		return
	}
	for _, l := range lines {
		for _, ref := range blob.Refs(l.Raw) {
			v.blobs[ref.Sum] = true
		}
	}
}

func (v *verifier) takeSkeleton(sk *codec.Skeleton) {
	if len(v.wishes) > 0 {
		for i := range sk.Len() {
			if ord := sk.First() + uint64(i); v.wishes[ord] != nil {
				v.seen(ord, sk.ID(i))
			}
		}
	}
	for i := range sk.Len() {
		v.lostRow(sk, i)
	}
	if v.deep {
		v.heldIDs(sk)
	}
	if v.tree != nil && v.tree.AddSkeleton(sk) != nil {
		v.tree = nil
	}
}

// strays checks, on a disk, the segments that are not part of the log.
func (v *verifier) strays(ctx context.Context) error {
	if !v.disk {
		return nil
	}
	in := map[layout.Segment]bool{}
	stands := make(Chain, 0, len(v.chain))
	for _, l := range v.chain {
		in[l.seg] = true
		stands = append(stands, l.seg)
	}
	for _, seg := range v.inv.Segments() {
		if in[seg] {
			continue
		}
		raw, key, err := ReadSegment(ctx, v.b, v.id, seg)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil && !Unreadable(err):
			return fmt.Errorf("verify session %s: %w", v.id, err)
		}
		c, _ := segment.Read(raw, seg)
		switch {
		case len(v.inv.Erasures) > 0 && stands.copied(seg):
			v.note(Leftover, key, 0, nil, "an erasure that is not complete wrote it")
		case stands.Replaced(seg):
			v.note(Leftover, key, 0, nil, "another segment stands in its place; a collection removes it")
		case err != nil:
			v.note(Damaged, key, 0, err, "a segment that the log does not lead to")
		case c.Commits > 0:
			v.note(Mismatch, key, 0, nil, "it holds %d commits to which the log does not lead", c.Commits)
		}
	}
	return nil
}
