// Package journal guarantees that what a commit acknowledged is in the history of every later head
// (I1), that a commit reported as failed never is, and that one in doubt is reported as in doubt (I2).
//
// It is the commit protocol of docs/adr/0005: one Journal is one writer's handle on one session. Two
// strategies implement it, chosen by what the backend can do. Where it can only replace whole
// objects, the tail of the transcript rides in checkpoint_latest, and a commit is one conditional PUT
// of it. Where it can append, the active segment is the truth, a commit is one append, and
// checkpoint_latest is a cache of it.
//
// Everything that a handle knows of the session is a state.State, an immutable value. A commit composes the
// next state.State from the last one, and reading another writer's commits from the log makes the same value
// by the same code (state.Advance), so what is acknowledged and what is recovered cannot differ.
//
// The journal owns one list of everything that is not durable yet, in append order, under one lock: pending, in flight,
// in doubt. A commit is a cut in that list: it takes what was appended before it. These are the stations of one commit,
// in order:
//
//  1. Commit (queue.go) admits the turn to the queue, or joins it to the turn with the same key. The first that
//     finds no leader leads, and gathers what is queued.
//  2. publish (publish.go) makes the plan: on which state, plainly or beside a winner's line.
//  3. compose (publish.go) takes in what the background sealed, has the strategy confirm what the batch builds upon
//     (Prepare), and looks up idempotency keys (keys.go) and ids of entries (known.go).
//  4. batch (batch.go) cuts the list into lines, and the Composer (compose.go) writes them: bytes, and the State that
//     state.Advance makes of them.
//  5. The strategy publishes: append.go by one compare-and-append, replace.go by one conditional PUT.
//  6. publish.go accepts what was acknowledged; outcome.go does the rest. Each turn is answered once.
//  7. upkeep.go starts in the background what is due then: sealing, folding, checkpoints, snapshots.
//
// Rebase, Claim, Reload (mend.go), navigations, Delete and Close have the lead for themselves; commits queue meanwhile.
// Every writer of the log or of the checkpoint follows one rule: it leads, what it builds upon is confirmed, it writes.
package journal

import (
	"context"
	"errors"
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

	mu    sync.Mutex
	st    *state.State // the newest state that this handle acknowledged or read
	stood *state.State // the state that the strategy knows as the handle's
	fresh bool         // the next commit carries the head's epoch + 1

	list    []*Entry          // appended and not durable, in append order
	ids     map[string]*Entry // of list
	head    Place             // from which the next entry grows
	pos     uint64            // appends so far
	version uint64            // grows with every change that readers see
	blobs   map[string][]byte // images that are not stored yet, by SHA-256

	queue   []*turn       // not sent
	shared  int           // turns that the request before carried
	flight  *flight       // the request on its way
	limbo   []*turn       // failed turns, for Rebase
	doubts  []*batch      // requests whose outcome is unknown
	broken  error         // commits are refused until Rebase or Reload
	hold    chan struct{} // not nil: Append waits until it is closed
	leading bool          // another process leads: commits that come wait in the queue
	mending bool          // Rebase or Claim leads
	waiters []*waiter     // operations that want the lead for themselves

	fenced    bool   // the newest claim is another writer's
	claimSeen uint64 // seq of the newest claim that was judged
	committed bool   // a commit of this handle is in the history
	closed    bool   // Close was called
	left      [2]int // entries that it dropped: pending, in doubt

	work sync.WaitGroup // background work, joined by Close
	bg   background
}

// strategy is what differs between stores that append and stores that only replace. It keeps no queue and starts no
// work of its own: it says what is to be done, and the journal does it.
type strategy interface {
	// Load reads the newest state: ErrNotExist if there is no session, ErrDeleted if there was one.
	Load(ctx context.Context) (*state.State, error)
	// Stand says that the handle takes a state that was read, and composes on it from now on.
	Stand(st *state.State)
	// Prepare readies the composer before the first line of a batch: what must be durable before anything is written to
	// the log again is. A *moved error says that another writer's state is newer.
	Prepare(ctx context.Context, c *Composer, bg sealing) error
	// Confirm makes sure that all that st was read from survives power loss, before it is acknowledged. Where others
	// changed the log meanwhile it returns st as it was, which is not Sure.
	Confirm(ctx context.Context, st *state.State) (*state.State, error)
	// Publish makes what was composed on base durable. A *moved error says that nothing was stored and that another
	// writer's state is newer than base.
	Publish(ctx context.Context, base *state.State, c *Composer) (*state.State, error)
	// Upkeep returns the background work that is due after a commit; nil = none.
	Upkeep(st *state.State, bg sealing) *job
	// Finish writes what is owed when the handle closes, or a session was deleted. st is confirmed.
	Finish(ctx context.Context, st *state.State) error
	// Changed reports cheaply whether anyone committed after st.
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
	j.stand(st)
	return j, nil
}

