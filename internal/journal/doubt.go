package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// This file handles a request whose outcome is unknown: the doubt of a handle. A handle has at most one doubt. Before
// it writes anything else, end finds out whether the request was stored, or drop forgets it (I11).

// InDoubt reports whether the outcome of a request of the handle is unknown.
func (j *Journal) InDoubt() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.doubt != nil
}

// Ended reports whether the handle's last doubt was about this commit and has ended, and if so, whether the commit is
// stored.
func (j *Journal) Ended(commit string) (stored, ended bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last.rec != nil, j.last.doubt == commit
}

// endDoubt ends the doubt before another step is written. A step with neither a key nor a base is refused with
// ErrInDoubt: its caller may not know of the doubt, and may have based the step on the request in doubt.
func (j *Journal) endDoubt(ctx context.Context, c Step) error {
	j.mu.Lock()
	d := j.doubt
	j.mu.Unlock()
	switch {
	case d == nil:
		return nil
	case c.Key == "" && !c.Based:
		return j.notApplied("commit", ErrInDoubt)
	}
	if _, err := j.end(ctx, d); err != nil {
		if c.Key != "" && c.Key == d.step.Key {
			return &store.Failure{Err: fmt.Errorf("%w: %w", ErrUnknown, err), Commit: d.id()}
		}
		return j.notApplied("commit", fmt.Errorf("%w: %w", ErrInDoubt, err))
	}
	return nil
}

// Settle ends the doubt of a commit, "" = of any, and returns the commit's receipt. If the commit was not stored, the
// error is ErrConflict or ErrFenced if another writer was first, else backend.ErrBusy. A commit that is not in doubt is
// looked for in the history; the error is ErrUnknown if it is not there.
func (j *Journal) Settle(ctx context.Context, commit string) (Outcome, error) {
	h, err := j.Hold(ctx, "settle")
	if err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		if d := j.doubt; d != nil && (commit == "" || commit == d.id()) {
			err = &store.Failure{Err: fmt.Errorf("%w: %w", ErrUnknown, err), Commit: d.id()}
		}
		return Outcome{}, err
	}
	defer h.Release()
	ctx, done := j.interruptible(ctx)
	defer done()
	j.mu.Lock()
	d, last := j.doubt, j.last
	j.mu.Unlock()
	if d != nil && (commit == "" || commit == d.id()) {
		o, err := j.end(ctx, d)
		if err != nil {
			return Outcome{}, &store.Failure{Err: fmt.Errorf("%w: %w", ErrUnknown, err), Commit: d.id()}
		}
		return j.settled(o)
	}
	if last.doubt != "" && (commit == last.doubt || commit == "") {
		return j.settled(last)
	}
	if commit == "" {
		return j.shown(ctx)
	}
	return j.lookFor(ctx, commit)
}

// shown returns the receipt of the commit that the caller sees, after Harden has confirmed that it is durable.
func (j *Journal) shown(ctx context.Context) (Outcome, error) {
	for range j.cfg.Limits.Attempts {
		_, err := j.harden(ctx, j.Tip())
		if m, lost := errors.AsType[*recompose](err); lost {
			j.follow(m.now)
			continue
		}
		if err != nil {
			return Outcome{}, err
		}
		view := j.State()
		return Outcome{State: view, Commit: checkpoint.Commit{Head: view.Head()}}, nil
	}
	return Outcome{}, j.notApplied("settle",
		fmt.Errorf("the head moved %d times in a row: %w", j.cfg.Limits.Attempts, backend.ErrBusy))
}

// lookFor returns the receipt of a commit that is in the history.
func (j *Journal) lookFor(ctx context.Context, commit string) (Outcome, error) {
	now, err := j.newest(ctx)
	if err == nil {
		for c, cerr := range j.Log(ctx, now, now.Summary.Seq) {
			if err = cerr; err != nil || c.Commit == commit {
				return Outcome{State: now, Commit: c, Repeated: true}, err
			}
		}
		err = store.ErrNoCommit
	}
	return Outcome{}, &store.Failure{Err: fmt.Errorf("%w: %w", ErrUnknown, err), Commit: commit}
}

// settled returns the result of Settle for a request whose outcome is known: the receipt, or why it was not stored.
func (j *Journal) settled(o Outcome) (Outcome, error) {
	if o.rec != nil {
		return o, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.fences(j.tip, j.view.Summary.Seq):
		return Outcome{}, fenced(j.tip)
	case !sameHead(j.view, j.tip):
		return Outcome{}, conflict(j.tip)
	}
	return Outcome{}, j.notApplied("settle", fmt.Errorf("the request was lost: %w", backend.ErrBusy))
}

