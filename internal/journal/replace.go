package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// replaceStrategy is the commit protocol of one handle on a store that only replaces.
type replaceStrategy struct {
	cfg   *Config
	store *store.Store
	past  *store.History
	acked int                // commits that the handle has acknowledged; the leader counts
	last  *checkpoint.Object // as encoded last: the next shares what is compressed
	runs  []codec.Ref        // of the id index, that the newest commit of the handle names
	old   []codec.Ref        // that no commit names any more
}

func newReplace(cfg *Config, s *store.Store, past *store.History) *replaceStrategy {
	return &replaceStrategy{cfg: cfg, store: s, past: past}
}

// Adopt has nothing to note: a state names the version that it was read under.
func (r *replaceStrategy) Adopt(*state.State) {}

// Load reads the newest state: one object. If there is none, one listing shows whether the session never existed or
// lost its checkpoint: it exists as long as one of its segments does, and must not begin again over what is left.
func (r *replaceStrategy) Load(ctx context.Context) (*state.State, error) {
	st, _, err := r.read(ctx)
	switch {
	case err == nil && st.Summary.Tombstone:
		return nil, store.Deleted(st.Object(false))
	case errors.Is(err, fs.ErrNotExist):
		return nil, r.lost(ctx, err)
	}
	return st, err
}

