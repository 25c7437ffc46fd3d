package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// Delete removes a session, in three stages:
//
//  1. A commit ends the session, and fences every open handle. On a store that only replaces it is the tombstone.
//     Of a session that cannot be read only the tombstone is written.
//  2. On a store that appends a tombstone replaces checkpoint_latest: it is durable before any object that the log
//     needs is removed (I13), and the id is never used again.
//  3. The objects are removed. Nothing deletes checkpoint_latest: a delayed delete would destroy another session.
//
// An error of stage 1 is ErrUnfinished and ErrUnknown, or nothing was deleted. An error of the other stages is
// ErrUnfinished: the session is deleted. A repeated call finishes the deletion. A session that does not exist is no
// error.
func Delete(ctx context.Context, cfg Config) error {
	d := &deletion{j: newJournal(cfg), any: true}
	return d.run(ctx)
}

// DeleteAt is Delete of a session whose newest commit is the one that is named. A session that has another one stays as
// it is, and the error is ErrConflict; so does one that another writer commits to meanwhile. Of a session that was
// deleted before it removes what is left, whichever commit is named, and returns ErrDeleted if nothing is.
func DeleteAt(ctx context.Context, cfg Config, commit string) error {
	d := &deletion{j: newJournal(cfg), at: commit}
	return d.run(ctx)
}

// Replace is DeleteAt of a session that was imported, and whose file another session has now: the tombstone does not
// keep the file.
func Replace(ctx context.Context, cfg Config, commit string) error {
	d := &deletion{j: newJournal(cfg), at: commit, source: &checkpoint.Source{Program: checkpoint.SourceReplaced}}
	return d.run(ctx)
}

// deletion is one call of Delete, DeleteAt or Replace.
type deletion struct {
	source *checkpoint.Source // in place of the session's; nil = as it is
	j      *Journal
	any    bool   // whatever the newest commit is
	at     string // else the newest commit
	doubt  error  // an earlier try of stage 1 whose outcome is unknown
}

var (
	errNothingThere = errors.New("neither the session nor leftovers of it are there")
	errHeadMoved    = errors.New("another writer moved the head")
)

func (d *deletion) run(ctx context.Context) error {
	defer d.j.Close(ctx)
	switch err := d.end(ctx); {
	case errors.Is(err, errNothingThere):
		return nil // a session that is there by now was begun since, by another writer
	case err != nil:
		return err
	}
	if err := d.j.clear(ctx); err != nil {
		return unfinished(err)
	}
	return nil
}

func unfinished(err error) error {
	return fmt.Errorf("%w: the session is deleted, but not all of its objects are removed: %w", ErrUnfinished, err)
}

// end is stage 1. A try whose outcome is unknown is followed by another, which finds the end of the session or writes
// it: at most Limits.Attempts.
func (d *deletion) end(ctx context.Context) error {
	for range d.j.cfg.Limits.Attempts {
		err := d.try(ctx)
		switch {
		case err == nil, errors.Is(err, errNothingThere), errors.Is(err, ErrUnfinished):
			return err
		case errors.Is(err, ErrUnknown):
			d.doubt = err
		case errors.Is(err, errHeadMoved):
		default:
			return d.failed(err)
		}
	}
	return d.failed(fmt.Errorf("the head moved %d times in a row", d.j.cfg.Limits.Attempts))
}

// failed returns the error of stage 1: nothing was deleted, or it is unknown whether something was.
func (d *deletion) failed(err error) error {
	switch {
	case d.doubt != nil:
		return fmt.Errorf("%w: %w", ErrUnfinished, d.doubt)
	case errors.Is(err, ErrConflict), errors.Is(err, store.ErrDeleted), errors.Is(err, fs.ErrNotExist):
		return err
	case backend.OutcomeOf(err) != backend.NotApplied: // a read failed, or the session is not as it was
		err = d.j.notApplied("delete", err)
	}
	return fmt.Errorf("nothing was deleted: %w", err)
}

// try is one try of stage 1. Only Load finds out what there is to delete: that another object is missing, which the
// commit may meet, does not make the session a missing one.
func (d *deletion) try(ctx context.Context) error {
	st, err := d.j.strategy.Load(ctx)
	switch {
	case errors.Is(err, store.ErrDeleted):
		return d.again(ctx, err)
	case d.any && errors.Is(err, store.ErrCorrupt):
		return d.j.buryUnread(ctx)
	case d.any && errors.Is(err, fs.ErrNotExist):
		left, err := d.j.leftovers(ctx)
		switch {
		case err != nil:
			return err
		case !left:
			return errNothingThere
		}
		return d.j.buryUnread(ctx)
	case err != nil:
		return err
	case !d.any && st.Summary.Commit != d.at:
		return fmt.Errorf("delete session %s at commit %s: %w", d.j.cfg.Session, d.at, ErrConflict)
	}
	d.j.mu.Lock()
	d.j.stand(st)
	d.j.mu.Unlock()
	h, err := d.j.Hold(ctx, "delete")
	if err != nil {
		return err
	}
	defer h.Release()
	_, err = h.Write(ctx, Call{Based: true}, func(_ context.Context, on *state.State) (*Step, error) {
		if on.Summary.Commit != st.Summary.Commit { // another writer's commit, or another deletion
			return nil, errHeadMoved
		}
		return &Step{Reason: state.ReasonDelete, Claim: true, Source: d.source}, nil
	})
	if errors.Is(err, ErrFenced) || errors.Is(err, store.ErrDeleted) {
		return errHeadMoved
	}
	return err
}

