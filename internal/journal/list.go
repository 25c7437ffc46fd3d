package journal

import (
	"context"
	"errors"
	"io/fs"
	"sort"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
)

// found is a segment that a listing shows.
type found struct {
	seg    layout.Segment
	plain  bool
	sealed bool
}

// segments lists the session's segments, by first ordinal, then epoch.
func (s *store) segments(ctx context.Context) ([]found, error) {
	var all []found
	at := map[layout.Segment]int{}
	prefix := layout.SessionPrefix(s.id) + layout.Transcript
	for info, err := range s.b.List(ctx, backend.ListOptions{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		seg, sealed, ok := layout.ParseSegmentKey(info.Key)
		if !ok {
			continue
		}
		i, seen := at[seg]
		if !seen {
			i = len(all)
			at[seg] = i
			all = append(all, found{seg: seg})
		}
		all[i].plain = all[i].plain || !sealed
		all[i].sealed = all[i].sealed || sealed
	}
	sort.Slice(all, func(a, b int) bool { return all[a].seg.Name() < all[b].seg.Name() })
	return all, nil
}

// segmentRaw reads a whole segment, sealed or plain, as plain lines. The sealed form is looked for first:
// it is whole, while a plain one beside it may be what a late write left.
func (s *store) segmentRaw(ctx context.Context, seg layout.Segment) (raw []byte, key string, isSealed bool, err error) {
	key = seg.SealedKey(s.id)
	p, _, err := s.b.Get(ctx, key, backend.Range{})
	if err == nil {
		raw, _, err = codec.DecodeSegment(p, backend.MaxObjectSize)
		if err != nil {
			return nil, key, true, corrupt(key, 0, err)
		}
		return raw, key, true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, key, true, err
	}
	key = seg.PlainKey(s.id)
	raw, _, err = s.b.Get(ctx, key, backend.Range{})
	return raw, key, false, err
}
