package journal

import (
	"context"
	"sync"

	"github.com/coppice-go/coppice/backend"
)

// lock is held by one call at a time, and taken in order of arrival.
type lock struct {
	mu      sync.Mutex
	held    bool
	closed  bool
	waiters []chan error // each gets nil with the lock, or the reason why it never will
}

// take returns with the lock, or with the error of ctx, or with ErrClosed.
func (l *lock) take(ctx context.Context) error {
	l.mu.Lock()
	switch {
	case l.closed:
		l.mu.Unlock()
		return backend.ErrClosed
	case ctx.Err() != nil:
		l.mu.Unlock()
		return context.Cause(ctx)
	case !l.held:
		l.held = true
		l.mu.Unlock()
		return nil
	}
	ready := make(chan error, 1)
	l.waiters = append(l.waiters, ready)
	l.mu.Unlock()
	select {
	case err := <-ready:
		return err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiters {
		if w == ready {
			l.waiters = append(l.waiters[:i:i], l.waiters[i+1:]...)
			return context.Cause(ctx)
		}
	}
	if err := <-ready; err != nil { // it was decided at the same moment
		return err
	}
	l.next()
	return context.Cause(ctx)
}

// free hands the lock to the call that has waited longest.
func (l *lock) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next()
}

func (l *lock) next() {
	if len(l.waiters) == 0 {
		l.held = false
		return
	}
	w := l.waiters[0]
	l.waiters = l.waiters[1:]
	w <- nil
}

// shut refuses all calls that wait and all that come, and takes the lock for good. It returns false if it was shut
// before. The call that holds the lock gets interrupt when ctx ends.
func (l *lock) shut(ctx context.Context, interrupt func()) bool {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false
	}
	l.closed = true
	for _, w := range l.waiters {
		w <- backend.ErrClosed
	}
	l.waiters = nil
	if !l.held {
		l.held = true
		l.mu.Unlock()
		return true
	}
	ready := make(chan error, 1)
	l.waiters = append(l.waiters, ready)
	l.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		interrupt()
		<-ready
	}
	return true
}

// isShut reports whether shut was called.
func (l *lock) isShut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}
