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

// errBusy is the error of a session that cannot be opened because too many are.
var errBusy = errors.New("too many sessions are open for writing")

// writers are the handles by which the server writes: one for each session that is in use.
type writers struct {
	idle        time.Duration
	limit, each int // of all stores, of one

	mu     sync.Mutex
	open   map[writerKey]*writer
	closed bool
	using  sync.WaitGroup // users of handles
	ending sync.WaitGroup // handles that are being closed
}

// writerKey names a session: tenants have stores of their own.
type writerKey struct {
	store *coppice.Store
	id    string
}

// writer is the handle of a session, which all its requests share: its lock lets one write after the other.
type writer struct {
	key   writerKey
	ready chan struct{} // closed when s or err is set
	s     *coppice.Session
	err   error

	// By writers.mu:
	users int
	timer *time.Timer // closes the handle when it was idle for long enough
	gone  bool        // its session was deleted, or is damaged: the next user opens another one

	looked time.Time // when the store was last asked whether the session is still there
}

func newWriters(idle time.Duration, limit, each int) *writers {
	return &writers{idle: idle, limit: limit, each: each, open: map[writerKey]*writer{}}
}

// use runs f on the handle of a session.
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

// lookAgain is how long a session that is open is taken to be there still, where nothing is committed to it.
const lookAgain = 2 * time.Second

// look returns an error if another server has deleted a session that is open here. It asks the store at most once in
// lookAgain.
func (ws *writers) look(ctx context.Context, key writerKey, now time.Time) error {
	ws.mu.Lock()
	w := ws.open[key]
	if w == nil || now.Sub(w.looked) < lookAgain {
		ws.mu.Unlock()
		return nil // opening it looks
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

// acquire returns the handle of a session, opening it if no one has.
func (ws *writers) acquire(ctx context.Context, key writerKey) (*writer, error) {
	w, first, err := ws.addUser(key)
	if err != nil {
		return nil, err
	}
	if first { // for all that wait, so the end of this request is not the end of the opening
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

// release ends the use of a handle. The last user of one that is gone closes it.
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

// expire closes a handle that was idle for long enough.
func (ws *writers) expire(w *writer) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.users == 0 && ws.open[w.key] == w {
		delete(ws.open, w.key)
		ws.end(w)
	}
}

// drop makes the next user of the session open a new handle.
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

// retire closes the handle of a session that has stored a large body, and then calls done: what the handle does in the
// background takes as much memory as the body. A handle that others use is not closed.
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

// forget drops the handles of a store that closes them. No request uses one.
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

// end closes a handle in the background, where ws.close waits for it. What Close writes is a checkpoint of commits
// that are acknowledged and stored: its error loses nothing.
func (ws *writers) end(w *writer) {
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.s != nil {
		ws.ending.Go(func() { _ = w.s.Close() })
	}
}

// close refuses new users, waits for those there are, and closes all handles.
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
