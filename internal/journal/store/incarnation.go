package store

import (
	"context"
	"errors"
	"io/fs"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// LastEpoch returns the last epoch of a deleted session.
func LastEpoch(tombstone *checkpoint.Object) uint64 {
	return layout.NextEpoch(tombstone.Summary.Epoch) - 1
}

// EndedBefore returns a tombstone for the session with an id that was deleted before the one with first epoch since
// began.
func EndedBefore(id string, since uint64) *checkpoint.Object {
	sum := checkpoint.Summary{ID: id, Tombstone: true}
	sum.Seq, sum.Epoch, sum.Commit = ^uint64(0)>>1, since-1, "deleted"
	return &checkpoint.Object{HeadOrd: -1, Document: []byte("{}"), Summary: sum}
}

// Begun reports whether a session with this first epoch has a first segment. A store that appends writes the segment
// before it replaces the tombstone of the session before. On other stores Begun returns false.
func Begun(ctx context.Context, b backend.Backend, id string, since uint64) (bool, error) {
	if _, disk := b.(backend.Appender); !disk {
		return false, nil
	}
	first := layout.Segment{Epoch: since, Rnd: layout.FirstRandom}
	_, _, err := b.Get(ctx, first.PlainKey(id), backend.Tail(0))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// SinceOf returns the first epoch of the session to which a segment belongs; false if no commit in it can be read.
func (s *Store) SinceOf(ctx context.Context, seg layout.Segment) (since uint64, ok bool, err error) {
	raw, _, _, err := s.SegmentRaw(ctx, seg)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrCorrupt) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	o, err := segment.ParseOpening(raw, seg.First == 0)
	if err != nil {
		return 0, false, nil //nolint:nilerr // it is damaged: then no commit can be read
	}
	segment.Scan(raw[o.Size:], o.Prelude.Key, o.Self(), func(c segment.Commit) bool {
		if ok = c.Record.Base != nil; ok {
			since = c.Record.Base.Since
		}
		return false
	})
	return since, ok, nil
}
