package searchindex

import (
	"context"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
)

const (
	queueMost   = 256                    // sessions that wait in a Recorder
	recordWait  = 100 * time.Millisecond // for another process that writes to the index of NewRecorderAt
	closeWithin = 2 * time.Second        // how long Hooks lets the closing of a store wait
	keptMost    = 16                     // commits that one receipt covers, where a losing turn was kept
)

// Recorder puts what users say into an index while a program commits, so that Recall finds it at once. What
// else was said is left to Update.
//
// A turn never waits for it: AfterCommit takes note of a session and returns; one goroutine reads what the
// commits noted brought, in one read of the session on a store such as S3, and writes the prompts. Nor does a
// turn ever fail by it: where more sessions wait than the queue holds, where a session cannot be read, where the
// index is locked, damaged or has no room, commits are counted as missed, and the next Update reads them.
//
// A Recorder is of one store. Hooks ties it to the store's life; without it, the caller that makes a Recorder sets
// AfterCommit as the store's hook, calls Start when the store is there, and Close before it is closed.
type Recorder struct {
	index  func(ctx context.Context) (*Index, error)
	own    *Index // opened by index, and to be closed
	notes  chan string
	stop   chan struct{}
	end    sync.Once // closes stop
	done   chan struct{}
	cancel context.CancelFunc
	within time.Duration // how long the closing of a store waits

	mu      sync.Mutex
	waiting map[string]note
	missed  int
	closed  bool
}

// note is what is to be read of a session that waits.
type note struct {
	after   uint64 // all commits after this seq; 0 = all
	commits int    // that were noted
}

// NewRecorder returns a recorder for an index, which the caller closes.
func NewRecorder(x *Index) *Recorder {
	return newRecorder(func(context.Context) (*Index, error) { return x, nil }, queueMost)
}

// NewRecorderAt returns a recorder for the index in a file. The file is opened or created with the first
// commit to read, and closed by Close. A damaged file, or one of another version, stays as it is: Open replaces
// such a file, a recorder does not. If another process is writing to it, the recorder waits briefly.
func NewRecorderAt(path string) *Recorder {
	r := newRecorder(nil, queueMost)
	r.index = func(ctx context.Context) (*Index, error) {
		if r.own == nil {
			x, err := open(ctx, path, recordWait, false)
			if err != nil {
				return nil, err
			}
			r.own = x
		}
		return r.own, nil
	}
	return r
}

func newRecorder(index func(ctx context.Context) (*Index, error), most int) *Recorder {
	return &Recorder{
		index: index, notes: make(chan string, most), stop: make(chan struct{}),
		waiting: map[string]note{}, within: closeWithin,
	}
}

// Hooks adds the recorder to the hooks of a store that is to be opened, and with it the recorder fills its index
// by itself: it starts when the store is there, and closing the store waits at most 2 s for what is noted.
func (r *Recorder) Hooks(h coppice.Hooks) coppice.Hooks {
	after, opened, closing := h.AfterCommit, h.Opened, h.Closing
	h.AfterCommit = func(s *coppice.Session, rc coppice.Receipt) {
		r.AfterCommit(s, rc)
		if after != nil {
			after(s, rc)
		}
	}
	h.Opened = func(st *coppice.Store) {
		r.Start(context.Background(), st)
		if opened != nil {
			opened(st)
		}
	}
	h.Closing = func(st *coppice.Store) {
		if closing != nil {
			closing(st)
		}
		ctx, cancel := context.WithTimeout(context.Background(), r.within)
		defer cancel()
		_ = r.Close(ctx) // what it did not come to is counted
	}
	return h
}

// AfterCommit takes note of a commit: it is a coppice.Hooks.AfterCommit. It never waits.
func (r *Recorder) AfterCommit(s *coppice.Session, rc coppice.Receipt) {
	if rc.Entries == 0 {
		return
	}
	after := before(s, rc)
	id := s.ID()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.missed++
		return
	}
	n, waits := r.waiting[id]
	if !waits {
		n.after = after
		select {
		case r.notes <- id:
		default:
			r.missed++
			return
		}
	}
	n.after, n.commits = min(n.after, after), n.commits+1
	r.waiting[id] = n
}

// before returns the seq after which the commits of a receipt stand.
func before(s *coppice.Session, rc coppice.Receipt) uint64 {
	commits := uint64(1)
	switch {
	case uint64(rc.Entries) >= s.Info().Entries: // a new session, an import, a fork
		return 0
	case rc.Kept != "":
		commits = keptMost
	}
	return rc.Seq - min(rc.Seq, commits)
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
	for stopped := false; !stopped; {
		select {
		case id := <-r.notes:
			r.read(ctx, st, id)
		case <-r.stop:
			stopped = true
		case <-ctx.Done():
			stopped = true
		}
	}
	for {
		select {
		case id := <-r.notes:
			r.read(ctx, st, id)
			continue
		default:
		}
		break
	}
	if r.own != nil {
		_ = r.own.Close() // every prompt in it is committed, or counted as missed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave()
}

// leave takes no more notes, and counts those that no one will read.
func (r *Recorder) leave() {
	r.closed = true
	for _, n := range r.waiting {
		r.missed += n.commits
	}
	clear(r.waiting)
}

func (r *Recorder) read(ctx context.Context, st *coppice.Store, id string) {
	r.mu.Lock()
	n := r.waiting[id]
	delete(r.waiting, id) // what is committed from here on is a new note
	r.mu.Unlock()
	if err := r.addTo(ctx, st, id, n.after); err != nil {
		r.mu.Lock()
		r.missed += n.commits
		r.mu.Unlock()
	}
}

// addTo adds the commits of a session after a seq to the index; 0 = all of them.
func (r *Recorder) addTo(ctx context.Context, st *coppice.Store, id string, after uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	x, err := r.index(ctx)
	if err != nil {
		return err
	}
	return x.note(ctx, st, id, after)
}

// Missed returns the number of commits that were not indexed; Update reads them.
func (r *Recorder) Missed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missed
}

// Close reads what is noted, until ctx is done, and ends the goroutine. If ctx ends first, Close returns its
// error and counts the rest as missed. Idempotent.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	done, cancel := r.done, r.cancel
	if done == nil {
		r.leave()
		r.mu.Unlock()
		return nil
	}
	r.mu.Unlock()
	r.end.Do(func() { close(r.stop) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		cancel()
		<-done
		return ctx.Err()
	}
}
