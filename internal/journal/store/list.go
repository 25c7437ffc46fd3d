package store

import (
	"context"
	"errors"
	"io/fs"
	"sort"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
)

// Listed is a segment that exists in the store, with the forms in which it does.
type Listed struct {
	Seg    layout.Segment
	plain  bool
	sealed bool
}

// Segments lists the session's segments, by first ordinal, then epoch. Those of an epoch before from are left out: they
// are of a session that was deleted.
func (s *Store) Segments(ctx context.Context, from uint64) ([]Listed, error) {
	var all []Listed
	at := map[layout.Segment]int{}
	prefix := layout.SessionPrefix(s.Session) + layout.Transcript
	for info, err := range s.Backend.List(ctx, backend.ListOptions{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		seg, sealed, ok := layout.ParseSegmentKey(info.Key)
		if !ok || seg.Epoch < from {
			continue
		}
		i, seen := at[seg]
		if !seen {
			i = len(all)
			at[seg] = i
			all = append(all, Listed{Seg: seg})
		}
		all[i].plain = all[i].plain || !sealed
		all[i].sealed = all[i].sealed || sealed
	}
	sort.Slice(all, func(a, b int) bool { return all[a].Seg.Name() < all[b].Seg.Name() })
	return all, nil
}

// SegmentRaw reads a whole segment, sealed or plain, as plain lines. It reads the sealed form if there is one: that is
// complete, while a plain form of a sealed segment may be the remains of a late write.
func (s *Store) SegmentRaw(ctx context.Context, seg layout.Segment) (raw []byte, key string, isSealed bool, err error) {
	key = seg.SealedKey(s.Session)
	p, _, err := s.Backend.Get(ctx, key, backend.Range{})
	if err == nil {
		raw, _, err = codec.DecodeSegment(p, backend.MaxObjectSize)
		if err != nil {
			return nil, key, true, Corrupt(key, 0, err)
		}
		return raw, key, true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, key, true, err
	}
	key = seg.PlainKey(s.Session)
	raw, _, err = s.Backend.Get(ctx, key, backend.Range{})
	return raw, key, false, err
}
