package erase

import (
	"context"
	"fmt"
	"slices"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// segmentCopy is a segment that was written again.
type segmentCopy struct {
	seg      layout.Segment
	ref      codec.Ref
	self     uint32 // of its last commit line
	skeleton []byte
	header   []byte // of the session's first segment
}

// log writes again what has to be written again of the log, and returns the state that refers to it. Ordinals, ids,
// seqs, times and documents stay; what is written has checksums of its own, like segments that a repair wrote.
func (e *eraser) log(ctx context.Context, st *state.State) (*state.State, error) {
	next := *st
	next.Amended = st.Next
	var last *segmentCopy // of the segment before; nil = it stays
	levels := make([][]codec.Ref, len(st.Segments.Levels))
	for level := len(levels) - 1; level >= 0; level-- {
		for _, ref := range st.Segments.Levels[level] {
			m, err := e.reference(ctx, level, ref, &last)
			if err != nil {
				return nil, err
			}
			levels[level] = append(levels[level], m.ref)
		}
	}
	next.Segments = checkpoint.SegmentMap{Levels: levels}
	if len(st.Plain) == 0 {
		if err := e.tail(&next, last); err != nil {
			return nil, err
		}
	}
	return &next, e.head(&next)
}

// reference returns what takes the place of a reference: itself, if nothing below it changes.
func (e *eraser) reference(
	ctx context.Context, level int, ref codec.Ref, last **segmentCopy,
) (m *segmentCopy, err error) {
	name := segmentOf(ref).Name()
	if level == 0 {
		if !e.found.touches(e.facts[name]) {
			*last = nil
			return &segmentCopy{ref: ref}, nil
		}
		if m = e.made[name]; m == nil {
			if m, err = e.segment(ctx, ref, *last); err != nil {
				return nil, err
			}
			e.made[name] = m
		}
		*last = m
		return m, nil
	}
	refs, skeletons, err := e.fold(ctx, level, ref)
	if err != nil {
		return nil, err
	}
	changed := false
	for i := range refs {
		below, err := e.reference(ctx, level-1, refs[i], last)
		if err != nil {
			return nil, err
		}
		if below.seg.Rnd == "" {
			continue
		}
		changed, refs[i] = true, below.ref
		if len(skeletons) > 0 {
			skeletons[i] = below.skeleton
		}
	}
	if !changed {
		return &segmentCopy{ref: ref}, nil
	}
	key := fmt.Sprintf("%d/%s", level, name)
	if m := e.made[key]; m != nil {
		return m, nil
	}
	if m, err = e.index(ctx, level, ref, refs, skeletons); err == nil {
		e.made[key] = m
	}
	return m, err
}

// index writes an index object again.
func (e *eraser) index(
	ctx context.Context, level int, was codec.Ref, refs []codec.Ref, skeletons [][]byte,
) (*segmentCopy, error) {
	p, err := codec.EncodeIndex(refs, skeletons)
	if err != nil {
		return nil, err
	}
	ref := was
	ref.Epoch, ref.RawBytes = e.epoch, 0
	for _, r := range refs {
		ref.RawBytes += r.RawBytes
	}
	if ref.Rnd, err = e.store.Random(); err != nil {
		return nil, err
	}
	ref.Seal(p)
	key := layout.IndexKey(e.cfg.Session, level, segmentOf(ref))
	if err := e.store.Create(ctx, key, p); err != nil {
		return nil, err
	}
	e.wrote(key, len(p))
	e.own = append(e.own, key)
	return &segmentCopy{seg: segmentOf(ref), ref: ref}, nil
}

// segment writes a sealed segment again, after the one before if that was.
func (e *eraser) segment(ctx context.Context, was codec.Ref, last *segmentCopy) (*segmentCopy, error) {
	c, err := e.contents(ctx, was)
	if err != nil {
		return nil, err
	}
	m := &segmentCopy{seg: layout.Segment{First: was.First, Epoch: e.epoch}}
	if m.seg.Rnd, err = e.store.Random(); err != nil {
		return nil, err
	}
	pre := c.Opening.Prelude
	pre.Epoch = e.epoch
	if last != nil {
		pre.PrevName, pre.PrevBytes, pre.PrevSelf = last.seg.Name(), last.ref.RawBytes, last.self
	}
	line, err := pre.Line()
	if err != nil {
		return nil, err
	}
	prelude, self := [][]byte{line}, pre.PrevSelf
	if c.Opening.Header != nil {
		m.header = e.header(c.Opening.Header)
		prelude, self = [][]byte{m.header, line}, segment.GenesisSelf(m.header)
	}
	lines, self, err := e.rewritten(c.Lines, c.Raw[c.Opening.Size:], pre.Key, c.Opening.Self(), self)
	if err != nil {
		return nil, err
	}
	m.self = self
	out := segment.Contents{Opening: segment.Opening{Lines: prelude}, Lines: lines, Raw: joined(prelude)}
	for _, l := range lines {
		out.Raw = append(append(out.Raw, l.Raw...), '\n')
	}
	s, err := out.Seal(m.seg, was.FirstSeq)
	if err != nil {
		return nil, err
	}
	idx, _, err := codec.DecodeSegmentIndex(s.Bytes, int64(len(s.Bytes)))
	if err != nil {
		return nil, err
	}
	m.ref, m.skeleton = s.Ref, slices.Clone(idx.SkeletonBytes())
	if _, err := e.past.StoreSealed(ctx, m.seg, s); err != nil {
		return nil, err
	}
	e.wrote(m.seg.SealedKey(e.cfg.Session), len(s.Bytes))
	e.own = append(e.own, m.seg.SealedKey(e.cfg.Session))
	return m, nil
}

// rewritten returns the lines of commits without what goes. raw are their bytes, which follow a commit line whose self
// is was, and now follow one whose self is self; it returns the self of the last one.
func (e *eraser) rewritten(
	all []segment.Line, raw []byte, key uint64, was, self uint32,
) (out []segment.Line, now uint32, err error) {
	out = slices.Clone(all)
	at, d := 0, documents{}
	good := segment.Scan(raw, key, was, func(c segment.Commit) bool {
		rec, since := c.Record, []byte(nil)
		for range c.Entries {
			l := &out[at]
			if gone, ok := e.found.erased[l.Ord]; ok {
				l.Raw, rec.Digest = gone.stub, "" // which a guess at the content could be held against
			} else {
				l.Raw = e.title(l.Raw)
			}
			since = append(append(since, l.Raw...), '\n')
			at++
		}
		if e.found.documents {
			if err = e.inside(&d, &rec); err != nil {
				return false
			}
		}
		e.commit(&rec, self)
		var line []byte
		if line, self, err = rec.AppendLine(nil, key, self, since); err != nil {
			return false
		}
		out[at].Raw = line
		at++
		return true
	})
	if err == nil && (good < len(raw) || at != len(all)) {
		err = fmt.Errorf("%d of %d bytes, %d of %d lines were read again: %w", good, len(raw), at, len(all),
			codec.ErrChecksum)
	}
	return out, self, err
}

// commit takes what quotes an entry that goes out of a commit line, which follows one with a self.
func (e *eraser) commit(rec *checkpoint.Record, self uint32) {
	if o := rec.Outline; o != nil {
		rec.Outline = &checkpoint.Outline{Preview: e.found.clean(o.Preview), Status: o.Status}
	}
	if rec.Source = e.source(rec.Source); rec.Base == nil {
		return
	}
	b := *rec.Base
	b.Source = e.source(b.Source)
	b.Self, b.Title, b.First = self, e.found.clean(b.Title), e.found.clean(b.First)
	b.Outline.Preview = e.found.clean(b.Outline.Preview)
	rec.Base = &b
}

// title takes the words of an entry that goes out of a line that sets the title of the session.
func (e *eraser) title(raw []byte) []byte {
	head, err := transcript.ParseLine(raw)
	if err != nil {
		return raw
	}
	title, ok := head.Entry(0).Title()
	if !ok || !e.found.quotes(title) {
		return raw
	}
	field := "name"
	if head.Type == "title_change" {
		field = "title"
	}
	return rawjson.WithField(raw, field, rawjson.AppendString(nil, transcript.ErasedText))
}

// header is the session's header line without a title that quotes what goes.
func (e *eraser) header(line []byte) []byte {
	if !e.found.quotes(rawjson.Text(rawjson.Field(line, "title"))) {
		return line
	}
	return rawjson.WithField(line, "title", rawjson.AppendString(nil, transcript.ErasedText))
}

// tail writes the lines again that ride in the checkpoint. They follow the segment before, if that was written
// again.
func (e *eraser) tail(st *state.State, last *segmentCopy) error {
	if len(st.Tail) == 0 {
		if last != nil {
			st.Self = last.self
		}
		return nil
	}
	was := uint32(0)
	for _, l := range st.Tail {
		if rec, ok, err := checkpoint.ParseRecord(l.Raw, st.Key); ok && err == nil && rec.Base != nil {
			was = rec.Base.Self
			break
		}
	}
	self := was
	if last != nil {
		self = last.self
	} else if st.Tail[0].Ord == 0 {
		self = segment.GenesisSelf(e.header(st.Header))
	}
	raws := make([][]byte, len(st.Tail))
	for i, l := range st.Tail {
		raws[i] = l.Raw
	}
	lines, self, err := e.rewritten(st.Tail, joined(raws), st.Key, was, self)
	if err != nil {
		return err
	}
	st.Tail, st.Self, st.TailBytes = lines, self, 0
	for _, l := range lines {
		st.TailBytes += int64(len(l.Raw)) + 1
	}
	st.LastLine = int64(len(lines[len(lines)-1].Raw)) + 1
	return nil
}

// head takes what goes out of the rest of a state: window, summary, header, small images.
func (e *eraser) head(st *state.State) error {
	body, err := st.Object(false).Encode()
	if err != nil {
		return err
	}
	o, err := checkpoint.DecodeObject(body)
	if err != nil {
		return err
	}
	e.object(o)
	o.Tail = checkpoint.TailState{}
	is, err := state.FromObject(o)
	if err != nil {
		return err
	}
	st.Window, st.Blobs, st.Header = is.Window, is.Blobs, o.Header
	st.Doc, st.DocJSON, st.Source = is.Doc, is.DocJSON, o.Source
	s := &st.Summary
	s.Title, s.Preview, s.First = o.Summary.Title, o.Summary.Preview, o.Summary.First
	return nil
}
