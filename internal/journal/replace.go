package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
)

// replace is the strategy for stores that only replace whole objects: the durable tail of the transcript
// rides in checkpoint_latest, and a commit is one conditional PUT of it. What a PUT whose answer is lost
// has done is read from the object: each body holds a fresh commit id and the last 64 before it (I5).
type replace struct {
	cfg    *Config
	store  *store
	past   *Session
	handle replaceHandle
}

// replaceHandle is what the strategy needs of the handle that it serves.
type replaceHandle interface {
	// TakeIn gives st with what background work has made.
	TakeIn(st *State) *State
	// Start runs a job in the background unless one runs already; what it makes is for TakeIn.
	Start(job func(ctx context.Context) ([]change, error))
	// Wait waits until no job is under way.
	Wait()
	// Idle tells whether no job is under way, and all that was made is taken in.
	Idle() bool
	// Boundary is the ordinal up to which the tail is being sealed, or was: the commit behind it begins a
	// segment. 0 = none.
	Boundary() uint64
	// Bound sets the boundary; false where a job is under way, or one beyond first is set already.
	Bound(first, end uint64) bool
}

func newReplace(cfg *Config, s *store, past *Session, h replaceHandle) *replace {
	return &replace{cfg: cfg, store: s, past: past, handle: h}
}

func (r *replace) Load(ctx context.Context) (*State, error) {
	st, err := r.read(ctx)
	if err == nil && st.Summary.Tombstone {
		return nil, fmt.Errorf("session %s: %w: %w", r.cfg.Session, ErrDeleted, fs.ErrNotExist)
	}
	return st, err
}

// read is Load that returns a tombstone as well.
func (r *replace) read(ctx context.Context) (*State, error) {
	o, info, err := r.store.latest(ctx)
	if err != nil {
		return nil, err
	}
	st, err := restore(o, info)
	if err != nil {
		return nil, corrupt(info.Key, 0, err)
	}
	return st, nil
}

func (r *replace) Changed(ctx context.Context, st *State) (bool, error) {
	info, err := r.store.b.Stat(ctx, layout.CheckpointKey(r.cfg.Session))
	return err == nil && info.Version != st.version, err
}

// Prepare takes in what was sealed in the background. Where sealing is two thresholds behind (a process
// a turn that exits before its background work), it is done now: one more PUT.
func (r *replace) Prepare(ctx context.Context, c *composer) error {
	st := r.handle.TakeIn(c.next)
	l := &r.cfg.Limits
	if c.settle {
		r.handle.Wait()
		var err error
		if st = r.handle.TakeIn(st); len(st.Tail) > 0 {
			if st, err = r.sealNow(ctx, st); err != nil {
				return err
			}
		}
		if st, err = r.past.foldAll(ctx, st); err != nil {
			return err
		}
		st.Lineage = nil
	}
	if st.tailSize >= 2*l.SealBytes || len(st.Tail) >= 2*l.SealEntries {
		if r.handle.Idle() {
			var err error
			if st, err = r.sealNow(ctx, st); err != nil {
				return err
			}
			c.warn = append(c.warn, "sealing was behind: this commit wrote a segment first")
		}
	}
	if boundary := r.handle.Boundary(); boundary != 0 && boundary == st.Next && !st.opening {
		next := *st
		next.opening = true
		st = &next
	}
	if st.key == 0 && st.Summary.Commit == "" {
		next := *st
		var err error
		if next.key, err = r.store.key(); err != nil {
			return err
		}
		st = &next
	}
	c.next = st
	return nil
}

// sealNow writes the whole tail as a segment and takes it in.
func (r *replace) sealNow(ctx context.Context, st *State) (*State, error) {
	made, err := r.past.sealTail(ctx, st)
	if err != nil {
		return nil, err
	}
	next, err := st.with(made)
	if err != nil {
		return nil, err
	}
	opened := *next
	opened.opening = true
	return &opened, nil
}

// Confirm has nothing to do: an object that can be read is durable.
func (r *replace) Confirm(_ context.Context, st *State) (*State, error) { return st, nil }

// Publish PUTs the checkpoint of what was composed under the version of base, and finds out what became
// of it.
func (r *replace) Publish(ctx context.Context, base *State, c *composer) (*State, error) {
	next := c.next
	body, err := next.object(true).Encode()
	if err != nil {
		return nil, r.tooLarge(err)
	}
	c.size = len(body)
	if len(body) > checkpoint.SoftObject {
		c.warn = append(c.warn, fmt.Sprintf("checkpoint has %d bytes, over the soft limit of %d", len(body), checkpoint.SoftObject))
	}
	p := &put{r: r, base: base, next: next, body: body, mine: c.record.ID, cond: backend.IfMatch(base.version)}
	if base.Summary.Commit == "" {
		p.cond = backend.IfAbsent()
	}
	return p.run(ctx)
}

