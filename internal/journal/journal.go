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
// A handle writes one step at a time (ADR 0036). The path of a commit, in commit.go:
//
//  1. Hold takes the lock, in order of arrival. A doubt of an earlier request is ended (doubt.go).
//  2. A known idempotency key answers (keys.go).
//  3. The caller's plan makes the step; judge (judge.go) decides whether it may be stored, and on which line.
//  4. compose (request.go) has the strategy confirm what the step builds upon; compose.go makes the lines: bytes,
//     and the State that state.Advance makes of them.
//  5. The strategy publishes: append.go by one compare-and-append, replace.go by one conditional PUT.
//  6. accept (request.go) moves tip and view, and starts what is due in the background (upkeep.go): sealing, folding,
//     checkpoints, snapshots. A lost condition begins again at 2; an unknown outcome is the handle's doubt.
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
	*store.History // reads what is durable
	cfg            Config
	store          *store.Store
	strategy       strategy
	lock           lock // held by every call that writes, or changes the buffer

	completed string // the newest erasure that was seen to be complete; guarded by lock

	mu sync.Mutex // guards what follows, for moments
	position
	buffer
	doubt *request // of unknown outcome; nil = none
	last  Outcome  // of the newest doubt that was ended

	sending context.CancelFunc // ends the request on its way; for Close
	work    sync.WaitGroup     // background work, joined by Close
	bg      background
}

// position is where a handle is in the history of its session.
type position struct {
	// view is the commit that the caller sees: of its own turns and moves, of Open and Reload, or one that differs in
	// neither branch nor head nor document. tip is the newest state that the handle knows: requests are composed on it.
	view, tip *state.State
	stood     *state.State // the state that the strategy knows as the handle's
	fresh     bool         // the next commit carries the head's epoch + 1
	claim     uint64       // seq of the newest own claim
	claimant  string       // Step.Writer of that claim
	committed bool         // a commit of this handle is in the history
	deleted   error        // a write met the deletion of the session, which is for ever; nil = none did
}

// buffer is what was appended and is not stored.
type buffer struct {
	list    []*Entry          // in append order
	ids     map[string]*Entry // of list
	head    Place             // from which the next entry grows
	pos     uint64            // appends so far
	version uint64            // grows with every change that readers see
	blobs   map[string][]byte // images that are not stored yet, by SHA-256
}

// strategy is what differs between stores that append and stores that only replace. It keeps no queue and starts no
// work of its own: it returns what is to be done, and the journal does it.
type strategy interface {
	// Load reads the newest state: ErrNotExist if there is no session, ErrDeleted if there was one.
	Load(ctx context.Context) (*state.State, error)
	// Adopt takes a state that was read: the handle composes on it from now on.
	Adopt(st *state.State)
	// Prepare readies a request before its first line: what must be durable before anything is written to
	// the log again is. A *moved error means that another writer's state is newer.
	Prepare(ctx context.Context, req *request, bg sealing) error
	// Confirm makes sure that all that st was read from survives power loss, before it is acknowledged. Where others
	// changed the log meanwhile it returns st as it was, which is not Sure.
	Confirm(ctx context.Context, st *state.State) (*state.State, error)
	// Publish makes a request durable. A *moved error means that nothing was stored and that another writer's state is
	// newer than its base.
	Publish(ctx context.Context, req *request) (*state.State, error)
	// Resend sends what Publish sent and no one acknowledged: the same bytes, under the same condition. now is the
	// newest state: the one that the request was made on, or the one after its first k lines. A *moved error: look
	// again.
	Resend(ctx context.Context, req *request, now *state.State, k int) (*state.State, error)
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
	j.adopt(st)
	return j, nil
}

// Create makes a handle on a session that does not exist yet; its first commit creates it. No I/O. With Config.Again
// the first write reads the tombstone of a session that was deleted, unless the function Again did.
func Create(cfg Config, g state.Genesis) *Journal {
	j := newJournal(cfg)
	j.adopt(g.State(j.cfg.Session, j.cfg.Profile, j.cfg.MaxBytes))
	if cfg.grave != nil {
		j.adopt(j.after(cfg.grave))
	}
	return j
}

// begin finds out which incarnation of its id a session is that is still to be created, before any of it is stored.
func (j *Journal) begin(ctx context.Context) error {
	j.mu.Lock()
	due := j.cfg.Again && j.tip.Summary.Commit == "" && j.tip.Since == 0 && j.doubt == nil
	j.mu.Unlock()
	if !due {
		return nil
	}
	cfg, err := Again(ctx, j.cfg)
	if err != nil || cfg.grave == nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.tip.Summary.Commit != "" || j.tip.Since != 0 { // another call was first
		return nil
	}
	st := j.after(cfg.grave)
	j.view, j.tip, j.stood = st, st, st
	j.store.Bind(st.Since)
	j.strategy.Adopt(st)
	j.version++
	return nil
}

