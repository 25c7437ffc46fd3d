package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
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
//     needs is removed (I13). The id is used again only on request (Again), from the next epoch on.
//  3. The objects of epochs up to the tombstone's are removed, so that a deletion that runs late leaves what a new
//     session of the id has. Nothing deletes checkpoint_latest: a delayed delete would destroy another session.
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

// Replace is DeleteAt of a session that was imported, and whose file the session by has now ("" = not known): the
// tombstone names that one in place of the file.
func Replace(ctx context.Context, cfg Config, commit, by string) error {
	source := &checkpoint.Source{Program: checkpoint.SourceReplaced, Session: by}
	d := &deletion{j: newJournal(cfg), at: commit, source: source}
	return d.run(ctx)
}

// deletion is one call of Delete, DeleteAt or Replace.
type deletion struct {
	source *checkpoint.Source // in place of the session's; nil = as it is
	j      *Journal
	any    bool               // whatever the newest commit is
	at     string             // else the newest commit
	doubt  error              // an earlier try of stage 1 whose outcome is unknown
	grave  *checkpoint.Object // the tombstone of the session, once it is deleted
}

var (
	errNothingThere = errors.New("neither the session nor leftovers of it are there")
	errHeadMoved    = errors.New("another writer moved the head")
)

func (d *deletion) run(ctx context.Context) error {
	ctx = backend.Freeing(ctx)
	defer d.j.Close(ctx)
	switch err := d.end(ctx); {
	case errors.Is(err, errNothingThere):
		return nil // a session that is there by now was begun since, by another writer
	case err != nil:
		return err
	}
	if err := d.j.clear(ctx, d.grave); err != nil {
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
	case errors.Is(err, ErrConflict), errors.Is(err, store.ErrDeleted), errors.Is(err, fs.ErrNotExist),
		errors.Is(err, ErrHeld):
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
	case d.any && (errors.Is(err, store.ErrCorrupt) || errors.Is(err, fs.ErrNotExist)):
		return d.buryUnread(ctx)
	case err != nil:
		return err
	case !d.any && st.Summary.Commit != d.at:
		return fmt.Errorf("delete session %s at commit %s: %w", d.j.cfg.Session, d.at, ErrConflict)
	}
	d.j.mu.Lock()
	d.j.adopt(st)
	d.j.mu.Unlock()
	h, err := d.j.Hold(ctx, "delete")
	if err != nil {
		return err
	}
	defer h.Release()
	r, err := h.Write(ctx, Step{Based: true}, func(_ context.Context, on *state.State) (*Step, error) {
		if on.Summary.Commit != st.Summary.Commit { // another writer's commit, or another deletion
			return nil, errHeadMoved
		}
		if on.Summary.Held() {
			return nil, ErrHeld
		}
		return &Step{Reason: state.ReasonDelete, Claim: true, Source: d.source}, nil
	})
	if errors.Is(err, ErrFenced) || errors.Is(err, store.ErrDeleted) {
		return errHeadMoved
	}
	if err == nil {
		d.grave = r.State.Object(false)
	}
	return err
}

// again is try for a session that was deleted before: by an earlier try of this call, or by another one, which perhaps
// did not finish.
func (d *deletion) again(ctx context.Context, deleted error) error {
	if f, ok := errors.AsType[*store.Failure](deleted); ok {
		d.grave = f.Grave
	}
	if d.any || d.doubt != nil {
		return nil
	}
	left, _, err := d.j.leftovers(ctx, store.LastEpoch(d.grave))
	switch {
	case err != nil:
		return unfinished(err)
	case len(left) == 0:
		return deleted
	}
	return nil
}

// leftovers returns the keys of the session's objects of epochs up to last, checkpoint_latest left out, and the highest
// epoch of them.
func (j *Journal) leftovers(ctx context.Context, last uint64) (keys []string, highest uint64, err error) {
	for info, err := range j.store.Backend.List(ctx,
		backend.ListOptions{Prefix: layout.SessionPrefix(j.cfg.Session)}) {
		if err != nil {
			return nil, 0, err
		}
		if epoch := layout.Epoch(info.Key); epoch <= last {
			keys, highest = append(keys, info.Key), max(highest, epoch)
		}
	}
	return keys, highest, nil
}