func (r *replace) tooLarge(err error) error {
	return &backend.Error{Op: "put", Key: layout.CheckpointKey(r.cfg.Session), Outcome: backend.NotApplied, Err: err}
}

// put is one conditional PUT until it is known what became of it.
type put struct {
	r     *replace
	base  *State
	next  *State
	body  []byte
	mine  string // id of the newest commit in body
	cond  backend.Cond
	doubt error // an answer was lost: the body may be in force, or may still come to be
}

// run sends the same bytes, under the same condition, until an answer or a read tells what became of
// them. Every try is bounded; what is not found out by then is Unknown.
func (p *put) run(ctx context.Context) (*State, error) {
	store := p.r.store
	key := layout.CheckpointKey(p.r.cfg.Session)
	var last error
	for try := range store.attempts {
		if try > 0 {
			if err := store.pause(ctx, try-1); err != nil {
				last = errors.Join(last, err)
				break
			}
		}
		info, err := store.b.Put(ctx, key, p.body, p.cond)
		if err == nil {
			return p.done(info.Version), nil
		}
		last = err
		switch {
		case busy(err):
			if p.doubt == nil {
				continue
			}
		case errors.Is(err, backend.ErrPrecondition):
		case backend.OutcomeOf(err) == backend.NotApplied:
			if p.doubt == nil {
				return nil, err
			}
		default:
			p.doubt = err
		}
		if st, over, err := p.look(ctx); over {
			return st, err
		}
	}
	return nil, p.giveUp(key, last)
}

func (p *put) done(v backend.Version) *State {
	p.next.version = v
	return p.next
}

// giveUp is the error when the tries are over: certain only if no answer was ever lost.
func (p *put) giveUp(key string, last error) error {
	outcome := backend.Unknown
	if p.doubt == nil {
		outcome = backend.NotApplied
	} else {
		last = errors.Join(p.doubt, last)
	}
	return &backend.Error{Op: "put", Key: key, Outcome: outcome, Err: last}
}

// look reads the object and judges. over is false where the same bytes are to be sent again.
func (p *put) look(ctx context.Context) (st *State, over bool, err error) {
	now, err := p.r.read(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.base.Summary.Commit == "":
		return nil, false, nil // nothing there yet
	case errors.Is(err, fs.ErrNotExist):
		return nil, true, corrupt(layout.CheckpointKey(p.r.cfg.Session), 0, fmt.Errorf("the object is gone: %w", codec.ErrFormat))
	case err != nil:
		return nil, false, nil //nolint:nilerr // the store does not answer: try again while tries are left
	case now.Summary.Commit == p.mine:
		return p.done(now.version), true, nil
	case now.has(p.mine):
		return p.next, true, nil // in force, and superseded since: the next commit will see it
	case p.base.Summary.Commit == "":
		return nil, true, p.taken()
	case now.Summary.Commit == p.base.Summary.Commit:
		p.cond = backend.IfMatch(now.version) // an old version was paired with a new body, or a try was lost
		return nil, false, nil
	case now.has(p.base.Summary.Commit):
		return nil, true, &moved{now: now}
	}
	return p.search(ctx, now)
}

// search decides where the lineage no longer reaches back to base: our commit is at its seq in the log,
// or it is nowhere.
func (p *put) search(ctx context.Context, now *State) (*State, bool, error) {
	for c, err := range p.r.past.Log(ctx, now, p.next.Summary.Seq) {
		if err != nil {
			return nil, false, nil //nolint:nilerr // not found out: try again while tries are left
		}
		if c.Commit == p.mine {
			return p.next, true, nil
		}
		break
	}
	return nil, true, &moved{now: now}
}

// taken is the error of a first commit whose session exists already.
func (p *put) taken() error {
	return &backend.Error{
		Op: "create", Key: p.r.cfg.Session, Outcome: backend.NotApplied,
		Err: fmt.Errorf("the session exists already: %w", fs.ErrExist),
	}
}

// Acknowledged seals and folds in the background once the thresholds are passed.
func (r *replace) Acknowledged(st *State) {
	l := &r.cfg.Limits
	if level, refs, ok := st.foldable(); ok {
		r.handle.Start(func(ctx context.Context) ([]change, error) {
			made, err := r.past.fold(ctx, level, refs, st.Summary.Epoch)
			return []change{made}, err
		})
		return
	}
	if st.tailSize < l.SealBytes && len(st.Tail) < l.SealEntries {
		return
	}
	if !r.handle.Bound(st.Tail[0].Ord, st.Next) {
		return
	}
	r.handle.Start(func(ctx context.Context) ([]change, error) {
		made, err := r.past.sealTail(ctx, st)
		return []change{made}, err
	})
}

// Finish owes nothing: every commit wrote the whole checkpoint.
func (r *replace) Finish(context.Context, *State) error { return nil }

// busy is the error of a store that asks to try again: nothing was applied.
func busy(err error) bool {
	return errors.Is(err, backend.ErrBusy) && backend.OutcomeOf(err) == backend.NotApplied
}
