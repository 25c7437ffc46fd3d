package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"sync"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// History reads the durable lines and commits of one session, wherever they are stored. It caches immutable objects
// that it has read. It is safe for concurrent use.
type History struct {
	store  *Store
	latest func(ctx context.Context) (*state.State, error) // reads the newest state
	cache  cache
	known  known
}

// NewHistory returns the history of the store's session. latest reads the newest state; it is called if a segment was
// collected or sealed after the state that a caller passes was read.
func NewHistory(s *Store, latest func(ctx context.Context) (*state.State, error)) *History {
	return &History{store: s, latest: latest}
}

// cache contains the last few immutable objects of each kind that were read.
type cache struct {
	indexes recent[*codec.SegmentIndex]
	folds   recent[*folded]
	raws    recent[*rawSegment]
	objects recent[*sealedObject]
}

const (
	indexesMax = 256 // segment indexes in memory, a few KiB each
	foldsMax   = 64  // index objects
	rawsMax    = 2   // whole segments, at most RollBytes and a batch each
	objectsMax = 2   // sealed segments as they are stored
)

// recent is a small map that drops its oldest key when it is full. It is safe for concurrent use.
type recent[T any] struct {
	mu    sync.Mutex
	items map[string]T
	order []string
}

func (r *recent[T]) get(key string) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.items[key]
	return v, ok
}

func (r *recent[T]) put(key string, v T, limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.items == nil {
		r.items = map[string]T{}
	}
	if _, ok := r.items[key]; !ok {
		if len(r.order) >= limit {
			delete(r.items, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, key)
	}
	r.items[key] = v
}

// folded is an index object.
type folded struct {
	refs      []codec.Ref
	skeletons [][]byte // of level 1 only
}

// rawSegment is a whole segment as lines.
type rawSegment struct {
	seg  layout.Segment
	raw  []byte
	open segment.Opening
}

// sealedObject is a whole sealed segment as it is stored.
type sealedObject struct {
	p   []byte
	idx *codec.SegmentIndex
}

func refSegment(ref codec.Ref) layout.Segment {
	return layout.Segment{First: ref.First, Epoch: ref.Epoch, Rnd: ref.Rnd}
}

// indexGuess is the first suffix read of a segment: most indexes are smaller.
const indexGuess = 32 << 10

// segmentIndex reads the index of a sealed segment: one read of the object's end, two for an index over indexGuess.
func (h *History) segmentIndex(ctx context.Context, ref codec.Ref) (*codec.SegmentIndex, error) {
	key := refSegment(ref).SealedKey(h.store.Session)
	if idx, ok := h.cache.indexes.get(key); ok {
		return idx, nil
	}
	for want := int64(indexGuess); ; {
		tail, info, err := h.store.Backend.Get(ctx, key, backend.Tail(want))
		if err != nil {
			return nil, err
		}
		idx, need, err := codec.DecodeSegmentIndex(tail, info.Size)
		if err != nil {
			return nil, Corrupt(key, info.Size-int64(len(tail)), err)
		}
		if need == 0 {
			if err := isOf(idx, tail, &ref); err != nil {
				return nil, Corrupt(key, 0, err)
			}
			h.cache.indexes.put(key, idx, indexesMax)
			return idx, nil
		}
		if need <= want {
			return nil, Corrupt(key, 0, fmt.Errorf("the index asks for %d bytes: %w", need, codec.ErrFormat))
		}
		want = need
	}
}

// isOf compares the index of a segment with the reference that led to it: an intact segment under the name of
// another must not pass for it. If the suffix that was read is the whole object, its hash decides.
func isOf(idx *codec.SegmentIndex, tail []byte, ref *codec.Ref) error {
	if idx.First != ref.First || idx.Count != int(ref.Count) {
		return fmt.Errorf("it holds entries %d+%d instead of %d+%d: %w", idx.First, idx.Count, ref.First, ref.Count,
			codec.ErrFormat)
	}
	if idx.FirstSeq != ref.FirstSeq || idx.RawBytes != ref.RawBytes || idx.Bytes != ref.Bytes {
		return fmt.Errorf("it holds commits from %d in %d bytes of %d instead of from %d in %d of %d: %w", idx.FirstSeq,
			idx.Bytes, idx.RawBytes, ref.FirstSeq, ref.Bytes, ref.RawBytes, codec.ErrFormat)
	}
	if int64(len(tail)) == idx.Bytes {
		return ref.Verify(tail)
	}
	return nil
}

// readVerified reads the object that a reference names, and checks its hash.
func readVerified(ctx context.Context, b backend.Backend, key string, ref codec.Ref) ([]byte, error) {
	p, _, err := b.Get(ctx, key, backend.Range{})
	if err != nil {
		return nil, err
	}
	if err := ref.Verify(p); err != nil {
		return nil, Corrupt(key, 0, err)
	}
	return p, nil
}

// folded reads an index object; its hash is checked.
func (h *History) folded(ctx context.Context, level int, ref codec.Ref) (*folded, error) {
	key := layout.IndexKey(h.store.Session, level, refSegment(ref))
	if f, ok := h.cache.folds.get(key); ok {
		return f, nil
	}
	p, err := readVerified(ctx, h.store.Backend, key, ref)
	if err != nil {
		return nil, err
	}
	f := &folded{}
	if f.refs, f.skeletons, err = codec.DecodeIndex(p); err != nil {
		return nil, Corrupt(key, 0, err)
	}
	h.cache.folds.put(key, f, foldsMax)
	return f, nil
}

// descend goes from a reference of some level down to the segment; pick chooses among an index object's
// references.
func (h *History) descend(
	ctx context.Context, level int, ref codec.Ref, pick func([]codec.Ref) int,
) (codec.Ref, error) {
	for ; level > 0; level-- {
		f, err := h.folded(ctx, level, ref)
		if err != nil {
			return ref, err
		}
		i := pick(f.refs)
		if i < 0 {
			return ref, Corrupt(layout.IndexKey(h.store.Session, level, refSegment(ref)), 0,
				fmt.Errorf("it does not cover the range of its reference: %w", codec.ErrFormat))
		}
		ref = f.refs[i]
	}
	return ref, nil
}

// holding returns the reference to the sealed segment that contains an ordinal; false = none does.
func (h *History) holding(ctx context.Context, st *state.State, ord uint64) (codec.Ref, bool, error) {
	level, ref, ok := st.Segments.Find(ord)
	if !ok {
		return ref, false, nil
	}
	ref, err := h.descend(ctx, level, ref, func(refs []codec.Ref) int {
		return sort.Search(len(refs), func(i int) bool { return refs[i].First > ord }) - 1
	})
	return ref, err == nil, err
}

// SealedAt returns the name of the sealed segment that contains an ordinal; false = none does.
func (h *History) SealedAt(ctx context.Context, st *state.State, ord uint64) (layout.Segment, bool, error) {
	ref, ok, err := h.holding(ctx, st, ord)
	return refSegment(ref), ok, err
}

// plainRaw reads an unsealed segment up to the bytes that ref names. If it was sealed since, it reads the sealed form.
func (h *History) plainRaw(ctx context.Context, ref *checkpoint.PlainRef) (*rawSegment, error) {
	seg := SegmentOf(ref)
	cacheKey := fmt.Sprintf("%s+%d", ref.Name, ref.Bytes)
	if r, ok := h.cache.raws.get(cacheKey); ok {
		return r, nil
	}
	key := seg.PlainKey(h.store.Session)
	raw, _, err := h.store.Backend.Get(ctx, key, backend.Range{})
	if gone(err) {
		raw, key, _, err = h.store.SegmentRaw(ctx, seg) // it was sealed meanwhile
	}
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) < ref.Bytes {
		return nil, Corrupt(key, int64(len(raw)),
			fmt.Errorf("the segment had %d committed bytes: %w", ref.Bytes, codec.ErrFormat))
	}
	return h.keepRaw(cacheKey, key, seg, raw[:ref.Bytes])
}

