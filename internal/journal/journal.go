// Package journal guarantees that what a commit acknowledged is in the history of every later head
// (I1), that a commit reported as failed never is, and that one in doubt is reported as in doubt (I2).
//
// It is the commit protocol of docs/adr/0005: one Journal is one writer's handle on one session. Two
// strategies implement it, chosen by what the backend can do. Where it can only replace whole
// objects, the tail of the transcript rides in checkpoint_latest, and a commit is one conditional PUT
// of it. Where it can append, the active segment is the truth, a commit is one append, and
// checkpoint_latest is a cache of it.
//
// Everything that a handle knows of the session is a state.State, an immutable value. A commit computes the next
// state.State from the previous one. Reading the commits of another writer from the log computes the same value with
// the same code (state.Advance), so what is acknowledged and what is recovered cannot differ.
//
// A handle writes one step at a time (ADR 0036). The path of a commit, in commit.go; docs/architecture.md has the same
// steps with the files around them:
//
//  1. Hold takes the lock, in order of arrival. Write ends the doubt of an earlier request (doubt.go).
//  2. If the idempotency key of the step is known, its receipt is returned (keys.go).
//  3. The caller's plan makes the step.
//  4. judge (judge.go) decides whether the step may be stored: at the head, or as a branch.
//  5. compose (request.go) calls ReadyBase of the strategy, which makes the base durable. compose.go makes the lines
//     and, with state.Advance, the State after them.
//  6. Publish of the strategy stores the lines. This is the commit point: in append.go one compare-and-append with one
//     sync, in replace.go one conditional PUT. If the condition was lost to another writer, Write takes the newest
//     state and begins again at 2. If the outcome is unknown, the request becomes the doubt of the handle.
//  7. acknowledge (request.go) moves tip and view in memory and starts the background work that is due (upkeep.go):
//     sealing, folding, checkpoints.
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
	adopted   *state.State // the state that was last passed to strategy.Adopt, or that its Publish returned
	fresh     bool         // the next commit has the epoch of the head + 1
	claim     uint64       // seq of the newest claim by this handle
	claimant  string       // Step.Writer of that claim
	committed bool         // a commit of this handle is in the history
	deleted   error        // ErrDeleted, after a write found that the session is deleted; nil = no write did
}

// buffer holds the entries that were appended and are not stored yet.
type buffer struct {
	list    []*Entry          // in append order
	ids     map[string]*Entry // of list
	head    Place             // the parent of the next entry
	pos     uint64            // number of entries appended to this handle so far
	version uint64            // incremented by every change that readers see
	blobs   map[string][]byte // images that are not stored yet, by SHA-256
}

// strategy is what differs between stores that append and stores that only replace. It keeps no queue and starts no
// work of its own: it returns what is to be done, and the journal does it.
type strategy interface {
	// Load reads the newest state: ErrNotExist if there is no session, ErrDeleted if there was one.
	Load(ctx context.Context) (*state.State, error)
	// Adopt sets the state, as read from the store, that the handle composes on from now on.
	Adopt(st *state.State)
	// ReadyBase prepares req.next, the state that the lines of a request are composed on: it makes durable what must be
	// before the next write. It stores no part of the request. A *recompose error: compose on another state.
	ReadyBase(ctx context.Context, req *request, bg sealing) error
	// Harden makes the objects that st was read from durable, so that st may be acknowledged. It returns the state that
	// is Sure then, or st unchanged, not Sure, if another writer changed the log meanwhile.
	Harden(ctx context.Context, st *state.State) (*state.State, error)
	// Publish stores a request durably and returns the state after it. A *recompose error: nothing was stored, because
	// the base of the request is not the newest state or the log had torn bytes.
	Publish(ctx context.Context, req *request) (*state.State, error)
	// Resend sends the bytes of a request again whose outcome is unknown, under the same condition. now is the newest
	// state: the base of the request, or the state after its first k lines. A *recompose error: read the newest state
	// again.
	Resend(ctx context.Context, req *request, now *state.State, k int) (*state.State, error)
	// Upkeep returns the background work that is due after a commit; nil = none.
	Upkeep(st *state.State, bg sealing) *job
	// Finish writes the checkpoint that is due when the handle closes. st is Sure.
	Finish(ctx context.Context, st *state.State) error
	// Changed reports whether any writer committed after st. It costs one Stat or one read of no bytes.
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

// Create returns a handle on a session that does not exist yet; its first commit creates the session. Create does no
// I/O. With Config.Again the first write reads the tombstone of the deleted session, unless the function Again has read
// it.
func Create(cfg Config, g state.Genesis) *Journal {
	j := newJournal(cfg)
	j.adopt(g.State(j.cfg.Session, j.cfg.Profile, j.cfg.MaxBytes))
	if cfg.grave != nil {
		j.adopt(j.after(cfg.grave))
	}
	return j
}

// begin sets the first epoch of a session that is to be created in place of a deleted one with the same id, before any
// of it is stored. It does nothing for other sessions.
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
	j.view, j.tip, j.adopted = st, st, st
	j.store.Bind(st.Since)
	j.strategy.Adopt(st)
	j.version++
	return nil
}

// after returns the state of a session that is to be created after the deleted session of a tombstone.
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

// Latest reads the newest state of the session from the store. The handle does not move to it.
func (j *Journal) Latest(ctx context.Context) (*state.State, error) { return j.strategy.Load(ctx) }

// Changed reports, at the cost of one request, whether any writer committed after st.
func (j *Journal) Changed(ctx context.Context, st *state.State) (bool, error) {
	return j.strategy.Changed(ctx, st)
}

// Follow moves a read-only handle to st, which Latest returned. It ignores a state that is not newer.
func (j *Journal) Follow(st *state.State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.view.Summary.Commit == "" || st.Summary.Seq > j.view.Summary.Seq {
		j.adopt(st)
	}
}

// Close refuses new calls and those that wait for the lock, waits for the request that was sent, and joins background
// work, all bounded by ctx. If this handle committed, on disk it makes the log durable and writes checkpoint_latest; a
// handle that committed nothing writes nothing (I14). It neither stores entries nor ends a doubt: the error is
// ErrUncommitted for entries that were not stored, and ErrUnknown for a doubt. Idempotent.
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

// interrupt cancels the request that is under way, if any.
func (j *Journal) interrupt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sending != nil {
		j.sending()
	}
}

// abandoned returns the error for the entries and the doubt that Close drops; nil = none. Entries of a deferred commit
// do not count. The caller holds j.mu.
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

// finish does the work of Close on the store. On disk it closes and seals a segment that has at least a quarter of
// Limits.RollBytes, so that a closed session is compressed.
func (j *Journal) finish(ctx context.Context) error {
	if a := j.Tip().Active(); a != nil && a.Bytes >= j.cfg.Limits.RollBytes/4 {
		_ = j.rollNow(ctx) // else it stays as it is: no promise depends on it
	}
	if j.InDoubt() {
		return nil
	}
	st, err := j.strategy.Harden(ctx, j.takeIn(j.Tip()))
	if err != nil || !st.Sure() { // a checkpoint must not cover bytes that may be lost
		return err
	}
	return j.strategy.Finish(ctx, st)
}

// join waits for background work, at most closeWait and no longer than ctx. Then it cancels the rest and waits for its
// end.
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
