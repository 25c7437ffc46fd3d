package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
)

// appendLog is the strategy for stores that append: the active segment is the truth, a commit is one
// compare-and-append to it, and checkpoint_latest is a cache that is written now and then behind it.
type appendLog struct {
	cfg    *Config
	store  *store
	past   *Session
	handle appendHandle
	b      backend.Appender

	mu      sync.Mutex
	version backend.Version // of checkpoint_latest, as this handle last saw it
	exists  bool            // there is a checkpoint_latest
	seq     uint64          // of the commit that it holds
	batches uint64          // writes to the log by then
	bytes   int64           // of the transcript then
}

// appendHandle is what the strategy needs of the handle that it serves.
type appendHandle interface {
	State() *State
	Broken() error
	// TakeIn gives st with what background work has made.
	TakeIn(st *State) *State
	// Start runs a job in the background unless one runs already; what it makes is for TakeIn.
	Start(job func(ctx context.Context) ([]change, error))
	// Wait waits until no job is under way.
	Wait()
	// Compose begins a batch of the strategy's own; Accept acknowledges it. The handle leads.
	Compose(base *State) *composer
	Accept(c *composer, next *State)
	// Adopt makes st the handle's state: of the same commit, but tidier. The handle leads.
	Adopt(st *State)
}

func newAppendLog(cfg *Config, s *store, past *Session, h appendHandle, b backend.Appender) *appendLog {
	return &appendLog{cfg: cfg, store: s, past: past, handle: h, b: b}
}

func (a *appendLog) activeKey(st *State) string {
	return segmentOf(st.active()).PlainKey(a.cfg.Session)
}

// Prepare begins a new session's first segment, or confirms what the batch builds upon.
func (a *appendLog) Prepare(ctx context.Context, c *composer) error {
	st := a.handle.TakeIn(c.next)
	c.next = st
	if st.active() == nil {
		return a.begin(c)
	}
	st, err := a.Confirm(ctx, st)
	if err == nil && !st.sure() {
		err = a.reread(ctx)
	}
	if err != nil {
		return err
	}
	c.next, c.synced = st, st.durable
	return nil
}

// Confirm sees to it that all of the log up to st is on disk: a sync that failed in another process leaves
// pages that look clean and never reached it, so what nobody promised is written in place again (I13).
func (a *appendLog) Confirm(ctx context.Context, st *State) (*State, error) {
	spans := st.unsure
	if end := st.active().Bytes; st.durable < end {
		spans = append(slices.Clone(spans), span{key: a.activeKey(st), from: st.durable, end: end})
	}
	if len(spans) == 0 {
		return st, nil
	}
	for _, s := range spans {
		size, err := a.size(ctx, s.key)
		if err == nil && size < s.end {
			err = backend.ErrPrecondition
		}
		if err == nil {
			_, err = a.b.Resync(ctx, s.key, s.from, size)
		}
		if errors.Is(err, backend.ErrPrecondition) || errors.Is(err, fs.ErrNotExist) {
			return st, nil // somebody else was here just now: the state says that nothing is confirmed
		}
		if err != nil {
			return nil, err
		}
	}
	next := *st
	next.durable, next.unsure = st.active().Bytes, nil
	return &next, nil
}

// begin composes the start of a session's first segment.
func (a *appendLog) begin(c *composer) error {
	next := *c.next
	ref, lines, err := a.newSegment(&next, layout.Segment{Epoch: c.epoch, Rnd: layout.FirstRandom}, 0)
	if err != nil {
		return err
	}
	next.Plain, next.key = []checkpoint.PlainRef{ref}, ref.Key
	c.next, c.bytes = &next, lines
	return nil
}

// newSegment makes the reference to a segment that begins behind st, and the lines that it starts with.
// firstSeq is the seq of the first commit in it.
func (a *appendLog) newSegment(st *State, name layout.Segment, firstSeq uint64) (checkpoint.PlainRef, []byte, error) {
	key, err := a.store.key()
	if err != nil {
		return checkpoint.PlainRef{}, nil, err
	}
	id, now, err := a.store.lineID()
	if err != nil {
		return checkpoint.PlainRef{}, nil, err
	}
	p := checkpoint.Prelude{
		ID: id, Time: now, Session: a.cfg.Session, First: name.First, FirstSeq: firstSeq, Epoch: name.Epoch, Key: key,
	}
	var lines []byte
	if prev := st.active(); prev != nil {
		p.PrevName, p.PrevBytes, p.PrevSelf = prev.Name, prev.Bytes, st.self
	} else {
		lines = append(append(lines, st.Header...), '\n')
	}
	line, err := p.Line()
	if err != nil {
		return checkpoint.PlainRef{}, nil, err
	}
	lines = append(append(lines, line...), '\n')
	return checkpoint.PlainRef{
		Name: name.Name(), First: name.First, FirstSeq: firstSeq, Bytes: int64(len(lines)), Epoch: name.Epoch, Key: key, Self: st.self,
	}, lines, nil
}

