package store

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// Log yields commits newest first, from seq on downwards: the last 64 from memory, then one read for each segment. Of a
// sealed segment it decodes the frames that hold the commit lines which it yields, and no others.
func (h *History) Log(ctx context.Context, st *state.State, seq uint64) iter.Seq2[checkpoint.Commit, error] {
	return func(yield func(checkpoint.Commit, error) bool) {
		for i := len(st.Lineage) - 1; i >= 0; i-- {
			if c := st.Lineage[i]; c.Seq <= seq {
				if !yield(c, nil) || c.Seq == 0 {
					return
				}
				seq = c.Seq - 1
			}
		}
		if len(st.Lineage) == 0 || st.Lineage[0].Seq == 0 {
			return
		}
		for {
			down, err := inNewest(ctx, h, st, func(st *state.State) (iter.Seq2[checkpoint.Commit, error], error) {
				return h.logAt(ctx, st, seq)
			})
			if err != nil {
				yield(checkpoint.Commit{}, err)
				return
			}
			for c, err := range down {
				if !yield(c, err) || err != nil || c.Seq == 0 {
					return
				}
				seq = c.Seq - 1
			}
		}
	}
}

// logAt returns commits from seq downwards, at least one: those of the stretch of the log that contains it.
func (h *History) logAt(
	ctx context.Context, st *state.State, seq uint64,
) (iter.Seq2[checkpoint.Commit, error], error) {
	if s, ok, err := h.unsealed(ctx, st, seq); ok || err != nil {
		if err != nil {
			return nil, err
		}
		return s.log(seq)
	}
	ref, err := h.sealedWith(ctx, st, seq)
	if err != nil {
		return nil, err
	}
	o, err := h.sealedObject(ctx, ref)
	if err != nil {
		return nil, err
	}
	key := refSegment(ref).SealedKey(h.store.Session)
	sk, err := o.idx.Skeleton()
	if err != nil {
		return nil, Corrupt(key, 0, err)
	}
	return func(yield func(checkpoint.Commit, error) bool) {
		yielded := false
		for c, err := range o.commits(sk) {
			if err != nil {
				yield(c, Corrupt(key, 0, err))
				return
			}
			if c.Seq > seq {
				continue
			}
			if yielded = true; !yield(c, nil) {
				return
			}
		}
		if !yielded {
			yield(checkpoint.Commit{}, stretchOf{object: key}.lacks(seq))
		}
	}, nil
}

// log returns the commits of the stretch up to seq, newest first.
func (s stretchOf) log(seq uint64) (iter.Seq2[checkpoint.Commit, error], error) {
	var commits []checkpoint.Commit
	err := s.each(func(_ *checkpoint.Record, m CommitState, _ []state.Line) bool {
		if m.Commit.Seq <= seq {
			commits = append(commits, m.Commit)
		}
		return m.Commit.Seq < seq
	})
	if err == nil && len(commits) == 0 {
		err = s.lacks(seq)
	}
	return func(yield func(checkpoint.Commit, error) bool) {
		for i := len(commits) - 1; i >= 0 && yield(commits[i], nil); i-- {
		}
	}, err
}

// commits yields the commits of the segment, newest first. Their lines were verified when it was sealed, and are
// covered by its hash.
func (o *sealedObject) commits(sk *codec.Skeleton) iter.Seq2[checkpoint.Commit, error] {
	return func(yield func(checkpoint.Commit, error) bool) {
		var lines [][]byte // of one frame
		first, frame := 0, -1
		for k := o.idx.Count - 1; k >= 0; k-- {
			if sk.Flags(k)&codec.FlagCommit == 0 {
				continue
			}
			if at := o.idx.Locate(o.idx.First + uint64(k)); at != frame {
				off, n := o.idx.FrameRange(at)
				raw, line, err := o.idx.DecodeFrame(at, o.p[off:off+n])
				if err != nil {
					yield(checkpoint.Commit{}, err)
					return
				}
				lines, first, frame = bytes.Split(raw, []byte{'\n'}), line, at
			}
			rec, err := checkpoint.VerifiedRecord(lines[o.idx.Prelude+k-first])
			if err != nil {
				err = fmt.Errorf("entry %d: %w", o.idx.First+uint64(k), err)
			}
			if !yield(rec.Commit(), err) || err != nil {
				return
			}
		}
	}
}
