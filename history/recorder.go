package history

import (
	"context"
	"sync"

	coppice "github.com/coppice-go/coppice"
)

// queueMost bounds the sessions that wait in a Recorder.
const queueMost = 256

// Recorder keeps an index up to date while a program commits. AfterCommit takes note of a session and
// returns at once; one goroutine reads what is new in it. When more sessions wait than the queue holds, or
// reading fails, the recorder is dirty: nothing is lost, the next Update reads it. Whoever makes a Recorder
// calls Start, when the store is there, and Close, before the store is closed.
type Recorder struct {
	x      *Index
	notes  chan string
	stop   chan struct{}
	done   chan struct{}
	cancel context.CancelFunc

	mu      sync.Mutex
	waiting map[string]bool
	dirty   bool
	closed  bool
}

// NewRecorder makes a recorder for an index, which stays the caller's.
func NewRecorder(x *Index) *Recorder { return newRecorder(x, queueMost) }

func newRecorder(x *Index, most int) *Recorder {
	return &Recorder{x: x, notes: make(chan string, most), stop: make(chan struct{}), waiting: map[string]bool{}}
}

// AfterCommit takes note of a commit: it is a coppice.Hooks.AfterCommit. It never waits.
func (r *Recorder) AfterCommit(s *coppice.Session, _ coppice.Receipt) {
	id := s.ID()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.waiting[id] {
		r.dirty = r.dirty || r.closed
		return
	}
	select {
	case r.notes <- id:
		r.waiting[id] = true
	default:
		r.dirty = true
	}
}

// Start begins to read from the store. The context ends it, as Close does.
func (r *Recorder) Start(ctx context.Context, st *coppice.Store) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done != nil || r.closed {
		return
	}
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	r.done, r.cancel = done, cancel
	go func() {
		defer close(done)
		defer cancel()
		r.run(ctx, st)
	}()
}

// run reads noted sessions until it is stopped, and then those that are still noted.
func (r *Recorder) run(ctx context.Context, st *coppice.Store) {
	for {
		select {
		case id := <-r.notes:
			r.read(ctx, st, id)
			continue
		case <-r.stop:
		case <-ctx.Done():
		}
		for {
			select {
			case id := <-r.notes:
				r.read(ctx, st, id)
				continue
			default:
			}
			return
		}
	}
}

func (r *Recorder) read(ctx context.Context, st *coppice.Store, id string) {
	r.mu.Lock()
	delete(r.waiting, id) // what is committed from here on is a new note
	r.mu.Unlock()
	report, err := r.x.Update(ctx, st, &UpdateOptions{Session: id})
	if err != nil || len(report.Problems) > 0 {
		r.mu.Lock()
		r.dirty = true
		r.mu.Unlock()
	}
}

// Dirty tells that not every commit was taken in: Update reads the rest.
func (r *Recorder) Dirty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dirty
}

// Close reads what is noted, until ctx is done, and ends the goroutine. Its error is ctx's: then the
// recorder is dirty. Idempotent.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.stop)
	}
	done, cancel := r.done, r.cancel
	r.dirty = r.dirty || done == nil && len(r.notes) > 0
	r.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		cancel()
		<-done
		return ctx.Err()
	}
}
