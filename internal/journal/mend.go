package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// Rebase stores the turns of failed commits, what waits in the queue, extra (which may be nil) and everything that is
// pending. It looks first: what was in doubt and is in the history is not repeated. The rest is committed plainly if
// nothing moved since, and else as branches beside the winner's line, which Result.Kept names; the head stays the
// winner's, and a handle that was fenced stays fenced. Results are in the order of the failed steps, then extra, then
// what else was pending.
//
// When it fails, the turns stay in the handle, and Rebase or Reload can be called again. But with ErrKeyReused it drops
// the turns whose key another writer used for something else, and stores nothing: no one but their callers can choose
// another key. Called again, it stores the others.
func (j *Journal) Rebase(ctx context.Context, extra *Step) ([]Result, error) {
	op := &operation{ctx: ctx, mends: true, extra: extraTurn(ctx, extra)}
	if err := j.alone(ctx, "rebase", op); err != nil {
		return nil, err
	}
	return op.results, nil
}

// extraTurn is the turn of a step that goes along with an operation; nil for none.
func extraTurn(ctx context.Context, step *Step) *turn {
	if step == nil {
		return nil
	}
	for _, e := range step.Entries {
		e.take()
	}
	return newTurn(ctx, step)
}

// Claim is Rebase with a line last that takes the session: every older writer is fenced, and this handle no longer is.
// Its result is the last.
func (j *Journal) Claim(ctx context.Context, step, extra *Step) ([]Result, error) {
	op := &operation{ctx: ctx, mends: true, claim: step, extra: extraTurn(ctx, extra)}
	if err := j.alone(ctx, "claim", op); err != nil {
		return nil, err
	}
	return op.results, nil
}

// Move makes a navigation: what is pending is committed on the line it was appended to, then the step that find
// returns, in the same request. find may read, and runs while no commit can be published; a nil step ends the move
// without a commit, and the result, without a State, names the newest one. A navigation that loses to another writer
// is not kept. extra, which may be nil, is one more step before it, which takes what is pending.
func (j *Journal) Move(
	ctx context.Context, extra *Step, find func(ctx context.Context) (*Step, error),
) (Result, error) {
	if err := j.takeLead(ctx, "move"); err != nil {
		return Result{}, err
	}
	defer j.dropLead()
	if err := j.refuseMove(); err != nil {
		return Result{}, err
	}
	step, err := find(ctx)
	if err != nil {
		return Result{}, err
	}
	if step == nil {
		return j.stay(ctx)
	}
	step.moves = true
	for _, e := range step.Entries {
		e.take()
	}
	op := &operation{ctx: ctx, move: newTurn(ctx, step), extra: extraTurn(ctx, extra)}
	if err := j.publishAlone(op); err != nil {
		return Result{}, err
	}
	r := op.move.result
	r.Along = op.along
	return r, op.move.err
}

// stay answers a move that has nothing to do: with the newest commit that the handle knows, once all that it was read
// from is confirmed. What a sync did not reach is in the log, and power loss takes it.
func (j *Journal) stay(ctx context.Context) (Result, error) {
	if !j.State().Sure() {
		if err := j.publish(&operation{ctx: ctx, idle: true}); err != nil {
			if f, ok := errors.AsType[*store.Failure](err); ok {
				return Result{}, withdrawn(f)
			}
			return Result{}, err
		}
	}
	return Result{Commit: checkpoint.Commit{Head: j.State().Head()}}, nil
}

// refuseMove returns why a handle that has failed makes no navigation: what any turn gets that was never sent.
func (j *Journal) refuseMove() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	lost := j.lostTo()
	switch {
	case j.broken == nil:
		return nil
	case lost == nil:
		return j.notApplied("commit", ErrInDoubt)
	default:
		return withdrawn(lost)
	}
}

// alone runs an operation that has the lead for itself.
func (j *Journal) alone(ctx context.Context, name string, op *operation) error {
	if err := j.takeLead(ctx, name); err != nil {
		return err
	}
	defer j.dropLead()
	return j.publishAlone(op)
}

// publishAlone publishes an operation, and the queue with it. The caller leads.
func (j *Journal) publishAlone(op *operation) error {
	j.mu.Lock()
	if j.cfg.ReadOnly {
		j.mu.Unlock()
		return &store.Failure{Err: ErrReadOnly}
	}
	if op.move != nil {
		op.move.upto = j.pos
	}
	if op.extra != nil {
		op.extra.upto = j.pos
	}
	op.turns, j.queue = j.queue, nil
	if op.mends {
		op.knew = append([]*turn(nil), j.limbo...)
	}
	j.mu.Unlock()
	return j.publish(op)
}

