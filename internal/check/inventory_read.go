package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// MaxRaw bounds the lines of one segment when it is decoded, in bytes.
const MaxRaw = 1 << 30

// ReadSegment reads the lines of a segment, sealed or plain.
func ReadSegment(
	ctx context.Context, b backend.Backend, id string, seg layout.Segment,
) (raw []byte, key string, err error) {
	key = seg.SealedKey(id)
	p, _, err := b.Get(ctx, key, backend.Range{})
	if errors.Is(err, fs.ErrNotExist) {
		key = seg.PlainKey(id)
		raw, _, err = b.Get(ctx, key, backend.Range{})
		return raw, key, err
	}
	if err == nil {
		raw, _, err = codec.DecodeSegment(p, MaxRaw)
	}
	return raw, key, err
}

// readEither reads the lines of a segment, in its plain form where the sealed one is damaged or foreign. Lines of a
// foreign object are not returned.
func readEither(ctx context.Context, b backend.Backend, id string, seg layout.Segment) ([]byte, error) {
	raw, key, err := ReadSegment(ctx, b, id, seg)
	if err == nil {
		raw, err = own(raw, id, seg)
	}
	if err == nil || !Unreadable(err) || key == seg.PlainKey(id) {
		return raw, err
	}
	plain, _, perr := b.Get(ctx, seg.PlainKey(id), backend.Range{})
	if errors.Is(perr, fs.ErrNotExist) {
		return raw, err
	}
	if perr != nil {
		return nil, perr
	}
	return own(plain, id, seg)
}

// own returns the lines of a segment, or an error if its first lines are of another one.
func own(raw []byte, id string, seg layout.Segment) ([]byte, error) {
	if o, err := segment.ParseOpening(raw, seg.First == 0); err == nil && !o.Of(id, seg) {
		return nil, fmt.Errorf("it is a segment of session %q: %w", o.Prelude.Session, codec.ErrFormat)
	}
	return raw, nil
}

// FoldIndex reads the references that an index object holds, and checks it whole.
func FoldIndex(ctx context.Context, b backend.Backend, key string, ref codec.Ref) ([]codec.Ref, error) {
	p, _, err := b.Get(ctx, key, backend.Range{})
	if err != nil {
		return nil, err
	}
	if err := ref.Verify(p); err != nil {
		return nil, err
	}
	refs, _, err := codec.DecodeIndex(p)
	if err != nil {
		return nil, err
	}
	next := ref.First
	for _, r := range refs {
		if r.First != next {
			return nil, fmt.Errorf("it refers to entry %d where %d comes next: %w", r.First, next, codec.ErrFormat)
		}
		next += uint64(r.Count)
	}
	if next != ref.First+uint64(ref.Count) {
		return nil,
			fmt.Errorf("it ends with entry %d instead of %d: %w", next, ref.First+uint64(ref.Count), codec.ErrFormat)
	}
	return refs, nil
}

// Unreadable reports whether an object is damaged or gone, in contrast to a store that does not answer.
func Unreadable(err error) bool {
	return errors.Is(err, codec.ErrFormat) || errors.Is(err, codec.ErrChecksum) || errors.Is(err, codec.ErrLimit) ||
		errors.Is(err, codec.ErrVersion) || errors.Is(err, fs.ErrNotExist)
}

// Chain are the segments of the log, in order.
type Chain []layout.Segment

// Replaced reports whether a segment that is none of the chain was replaced by a repair: another is where
// it was, under a later epoch.
func (c Chain) Replaced(seg layout.Segment) bool {
	i := sort.Search(len(c), func(i int) bool { return c[i].First > seg.First })
	return i > 0 && c[i-1].Epoch > seg.Epoch && c[i-1] != seg
}

// copied reports whether a segment that is none of the chain has the lines of one that is, under a later epoch.
func (c Chain) copied(seg layout.Segment) bool {
	return slices.ContainsFunc(c, func(s layout.Segment) bool { return s.First == seg.First && s.Epoch < seg.Epoch })
}
