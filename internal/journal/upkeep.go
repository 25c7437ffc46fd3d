package journal

import (
	"context"
	"errors"
	"time"

	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/snapshot"
)

// background is the work of a handle besides commits, and its results: sealed segments, index objects, checkpoints. It
// uses only acknowledged states, so it does not wait for a commit. Guarded by Journal.mu.
type background struct {
	ctx      context.Context //nolint:containedctx // cancelled by Close; jobs outlive the calls that start them
	cancel   context.CancelFunc
	busy     bool
	made     []state.Change // for the next state to take in
	taken    []state.Change // taken in by a state that is not acknowledged yet
	boundary uint64         // the tail up to this ordinal is being sealed, or was: the commit after it begins a segment
	age      int            // raised when the handle takes another writer's state: older results are dropped
	shooting bool           // a snapshot is being written
}

// closeWait bounds how long Close waits for background work.
const closeWait = 10 * time.Second

// job is work that a strategy wants done in the background.
type job struct {
	run      func(ctx context.Context) ([]state.Change, error)
	boundary uint64 // that it sets; 0 = none
}

// sealing describes the background work to a strategy, which decides what is due.
type sealing struct {
	boundary uint64 // the tail up to this ordinal is being sealed, or was
	busy     bool   // a job is under way
	idle     bool   // no job is under way, and no result waits for a state
}

func (j *Journal) sealing() sealing {
	j.mu.Lock()
	defer j.mu.Unlock()
	return sealing{boundary: j.bg.boundary, busy: j.bg.busy, idle: !j.bg.busy && len(j.bg.made) == 0}
}

// upkeep starts the work that is due after a commit, unless some is under way.
func (j *Journal) upkeep(st *state.State) {
	work := j.strategy.Upkeep(st, j.sealing())
	if work == nil {
		return
	}
	j.mu.Lock()
	if j.bg.busy || j.lock.isShut() {
		j.mu.Unlock()
		return
	}
	if work.boundary != 0 {
		j.bg.boundary = work.boundary
	}
	ctx, age := j.backgroundContext(), j.bg.age
	j.bg.busy = true
	j.work.Add(1)
	j.mu.Unlock()
	j.start(func() {
		defer j.work.Done()
		made, err := work.run(ctx)
		j.ended(age, made, err)
	})
}

func (j *Journal) start(run func()) {
	if j.cfg.Go != nil {
		j.cfg.Go(run)
		return
	}
	go run()
}

func (j *Journal) backgroundContext() context.Context {
	if j.bg.ctx == nil {
		j.bg.ctx, j.bg.cancel = context.WithCancel(context.Background())
	}
	return j.bg.ctx
}

// ended records the results of a job, unless the handle has taken another writer's state since the job began.
func (j *Journal) ended(age int, made []state.Change, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.bg.busy = false
	switch {
	case age != j.bg.age:
	case err != nil:
		j.bg.boundary = 0 // the next commit tries again, because the threshold is still exceeded
	default:
		j.bg.made = append(j.bg.made, made...)
	}
}

// takeIn returns st with the results of the background work, which the next commit then stores.
func (j *Journal) takeIn(st *state.State) *state.State {
	j.mu.Lock()
	made := j.bg.made
	j.bg.made, j.bg.taken = nil, append(j.bg.taken, made...)
	j.mu.Unlock()
	for _, c := range made {
		if next, err := st.With(c); err == nil {
			st = next
		}
	}
	return st
}

// returnTaken returns the results that takeIn has used to the list, because the commit with them was not stored.
func (j *Journal) returnTaken() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.bg.made, j.bg.taken = append(j.bg.taken, j.bg.made...), nil
}

// forget drops the results of the background work, because the handle takes another writer's state. j.mu is held.
func (j *Journal) forget() {
	j.bg.age++
	j.bg.made, j.bg.taken, j.bg.boundary = nil, nil, 0
}

// SnapshotLater writes a snapshot of an acknowledged state in the background and calls done with the result. It returns
// false if one is being written already, or the handle is closed. Close waits for it.
func (j *Journal) SnapshotLater(st *state.State, done func(info snapshot.Info, err error)) bool {
	id, _, err := j.store.LineID()
	if err != nil {
		return false
	}
	j.mu.Lock()
	if j.bg.shooting || j.lock.isShut() {
		j.mu.Unlock()
		return false
	}
	j.bg.shooting = true
	ctx := j.backgroundContext()
	j.work.Add(1)
	j.mu.Unlock()
	j.start(func() {
		defer j.work.Done()
		info, err := j.store.Snapshot(ctx, st, id, "")
		j.mu.Lock()
		j.bg.shooting = false
		j.mu.Unlock()
		done(info, err)
	})
	return true
}

// Tidy compacts the objects of a session after an import: it seals all segments, folds the references into one, and
// begins a new lineage, so that the cost of a resume does not depend on the size of the import. It changes nothing that
// a reader sees.
func (j *Journal) Tidy(ctx context.Context) error {
	h, err := j.Hold(ctx, "tidy")
	if err != nil {
		return err
	}
	defer h.Release()
	st := j.Tip()
	refs := 0
	if len(st.Segments.Levels) > 0 {
		refs = len(st.Segments.Levels[0])
	}
	small := st.TailBytes < j.cfg.Limits.SealBytes && len(st.Tail) < j.cfg.Limits.SealEntries
	if len(st.Plain) == 0 && small && refs == 0 {
		return nil
	}
	a, appends := j.strategy.(*appendStrategy)
	if !appends {
		plan := func(context.Context, *state.State) (*Step, error) { return sealAllStep(), nil }
		_, err := h.Write(ctx, Step{Based: true}, plan)
		return err
	}
	if err := j.rollNow(ctx); err != nil {
		return err
	}
	j.work.Wait() // background work must not seal the same segments
	st, err = a.sealAll(ctx, j.takeIn(j.Tip()))
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.view == j.tip {
		j.view = st
	}
	j.tip, j.adopted, j.bg.taken = st, st, nil
	j.version++
	return nil
}

// rollNow closes the active segment, so that it can be sealed. If another writer committed meanwhile it does nothing
// and returns nil. The caller holds the lock.
func (j *Journal) rollNow(ctx context.Context) error {
	_, err := j.try(ctx, Step{Based: true}, func(context.Context, *state.State) (*Step, error) {
		return &Step{Reason: state.ReasonRoll, Note: true}, nil
	})
	if m, lost := errors.AsType[*recompose](err); lost {
		j.follow(m.now)
		return nil
	}
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrFenced) {
		return nil
	}
	return err
}
