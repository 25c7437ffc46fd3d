// Package journal guarantees that what a commit acknowledged is in the history of every later head
// (I1), that a commit reported as failed never is, and that one in doubt is reported as in doubt (I2).
//
// It is the commit protocol of docs/adr/0005: one Journal is one writer's handle on one session. Two
// strategies stand behind it, chosen by what the backend can do. Where it can only replace whole
// objects, the tail of the transcript rides in checkpoint_latest, and a commit is one conditional PUT
// of it. Where it can append, the active segment is the truth, a commit is one append, and
// checkpoint_latest is a cache behind it.
//
// Everything that a handle knows of the session is a state.State, an immutable value. A commit composes the
// next state.State from the last one, and reading somebody else's commits from the log makes the same value
// by the same code (state.Advance), so what is acknowledged and what is recovered cannot differ.
//
// This package is the handle: the queue, who leads it, conflicts and upkeep. The packages below it are its
// parts, and import one way: state and objects (one value, one object), history (finding lines and commits),
// compose (making commits), and the strategies, appendlog and replace.
package journal

import (
	"context"
	"fmt"
	"sync"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// Journal is one writer's handle on one session. Its methods are safe for concurrent use.
type Journal struct {
	cfg      Config
	store    *store.Store
	past     *store.History
	strategy strategy

	mu      sync.Mutex
	st      *state.State // the newest state that this handle acknowledged or read
	queue   []*request
	leading bool       // somebody publishes; who arrives meanwhile waits in the queue
	turns   []*request // who waits to be alone: Rebase, Reload
	broken  error      // ErrConflict, ErrFenced, ErrUnknown or corruption: commits are refused until Rebase or Reload
	limbo   []*request
	fresh   bool // the next commit carries the head's epoch + 1
	closed  bool
	work    sync.WaitGroup // background work, joined by Close
	bg      background
}

// strategy is what differs between stores that append and stores that only replace.
type strategy interface {
	// Load reads the newest state: ErrNotExist if there is no session, store.ErrDeleted if there was one.
	Load(ctx context.Context) (*state.State, error)
	// Prepare readies the composer before the first commit of a batch: what was sealed meanwhile is
	// swapped in, and what must be durable before anything is written to the log again is.
	Prepare(ctx context.Context, c *Composer) error
	// Confirm makes sure that all that st was read from survives power loss, before it is acknowledged.
	Confirm(ctx context.Context, st *state.State) (*state.State, error)
	// Publish makes what was composed on base durable. When it returns a *Moved, nothing was stored and
	// somebody else's state is newer than base.
	Publish(ctx context.Context, base *state.State, c *Composer) (*state.State, error)
	// Acknowledged runs after a publish, off the acknowledgement path.
	Acknowledged(st *state.State)
	// Finish runs at Close: what is still owed and cheap is done.
	Finish(ctx context.Context, st *state.State) error
	// Changed tells cheaply whether anyone committed after st.
	Changed(ctx context.Context, st *state.State) (bool, error)
}

// Open reads the newest state of an existing session: one object read on a store that only replaces,
// one file read and a bounded log tail on one that appends. It writes nothing (I14).
func Open(ctx context.Context, cfg Config) (*Journal, error) {
	j := newJournal(cfg)
	st, err := j.strategy.Load(ctx)
	if err != nil {
		return nil, err
	}
	j.st = st
	return j, nil
}

// Create makes a handle on a session that does not exist yet; its first commit creates it. No I/O.
func Create(cfg Config, g state.Genesis) *Journal {
	j := newJournal(cfg)
	j.st = g.State(j.cfg.Session, j.cfg.Profile, j.cfg.MaxBytes)
	return j
}

func newJournal(cfg Config) *Journal {
	cfg.Limits = cfg.Limits.OrDefaults()
	j := &Journal{cfg: cfg, fresh: true}
	j.store = &store.Store{Backend: cfg.Backend, Session: cfg.Session, Attempts: cfg.Limits.Attempts, Part: cfg.Limits.PartBytes, Sleep: cfg.Sleep, Rand: cfg.Rand, Now: cfg.Now}
	j.past = store.NewHistory(j.store, j.Latest)
	if a, ok := cfg.Backend.(backend.Appender); ok {
		j.strategy = newAppend(&j.cfg, j.store, j.past, hands{j}, a)
	} else {
		j.strategy = newReplace(&j.cfg, j.store, j.past, hands{j})
	}
	return j
}

// State is the newest state that this handle acknowledged or read. It is immutable.
func (j *Journal) State() *state.State {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.st
}

// Peek calls f with that state while no commit can be acknowledged, so that Entry.Done and the state are of
// one moment. f must not call the journal.
func (j *Journal) Peek(f func(st *state.State)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(j.st)
}

// Latest reads the newest state that anyone acknowledged; the handle stays where it is.
func (j *Journal) Latest(ctx context.Context) (*state.State, error) { return j.strategy.Load(ctx) }

// Changed tells, at the cost of one Stat, whether anyone committed after st.
func (j *Journal) Changed(ctx context.Context, st *state.State) (bool, error) {
	return j.strategy.Changed(ctx, st)
}

// Follow moves the handle to st, which Latest gave: how a read-only handle goes along.
func (j *Journal) Follow(st *state.State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stand(st)
}

// Close waits for background work (bounded by ctx) and does what is owed and cheap: on disk the write
// of checkpoint_latest. It keeps no promise that Commit did not make. Idempotent.
func (j *Journal) Close(ctx context.Context) error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	st := j.st
	j.mu.Unlock()
	if err := j.join(ctx); err != nil {
		return err
	}
	if st == nil || st.Summary.Commit == "" || j.cfg.ReadOnly {
		return nil
	}
	return j.strategy.Finish(ctx, j.State())
}

// join waits for background work, at most closeWait and no longer than ctx; what is not done by then is
// cancelled and waited for.
func (j *Journal) join(ctx context.Context) error {
	done := make(chan struct{})
	go func() { j.work.Wait(); close(done) }()
	ctx, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("close: background work was cut off: %w", ctx.Err())
	}
	j.mu.Lock()
	if j.bg.cancel != nil {
		j.bg.cancel()
	}
	j.mu.Unlock()
	<-done
	return err
}
