package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// Delete removes a session: first a commit that fences every open handle, then a tombstone in place of
// checkpoint_latest, so that the id is never used again, then the objects. It can be repeated after a
// failure; a session that does not exist is no error. Nothing deletes checkpoint_latest: a delayed delete
// would destroy a session that was made anew.
func Delete(ctx context.Context, cfg Config) error {
	j := newJournal(cfg)
	defer j.Close(ctx)
	switch err := j.bury(ctx); {
	case errors.Is(err, errNothingThere):
		return nil // what is there by now is another's, who just began the session
	case err != nil:
		return err
	}
	return j.removeObjects(ctx)
}

var errNothingThere = errors.New("neither the session nor leftovers of it are there")

// DeleteAt is Delete of a session whose newest commit is the one that is named. A session that has another one stays as
// it is, and the error is ErrConflict; so does one that another writer commits to meanwhile.
func DeleteAt(ctx context.Context, cfg Config, commit string) error {
	j := newJournal(cfg)
	defer j.Close(ctx)
	st, err := j.strategy.Load(ctx)
	if err != nil {
		return err
	}
	if st.Summary.Commit != commit {
		return fmt.Errorf("delete session %s at commit %s: %w", cfg.Session, commit, ErrConflict)
	}
	if err := j.buryAt(ctx, st); err != nil {
		return err
	}
	return j.removeObjects(ctx)
}

// bury commits the end of the session and writes the tombstone. Only Load says what there is to bury: that another
// object is missing, which the commit may meet, does not make the session a missing one.
func (j *Journal) bury(ctx context.Context) error {
	for range j.cfg.Limits.Attempts {
		st, err := j.strategy.Load(ctx)
		switch {
		case errors.Is(err, store.ErrCorrupt):
			return j.buryDamaged(ctx)
		case errors.Is(err, store.ErrDeleted): // before, and perhaps not to the end
			return j.hardenTombstone(ctx)
		case errors.Is(err, fs.ErrNotExist):
			left, err := j.leftovers(ctx)
			switch {
			case err != nil:
				return err
			case !left:
				return errNothingThere
			}
			return j.buryDamaged(ctx)
		case err != nil:
			return err
		}
		err = j.buryAt(ctx, st)
		if errors.Is(err, ErrConflict) || errors.Is(err, ErrFenced) {
			continue
		}
		return err
	}
	return &backend.Error{
		Op: "delete", Key: j.cfg.Session, Outcome: backend.NotApplied,
		Err: fmt.Errorf("the head moved %d times in a row", j.cfg.Limits.Attempts),
	}
}

// buryAt is one try of bury: on the state that was read.
func (j *Journal) buryAt(ctx context.Context, st *state.State) error {
	j.mu.Lock()
	j.stand(st)
	j.mu.Unlock()
	if _, err := j.Commit(ctx, &Step{Reason: state.ReasonDelete, Claim: true}); err != nil {
		return err
	}
	return j.strategy.Finish(ctx, j.State())
}

// leftovers reports whether there are objects of a session that never came to be: its writer died before its
// first commit.
func (j *Journal) leftovers(ctx context.Context) (bool, error) {
	for _, err := range j.store.Backend.List(ctx,
		backend.ListOptions{Prefix: layout.SessionPrefix(j.cfg.Session), Limit: 1}) {
		return err == nil, err
	}
	return false, nil
}

// buryDamaged writes the tombstone of a session that cannot be read, or that never came to be.
func (j *Journal) buryDamaged(ctx context.Context) error {
	key := layout.CheckpointKey(j.cfg.Session)
	id, now, err := j.store.LineID()
	if err != nil {
		return err
	}
	st := &state.State{HeadOrd: -1}
	st.Summary = checkpoint.Summary{ID: j.cfg.Session, Tombstone: true, Updated: now}
	st.Summary.Commit, st.Summary.Seq = id, ^uint64(0)>>1 // above any that a delayed writer has
	body, err := st.Object(false).Encode()
	if err != nil {
		return err
	}
	cond := backend.IfAbsent()
	if info, err := j.store.Backend.Stat(ctx, key); err == nil {
		cond = backend.IfMatch(info.Version)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = j.store.Backend.Put(ctx, key, body, cond)
	return err
}

// hardenTombstone makes the tombstone of an earlier try durable: on a disk it may be known to the system
// only, and the objects must not go before it (I13). Where that try came as far as the log, it is written first.
func (j *Journal) hardenTombstone(ctx context.Context) error {
	key := layout.CheckpointKey(j.cfg.Session)
	p, info, err := j.store.Backend.Get(ctx, key, backend.Range{})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if o, derr := checkpoint.DecodeObject(p); err != nil || derr != nil || !o.Summary.Tombstone {
		return j.buryDamaged(ctx)
	}
	return j.store.Harden(ctx, key, p, info.Version)
}

// removeObjects deletes everything of the session but its tombstone.
func (j *Journal) removeObjects(ctx context.Context) error {
	var keys []string
	for info, err := range j.store.Backend.List(ctx, backend.ListOptions{Prefix: layout.SessionPrefix(j.cfg.Session)}) {
		if err != nil {
			return err
		}
		keys = append(keys, info.Key)
	}
	for _, key := range keys {
		if err := j.store.Backend.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
