// Package journal guarantees that what a commit acknowledged is in the history of every later head
// (I1), that a commit reported as failed never is, and that one in doubt is reported as in doubt (I2).
//
// It is the commit protocol of docs/adr/0005: one Journal is one writer's handle on one session. Two
// strategies stand behind it, chosen by what the backend can do. Where it can only replace whole
// objects, the tail of the transcript rides in checkpoint_latest, and a commit is one conditional PUT
// of it. Where it can append, the active segment is the truth, a commit is one append, and
// checkpoint_latest is a cache behind it.
//
// Everything that a handle knows of the session is a State, an immutable value. A commit composes the
// next State from the last one, and reading somebody else's commits from the log makes the same value
// by the same code (advance), so what is acknowledged and what is recovered cannot differ.
package journal

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/transcript"
)

// Limits are the protocol's thresholds. Zero fields take the defaults of DefaultLimits.
type Limits struct {
	SealBytes      int64 // replace: durable tail, in bytes of lines, from which it is sealed
	SealEntries    int   // replace: the same in lines
	RollBytes      int64 // append: size of the active segment from which the next one begins
	RollEntries    int   // append: the same in lines
	PublishCommits int   // append: commits between two writes of checkpoint_latest
	PublishBytes   int64 // append: log bytes between two writes of checkpoint_latest
	Keyframe       int   // commits between two that carry their document whole
	WholeDoc       int   // bytes up to which a changed document always goes whole
	Attempts       int   // tries of one conditional PUT, and rounds of any other loop of the protocol
}

// DefaultLimits are the figures that the design gives.
var DefaultLimits = Limits{
	SealBytes: 256 << 10, SealEntries: 256, RollBytes: 1 << 20, RollEntries: 16384,
	PublishCommits: 64, PublishBytes: 256 << 10, Keyframe: 64, WholeDoc: 4 << 10, Attempts: 12,
}

// Config is what a handle needs. Time, randomness and I/O come in here and nowhere else.
type Config struct {
	Backend  backend.Backend
	Session  string // a valid session id
	Writer   string // who commits, for the log
	Now      func() time.Time
	Rand     io.Reader // safe for concurrent use
	Sleep    func(ctx context.Context, d time.Duration) error
	Go       func(job func()) // runs background work; nil = in a goroutine that Close joins
	Profile  transcript.Profile
	MaxBytes int // bound of the working context; 0 = 1 MiB
	ReadOnly bool
	Limits   Limits
}

// Journal is one writer's handle on one session. Its methods are safe for concurrent use.
type Journal struct {
	cfg      Config
	store    *store
	past     *Session
	strategy strategy

	mu      sync.Mutex
	st      *State // the newest state that this handle acknowledged or read
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
	// load reads the newest state: ErrNotExist if there is no session, ErrDeleted if there was one.
	load(ctx context.Context) (*State, error)
	// prepare readies the composer before the first commit of a batch: what was sealed meanwhile is
	// swapped in, and what must be durable before anything is written to the log again is.
	prepare(ctx context.Context, c *composer) error
	// confirm makes sure that all that st was read from survives power loss, before it is acknowledged.
	confirm(ctx context.Context, st *State) (*State, error)
	// publish makes what was composed on base durable. When it returns a *moved, nothing was stored and
	// somebody else's state is newer than base.
	publish(ctx context.Context, base *State, c *composer) (*State, error)
	// acknowledged runs after a publish, off the acknowledgement path.
	acknowledged(st *State, b *batch)
	// finish runs at Close: what is still owed and cheap is done.
	finish(ctx context.Context, st *State) error
	// changed tells cheaply whether anyone committed after st.
	changed(ctx context.Context, st *State) (bool, error)
}

// moved says that base is no longer the head. It is turned into a conflict or folded by the caller.
type moved struct{ now *State }

func (m *moved) Error() string { return "the head moved" }

// Open reads the newest state of an existing session: one object read on a store that only replaces,
// one file read and a bounded log tail on one that appends. It writes nothing (I14).
func Open(ctx context.Context, cfg Config) (*Journal, error) {
	j := newJournal(cfg)
	st, err := j.strategy.load(ctx)
	if err != nil {
		return nil, err
	}
	j.st = st
	return j, nil
}

// Create makes a handle on a session that does not exist yet; its first commit creates it. No I/O.
func Create(cfg Config, g Genesis) *Journal {
	j := newJournal(cfg)
	j.st = g.state(j.cfg.Session, j.cfg.Profile, j.cfg.MaxBytes)
	return j
}

func newJournal(cfg Config) *Journal {
	cfg.Limits = cfg.Limits.orDefaults()
	j := &Journal{cfg: cfg, fresh: true}
	j.store = &store{b: cfg.Backend, id: cfg.Session, attempts: cfg.Limits.Attempts, sleep: cfg.Sleep, rand: cfg.Rand, now: cfg.Now}
	j.past = newSession(j.store, j.Latest)
	if a, ok := cfg.Backend.(backend.Appender); ok {
		j.strategy = newAppendLog(j, a)
	} else {
		j.strategy = newReplace(j)
	}
	return j
}

func (l Limits) orDefaults() Limits {
	d := DefaultLimits
	pick := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	pick64 := func(v *int64, def int64) {
		if *v == 0 {
			*v = def
		}
	}
	pick64(&l.SealBytes, d.SealBytes)
	pick(&l.SealEntries, d.SealEntries)
	pick64(&l.RollBytes, d.RollBytes)
	pick(&l.RollEntries, d.RollEntries)
	pick(&l.PublishCommits, d.PublishCommits)
	pick64(&l.PublishBytes, d.PublishBytes)
	pick(&l.Keyframe, d.Keyframe)
	pick(&l.WholeDoc, d.WholeDoc)
	pick(&l.Attempts, d.Attempts)
	return l
}

// State is the newest state that this handle acknowledged or read. It is immutable.
func (j *Journal) State() *State {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.st
}

// Peek calls f with that state while no commit can be acknowledged, so that Entry.Done and the state are of
// one moment. f must not call the journal.
func (j *Journal) Peek(f func(st *State)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(j.st)
}

// Latest reads the newest state that anyone acknowledged; the handle stays where it is.
func (j *Journal) Latest(ctx context.Context) (*State, error) { return j.strategy.load(ctx) }

// Changed tells, at the cost of one Stat, whether anyone committed after st.
func (j *Journal) Changed(ctx context.Context, st *State) (bool, error) {
	return j.strategy.changed(ctx, st)
}

// Follow moves the handle to st, which Latest gave: how a read-only handle goes along.
func (j *Journal) Follow(st *State) {
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
	return j.strategy.finish(ctx, j.State())
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