// buryUnread is stage 1 for a session that cannot be read, or whose first commit was never stored. The tombstone
// replaces only what was there before the session was looked at once more.
func (d *deletion) buryUnread(ctx context.Context) error {
	j := d.j
	_, info, err := j.store.Backend.Get(ctx, layout.CheckpointKey(j.cfg.Session), backend.Tail(0))
	cond := backend.IfMatch(info.Version)
	if errors.Is(err, fs.ErrNotExist) {
		cond, err = backend.IfAbsent(), nil
	}
	if err != nil {
		return err
	}
	_, err = j.strategy.Load(ctx)
	absent := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil, errors.Is(err, store.ErrDeleted):
		return errHeadMoved
	case !absent && !errors.Is(err, store.ErrCorrupt):
		return err
	}
	left, highest, err := j.leftovers(ctx, math.MaxUint64)
	switch {
	case err != nil:
		return err
	case absent && len(left) == 0:
		return errNothingThere
	}
	if d.grave, err = j.unreadTombstone(highest); err != nil {
		return err
	}
	body, err := d.grave.Encode()
	if err != nil {
		return err
	}
	_, err = j.store.Backend.Put(ctx, layout.CheckpointKey(j.cfg.Session), body, cond)
	switch {
	case errors.Is(err, backend.ErrPrecondition):
		return errHeadMoved
	case err != nil && backend.OutcomeOf(err) != backend.NotApplied:
		j.store.Bind(store.LastEpoch(d.grave)) // the next try leaves alone what began since
		return &store.Failure{Err: fmt.Errorf("%w: %w", ErrUnknown, err)}
	}
	return err
}

// clear is stages 2 and 3.
func (j *Journal) clear(ctx context.Context, tombstone *checkpoint.Object) error {
	last := store.LastEpoch(tombstone)
	if _, disk := j.store.Backend.(backend.Appender); disk {
		_, _, err := j.entomb(ctx, tombstone)
		if full(err) && j.State() != nil && j.State().Summary.Tombstone {
			// The end of the session is durable in the log, and only segments are needed to read that: remove
			// the other objects first, to make room.
			for _, folder := range []string{layout.Blobs, layout.Originals, layout.Snapshots, layout.Torn} {
				if err := j.removeBelow(ctx, folder, last); err != nil {
					return err
				}
			}
			_, _, err = j.entomb(ctx, tombstone)
		}
		if err != nil {
			return err
		}
	}
	return j.removeBelow(ctx, "", last)
}

// full reports whether a write failed for want of space.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Entomb makes the tombstone of a deleted session durable, or writes it, and returns the epoch below which no object is
// needed any more. Of a session that is not deleted that is its first epoch: a session that had its id before it was.
func Entomb(ctx context.Context, cfg Config) (below uint64, err error) {
	j := newJournal(cfg)
	st, err := j.strategy.Load(ctx)
	if err == nil {
		return st.Since, nil
	}
	f, ok := errors.AsType[*store.Failure](err)
	if !ok || f.Grave == nil {
		return 0, err
	}
	_, _, err = j.entomb(ctx, f.Grave)
	return layout.NextEpoch(f.Grave.Summary.Epoch), err
}

// entomb puts a tombstone in place of checkpoint_latest, under the version that is there. One of an earlier try is made
// durable: on a disk it may be visible and not synced. A later session of the id stays. It returns what is there then,
// and its version.
func (j *Journal) entomb(
	ctx context.Context, tombstone *checkpoint.Object,
) (o *checkpoint.Object, v backend.Version, err error) {
	key := layout.CheckpointKey(j.cfg.Session)
	for range j.cfg.Limits.Attempts {
		if o, v, err = j.tryEntomb(ctx, key, tombstone); !errors.Is(err, backend.ErrPrecondition) {
			break
		}
	}
	return o, v, err
}

// tryEntomb is one try of entomb; ErrPrecondition if another writer replaced the object meanwhile.
func (j *Journal) tryEntomb(
	ctx context.Context, key string, tombstone *checkpoint.Object,
) (*checkpoint.Object, backend.Version, error) {
	p, info, err := j.store.Backend.Get(ctx, key, backend.Range{})
	cond := backend.IfMatch(info.Version)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		cond = backend.IfAbsent()
	case err != nil:
		return nil, "", notApplied("delete", j.cfg.Session, err)
	default:
		last := store.LastEpoch(tombstone)
		o, err := checkpoint.DecodeObject(p)
		switch {
		case err != nil: // it is damaged, and replaced
		case o.Summary.Tombstone && store.LastEpoch(o) >= last:
			return o, info.Version, j.store.Harden(ctx, key, p, info.Version)
		case !o.Summary.Tombstone && o.Since > last:
			return o, info.Version, nil
		}
	}
	body, err := tombstone.Encode()
	if err != nil {
		return nil, "", err
	}
	info, err = j.store.Backend.Put(ctx, key, body, cond)
	return tombstone, info.Version, err
}

// removeBelow deletes the objects of a folder of the session that are of epochs up to last; "" = of all folders.
func (j *Journal) removeBelow(ctx context.Context, folder string, last uint64) error {
	keys, _, err := j.leftovers(ctx, last)
	if err != nil {
		return err
	}
	folder = layout.SessionPrefix(j.cfg.Session) + folder
	for _, key := range keys {
		if !strings.HasPrefix(key, folder) {
			continue
		}
		if err := j.store.Backend.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
