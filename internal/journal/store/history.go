package store

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sort"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// CommitState is the state of a session after one commit.
type CommitState struct {
	Commit checkpoint.Commit
	Ord    uint64 // ordinal of the commit's line
	Doc    checkpoint.Document
	DocRaw []byte
}

// Batch is a commit and the lines that it made durable, its own last.
type Batch struct {
	Commit        checkpoint.Commit
	Lines         []state.Line
	Before, After *Past // the session's document before and after the commit; the same if it does not change it
}

// stretchOf is a stretch of the log that is stored together: the commits of a segment, or of the tail in memory.
type stretchOf struct {
	key     uint64
	self    uint32
	first   uint64 // ordinal of the first line
	headOrd int64
	raw     []byte
	object  string
}

// commitsAt returns the stretch of the log that contains commit seq.
func (h *History) commitsAt(ctx context.Context, st *state.State, seq uint64) (stretchOf, error) {
	return inNewest(ctx, h, st, func(st *state.State) (stretchOf, error) { return h.locate(ctx, st, seq) })
}

// inNewest runs find on a state. If a segment of that state was collected or sealed meanwhile, so that its object is
// gone, it runs find once more on the newest state.
func inNewest[T any](
	ctx context.Context, h *History, st *state.State, find func(st *state.State) (T, error),
) (found T, err error) {
	if found, err = find(st); gone(err) {
		if st, err = h.latest(ctx); err == nil {
			found, err = find(st)
			err = lost(err)
		}
	}
	return found, err
}

func (h *History) locate(ctx context.Context, st *state.State, seq uint64) (stretchOf, error) {
	if s, ok, err := h.unsealed(ctx, st, seq); ok || err != nil {
		return s, err
	}
	ref, err := h.sealedWith(ctx, st, seq)
	if err != nil {
		return stretchOf{}, err
	}
	r, err := h.sealedRaw(ctx, ref)
	if err != nil {
		return stretchOf{}, err
	}
	return r.stretch(r.seg.SealedKey(h.store.Session)), nil
}

// unsealed returns the stretch that contains commit seq if it is the tail or a plain segment; ok = false if it is not.
func (h *History) unsealed(ctx context.Context, st *state.State, seq uint64) (s stretchOf, ok bool, err error) {
	if len(st.Plain) == 0 && len(st.Tail) > 0 && seq >= st.TailSeq() {
		s, err = tailStretch(st)
		return s, true, err
	}
	for i := len(st.Plain) - 1; i >= 0; i-- {
		if p := &st.Plain[i]; seq >= p.FirstSeq && p.Count > 0 {
			r, err := h.plainRaw(ctx, p)
			if err != nil {
				return s, true, err
			}
			return r.stretch(r.seg.PlainKey(h.store.Session)), true, nil
		}
	}
	return s, false, nil
}

// sealedWith returns the reference to the sealed segment that contains commit seq.
func (h *History) sealedWith(ctx context.Context, st *state.State, seq uint64) (codec.Ref, error) {
	level, ref, ok := st.Segments.FindSeq(seq)
	if !ok {
		return ref, fmt.Errorf("commit %d: no segment contains it: %w", seq, codec.ErrFormat)
	}
	return h.descend(ctx, level, ref, func(refs []codec.Ref) int {
		return sort.Search(len(refs), func(i int) bool { return refs[i].FirstSeq > seq }) - 1
	})
}

func (r *rawSegment) stretch(object string) stretchOf {
	return stretchOf{
		key: r.open.Prelude.Key, self: r.open.Self(), first: r.seg.First, raw: r.raw[r.open.Size:], object: object,
	}
}

// tailStretch returns the tail of a state: the newest lines, which the checkpoint contains.
func tailStretch(st *state.State) (stretchOf, error) {
	s := stretchOf{key: st.Key, first: st.Tail[0].Ord, object: layout.CheckpointKey(st.Summary.ID)}
	rec, ok, err := firstRecord(st.Tail, st.Key)
	if err != nil || !ok || rec.Base == nil {
		return s, Corrupt(s.object, 0, fmt.Errorf("the first commit of the tail: %w", codec.ErrFormat))
	}
	s.self, s.headOrd = rec.Base.Self, rec.Base.HeadOrd
	s.raw = make([]byte, 0, st.TailBytes)
	for _, l := range st.Tail {
		s.raw = append(append(s.raw, l.Raw...), '\n')
	}
	return s, nil
}