// after returns the state of a session that is still to be created, after a tombstone.
func (j *Journal) after(g *grave) *state.State {
	st := *j.tip
	st.Since, st.Summary.Epoch = g.next, g.next-1
	st.Version, st.Saved, st.CAS = g.version, state.Saved{Exists: true}, g.cas
	return &st
}

func newJournal(cfg Config) *Journal {
	cfg.Limits = cfg.Limits.OrDefaults()
	j := &Journal{cfg: cfg}
	j.store = storeFor(&cfg)
	j.History = store.NewHistory(j.store, j.Latest)
	if a, ok := cfg.Backend.(backend.Appender); ok {
		j.strategy = newAppend(&j.cfg, j.store, j.History, a)
	} else {
		j.strategy = newReplace(&j.cfg, j.store, j.History)
	}
	return j
}

func storeFor(cfg *Config) *store.Store {
	return &store.Store{
		Backend: cfg.Backend, Session: cfg.Session, Attempts: cfg.Limits.Attempts,
		Part: cfg.Limits.PartBytes, Sleep: cfg.Sleep, Rand: cfg.Rand, Now: cfg.Now,
	}
}

// Tools returns what a handle on the session of cfg would read and write with.
func Tools(cfg Config) (*store.Store, *store.History) {
	cfg.Limits = cfg.Limits.OrDefaults()
	s := storeFor(&cfg)
	s.Bind(cfg.Since)
	return s, store.NewHistory(s, nil)
}

// State returns the state that the caller sees. It is immutable.
func (j *Journal) State() *state.State {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.view
}

// Behind reports whether the view differs from the newest state that the handle knows.
func (j *Journal) Behind() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !sameHead(j.view, j.tip)
}

// Fenced reports whether another writer is known to have claimed the session since the view.
func (j *Journal) Fenced() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fences(j.tip, j.view.Summary.Seq)
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
	if j.view.Summary.Commit == "" || st.Summary.Seq > j.view.Summary.Seq {
		j.adopt(st)
	}
}

// Close refuses new calls and those that wait for the lock, waits for the request that was sent, and joins background
// work, all bounded by ctx. If this handle committed, on disk it writes checkpoint_latest after the log was
// confirmed; a handle that committed nothing writes nothing (I14). It settles nothing: the error is ErrUncommitted
// for entries that were not stored, and ErrUnknown for a doubt. Idempotent.
func (j *Journal) Close(ctx context.Context) error {
	if !j.lock.shut(ctx, j.interrupt) {
		return nil
	}
	j.mu.Lock()
	left := j.abandoned()
	doubt := j.doubt != nil
	writes := j.committed && !doubt && !j.cfg.ReadOnly && !j.tip.Summary.Tombstone
	j.drop()
	j.mu.Unlock()
	if err := j.join(ctx); err != nil {
		return errors.Join(left, err)
	}
	if !writes {
		return left
	}
	return errors.Join(left, j.finish(ctx))
}

// interruptible returns a context that Close can end.
func (j *Journal) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sending = cancel
	return ctx, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.sending = nil
		cancel()
	}
}

// interrupt ends the request on its way.
func (j *Journal) interrupt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sending != nil {
		j.sending()
	}
}

// abandoned returns the error of what Close drops; j.mu is held. Entries of a commit that was deferred are not missed.
func (j *Journal) abandoned() error {
	var err error
	if d := j.doubt; d != nil {
		err = &store.Failure{Err: fmt.Errorf("%w: the handle was closed", ErrUnknown), Commit: d.id()}
	}
	n := 0
	for _, e := range j.list {
		if !e.Deferred {
			n++
		}
	}
	if j.doubt != nil {
		n -= len(j.doubt.taken)
	}
	if n > 0 {
		err = errors.Join(fmt.Errorf("%d entries: %w", n, ErrUncommitted), err)
	}
	return err
}

// finish does what is owed and cheap. A segment that has grown to a quarter of what it may is closed and sealed: on
// disk a session rests compressed.
func (j *Journal) finish(ctx context.Context) error {
	if a := j.Tip().Active(); a != nil && a.Bytes >= j.cfg.Limits.RollBytes/4 {
		_ = j.rollNow(ctx) // else it stays as it is: no promise depends on it
	}
	if j.InDoubt() {
		return nil
	}
	st, err := j.strategy.Confirm(ctx, j.takeIn(j.Tip()))
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
