package erase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// done removes what the commit in st replaced. Nothing of an epoch up to that commit's which the session does not
// lead to now can be led to later: its writer has lost its condition, and takes a later epoch (I8).
func (e *eraser) done(ctx context.Context, st *state.State) error {
	if err := e.snapshots(ctx, st.Summary.Seq); err != nil { // a writer may have taken one since
		return err
	}
	old, err := e.replaced(ctx, st.Summary.Epoch)
	if err != nil {
		return err
	}
	gone, err := e.originals(ctx)
	if err != nil {
		return err
	}
	images, err := e.images(ctx, st)
	if err != nil {
		return err
	}
	for _, key := range slices.Concat(old, gone, images) {
		if err := e.remove(ctx, key); err != nil {
			return err
		}
	}
	e.res.Images = len(images)
	if err := e.torn(ctx); err != nil {
		return err
	}
	return e.end(ctx)
}

// replaced returns the segments and index objects of epochs up to last to which the session does not lead. It lists
// first, and reads the newest state after that.
func (e *eraser) replaced(ctx context.Context, last uint64) (keys []string, err error) {
	var listed []backend.Info
	for _, folder := range []string{layout.Transcript, layout.Index} {
		infos, err := e.list(ctx, folder)
		if err != nil {
			return nil, err
		}
		listed = append(listed, infos...)
	}
	st, err := e.j.Latest(ctx)
	if err != nil {
		return nil, err
	}
	keep := map[string]bool{}
	var down func(level int, ref codec.Ref) error
	down = func(level int, ref codec.Ref) error {
		if level == 0 {
			keep[segmentOf(ref).SealedKey(e.cfg.Session)] = true
			return nil
		}
		keep[layout.IndexKey(e.cfg.Session, level, segmentOf(ref))] = true
		refs, _, err := e.fold(ctx, level, ref)
		for i := 0; err == nil && i < len(refs); i++ {
			err = down(level-1, refs[i])
		}
		return err
	}
	st.Segments.Refs(func(level int, ref codec.Ref) bool {
		err = down(level, ref)
		return err == nil
	})
	for i := range st.Plain {
		seg := store.SegmentOf(&st.Plain[i])
		keep[seg.PlainKey(e.cfg.Session)], keep[seg.SealedKey(e.cfg.Session)] = true, true
	}
	for _, info := range listed {
		if !keep[info.Key] && (layout.Epoch(info.Key) <= last || slices.Contains(e.own, info.Key)) {
			keys = append(keys, info.Key)
		}
	}
	return keys, err
}

// originals returns the objects of imported files that are not kept any more.
func (e *eraser) originals(ctx context.Context) (keys []string, err error) {
	st, err := e.j.Latest(ctx)
	if err != nil {
		return nil, err
	}
	stays := map[string]bool{}
	if err := e.partsOf(ctx, st.Original, stays); err != nil {
		return nil, err
	}
	goes := map[string]bool{}
	for _, sum := range e.before {
		if sum == st.Original {
			continue
		}
		if err := e.partsOf(ctx, sum, goes); err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(goes, func(key string, _ bool) bool { return stays[key] })
	// The list of the parts goes last: it is what leads to them.
	return slices.SortedFunc(maps.Keys(goes), func(a, b string) int {
		if x, y := strings.HasSuffix(a, ".parts"), strings.HasSuffix(b, ".parts"); x != y {
			if x {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	}), nil
}

// partsOf adds the keys of all objects of an imported file.
func (e *eraser) partsOf(ctx context.Context, sum string, keys map[string]bool) error {
	if sum == "" {
		return nil
	}
	keys[layout.OriginalKey(e.cfg.Session, e.cfg.Since, sum)] = true
	list := layout.OriginalListKey(e.cfg.Session, e.cfg.Since, sum)
	p, _, err := e.cfg.Backend.Get(ctx, list, backend.Range{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	keys[list] = true
	parts, _, err := store.DecodeOriginalList(p, sum)
	if err != nil {
		return store.Corrupt(list, 0, err)
	}
	for _, part := range parts {
		keys[layout.OriginalKey(e.cfg.Session, e.cfg.Since, part)] = true
	}
	return nil
}

// images returns the images that nothing shows any more. One that was committed again since st stays.
func (e *eraser) images(ctx context.Context, st *state.State) (keys []string, err error) {
	if len(e.shown) == 0 {
		return nil, nil
	}
	now, err := e.j.Latest(ctx)
	if err != nil {
		return nil, err
	}
	again := map[string]bool{}
	for ord := st.Next; ord < now.Next; ord++ {
		for l, err := range e.j.Lines(ctx, now, []uint64{ord}) {
			if err != nil {
				return nil, err
			}
			for _, ref := range blob.Refs(l.Raw) {
				again[ref.Sum] = true
			}
		}
	}
	for _, sum := range e.shown {
		if !again[sum] && !e.found.images[sum] {
			keys = append(keys, layout.BlobKey(e.cfg.Session, e.cfg.Since, sum))
		}
	}
	return keys, nil
}

var errChanges = fmt.Errorf("other calls change it again and again: %w", backend.ErrBusy)
