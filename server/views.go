package server

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
)

// Bounds of the drawn trees that are kept, those that are being drawn not counted. The last one may be larger.
const (
	maxViews     = 16
	maxViewBytes = 256 << 20 // estimated by their entries
)

// viewEntryBytes is what a view keeps for each entry and commit: 21 bytes for the tree, 16 for its rows.
const viewEntryBytes = 21 + 16

// drawn is a drawn tree. All but found never changes.
type drawn struct {
	of   writerKey
	name string // its view
	tree *transcript.Tree
	rows *rows.Rows
	head api.TreeHead
	size int64 // in memory, estimated

	found founds
}

// views are the drawn trees that were asked for last.
type views struct {
	most int64 // bytes

	mu      sync.Mutex
	list    []*drawn // the one used last is last
	bytes   int64    // of list
	drawing map[viewKey]*drawing
}

// viewKey names a view.
type viewKey struct {
	of   writerKey
	name string
}

// drawing is a view that someone draws for all that want it.
type drawing struct {
	ready chan struct{} // closed when d or err is set
	d     *drawn
	err   error
}

func (v *views) find(of writerKey, name string) *drawn {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, d := range v.list {
		if d.of == of && d.name == name {
			v.list = append(slices.Delete(v.list, i, i+1), d)
			return d
		}
	}
	return nil
}

// forget drops the views of sessions.
func (v *views) forget(gone func(of writerKey) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.list = slices.DeleteFunc(v.list, func(d *drawn) bool {
		if gone(d.of) {
			v.bytes -= d.size
			return true
		}
		return false
	})
}

// add keeps a view, and drops those that were used the longest time ago. v.mu is held.
func (v *views) add(d *drawn) {
	v.list = append(v.list, d)
	v.bytes += d.size
	for len(v.list) > 1 && (len(v.list) > maxViews || v.bytes > v.most) {
		v.bytes -= v.list[0].size
		v.list = slices.Delete(v.list, 0, 1)
	}
}

// get returns a view, which one caller draws if it is not there; the others wait. The end of ctx ends only the waiting:
// draw must not end with it.
func (v *views) get(ctx context.Context, of writerKey, name string, draw func() (*drawn, error)) (*drawn, error) {
	if d := v.find(of, name); d != nil {
		return d, nil
	}
	w, first := v.join(viewKey{of, name})
	if first {
		func() {
			defer v.publish(viewKey{of, name}, w) // also if draw panics
			w.d, w.err = draw()
		}()
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-w.ready:
		return w.d, w.err
	}
}

// join returns the drawing of a view, which may be under way. first: the caller has to draw it and then call publish.
func (v *views) join(key viewKey) (w *drawing, first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w = v.drawing[key]; w != nil {
		return w, false
	}
	w = &drawing{ready: make(chan struct{})}
	if v.drawing == nil {
		v.drawing = map[viewKey]*drawing{}
	}
	for _, d := range v.list { // drawn since it was looked for
		if d.of == key.of && d.name == key.name {
			w.d = d
			close(w.ready)
			return w, false
		}
	}
	v.drawing[key] = w
	return w, true
}

func (v *views) publish(key viewKey, w *drawing) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.drawing, key)
	switch {
	case w.err != nil:
	case w.d == nil:
		w.err = errors.New("the tree was not drawn")
	default:
		v.add(w.d)
	}
	close(w.ready)
}