// sealedRaw reads a whole sealed segment.
func (h *History) sealedRaw(ctx context.Context, ref codec.Ref) (*rawSegment, error) {
	seg := refSegment(ref)
	if r, ok := h.cache.raws.get(seg.Name()); ok {
		return r, nil
	}
	key := seg.SealedKey(h.store.Session)
	o, err := h.sealedObject(ctx, ref)
	if err != nil {
		return nil, err
	}
	raw, _, err := codec.DecodeSegment(o.p, backend.MaxObjectSize)
	if err != nil {
		return nil, Corrupt(key, 0, err)
	}
	return h.keepRaw(seg.Name(), key, seg, raw)
}

// sealedObject reads a whole sealed segment and decodes none of its lines; its hash is checked.
func (h *History) sealedObject(ctx context.Context, ref codec.Ref) (*sealedObject, error) {
	key := refSegment(ref).SealedKey(h.store.Session)
	if o, ok := h.cache.objects.get(key); ok {
		return o, nil
	}
	p, err := readVerified(ctx, h.store.Backend, key, ref)
	if err != nil {
		return nil, err
	}
	idx, need, err := codec.DecodeSegmentIndex(p, int64(len(p)))
	if err == nil && need > 0 {
		err = fmt.Errorf("its index has %d bytes of %d: %w", need, len(p), codec.ErrFormat)
	}
	if err != nil {
		return nil, Corrupt(key, 0, err)
	}
	o := &sealedObject{p, idx}
	h.cache.objects.put(key, o, objectsMax)
	return o, nil
}

func (h *History) keepRaw(name, key string, seg layout.Segment, raw []byte) (*rawSegment, error) {
	o, err := segment.ParseOpening(raw, seg.First == 0)
	if err != nil {
		return nil, Corrupt(key, 0, err)
	}
	r := &rawSegment{seg: seg, raw: raw, open: o}
	h.cache.raws.put(name, r, rawsMax)
	return r, nil
}

// gone reports whether a read failed because the object does not exist: a segment was collected or sealed since the
// state was read. The newest state then has the places of its entries.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// lost returns ErrCorrupt in place of fs.ErrNotExist if the newest state refers to the missing object (I3).
func lost(err error) error {
	if e, ok := errors.AsType[*backend.Error](err); ok && gone(err) {
		return Corrupt(e.Key, 0, fmt.Errorf("the newest head refers to it, but it is missing: %w", codec.ErrFormat))
	}
	return err
}

// SegmentOf is the name of a plain segment.
func SegmentOf(ref *checkpoint.PlainRef) layout.Segment {
	s, _ := layout.ParseSegment(ref.Name)
	return s
}