// Create makes a handle on a session that does not exist yet; its first commit creates it. No I/O.
func Create(cfg Config, g state.Genesis) *Journal {
	j := newJournal(cfg)
	j.stand(g.State(j.cfg.Session, j.cfg.Profile, j.cfg.MaxBytes))
	return j
}

func newJournal(cfg Config) *Journal {
	cfg.Limits = cfg.Limits.OrDefaults()
	j := &Journal{cfg: cfg}
	j.store = &store.Store{
		Backend: cfg.Backend, Session: cfg.Session, Attempts: cfg.Limits.Attempts,
		Part: cfg.Limits.PartBytes, Sleep: cfg.Sleep, Rand: cfg.Rand, Now: cfg.Now,
	}
	j.past = store.NewHistory(j.store, j.Latest)
	if a, ok := cfg.Backend.(backend.Appender); ok {
		j.strategy = newAppend(&j.cfg, j.store, j.past, a)
	} else {
		j.strategy = newReplace(&j.cfg, j.store, j.past)
	}
	return j
}

// State is the newest state that this handle acknowledged or read. It is immutable.
func (j *Journal) State() *state.State {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.st
}

// Latest reads the newest state that anyone acknowledged; the handle stays where it is.
func (j *Journal) Latest(ctx context.Context) (*state.State, error) { return j.strategy.Load(ctx) }

// Changed reports, at the cost of one Stat, whether anyone committed after st.
func (j *Journal) Changed(ctx context.Context, st *state.State) (bool, error) {
	return j.strategy.Changed(ctx, st)
}

// Follow moves a read-only handle to st, which Latest returned. An older state is passed over.
func (j *Journal) Follow(st *state.State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.st.Summary.Commit == "" || st.Summary.Seq > j.st.Summary.Seq {
		j.stand(st)
	}
}

// Close refuses new calls at once, waits for the request on its way, ends with ErrClosed what was not sent, and joins
// background work, all bounded by ctx. If this handle committed and is not broken, on disk it writes checkpoint_latest
// after the log was confirmed; a handle that committed nothing writes nothing (I14). Abandoned says what was dropped.
// Idempotent.
func (j *Journal) Close(ctx context.Context) error {
	if !j.end(ctx) {
		return nil
	}
	defer j.dropLead()
	j.abandon()
	if err := j.join(ctx); err != nil {
		return err
	}
	j.mu.Lock()
	writes := j.committed && j.broken == nil && !j.cfg.ReadOnly && !j.st.Summary.Tombstone
	j.mu.Unlock()
	if !writes {
		return nil
	}
	return j.finish(ctx)
}

// Abandoned returns how many entries Close dropped that were never committed, and how many whose outcome is unknown.
func (j *Journal) Abandoned() (pending, doubtful int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.left[0], j.left[1]
}

// end refuses new calls and takes the lead for good; false where that was done before.
func (j *Journal) end(ctx context.Context) bool {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return false
	}
	j.closed = true
	for _, w := range j.waiters {
		w.ready <- j.notApplied("wait", backend.ErrClosed)
	}
	j.waiters = nil
	if !j.leading {
		j.leading = true
		j.mu.Unlock()
		return true
	}
	w := &waiter{ready: make(chan error, 1)}
	j.waiters = []*waiter{w}
	j.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
		j.mu.Lock()
		if j.flight != nil {
			j.flight.cancel()
		}
		j.mu.Unlock()
		<-w.ready
	}
	return true
}

// abandon ends what was not sent, and forgets what is not durable.
func (j *Journal) abandon() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, t := range j.queue {
		t.answer(Result{}, j.notApplied("commit", backend.ErrClosed))
	}
	j.queue = nil
	for _, e := range j.list {
		switch {
		case e.stage == inDoubt:
			j.left[1]++
		case !e.Deferred:
			j.left[0]++
		}
	}
	for _, t := range j.limbo {
		switch {
		case t.step.Anchor != nil && errors.Is(t.err, ErrUnknown): // they are in the list
		case errors.Is(t.err, ErrUnknown):
			j.left[1] += len(t.step.Entries)
		default:
			j.left[0] += len(t.step.Entries)
		}
	}
	j.dropAll()
}

// finish does what is owed and cheap. A segment that has grown to a quarter of what it may is closed and sealed: on
// disk a session rests compressed.
func (j *Journal) finish(ctx context.Context) error {
	if a := j.State().Active(); a != nil && a.Bytes >= j.cfg.Limits.RollBytes/4 {
		_ = j.rollNow(ctx) // else it stays as it is: no promise depends on it
	}
	if j.Broken() != nil {
		return nil
	}
	st, err := j.strategy.Confirm(ctx, j.takeIn(j.State()))
	if err != nil || !st.Sure() { // what is not certain is not published
		return err
	}
	return j.strategy.Finish(ctx, st)
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
		err = fmt.Errorf("close: background work was interrupted: %w", ctx.Err())
	}
	j.mu.Lock()
	if j.bg.cancel != nil {
		j.bg.cancel()
	}
	j.mu.Unlock()
	<-done
	return err
}
