package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// link is a segment of the log with the reference that leads to it.
type link struct {
	seg   layout.Segment
	ref   *codec.Ref           // it is sealed
	plain *checkpoint.PlainRef // it is not
}

// place is where the log is between two segments.
type place struct {
	next, seq uint64 // of the line and of the commit that come next
	known     bool   // what follows is known: the segment before was read to its end
	self      uint32 // of the commit line before
	id        string // of that commit
	epoch     uint64
	head      int64  // that the newest line names
	doc       []byte // of the newest line
	session   int64  // the session's head: that of the newest line which keeps no losing turn
	document  []byte // its document
	name      string // of the segment before
}

// leaves returns the references to all sealed segments in order; index objects that cannot be read are
// handed to bad.
func leaves(ctx context.Context, b backend.Backend, id string, m checkpoint.SegmentMap,
	bad func(key string, ref codec.Ref, err error),
) []link {
	var out []link
	var down func(level int, ref codec.Ref)
	down = func(level int, ref codec.Ref) {
		if level == 0 {
			out = append(out, link{seg: segmentOf(ref), ref: &ref})
			return
		}
		key := layout.IndexKey(id, level, segmentOf(ref))
		refs, err := FoldIndex(ctx, b, key, ref)
		if err != nil {
			bad(key, ref, err)
			return
		}
		for _, r := range refs {
			down(level-1, r)
		}
	}
	m.Refs(func(level int, ref codec.Ref) bool {
		down(level, ref)
		return true
	})
	return out
}

func segmentOf(ref codec.Ref) layout.Segment {
	return layout.Segment{First: ref.First, Epoch: ref.Epoch, Rnd: ref.Rnd}
}

// finding is a problem at an offset of an object.
type finding struct {
	kind   Kind
	offset int64
	err    error
	text   string
}

// reading is a segment, or the tail of a checkpoint, as it was read.
type reading struct {
	lines []segment.Line
	torn  []string // objects that its commits name
	end   int      // offset after the last good commit
	open  segment.Opening
	found []finding
	after place
	lost  []uint64 // commits whose state a repair recorded as lost
}

func (r *reading) wrong(kind Kind, offset int, err error, format string, args ...any) {
	r.found = append(r.found, finding{kind, int64(offset), err, fmt.Sprintf(format, args...)})
}

// read reads a whole segment that should go on from at.
func read(raw []byte, id string, seg layout.Segment, at place) *reading {
	r := &reading{after: at}
	o, err := segment.ParseOpening(raw, seg.First == 0)
	r.open, r.end = o, o.Size
	if err != nil {
		r.wrong(Damaged, 0, err, "its first line")
		r.after = place{next: seg.First}
		return r
	}
	p := &o.Prelude
	switch {
	case !o.Of(id, seg): // its lines are not of this place
		r.wrong(Mismatch, 0, nil, "it is the segment of session %q that begins with entry %d of epoch %d", p.Session,
			p.First, p.Epoch)
		r.end, r.after = len(raw), place{next: seg.First}
		return r
	case at.known && p.FirstSeq != at.seq:
		r.wrong(Mismatch, 0, nil, "it begins with commit %d where %d comes next", p.FirstSeq, at.seq)
	case at.known && at.name != "" && !standsIn(at.name, p.PrevName) &&
		(p.PrevSelf != at.self || p.PrevName != at.name):
		r.wrong(Mismatch, 0, nil, "it goes on from other commits than those of %s", at.name)
	}
	if !at.known {
		r.after = place{next: seg.First, seq: p.FirstSeq}
	}
	r.after.name = seg.Name()
	r.end += r.commits(raw[o.Size:], p.Key, o.Self(), o.Size)
	return r
}

// standsIn reports whether the segment before is the stand-in that a repair made for the one that is named, and perhaps
// for earlier ones: the lines that were left, under a later epoch. It has new checksums, which the segment after it
// cannot have.
func standsIn(before, named string) bool {
	b, ok1 := layout.ParseSegment(before)
	n, ok2 := layout.ParseSegment(named)
	return ok1 && ok2 && b.StandsFor(n)
}

// commits reads the commits after the one whose self is given, each with its lines and its document. It returns the
// length of the bytes up to the end of the last good commit.
func (r *reading) commits(data []byte, key uint64, self uint32, base int) int {
	first, at := true, &r.after
	r.after.self = self
	good := segment.Scan(data, key, self, func(c segment.Commit) bool {
		rec := &c.Record
		off := base + c.End - len(c.Line) - 1
		if rec.Seq != at.seq || at.known && rec.Parent != at.id || at.known && rec.Epoch < at.epoch {
			r.wrong(Mismatch, off, nil, "commit %s of seq %d after %s comes where seq %d is due", rec.ID, rec.Seq,
				at.id, at.seq)
		}
		if first && rec.Base == nil {
			r.wrong(Mismatch, off, nil, "commit %s opens a segment and does not say where the session stood", rec.ID)
		}
		if b := rec.Base; b != nil {
			if at.known && b.HeadOrd != at.session || first && b.Self != self {
				r.wrong(Mismatch, off, nil, "commit %s says that the head stood at entry %d", rec.ID, b.HeadOrd)
			}
			at.head, at.session = b.HeadOrd, b.HeadOrd
		}
		first = false
		r.document(rec, off)
		lines, _, err := segment.Place(at.next, at.head, &c)
		if err != nil {
			r.wrong(Damaged, off, err, "the entries of commit %s", rec.ID)
			return false
		}
		if rec.Torn != "" {
			r.torn = append(r.torn, rec.Torn)
		}
		r.lines = append(r.lines, lines...)
		at.next, at.seq, at.known = at.next+uint64(len(lines)), rec.Seq+1, true
		at.self, at.id, at.epoch, at.head = rec.Self, rec.ID, rec.Epoch, rec.HeadOrd
		if !state.Kept(rec) { // a losing turn's line moves nothing
			at.session, at.document = rec.HeadOrd, at.doc
		}
		return true
	})
	return good
}

