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

// replaceStrategy is the commit protocol of one handle on a store that only replaces whole objects. Its fields are used
// under the lock of the handle.
type replaceStrategy struct {
	cfg     *Config
	store   *store.Store
	past    *store.History
	commits int                // acknowledged by this handle
	last    *checkpoint.Object // encoded last: the next one reuses its compressed frames
	runs    []codec.Ref        // runs of the id index that the newest commit of this handle names
	old     []codec.Ref        // runs that no commit names any more: Upkeep removes them
}

func newReplace(cfg *Config, s *store.Store, past *store.History) *replaceStrategy {
	return &replaceStrategy{cfg: cfg, store: s, past: past}
}

// Adopt does nothing: a state contains the version that it was read under.
func (r *replaceStrategy) Adopt(*state.State) {}

// Load reads the newest state from one object. If that is missing, Load lists the segments of the session: with none
// the error is fs.ErrNotExist, else ErrCorrupt, because a new session must not begin over the segments of a damaged
// one.
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

// lost returns the error of a session without checkpoint_latest: absent if it has no segments, else ErrCorrupt.
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
			continue // it belongs to a deleted session with the same id
		}
		switch _, _, err := r.read(ctx); {
		case err == nil: // another writer wrote it between the two reads
			return absent
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		return store.Corrupt(layout.CheckpointKey(r.cfg.Session), 0,
			fmt.Errorf("it is not there, but segments of the transcript are: %w", codec.ErrFormat))
	}
	return absent
}

// read is Load without the listing. It returns a tombstone as a state too, and the version of the object.
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

// Changed reports whether any writer committed after st, by the version of checkpoint_latest.
func (r *replaceStrategy) Changed(ctx context.Context, st *state.State) (bool, error) {
	info, err := r.store.Backend.Stat(ctx, layout.CheckpointKey(r.cfg.Session))
	return err == nil && info.Version != st.Version, err
}

