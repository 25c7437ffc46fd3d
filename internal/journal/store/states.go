package store

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// States yields the states after commits, newest first from seq downwards, each as At returns it. It reads each segment
// once, and nothing for the tail. It holds the newest segments (rawsMax), the records of one, and, for n commits
// between two whole documents, about two times the square root of n documents: 16 with keyframes every 64 commits.
func (h *History) States(ctx context.Context, st *state.State, seq uint64) iter.Seq2[CommitState, error] {
	return func(yield func(CommitState, error) bool) {
		if st.Summary.Commit == "" {
			return
		}
		for {
			s, err := h.commitsAt(ctx, st, seq)
			var all []played
			if err == nil {
				err = s.each(func(rec *checkpoint.Record, m CommitState, _ []state.Line) bool {
					if rec.Seq <= seq {
						all = append(all, played{of: m, rec: documentOf(rec)})
					}
					return rec.Seq < seq
				})
			}
			if err == nil && len(all) == 0 {
				err = s.lacks(seq)
			}
			if err != nil {
				yield(CommitState{}, err)
				return
			}
			oldest := all[0].of.Commit.Seq
			more, err := backwards(all, yield)
			if err != nil {
				yield(CommitState{}, Corrupt(s.object, 0, err))
				return
			}
			if !more || oldest == 0 {
				return
			}
			seq = oldest - 1
		}
	}
}

// played is the state after a commit, without its document, and the document or patch in the commit's line.
type played struct {
	of  CommitState
	rec checkpoint.Record
}

// documentOf returns the fields of a record that are about the document.
func documentOf(rec *checkpoint.Record) checkpoint.Record {
	return checkpoint.Record{ID: rec.ID, Doc: rec.Doc, Patch: rec.Patch, Sorted: rec.Sorted, DocCRC: rec.DocCRC}
}

// backwards yields commits in reverse order with their documents. The first one's is whole.
func backwards(all []played, yield func(CommitState, error) bool) (more bool, err error) {
	for end := len(all); end > 0; {
		first := end - 1
		for first > 0 && all[first].rec.Doc == nil {
			first--
		}
		if more, err = unfold(all[first:end], yield); !more || err != nil {
			return more, err
		}
		end = first
	}
	return true, nil
}

// unfold yields commits in reverse order; only the first one's document is whole. It keeps the documents at the
// beginning of each of about sqrt(n) blocks, and computes the others block by block: each one twice.
func unfold(group []played, yield func(CommitState, error) bool) (more bool, err error) {
	size := 1
	for size*size < len(group) {
		size++
	}
	var starts [][]byte // the document before each block
	var raw []byte
	for i := 0; i < len(group); i += size {
		starts = append(starts, raw)
		if i+size < len(group) {
			if raw, err = applied(raw, group[i:i+size]); err != nil {
				return false, err
			}
		}
	}
	for b := len(starts) - 1; b >= 0; b-- {
		block := group[b*size : min((b+1)*size, len(group))]
		docs := make([][]byte, len(block))
		raw := starts[b]
		for i := range block {
			if raw, err = state.DocumentAfter(raw, &block[i].rec); err != nil {
				return false, err
			}
			docs[i] = raw
		}
		starts[b] = nil
		for i := len(block) - 1; i >= 0; i-- {
			m := block[i].of
			m.DocRaw = docs[i]
			if m.Doc, err = checkpoint.DecodeDocument(m.DocRaw); err != nil {
				return false, err
			}
			if docs[i] = nil; !yield(m, nil) {
				return false, nil
			}
		}
	}
	return true, nil
}

// applied returns the document after some commits.
func applied(raw []byte, group []played) ([]byte, error) {
	made := make([]checkpoint.Record, len(group))
	for i := range group {
		made[i] = group[i].rec
	}
	return documentAfter(raw, made)
}

// Past is the document of a session after one commit, computed when Document is called. It refers to the commits since
// the last whole document, and to nothing older. It is safe for concurrent use.
type Past struct {
	raw  atomic.Pointer[[]byte] // nil = not computed yet
	from *Past                  // the document that rec changes; nil = rec has it whole
	rec  checkpoint.Record
	read func(ctx context.Context) ([]byte, error) // instead of rec: the document has to be read
}

// PastOf returns a document that is known.
func PastOf(raw []byte) *Past {
	p := &Past{}
	p.raw.Store(&raw)
	return p
}

// after returns the document after a line of the session: the same if the line has none, or keeps a losing turn.
func (p *Past) after(rec *checkpoint.Record) *Past {
	if state.Kept(rec) || p != nil && rec.Doc == nil && rec.Patch == nil {
		return p
	}
	next := &Past{rec: documentOf(rec)}
	if rec.Doc == nil {
		next.from = p
	}
	return next
}

// Document returns the encoded document, which must not be changed. It reads from the store only if the chain of
// changes begins with a document that no line read so far contains.
func (p *Past) Document(ctx context.Context) ([]byte, error) {
	var made []checkpoint.Record // newest first
	var raw []byte
	for at := p; at != nil; at = at.from {
		if known := at.raw.Load(); known != nil {
			raw = *known
			break
		}
		if at.read != nil {
			var err error
			if raw, err = at.read(ctx); err != nil {
				return nil, err
			}
			at.raw.Store(&raw)
			break
		}
		made = append(made, at.rec)
	}
	slices.Reverse(made)
	raw, err := documentAfter(raw, made)
	if err == nil {
		p.raw.Store(&raw)
	}
	return raw, err
}

// documentBefore returns the session's document before a commit, to be read when Document is called.
func (h *History) documentBefore(st *state.State, seq uint64) *Past {
	if seq == 0 {
		return PastOf(nil)
	}
	return &Past{read: func(ctx context.Context) ([]byte, error) {
		for m, err := range h.States(ctx, st, seq-1) {
			if err != nil || m.Commit.Kept == "" || m.Commit.Kept != m.Commit.Branch {
				return m.DocRaw, err
			}
		}
		return nil, nil
	}}
}