// document computes the document after a commit, and compares it with its checksum.
func (r *reading) document(rec *checkpoint.Record, off int) {
	at := &r.after
	switch {
	case rec.Doc != nil:
		at.doc = rec.Doc
	case at.doc == nil:
		return // the keyframe before it is lost, which was reported
	case rec.Patch != nil:
		doc, err := checkpoint.ApplyPatch(at.doc, rec.Patch, rec.Sorted)
		if err != nil {
			r.wrong(Damaged, off, err, "the document of commit %s", rec.ID)
			at.doc = nil
			return
		}
		at.doc = doc
	}
	if codec.CRC(at.doc) != rec.DocCRC {
		r.wrong(Damaged, off, codec.ErrChecksum, "the document of commit %s", rec.ID)
		at.doc = nil
		return
	}
	if _, err := checkpoint.DecodeDocument(at.doc); err != nil {
		r.wrong(Damaged, off, err, "the document of commit %s", rec.ID)
	}
	if rec.Commit().StateLost {
		r.lost = append(r.lost, rec.Seq)
	}
}

// checkTail reports what the bytes after the last good commit of an open segment are: a torn write, foreign bytes or
// damage. beyond: a checkpoint or another segment shows that commits were stored in these bytes.
func (r *reading) checkTail(raw []byte, beyond bool) {
	rest := raw[r.end:]
	if len(rest) == 0 {
		return
	}
	if at, found := segment.Promises(rest, r.open.Prelude.Key, int64(r.end)); found {
		r.wrong(Damaged, r.end, codec.ErrChecksum,
			"a commit line at byte %d was written when the bytes before it were durable", r.end+at)
		return
	}
	switch {
	case beyond:
		r.wrong(Damaged, r.end, codec.ErrChecksum, "%d bytes where there were commits", len(rest))
	case wholeLines(rest):
		r.wrong(ForeignBytes, r.end, nil, "%d bytes of whole lines without a commit: "+
			"another program's, or a write that was never acknowledged", len(rest))
	default:
		r.wrong(TornTail, r.end, nil, "%d bytes of a write that was never acknowledged", len(rest))
	}
}

// wholeLines reports whether p consists of complete lines with JSON objects.
func wholeLines(p []byte) bool {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			return false
		}
		if _, err := segment.Entry(0, p[:n]); err != nil {
			return false
		}
		p = p[n+1:]
	}
	return true
}

// damageAt finds the offset of what is wrong in a sealed segment: its first bad frame, or its index.
func damageAt(p []byte) int64 {
	idx, _, err := codec.DecodeSegmentIndex(p, int64(len(p)))
	if err != nil || idx == nil {
		return int64(len(p))
	}
	end := int64(0)
	for i := range idx.Frames() {
		off, n := idx.FrameRange(i)
		if off < 0 || off+n > int64(len(p)) {
			return off
		}
		if _, _, err := idx.DecodeFrame(i, p[off:off+n]); err != nil {
			return off
		}
		end = off + n
	}
	return end
}

// traced are the segments of a session in the order that their preludes give.
type traced struct {
	links   []link
	missing []string // keys that a segment names as the one before it
}

// trace finds the order of the log without a head. It begins with the newest segment that has commits; each segment
// names the one before. If that does not exist, it continues with the newest earlier one.
func trace(ctx context.Context, b backend.Backend, id string, inv *Inventory) (traced, error) {
	var t traced
	all := inv.Segments()
	prev, below := "", ^uint64(0)
	for i := len(all) - 1; i >= 0; i-- {
		seg := all[i]
		if seg.First >= below || prev != "" && has(all[:i+1], prev) && seg.Name() != prev {
			continue
		}
		raw, err := readEither(ctx, b, id, seg)
		if err != nil && !Unreadable(err) {
			return t, fmt.Errorf("read segment %s: %w", seg.Name(), err)
		}
		c, _ := segment.Read(raw, seg)
		if err == nil && c.Commits == 0 && c.End == len(raw) && seg.Name() != prev {
			continue // nothing was ever committed to it
		}
		if end := seg.First + uint64(len(c.Lines)); len(t.links) > 0 && end > below && seg.Name() != prev {
			continue // a dead writer's: what is after it begins within it
		}
		if named, ok := layout.ParseSegment(prev); ok && prev != seg.Name() && !standsIn(seg.Name(), prev) {
			t.missing = append(t.missing, named.SealedKey(id))
		}
		t.links = append(t.links, asLink(inv, seg, &c))
		prev, below = c.Opening.Prelude.PrevName, seg.First
	}
	slices.Reverse(t.links)
	return t, nil
}

func has(all []layout.Segment, name string) bool {
	return slices.ContainsFunc(all, func(s layout.Segment) bool { return s.Name() == name })
}

// asLink refers to a segment as it is found.
func asLink(inv *Inventory, seg layout.Segment, c *segment.Contents) link {
	if _, sealed := inv.Sealed[seg]; sealed {
		return link{seg: seg}
	}
	return link{seg: seg, plain: &checkpoint.PlainRef{
		Name: seg.Name(), First: seg.First, Count: uint64(len(c.Lines)),
		Bytes: int64(c.End),
	}}
}

var errIndex = errors.New("the index needs more bytes than there are")