// each calls visit with the commits of the stretch, oldest first and without their documents, until it returns false.
func (s stretchOf) each(visit func(rec *checkpoint.Record, m CommitState, lines []state.Line) bool) error {
	next, head := s.first, int64(-1)
	var err error
	stopped := false
	good := segment.Scan(s.raw, s.key, s.self, func(c segment.Commit) bool {
		if c.Record.Base != nil {
			head = c.Record.Base.HeadOrd
		}
		var lines []state.Line
		if lines, _, err = segment.Place(next, head, &c); err != nil {
			return false
		}
		next += uint64(len(lines))
		head = c.Record.HeadOrd
		stopped = !visit(&c.Record, CommitState{Commit: c.Record.Commit(), Ord: next - 1}, lines)
		return !stopped
	})
	if err == nil && !stopped && good < len(s.raw) {
		err = fmt.Errorf("%d bytes after the last commit: %w", len(s.raw)-good, codec.ErrChecksum)
	}
	if err != nil {
		return Corrupt(s.object, int64(good), err)
	}
	return nil
}

// lacks returns the error for a segment that should contain commit seq and does not.
func (s stretchOf) lacks(seq uint64) error {
	return Corrupt(s.object, 0,
		fmt.Errorf("commit %d is missing from the segment that should contain it: %w", seq, codec.ErrFormat))
}

// At returns the state of the session after commit seq. It reads one segment, for the newest commit nothing.
func (h *History) At(ctx context.Context, st *state.State, seq uint64) (CommitState, error) {
	if seq == st.Summary.Seq && st.Summary.Commit != "" && !st.AfterKept {
		return CommitState{Commit: st.Newest(), Ord: st.Next - 1, Doc: st.Doc, DocRaw: st.DocJSON}, nil
	}
	return h.moment(ctx, st, seq, func(m CommitState) bool { return m.Commit.Seq == seq })
}

// moment finds a commit in the place that holds seq.
func (h *History) moment(
	ctx context.Context, st *state.State, seq uint64, is func(CommitState) bool,
) (CommitState, error) {
	var found CommitState
	if st.Summary.Commit == "" || seq > st.Summary.Seq {
		return found, fmt.Errorf("commit %d of %d: %w", seq, st.Summary.Seq, ErrNoCommit)
	}
	s, err := h.commitsAt(ctx, st, seq)
	if err != nil {
		return found, err
	}
	ok := false
	var made []checkpoint.Record // the last commit with a whole document, and those with changes of it since
	err = s.each(func(rec *checkpoint.Record, m CommitState, _ []state.Line) bool {
		if rec.Doc != nil {
			made = made[:0]
		}
		made = append(made, *rec)
		if ok = is(m); ok {
			found = m
		}
		return !ok
	})
	switch {
	case err != nil:
	case !ok:
		err = s.lacks(seq)
	default:
		if err = found.document(made); err != nil {
			err = Corrupt(s.object, 0, err)
		}
	}
	return found, err
}

// document computes the document of a moment.
func (m *CommitState) document(made []checkpoint.Record) (err error) {
	if m.DocRaw, err = documentAfter(nil, made); err != nil {
		return err
	}
	m.Doc, err = checkpoint.DecodeDocument(m.DocRaw)
	return err
}

// documentAfter returns the document after some commits. Applying a patch takes time in proportion to the length of the
// document, so as many patches as possible are joined and applied at once. The checksum verifies the result; if it is
// wrong, the patches are applied one by one.
func documentAfter(doc []byte, made []checkpoint.Record) (_ []byte, err error) {
	for i := 0; i < len(made); {
		end, texts := i, [][]byte(nil)
		for ; end < len(made) && made[end].Doc == nil && !made[end].Sorted; end++ {
			texts = append(texts, made[end].Patch)
		}
		if end-i > 1 {
			raw, err := checkpoint.ApplyPatch(doc, joined(texts), false)
			if err == nil && codec.CRC(raw) == made[end-1].DocCRC {
				doc, i = raw, end
				continue
			}
		}
		if doc, err = state.DocumentAfter(doc, &made[i]); err != nil {
			return nil, err
		}
		i++
	}
	return doc, nil
}