// look finds the newest state, and decides how what the handle has is stored on it. What was in doubt is searched for
// in the history: of a request, a first part of its lines may be there. compose confirms that state, also where nothing
// is left to store: what was found is acknowledged then.
func (j *Journal) look(ctx context.Context, op *operation) (plan, error) {
	now, err := j.strategy.Load(ctx)
	if from := j.State(); unborn(from, err) {
		now, err = from, nil
	}
	if err != nil {
		return plan{}, err
	}
	p := plan{base: now, from: j.State(), fresh: true}
	if on := madeOn(op.turns); on != nil {
		p.from = on
	}
	if now.Summary.Tombstone {
		return p, store.Deleted(now.Object(false))
	}
	j.mu.Lock()
	doubts := append([]*batch(nil), j.doubts...)
	j.mu.Unlock()
	for _, b := range doubts {
		for _, l := range b.lines {
			there, err := j.inHistory(ctx, now, l)
			if err != nil {
				return p, err
			}
			if !there {
				break
			}
			p.found = append(p.found, l)
			p.from = l.after
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forget()
	j.noteFence(now, p.found...)
	in := map[*Entry]int64{}
	for _, t := range op.knew {
		t.found = nil
	}
	for _, l := range p.found {
		if l.turn != nil {
			l.turn.found = l
		}
		for i, e := range l.entries {
			in[e] = int64(l.first) + int64(i)
		}
	}
	for _, e := range j.list {
		if _, found := in[e]; found {
			e.stage = inDoubt // a look before this one may have missed it: it is not stored again
		} else if e.stage == inDoubt {
			e.stage = pending
		}
	}
	p.keep = j.fenced || !sameHead(p.from, now) || j.strays(now, in)
	p.grow = originOf(p.from)
	if n := len(p.found); n > 0 && p.found[n-1].kept() { // the rest of a batch of kept turns is kept too
		p.keep, p.grow = true, p.found[n-1].tip
	}
	return p, nil
}

// strays reports whether something pending moves the head and grows neither from now's head nor from what does: the
// navigation after which it was appended was in doubt. A parent that the caller chose may be anywhere. j.mu is held.
func (j *Journal) strays(now *state.State, found map[*Entry]int64) bool {
	for _, e := range j.list {
		if e.Aside || e.Chosen || e.own || e.stage != pending {
			continue
		}
		at := e.At()
		if at.Entry != nil {
			ord, ok := found[at.Entry]
			if !ok {
				continue // it comes in the same batch
			}
			at = Place{Ord: ord}
		}
		if at.Ord != now.HeadOrd {
			return true
		}
	}
	return false
}

// errMisused is why Rebase stores nothing, although it can be called again.
var errMisused = fmt.Errorf("a kept turn is dropped, and the others wait for the next Rebase: %w", ErrKeyReused)

// misused returns the failed turns of an operation whose key belongs to another turn by now.
func (op *operation) misused() (list []*turn) {
	for _, t := range op.knew {
		if errors.Is(t.lost, ErrKeyReused) {
			list = append(list, t)
		}
	}
	return list
}

// forsake drops failed turns; j.mu is held. The entries that they carry go with them, but for those from which
// something grows that was appended since: they are pending from now on.
func (j *Journal) forsake(turns []*turn) {
	for _, t := range turns {
		j.limbo = slices.DeleteFunc(j.limbo, func(o *turn) bool { return o == t })
		grown := slices.ContainsFunc(j.list, func(e *Entry) bool {
			return !e.own && slices.Contains(t.step.Entries, e.At().Entry)
		})
		for _, e := range t.step.Entries {
			if e.own = false; !grown {
				e.stage = dropped
			}
		}
	}
	j.prune()
	j.head = PlaceOf(j.st)
	for _, e := range j.list {
		if !e.Aside {
			j.head = PlaceAt(e)
		}
	}
}

// unborn reports whether the session does not exist because its first commit never came to be.
func unborn(from *state.State, err error) bool {
	return from.Summary.Commit == "" && errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrDeleted)
}

// inHistory reports whether a line that was sent is in the history of now.
func (j *Journal) inHistory(ctx context.Context, now *state.State, l *sentLine) (bool, error) {
	if now.Has(l.rec.ID) {
		return true, nil
	}
	if oldest := now.Lineage; len(oldest) == 0 || oldest[0].Seq <= l.rec.Seq {
		return false, nil
	}
	for c, err := range j.past.Log(ctx, now, l.rec.Seq) {
		if err != nil {
			return false, err
		}
		return c.Commit == l.rec.ID, nil
	}
	return false, nil
}

// Reload drops what is not stored, the turns of failed commits too, refuses what waits in the queue, and takes the
// newest state. Of a turn in doubt it cannot promise that it is gone: a delayed request may still store it.
func (j *Journal) Reload(ctx context.Context) error {
	if err := j.takeLead(ctx, "reload"); err != nil {
		return err
	}
	defer j.dropLead()
	now, err := j.strategy.Load(ctx)
	if from := j.State(); from.Summary.Commit == "" && errors.Is(err, fs.ErrNotExist) {
		now, err = from, nil // there is nothing to take: it never was, or it was deleted
	}
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, t := range j.queue {
		t.answer(Result{}, j.notApplied("commit", ErrReloaded))
	}
	j.queue = nil
	j.stand(now)
	return nil
}

// stand moves the handle to a state that it did not make itself, and forgets what is not stored; j.mu is held.
func (j *Journal) stand(st *state.State) {
	j.dropAll()
	j.st, j.stood, j.fresh, j.head = st, st, true, PlaceOf(st)
	j.broken, j.limbo, j.doubts = nil, nil, nil
	j.fenced, j.claimSeen = false, st.Claimed
	j.strategy.Stand(st)
	j.forget()
}