// end finds out whether the request in doubt was stored. It looks for the request's lines in the newest history. If the
// head is still the one that the request was made on, it sends the same bytes again under the same condition. It tries
// at most Limits.Attempts times.
func (j *Journal) end(ctx context.Context, d *request) (Outcome, error) {
	aside := "" // the object to which torn bytes were moved; "" = none
	for range j.cfg.Limits.Attempts {
		now, err := j.strategy.Load(ctx)
		switch {
		case errors.Is(err, store.ErrDeleted):
			return j.decided(d, nil, nil), nil
		case errors.Is(err, fs.ErrNotExist) && d.base.Summary.Commit == "":
			now = d.base
		case err != nil:
			return Outcome{}, err
		}
		if now.Summary.Commit != "" {
			if now, err = j.strategy.Harden(ctx, now); err != nil {
				return Outcome{}, err
			}
			if !now.Sure() {
				continue
			}
		}
		k, err := j.linesIn(ctx, now, d)
		if err != nil {
			return Outcome{}, err
		}
		goesOn := k > 0 && now.Summary.Commit != d.lines[k-1].record.ID // the history continues after these lines
		switch {
		case k == len(d.lines), k > d.main && goesOn:
			return j.decided(d, now, d.next), nil
		case goesOn, k == 0 && now.Summary.Commit != d.base.Summary.Commit:
			return j.decided(d, now, nil), nil
		}
		next, err := j.strategy.Resend(ctx, d, now, k)
		if err == nil {
			if aside != "" { // the next commit names it
				next.Pending = aside
			}
			return j.decided(d, next, next), nil
		}
		m, again := errors.AsType[*recompose](err)
		if !again {
			return Outcome{}, err
		}
		aside = cmp.Or(m.now.Pending, aside)
	}
	return Outcome{}, fmt.Errorf("the head moved %d times in a row", j.cfg.Limits.Attempts)
}

// linesIn counts the first lines of a request that are in the history of a state.
func (j *Journal) linesIn(ctx context.Context, now *state.State, d *request) (n int, err error) {
	for n < len(d.lines) {
		there, err := j.inHistory(ctx, now, d.lines[n].record)
		if err != nil || !there {
			return n, err
		}
		n++
	}
	return n, nil
}

// inHistory reports whether a commit line is in the history of a state.
func (j *Journal) inHistory(ctx context.Context, now *state.State, rec *checkpoint.Record) (bool, error) {
	if now.Has(rec.ID) {
		return true, nil
	}
	if oldest := now.Lineage; len(oldest) == 0 || oldest[0].Seq <= rec.Seq {
		return false, nil
	}
	for c, err := range j.Log(ctx, now, rec.Seq) {
		if err != nil {
			return false, err
		}
		return c.Commit == rec.ID, nil
	}
	return false, nil
}

// decided ends the doubt with its outcome. now is the newest state, nil if the session was deleted. after is the state
// that the request left, nil if it was not stored; then its entries are still in the buffer.
func (j *Journal) decided(d *request, now, after *state.State) Outcome {
	j.mu.Lock()
	defer j.mu.Unlock()
	var o Outcome
	if after != nil {
		base := d.base
		j.store.Bind(after.Since)
		j.stored(d)
		j.committed = true
		main := d.lines[d.main]
		o = d.outcome(after)
		o.rec, o.Line = main.record, main.after.Next-1
		j.tip = after
		j.moveView(d, base, after)
	}
	o.doubt, o.own = d.id(), d.ownDigest
	j.doubt, j.last, j.fresh = nil, o, true
	if now != nil {
		j.forget()
		same := after != nil && j.view == after && now.Summary.Commit == after.Summary.Commit
		if j.tip = now; same {
			j.view = now
		}
	}
	j.followTip()
	return o
}

// Discard drops the buffer and the doubt. No I/O. A request that was in doubt may still be stored: the handle then
// treats it like a commit of another writer.
func (j *Journal) Discard(ctx context.Context) error {
	h, err := j.Hold(ctx, "discard")
	if err != nil {
		return err
	}
	defer h.Release()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drop()
	j.followTip()
	return nil
}

// drop forgets the buffer and the doubt; j.mu is held.
func (j *Journal) drop() {
	for _, e := range j.list {
		e.stage = dropped
	}
	if j.doubt != nil {
		j.fresh = true
	}
	j.list, j.ids, j.doubt, j.last = nil, map[string]*Entry{}, nil, Outcome{}
}

// Reload drops the buffer and the doubt, and takes the newest state.
func (j *Journal) Reload(ctx context.Context) error {
	h, err := j.Hold(ctx, "reload")
	if err != nil {
		return err
	}
	defer h.Release()
	ctx, done := j.interruptible(ctx)
	defer done()
	now, err := j.newest(ctx)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.adopt(now)
	return nil
}

// adopt moves the handle to a state that was read, and drops the buffer and the doubt. j.mu is held.
func (j *Journal) adopt(st *state.State) {
	j.drop()
	j.view, j.tip, j.adopted, j.fresh = st, st, st, true
	if st.Summary.Commit != "" || st.Since > 0 {
		j.store.Bind(st.Since)
	}
	j.strategy.Adopt(st)
	j.forget()
	j.followTip()
}