// Publish appends what was composed to the active segment, iff that ends where base does.
func (a *appendLog) Publish(ctx context.Context, base *State, c *composer) (*State, error) {
	begun := base.active() == nil
	if err := a.roll(ctx, c); err != nil {
		return nil, err
	}
	c.size = len(c.bytes)
	next := c.next
	next.batches++
	if begun {
		return a.create(ctx, c)
	}
	info, err := a.b.Append(ctx, a.activeKey(base), base.active().Bytes, c.bytes)
	switch {
	case err == nil:
		if next.active().Name == base.active().Name {
			next.durable = info.Size
		}
		return next, nil
	case errors.Is(err, backend.ErrPrecondition):
		return nil, a.unchanged(ctx, base)
	}
	return nil, err
}

// unchanged is behind for an append that had no effect, whatever else failed.
func (a *appendLog) unchanged(ctx context.Context, base *State) error {
	err := a.behind(ctx, base)
	var m *moved
	var f *Failure
	if errors.As(err, &m) || errors.As(err, &f) {
		return err
	}
	return notApplied("append", a.activeKey(base), err)
}

// create writes a session's first segment: that is the creation of the session.
func (a *appendLog) create(ctx context.Context, c *composer) (*State, error) {
	next := c.next
	first := layout.Segment{Epoch: c.epoch, Rnd: layout.FirstRandom}
	if o, _, err := a.store.latest(ctx); err == nil {
		return nil, a.taken(o.Summary.Tombstone)
	}
	err := a.store.create(ctx, first.PlainKey(a.cfg.Session), c.bytes)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, a.taken(false)
	case err != nil:
		return nil, err
	}
	if next.active().Name == first.Name() {
		next.durable = next.active().Bytes
	}
	_ = a.save(ctx, next) // a cache: what is acknowledged is in the log
	return next, nil
}

func (a *appendLog) taken(deleted bool) error {
	cause := fmt.Errorf("the session exists already: %w", fs.ErrExist)
	if deleted {
		cause = fmt.Errorf("the id was used by a session that is deleted, and is never used again: %w", fs.ErrExist)
	}
	return &backend.Error{Op: "create", Key: a.cfg.Session, Outcome: backend.NotApplied, Err: cause}
}

// roll closes the active segment with the batch where that makes it large enough: the next segment is
// created first, and the last commit line of the batch names it. So there is one chain, and a stale
// writer meets a changed length.
func (a *appendLog) roll(ctx context.Context, c *composer) error {
	st := c.next
	l := &a.cfg.Limits
	ref := st.active()
	if ref.Bytes < l.RollBytes && ref.Count < uint64(l.RollEntries) && !c.mustRoll {
		return nil
	}
	rnd, err := a.store.random()
	if err != nil {
		return err
	}
	name := layout.Segment{First: st.Next + 1, Epoch: c.epoch, Rnd: rnd}
	if err := c.roll(name.Name()); err != nil {
		return err
	}
	next := *c.next
	opened, lines, err := a.newSegment(&next, name, next.Summary.Seq+1)
	if err != nil {
		return err
	}
	if err := a.store.create(ctx, name.PlainKey(a.cfg.Session), lines); err != nil {
		return err
	}
	c.next = next.rolled(opened)
	return nil
}

// behind finds out why the active segment does not end where base does. It returns a *moved with the
// newest state, which is base itself where only torn bytes stood there and have been moved aside.
func (a *appendLog) behind(ctx context.Context, base *State) error {
	key := a.activeKey(base)
	size, err := a.size(ctx, key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || size == base.active().Bytes {
		return a.reread(ctx)
	}
	if size < base.active().Bytes {
		return corrupt(key, size, fmt.Errorf("the segment had %d committed bytes: %w", base.active().Bytes, codec.ErrFormat))
	}
	now, rest, err := a.play(ctx, base)
	if err != nil {
		return err
	}
	if now.Summary.Seq > base.Summary.Seq {
		return &moved{now: now}
	}
	if rest == 0 {
		return a.reread(ctx)
	}
	now, err = a.mend(ctx, base)
	if err != nil {
		return err
	}
	return &moved{now: now}
}

// reread answers with the newest state, read from the start.
func (a *appendLog) reread(ctx context.Context) error {
	now, err := a.read(ctx)
	switch {
	case errors.Is(err, ErrDeleted):
		return &Failure{Err: ErrFenced}
	case err != nil:
		return err
	}
	return &moved{now: now}
}

func (a *appendLog) Changed(ctx context.Context, st *State) (bool, error) {
	size, err := a.size(ctx, a.activeKey(st))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && size != st.active().Bytes, err
}

// size is the length of an object. Stat would do as well, but a disk has to read the whole object to tell
// its version.
func (a *appendLog) size(ctx context.Context, key string) (int64, error) {
	_, info, err := a.b.Get(ctx, key, backend.Tail(0))
	return info.Size, err
}

// notApplied is a failed read in the course of a write that had no effect.
func notApplied(op, key string, err error) error {
	return &backend.Error{Op: op, Key: key, Outcome: backend.NotApplied, Err: err}
}