// again is try for a session that was deleted before: by an earlier try of this call, or by another one, which perhaps
// did not finish.
func (d *deletion) again(ctx context.Context, deleted error) error {
	if d.any || d.doubt != nil {
		return nil
	}
	left, err := d.j.leftovers(ctx)
	switch {
	case err != nil:
		return unfinished(err)
	case !left:
		return deleted
	}
	return nil
}

// leftovers reports whether there are objects of the session besides checkpoint_latest.
func (j *Journal) leftovers(ctx context.Context) (bool, error) {
	for _, err := range j.store.Backend.List(ctx,
		backend.ListOptions{Prefix: layout.SessionPrefix(j.cfg.Session), Limit: 1}) {
		return err == nil, err
	}
	return false, nil
}

// buryUnread is stage 1 for a session that cannot be read, or whose first commit was never stored.
func (j *Journal) buryUnread(ctx context.Context) error {
	err := j.entomb(ctx)
	if err != nil && backend.OutcomeOf(err) != backend.NotApplied {
		return &store.Failure{Err: fmt.Errorf("%w: %w", ErrUnknown, err)}
	}
	return err
}

// clear is stages 2 and 3.
func (j *Journal) clear(ctx context.Context) error {
	if _, disk := j.store.Backend.(backend.Appender); disk {
		err := j.entomb(ctx)
		if full(err) && j.State() != nil && j.State().Summary.Tombstone {
			// The end of the session is durable in the log, and only segments are needed to read that: remove
			// the other objects first, to make room.
			for _, folder := range []string{layout.Blobs, layout.Originals, layout.Snapshots, layout.Torn} {
				if err := j.removeBelow(ctx, folder); err != nil {
					return err
				}
			}
			err = j.entomb(ctx)
		}
		if err != nil {
			return err
		}
	}
	return j.removeBelow(ctx, "")
}

// full reports whether a write failed for want of space.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Entomb makes the tombstone of a session that was deleted durable, or writes it: after it objects may be removed.
func Entomb(ctx context.Context, cfg Config) error { return newJournal(cfg).entomb(ctx) }

// entomb puts a tombstone in place of checkpoint_latest, under the version that is there. One of an earlier try is made
// durable: on a disk it may be visible and not synced.
func (j *Journal) entomb(ctx context.Context) error {
	key := layout.CheckpointKey(j.cfg.Session)
	var err error
	for range j.cfg.Limits.Attempts {
		if err = j.tryEntomb(ctx, key); !errors.Is(err, backend.ErrPrecondition) {
			break
		}
	}
	return err
}

// tryEntomb is one try of entomb; ErrPrecondition if another writer replaced the object meanwhile.
func (j *Journal) tryEntomb(ctx context.Context, key string) error {
	p, info, err := j.store.Backend.Get(ctx, key, backend.Range{})
	cond := backend.IfMatch(info.Version)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		cond = backend.IfAbsent()
	case err != nil:
		return notApplied("delete", j.cfg.Session, err)
	default:
		if o, err := checkpoint.DecodeObject(p); err == nil && o.Summary.Tombstone {
			return j.store.Harden(ctx, key, p, info.Version)
		}
	}
	body, err := j.tombstone()
	if err != nil {
		return err
	}
	_, err = j.store.Backend.Put(ctx, key, body, cond)
	return err
}

// tombstone returns the object that replaces checkpoint_latest. A session that was not read gets a seq above any that
// a delayed writer has.
func (j *Journal) tombstone() ([]byte, error) {
	if st := j.State(); st != nil && st.Summary.Tombstone {
		return st.Object(false).Encode()
	}
	id, now, err := j.store.LineID()
	if err != nil {
		return nil, err
	}
	st := &state.State{HeadOrd: -1}
	st.Summary = checkpoint.Summary{ID: j.cfg.Session, Tombstone: true, Updated: now}
	st.Summary.Commit, st.Summary.Seq = id, ^uint64(0)>>1
	return st.Object(false).Encode()
}

// removeBelow deletes the objects of a folder of the session; "" = all.
func (j *Journal) removeBelow(ctx context.Context, folder string) error {
	var keys []string
	o := backend.ListOptions{Prefix: layout.SessionPrefix(j.cfg.Session) + folder}
	for info, err := range j.store.Backend.List(ctx, o) {
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