// lost returns the error of a session without checkpoint_latest: absent where no segment of it is there.
func (r *replaceStrategy) lost(ctx context.Context, absent error) error {
	o := backend.ListOptions{Prefix: layout.SessionPrefix(r.cfg.Session) + layout.Transcript}
	if r.store.Since() == 0 {
		o.Limit = 1
	}
	for info, err := range r.store.Backend.List(ctx, o) {
		if err != nil {
			return err
		}
		seg, _, ours := layout.ParseSegmentKey(info.Key)
		if !ours {
			break
		}
		if seg.Epoch < r.store.Since() {
			continue // of a session that was deleted
		}
		switch _, _, err := r.read(ctx); {
		case err == nil: // it was written between the two looks
			return absent
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		return store.Corrupt(layout.CheckpointKey(r.cfg.Session), 0,
			fmt.Errorf("it is not there, but segments of the transcript are: %w", codec.ErrFormat))
	}
	return absent
}

// read is Load that returns a tombstone as well, and what the object is that it read.
func (r *replaceStrategy) read(ctx context.Context) (*state.State, backend.Info, error) {
	o, info, err := r.store.Checkpoint(ctx)
	if err != nil {
		return nil, info, err
	}
	st, err := state.Restore(o, info)
	if err != nil {
		return nil, info, store.Corrupt(info.Key, 0, err)
	}
	return st, info, nil
}

// Changed reports by the version of checkpoint_latest whether anyone committed after st.
func (r *replaceStrategy) Changed(ctx context.Context, st *state.State) (bool, error) {
	info, err := r.store.Backend.Stat(ctx, layout.CheckpointKey(r.cfg.Session))
	return err == nil && info.Version != st.Version, err
}

// Prepare seals now if sealing is overdue by two thresholds (processes that exit after one turn, before their
// background work): one more PUT.
func (r *replaceStrategy) Prepare(ctx context.Context, req *request, bg sealing) error {
	if !req.next.CAS && r.cfg.Proof != nil {
		if err := r.cfg.Proof(ctx); err != nil {
			return err
		}
		proven := *req.next
		proven.CAS = true
		req.next = &proven
	}
	st := req.next
	if st.Summary.Commit == "" && !r.cfg.Fresh {
		err := r.lost(ctx, nil)
		if errors.Is(err, store.ErrCorrupt) {
			err = fmt.Errorf("%w: %w", fs.ErrExist, err)
		}
		if err != nil {
			return err
		}
	}
	l := &r.cfg.Limits
	if req.step.anew {
		var err error
		if st, err = r.past.Reindexed(ctx, st); err != nil {
			return err
		}
	}
	if req.step.settle {
		var err error
		if len(st.Tail) > 0 {
			if st, err = r.sealNow(ctx, st); err != nil {
				return err
			}
		}
		if st, err = r.past.FoldAll(ctx, st); err != nil {
			return err
		}
		st.Lineage = nil
	}
	if st.TailBytes >= 2*r.sealBytes(st) || len(st.Tail) >= 2*l.SealEntries {
		if bg.idle {
			var err error
			if st, err = r.sealNow(ctx, st); err != nil {
				return err
			}
			req.warnings = append(req.warnings, "sealing was overdue: this commit wrote a segment first")
			if st, err = r.foldNow(ctx, st, req); err != nil {
				return err
			}
		}
	}
	if bg.boundary != 0 && bg.boundary == st.Next && !st.Opening {
		next := *st
		next.Opening = true
		st = &next
	}
	if st.Key == 0 && st.Summary.Commit == "" {
		next := *st
		var err error
		if next.Key, err = r.store.NewKey(); err != nil {
			return err
		}
		st = &next
	}
	req.next = st
	return nil
}

// sealNow writes the whole tail as a segment and takes it in.
func (r *replaceStrategy) sealNow(ctx context.Context, st *state.State) (*state.State, error) {
	made, err := r.past.SealTail(ctx, st)
	if err != nil {
		return nil, err
	}
	next, err := st.With(made)
	if err != nil {
		return nil, err
	}
	opened := *next
	opened.Opening = true
	if c, ok := r.index(ctx, &opened, made.Rows); ok {
		return opened.With(c)
	}
	return &opened, nil
}

// index adds what is sealed to the id index; false where there is nothing to add, or where that failed: then the lines
// are in the next run.
func (r *replaceStrategy) index(ctx context.Context, st *state.State, rows []codec.IDRow) (state.Change, bool) {
	c, ok, err := r.past.IndexIDs(ctx, st, rows)
	return c, ok && err == nil
}

// seal writes the tail as a segment, with its lines' ids.
func (r *replaceStrategy) seal(ctx context.Context, st *state.State, old []codec.Ref) ([]state.Change, error) {
	r.store.DropRuns(ctx, old)
	made, err := r.past.SealTail(ctx, st)
	if err != nil {
		return nil, err
	}
	rows := made.Rows
	made.Rows = nil
	sealed, err := st.With(made)
	if err != nil {
		return nil, err
	}
	if c, ok := r.index(ctx, sealed, rows); ok {
		return []state.Change{made, c}, nil
	}
	return []state.Change{made}, nil
}

// foldNow writes the index object that is due, if one is: a process a turn would never come to it.
func (r *replaceStrategy) foldNow(ctx context.Context, st *state.State, req *request) (*state.State, error) {
	level, refs, ok := st.Foldable()
	if !ok {
		return st, nil
	}
	made, err := r.past.Fold(ctx, level, refs, st.Summary.Epoch)
	if err != nil {
		return nil, err
	}
	req.warnings = append(req.warnings, "folding was overdue: this commit wrote an index object first")
	return st.With(made)
}

// Confirm has nothing to do: an object that can be read is durable.
func (r *replaceStrategy) Confirm(_ context.Context, st *state.State) (*state.State, error) {
	return st, nil
}

// Publish PUTs the checkpoint of what was composed under the version of base, and finds out what became
// of it.
func (r *replaceStrategy) Publish(ctx context.Context, req *request) (*state.State, error) {
	next := req.next
	o := next.Object(true)
	o.Reuse(r.last)
	body, err := o.Encode()
	if err != nil {
		return nil, r.tooLarge(err)
	}
	r.last = o
	req.size = len(body)
	if len(body) > checkpoint.SoftObject {
		req.warnings = append(req.warnings,
			fmt.Sprintf("checkpoint has %d bytes, over the soft limit of %d", len(body), checkpoint.SoftObject))
	}
	req.body = body
	return r.put(req, req.base).run(ctx)
}

func (r *replaceStrategy) put(req *request, base *state.State) *put {
	p := &put{
		r: r, base: base, next: req.next, body: req.body, mine: req.lines[len(req.lines)-1].record.ID,
		cond: backend.IfMatch(base.Version),
	}
	if base.Summary.Commit == "" && base.Since == 0 {
		p.cond = backend.IfAbsent()
	}
	return p
}

// Resend PUTs the body again. now is what it was composed on, perhaps under another version.
func (r *replaceStrategy) Resend(ctx context.Context, req *request, now *state.State, _ int) (*state.State, error) {
	p := r.put(req, now)
	p.doubt = errResent
	return p.run(ctx)
}

// errResent is why the outcome of a request that is sent again is in doubt from the start.
var errResent = errors.New("an earlier try was not answered")

func (r *replaceStrategy) tooLarge(err error) error {
	return &backend.Error{Op: "put", Key: layout.CheckpointKey(r.cfg.Session), Outcome: backend.NotApplied, Err: err}
}

// put is one conditional PUT until its outcome is known.
type put struct {
	r     *replaceStrategy
	base  *state.State
	next  *state.State
	body  []byte
	mine  string // id of the newest commit in body
	cond  backend.Cond
	doubt error // an answer was lost: the body may be in force, or may still come to be
}

// run sends the same bytes, under the same condition, until an answer or a read decides whether they are in
// force. Every try is bounded; what is not decided by then is Unknown.
func (p *put) run(ctx context.Context) (*state.State, error) {
	objects := p.r.store
	key := layout.CheckpointKey(p.r.cfg.Session)
	var last error
	for try := range objects.Attempts {
		if try > 0 {
			if err := objects.Pause(ctx, try-1); err != nil {
				last = errors.Join(last, err)
				break
			}
		}
		info, err := objects.Backend.Put(ctx, key, p.body, p.cond)
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
			if p.doubt == nil {
				p.doubt = err // perhaps refused because a copy of this request was applied: a read decides
			}
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

func (p *put) done(v backend.Version) *state.State {
	p.next.Version = v
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
func (p *put) look(ctx context.Context) (st *state.State, over bool, err error) {
	now, info, err := p.r.read(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.base.Summary.Commit == "":
		if info.Version != "" { // the tombstone that it replaces
			p.cond = backend.IfMatch(info.Version)
		}
		return nil, false, nil // nothing there yet
	case errors.Is(err, fs.ErrNotExist):
		return nil, true, store.Corrupt(layout.CheckpointKey(p.r.cfg.Session), 0,
			fmt.Errorf("the object is gone: %w", codec.ErrFormat))
	case errors.Is(err, store.ErrCorrupt), errors.Is(err, codec.ErrVersion):
		return nil, true, p.unreadable(err)
	case err != nil:
		return nil, false, nil //nolint:nilerr // the store does not answer: try again while tries are left
	case now.Summary.Commit == p.mine:
		return p.done(now.Version), true, nil
	case now.Has(p.mine):
		return p.next, true, nil // in force, and superseded since: the next commit will see it
	case p.base.Summary.Commit == "":
		return p.born(ctx, now)
	case now.Summary.Commit == p.base.Summary.Commit:
		p.cond = backend.IfMatch(now.Version) // an old version was paired with a new body, or a try was lost
		return nil, false, nil
	case now.Has(p.base.Summary.Commit):
		return nil, true, &moved{now: now}
	}
	return p.search(ctx, now)
}

// unreadable is the error where what is in force cannot be read: certain, unless an answer was lost.
func (p *put) unreadable(err error) error {
	if p.doubt == nil {
		return err
	}
	err = &backend.Error{Op: "put", Key: layout.CheckpointKey(p.r.cfg.Session), Err: errors.Join(p.doubt, err)}
	return &store.Failure{
		Err: fmt.Errorf("%w: %w", ErrUnknown, err), Commit: p.mine,
		Object: layout.CheckpointKey(p.r.cfg.Session),
	}
}

// search decides where the lineage no longer reaches back to base: our commit is at its seq in the log,
// or it is nowhere.
func (p *put) search(ctx context.Context, now *state.State) (*state.State, bool, error) {
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

// born decides for the first commit of a session that exists: it is ours, and the lineage has left it
// behind, or the id is taken.
func (p *put) born(ctx context.Context, now *state.State) (*state.State, bool, error) {
	if now.Summary.Tombstone || len(now.Lineage) == 0 || now.Lineage[0].Seq <= p.next.Summary.Seq {
		return nil, true, p.taken()
	}
	st, over, err := p.search(ctx, now)
	if _, moved := errors.AsType[*moved](err); moved {
		err = p.taken()
	}
	return st, over, err
}

// taken is the error of a first commit whose session exists already.
func (p *put) taken() error {
	return &backend.Error{
		Op: "create", Key: p.r.cfg.Session, Outcome: backend.NotApplied,
		Err: fmt.Errorf("the session already exists: %w", fs.ErrExist),
	}
}

// Upkeep seals and folds once the thresholds are passed. A handle's first commit may be its last (a process a turn):
// no one would name what it made then.
func (r *replaceStrategy) Upkeep(st *state.State, bg sealing) *job {
	r.old = append(r.old, state.Superseded(r.runs, st.IDs)...)
	r.runs = st.IDs
	if r.acked++; r.acked == 1 {
		return nil
	}
	l := &r.cfg.Limits
	if level, refs, ok := st.Foldable(); ok {
		return &job{run: func(ctx context.Context) ([]state.Change, error) {
			made, err := r.past.Fold(ctx, level, refs, st.Summary.Epoch)
			return []state.Change{made}, err
		}}
	}
	if bg.busy {
		return nil
	}
	old := r.old
	r.old = nil
	if st.TailBytes < r.sealBytes(st) && len(st.Tail) < l.SealEntries || bg.boundary > st.Tail[0].Ord {
		if len(old) == 0 {
			return nil
		}
		return &job{run: func(ctx context.Context) ([]state.Change, error) {
			r.store.DropRuns(ctx, old)
			return nil, nil
		}}
	}
	return &job{boundary: st.Next, run: func(ctx context.Context) ([]state.Change, error) {
		return r.seal(ctx, st, old)
	}}
}

// sealBytes returns the length from which the tail of st is sealed. A segment begins with the whole document: a large
// one is to be half of it at most. More of them would make every PUT longer.
func (r *replaceStrategy) sealBytes(st *state.State) int64 {
	return max(r.cfg.Limits.SealBytes, 2*int64(len(st.DocJSON)))
}

// Finish owes nothing: every commit wrote the whole checkpoint.
func (r *replaceStrategy) Finish(context.Context, *state.State) error { return nil }

// busy is the error of a store that asks to try again: nothing was applied.
func busy(err error) bool {
	return errors.Is(err, backend.ErrBusy) && backend.OutcomeOf(err) == backend.NotApplied
}
