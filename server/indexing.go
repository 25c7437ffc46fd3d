package server

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/searchindex"
)

const (
	maxIndexed = 2 * time.Second // that a search waits for the index to be brought up to date
	maxUpdates = 64              // of an index that wait; what comes then waits for one of all sessions
)

// index is the full-text index of a store. Its updates are made one after the other, in the background: they end with
// the index, not with the requests that asked for them.
type index struct {
	*searchindex.Index
	st      *coppice.Store
	shallow bool
	ctx     context.Context //nolint:containedctx // of all updates
	cancel  context.CancelFunc
	working sync.WaitGroup

	mu      sync.Mutex
	queue   []*indexUpdate // that have not begun
	now     *indexUpdate   // the one that is under way; nil = none
	running bool           // a goroutine makes those of queue
}

// indexUpdate is one update of an index.
type indexUpdate struct {
	session string        // the only one that it looks at; "" = all
	read    atomic.Uint64 // the part that was read, bits of a float
	done    chan struct{} // closed when report and err are set
	report  searchindex.Report
	err     error
}

func newIndex(in *searchindex.Index, st *coppice.Store, shallow bool) *index {
	ctx, cancel := context.WithCancel(context.Background())
	return &index{Index: in, st: st, shallow: shallow, ctx: ctx, cancel: cancel}
}

// updated brings the index up to what the store is now, by an update that begins after the call. If that takes longer
// than a time, it returns how much was read, and the update continues.
func (x *index) updated(
	ctx context.Context, session string, wait time.Duration,
) (r searchindex.Report, indexing *float64, err error) {
	u := x.ask(session)
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-u.done:
		if u.err != nil && x.ctx.Err() != nil {
			return r, nil, errClosing
		}
		return u.report, nil, u.err
	case <-ctx.Done():
		return r, nil, context.Cause(ctx)
	case <-late.C:
	}
	done := x.progress()
	return r, &done, nil
}

// ask returns an update that has not begun, which may be that of other requests too.
func (x *index) ask(session string) *indexUpdate {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, u := range x.queue {
		if u.session == "" || u.session == session {
			return u
		}
	}
	if len(x.queue) >= maxUpdates {
		session = ""
	}
	u := &indexUpdate{session: session, done: make(chan struct{})}
	x.queue = append(x.queue, u)
	if !x.running {
		x.running = true
		x.working.Go(x.work)
	}
	return u
}

// work makes the updates that were asked for.
func (x *index) work() {
	for {
		x.mu.Lock()
		if x.now = nil; len(x.queue) == 0 {
			x.running = false
			x.mu.Unlock()
			return
		}
		u := x.queue[0]
		x.queue, x.now = x.queue[1:], u
		x.mu.Unlock()
		u.report, u.err = x.Update(x.ctx, x.st, &searchindex.UpdateOptions{
			Shallow: x.shallow, Session: u.session, Progress: func(done, total int64) {
				u.read.Store(math.Float64bits(float64(done) / float64(max(done, total, 1))))
			},
		})
		close(u.done)
	}
}

// progress returns how much of what the store has was read, from 0 to 0.99.
func (x *index) progress() float64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.now == nil {
		return 0
	}
	return min(math.Floor(100*math.Float64frombits(x.now.read.Load()))/100, 0.99)
}

// end ends the updates, and closes the index. No request uses it.
func (x *index) end() error {
	x.cancel()
	x.working.Wait()
	return x.Close()
}