// joined makes one patch of some that are applied one after the other, none of them sorted.
func joined(texts [][]byte) []byte {
	out := []byte{'['}
	for _, t := range texts {
		ops := bytes.TrimSuffix(bytes.TrimPrefix(t, []byte("[")), []byte("]"))
		if len(ops) > 0 && len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, ops...)
	}
	return append(out, ']')
}

// CommitLine returns the state after the commit whose line has ordinal ord. It reads one range, and also the segment if
// the line does not contain the whole document.
func (h *History) CommitLine(ctx context.Context, st *state.State, ord uint64) (CommitState, error) {
	for l, err := range h.Lines(ctx, st, []uint64{ord}) {
		if err != nil {
			return CommitState{}, err
		}
		seq, ok := checkpoint.RecordSeq(l.Raw)
		if !l.Commit || !ok {
			return CommitState{}, fmt.Errorf("entry %d: %w", ord, ErrNoCommit)
		}
		if seq == st.Summary.Seq {
			return h.At(ctx, st, seq)
		}
		rec, err := checkpoint.VerifiedRecord(l.Raw)
		if err != nil || rec.Doc == nil {
			return h.moment(ctx, st, seq, func(m CommitState) bool { return m.Ord == ord })
		}
		m := CommitState{Commit: rec.Commit(), Ord: ord}
		if err := m.document([]checkpoint.Record{rec}); err != nil {
			return m, fmt.Errorf("commit %d: %w", seq, err)
		}
		return m, nil
	}
	return CommitState{}, fmt.Errorf("entry %d: %w", ord, ErrNoCommit)
}

// Since yields, oldest first, the commits after seq with the lines that each made durable. seq -1 means all of them.
// was is the session's document at seq; nil = it is read from the log when a caller asks for it.
func (h *History) Since(ctx context.Context, st *state.State, seq int64, was *Past) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for next := seq + 1; st.Summary.Commit != "" && next <= int64(st.Summary.Seq); {
			s, err := h.commitsAt(ctx, st, uint64(next))
			if err != nil {
				yield(Batch{}, err)
				return
			}
			from, stop, known := next, false, was != nil
			err = s.each(func(rec *checkpoint.Record, m CommitState, lines []state.Line) bool {
				if was == nil {
					was = h.documentBefore(st, rec.Seq)
				}
				if int64(m.Commit.Seq) != next {
					if !known {
						was = was.after(rec)
					}
					return true
				}
				next++
				now := was.after(rec)
				stop = !yield(Batch{m.Commit, lines, was, now}, nil)
				was, known = now, true
				return !stop && next <= int64(st.Summary.Seq)
			})
			if stop {
				return
			}
			if err == nil && next == from {
				err = s.lacks(uint64(next))
			}
			if err != nil {
				yield(Batch{}, err)
				return
			}
		}
	}
}

// Record returns the commit line with this seq: one segment read, or none where it is in memory.
func (h *History) Record(ctx context.Context, st *state.State, seq uint64) (checkpoint.Record, error) {
	var found checkpoint.Record
	s, err := h.commitsAt(ctx, st, seq)
	if err != nil {
		return found, err
	}
	ok := false
	err = s.each(func(rec *checkpoint.Record, _ CommitState, _ []state.Line) bool {
		if ok = rec.Seq == seq; ok {
			found = *rec
		}
		return !ok
	})
	if err == nil && !ok {
		err = s.lacks(seq)
	}
	return found, err
}

// RecordAt returns the commit line with this ordinal: one range read, or none where it is in memory.
func (h *History) RecordAt(ctx context.Context, st *state.State, ord uint64) (checkpoint.Record, error) {
	for l, err := range h.Lines(ctx, st, []uint64{ord}) {
		if err != nil {
			return checkpoint.Record{}, err
		}
		if !l.Commit {
			break
		}
		return checkpoint.VerifiedRecord(l.Raw)
	}
	return checkpoint.Record{}, fmt.Errorf("entry %d: %w", ord, ErrNoCommit)
}