// ReadyBase proves, before the first commit of a store, that the store honours conditional writes. It also seals the
// tail, with one more PUT, if the tail has twice the size at which background work seals it: some processes exit after
// one turn, before their background work is done.
func (r *replaceStrategy) ReadyBase(ctx context.Context, req *request, bg sealing) error {
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
	if req.step.rebuildIDs {
		var err error
		if st, err = r.past.Reindexed(ctx, st); err != nil {
			return err
		}
	}
	if req.step.sealAll {
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

// sealNow writes the whole tail as a segment, and returns the state that refers to it.
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

// index adds the ids of sealed lines to the id index. false = there is nothing to add, or adding failed; then a later
// run contains the ids.
func (r *replaceStrategy) index(ctx context.Context, st *state.State, rows []codec.IDRow) (state.Change, bool) {
	c, ok, err := r.past.IndexIDs(ctx, st, rows)
	return c, ok && err == nil
}

// seal removes the runs old, writes the tail as a segment and its ids as a run, and returns the changes of the state.
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

// foldNow writes the index object that is due, if any. Processes that exit after one turn would never do it in the
// background.
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

// Harden does nothing: an object that can be read is durable.
func (r *replaceStrategy) Harden(_ context.Context, st *state.State) (*state.State, error) {
	return st, nil
}

// Publish PUTs the checkpoint of req.next, on condition of the version of base, and finds out the outcome.
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

// put returns the conditional PUT of a request.
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

// Resend PUTs the body again. now is the base of the request; its version may be another one.
func (r *replaceStrategy) Resend(ctx context.Context, req *request, now *state.State, _ int) (*state.State, error) {
	p := r.put(req, now)
	p.doubt = errResent
	return p.run(ctx)
}

// errResent is the doubt of a request that is sent again, before its first answer.
var errResent = errors.New("an earlier try was not answered")

func (r *replaceStrategy) tooLarge(err error) error {
	return &backend.Error{Op: "put", Key: layout.CheckpointKey(r.cfg.Session), Outcome: backend.NotApplied, Err: err}
}

// put sends one conditional PUT until its outcome is known.
type put struct {
	r     *replaceStrategy
	base  *state.State
	next  *state.State
	body  []byte
	mine  string       // id of the newest commit in body
	cond  backend.Cond // of the next attempt
	doubt error        // nil = no attempt can have been applied; else why one may have been, or may still be
}

// run sends the same bytes until an answer or a read shows whether they are stored, at most Attempts times. If that
// stays open the outcome is Unknown.
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
				p.doubt = err // the condition may have failed because a copy of this request was applied before
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

// done returns the state after the request, which is stored under the version v.
func (p *put) done(v backend.Version) *state.State {
	p.next.Version = v
	return p.next
}

// giveUp returns the error after the last attempt. Its outcome is NotApplied if no attempt can have been applied, else
// Unknown.
func (p *put) giveUp(key string, last error) error {
	outcome := backend.Unknown
	if p.doubt == nil {
		outcome = backend.NotApplied
	} else {
		last = errors.Join(p.doubt, last)
	}
	return &backend.Error{Op: "put", Key: key, Outcome: outcome, Err: last}
}

// look reads checkpoint_latest and decides whether the request is stored. over is false if the same bytes have to be
// sent again, under p.cond.
func (p *put) look(ctx context.Context) (st *state.State, over bool, err error) {
	now, info, err := p.r.read(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.base.Summary.Commit == "":
		if info.Version != "" { // the version of the tombstone that the request replaces
			p.cond = backend.IfMatch(info.Version)
		}
		return nil, false, nil // the session does not exist yet
	case errors.Is(err, fs.ErrNotExist):
		return nil, true, store.Corrupt(layout.CheckpointKey(p.r.cfg.Session), 0,
			fmt.Errorf("the object is gone: %w", codec.ErrFormat))
	case errors.Is(err, store.ErrCorrupt), errors.Is(err, codec.ErrVersion):
		return nil, true, p.unreadable(err)
	case err != nil:
		return nil, false, nil //nolint:nilerr // the read failed: send again while attempts are left
	case now.Summary.Commit == p.mine:
		return p.done(now.Version), true, nil
	case now.Has(p.mine):
		return p.next, true, nil // stored, and another writer has committed on it since
	case p.base.Summary.Commit == "":
		return p.born(ctx, now)
	case now.Summary.Commit == p.base.Summary.Commit:
		p.cond = backend.IfMatch(now.Version) // the base is in force, perhaps under another version
		return nil, false, nil
	case now.Has(p.base.Summary.Commit):
		return nil, true, &recompose{now: now}
	}
	return p.search(ctx, now)
}

// unreadable returns the error for a checkpoint_latest that is damaged or of a newer format: err itself if no attempt
// can have been applied, else ErrUnknown.
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

// search decides whether the request is stored if the lineage of now no longer contains the base: it reads the commit
// with the seq of the request from the log and compares its id.
func (p *put) search(ctx context.Context, now *state.State) (*state.State, bool, error) {
	for c, err := range p.r.past.Log(ctx, now, p.next.Summary.Seq) {
		if err != nil {
			return nil, false, nil //nolint:nilerr // the read failed: send again while attempts are left
		}
		if c.Commit == p.mine {
			return p.next, true, nil
		}
		break
	}
	return nil, true, &recompose{now: now}
}

// born decides whether the first commit of a session is stored, if the session exists and its lineage does not contain
// that commit: the commit may be older than the lineage, or another writer created the session.
func (p *put) born(ctx context.Context, now *state.State) (*state.State, bool, error) {
	if now.Summary.Tombstone || len(now.Lineage) == 0 || now.Lineage[0].Seq <= p.next.Summary.Seq {
		return nil, true, p.taken()
	}
	st, over, err := p.search(ctx, now)
	if _, lost := errors.AsType[*recompose](err); lost {
		err = p.taken()
	}
	return st, over, err
}

// taken returns the error of a first commit whose session exists already.
func (p *put) taken() error {
	return &backend.Error{
		Op: "create", Key: p.r.cfg.Session, Outcome: backend.NotApplied,
		Err: fmt.Errorf("the session already exists: %w", fs.ErrExist),
	}
}

// Upkeep seals and folds once the thresholds are passed, but not after the first commit of a handle: if that is also
// its last one, no later commit would refer to the new objects.
func (r *replaceStrategy) Upkeep(st *state.State, bg sealing) *job {
	r.old = append(r.old, state.Superseded(r.runs, st.IDs)...)
	r.runs = st.IDs
	if r.commits++; r.commits == 1 {
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

// sealBytes returns the length of the tail, in bytes, from which it is sealed: Limits.SealBytes, or twice the length of
// the document if that is more, because each segment begins with the whole document.
func (r *replaceStrategy) sealBytes(st *state.State) int64 {
	return max(r.cfg.Limits.SealBytes, 2*int64(len(st.DocJSON)))
}

// Finish does nothing: every commit writes the whole checkpoint.
func (r *replaceStrategy) Finish(context.Context, *state.State) error { return nil }

// busy reports whether err means that nothing was applied and that the store asks to try again.
func busy(err error) bool {
	return errors.Is(err, backend.ErrBusy) && backend.OutcomeOf(err) == backend.NotApplied
}
