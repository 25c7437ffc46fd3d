package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
)

// errBusy is the error of a write while the maximum number of other sessions is being written.
var errBusy = errors.New("too many sessions are open for writing")

// writers holds the handles with which the server writes, at most one for each session.
type writers struct {
	idle        time.Duration
	limit, each int // of all stores, of one

	mu     sync.Mutex
	open   map[writerKey]*writer
	closed bool
	using  sync.WaitGroup // users of handles
	ending sync.WaitGroup // handles that are being closed
}

// writerKey identifies a session. Its store is part of it, because each tenant has a store.
type writerKey struct {
	store *coppice.Store
	id    string
}

// writer is the handle of a session, which all requests on the session share. The handle writes one request after the
// other.
type writer struct {
	key   writerKey
	ready chan struct{} // closed when s or err is set
	s     *coppice.Session
	err   error

	// Guarded by writers.mu:
	users int         // number of requests that use the handle
	timer *time.Timer // closes the handle after writers.idle; nil = it is in use
	gone  bool        // its session was deleted or is damaged: the next request opens a new handle

	looked time.Time // when look last asked the store whether the session still exists
}

func newWriters(idle time.Duration, limit, each int) *writers {
	return &writers{idle: idle, limit: limit, each: each, open: map[writerKey]*writer{}}
}

// use calls f with the handle of a session. If f fails with ErrDeleted or ErrCorrupt, later requests use a new handle.
func (ws *writers) use(ctx context.Context, key writerKey, f func(*coppice.Session) error) error {
	w, err := ws.acquire(ctx, key)
	if err != nil {
		return err
	}
	defer ws.release(w)
	if err = f(w.s); errors.Is(err, coppice.ErrDeleted) || errors.Is(err, coppice.ErrCorrupt) {
		ws.drop(w)
	}
	return err
}

// lookAgain is the minimum time between two requests of look to the store for one session.
const lookAgain = 2 * time.Second

// look returns an error if another server has deleted a session that is open here. It asks the store at most once in
// lookAgain.
func (ws *writers) look(ctx context.Context, key writerKey, now time.Time) error {
	ws.mu.Lock()
	w := ws.open[key]
	if w == nil || now.Sub(w.looked) < lookAgain {
		ws.mu.Unlock()
		return nil // without a handle, opening the session reads it
	}
	w.looked = now
	ws.mu.Unlock()
	h, err := key.store.Open(ctx, key.id, &coppice.SessionOptions{ReadOnly: true})
	if errors.Is(err, coppice.ErrDeleted) {
		ws.deleted(key)
	}
	if err != nil {
		return err
	}
	return h.Close()
}

// acquire returns the handle of a session, and opens it if necessary. The caller must call release.
func (ws *writers) acquire(ctx context.Context, key writerKey) (*writer, error) {
	w, first, err := ws.addUser(key)
	if err != nil {
		return nil, err
	}
	if first { // other requests wait for the handle, so a cancelled ctx must not end the opening
		w.s, w.err = key.store.Open(context.WithoutCancel(ctx), key.id, &coppice.SessionOptions{NameLeft: true})
		if w.err != nil {
			ws.drop(w)
		}
		close(w.ready)
	}
	select {
	case <-ctx.Done():
		ws.release(w)
		return nil, context.Cause(ctx)
	case <-w.ready:
	}
	if w.err != nil {
		ws.release(w)
		return nil, w.err
	}
	return w, nil
}

// addUser counts one more user of the handle of a session. first: the caller has to open the handle.
func (ws *writers) addUser(key writerKey) (w *writer, first bool, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return nil, false, fmt.Errorf("session %s: %w", key.id, errClosing)
	}
	w = ws.open[key]
	if w == nil {
		if !ws.room(key.store) {
			return nil, false, fmt.Errorf("session %s: %w: the limit is %d", key.id, errBusy, ws.each)
		}
		w, first = &writer{key: key, ready: make(chan struct{})}, true
		ws.open[key] = w
	}
	w.users++
	ws.using.Add(1)
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	return w, first, nil
}

// room reports whether another handle of a store may be opened. If the store or the server has as many as it may, it
// closes one that no one uses, of the store rather than of another one.
func (ws *writers) room(of *coppice.Store) bool {
	own := 0
	var idle, others *writer // nil = each is in use
	for key, w := range ws.open {
		switch {
		case key.store == of && w.users == 0:
			idle = w
			own++
		case key.store == of:
			own++
		case w.users == 0:
			others = w
		}
	}
	switch {
	case own < ws.each && len(ws.open) < ws.limit:
		return true
	case idle == nil && own < ws.each:
		idle = others
	}
	if idle == nil {
		return false
	}
	delete(ws.open, idle.key)
	ws.end(idle)
	return true
}

// release ends the use of a handle. After the last use the handle is closed: at once if it is gone, else after idle.
func (ws *writers) release(w *writer) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	defer ws.using.Done() // after end, which adds to ending
	w.users--
	switch {
	case w.users > 0:
	case w.gone || ws.closed:
		ws.end(w)
	default:
		w.timer = time.AfterFunc(ws.idle, func() { ws.expire(w) })
	}
}

// expire closes a handle after writers.idle, unless a request uses it again.
func (ws *writers) expire(w *writer) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.users == 0 && ws.open[w.key] == w {
		delete(ws.open, w.key)
		ws.end(w)
	}
}

// drop makes the next request on the session open a new handle.
func (ws *writers) drop(w *writer) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.gone = true
	if ws.open[w.key] == w {
		delete(ws.open, w.key)
	}
}

// deleted drops the handle of a session that was deleted.
func (ws *writers) deleted(key writerKey) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.open[key]
	if w == nil {
		return
	}
	delete(ws.open, key)
	w.gone = true
	if w.users == 0 {
		ws.end(w)
	}
}

// retire closes the handle of a session after a request with a large body, and then calls done: the background work of
// the handle takes as much memory as the body. If other requests use the handle, it only calls done.
func (ws *writers) retire(key writerKey, done func()) {
	ws.mu.Lock()
	w := ws.open[key]
	if w == nil || w.users > 0 {
		ws.mu.Unlock()
		done()
		return
	}
	defer ws.mu.Unlock()
	delete(ws.open, key)
	if w.timer != nil {
		w.timer.Stop()
	}
	ws.ending.Go(func() {
		debug.FreeOSMemory() // of the body
		_ = w.s.Close()      // as in end
		done()
	})
}

// forget drops the handles of a store that is about to be closed, which closes its handles. No request uses them.
func (ws *writers) forget(st *coppice.Store) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for key, w := range ws.open {
		if key.store == st {
			delete(ws.open, key)
			if w.timer != nil {
				w.timer.Stop()
			}
		}
	}
}

// end closes a handle in the background; close waits for it. An error of Session.Close loses nothing: it only writes a
// checkpoint of commits that are stored already.
func (ws *writers) end(w *writer) {
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.s != nil {
		ws.ending.Go(func() { _ = w.s.Close() })
	}
}

// close refuses new requests, waits for those that use a handle, and closes all handles.
func (ws *writers) close() {
	ws.mu.Lock()
	ws.closed = true
	for key, w := range ws.open {
		delete(ws.open, key)
		w.gone = true
		if w.users == 0 {
			ws.end(w)
		}
	}
	ws.mu.Unlock()
	ws.using.Wait()
	ws.ending.Wait()
}
