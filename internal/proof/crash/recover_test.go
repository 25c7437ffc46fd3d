package crash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

// Found is the result of a recovery before it wrote anything.
type Found struct {
	Commits   int    // of the session; 0 = no session
	Commit    string // the newest
	Snapshots string // their names
	Deleted   bool
}

// shown returns the newest commit that a program finds; "" = there is no session.
func (f Found) shown() string {
	if f.Deleted {
		return ""
	}
	return f.Commit
}

// Against checks the result against the answers that callers had at the time of the crash, and against the commits.
func (f Found) Against(told *Promise, h *History) error {
	switch {
	case f.Deleted && !told.Deleting:
		return errors.New("I1: the session counts as deleted")
	case f.Deleted:
		return nil
	case told.Deleted:
		return errors.New("I1: the session was deleted, and is there again")
	case f.Commits < told.Commits:
		return fmt.Errorf("I1: %d commits were acknowledged, %d are there", told.Commits, f.Commits)
	case f.Commits > len(h.Commits):
		return fmt.Errorf("I10: %d commits are there, %d were made", f.Commits, len(h.Commits))
	case f.Commits > 0 && h.Commits[f.Commits-1].ID != f.Commit:
		return fmt.Errorf("I10: commit %d is %s, and was %s", f.Commits-1, f.Commit, h.Commits[f.Commits-1].ID)
	}
	return nil
}

// Look opens the session for reading: its content must be what was committed, to the byte, and the disk must not change
// (I14).
func (w *World) Look(
	ctx context.Context, cfg journal.Config, told *Promise, h *History,
) (Found, *journal.Journal, error) {
	var f Found
	before := w.FS.Ops()
	j, err := journal.Open(ctx, cfg)
	switch {
	case errors.Is(err, store.ErrDeleted):
		f.Deleted = !told.Again
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return f, nil, fmt.Errorf("I1: opening fails: %w", err)
	default:
		st := j.State()
		if st.Summary.Tombstone { // deleted, so far only in the log
			f.Deleted, j = true, nil
			break
		}
		if told.Again && told.Commits == 0 && st.Since == 0 { // the deletion of the earlier session was not durable
			f.Commit, j = st.Summary.Commit, nil
			break
		}
		f.Commits, f.Commit = int(st.Summary.Seq)+1, st.Summary.Commit
		if err := f.Against(told, h); err != nil {
			return f, nil, err
		}
		if err := h.Holds(st); err != nil {
			return f, nil, err
		}
		if err := h.Reads(ctx, j, st); err != nil {
			return f, nil, err
		}
		if f.Snapshots, err = snapshots(ctx, cfg.Backend); err != nil {
			return f, nil, err
		}
		for _, name := range told.Snapshots {
			if _, err := j.ReadSnapshot(ctx, name); err != nil {
				return f, nil, fmt.Errorf("I9: snapshot %s: %w", name, err)
			}
		}
	}
	if n := w.FS.Ops() - before; n > 0 {
		return f, nil, fmt.Errorf("I14: opening for read made %d changes", n)
	}
	return f, j, f.Against(told, h)
}

// snapshots are the names of the session's snapshots, a line each.
func snapshots(ctx context.Context, b backend.Backend) (names string, err error) {
	prefix := layout.SessionPrefix(Session) + layout.Snapshots
	for info, err := range b.List(ctx, backend.ListOptions{Prefix: prefix}) {
		if err != nil {
			return "", err
		}
		names += info.Key[len(prefix):] + "\n"
	}
	return names, nil
}

// Resume continues after a crash: with one more commit, on a new session if none was found, or with the end of a
// deletion. close: the handle is closed too.
func (w *World) Resume(
	ctx context.Context, cfg journal.Config, f Found, j *journal.Journal, told *Promise, close bool,
) error {
	if f.Deleted || told.Deleting {
		w.Told.Deleting = true
		if err := journal.Delete(ctx, cfg); err != nil {
			return fmt.Errorf("the deletion cannot be finished: %w", err)
		}
		w.Told.Deleted = told.Commits > 0 || f.Commits > 0 || f.Deleted
		return nil
	}
	if j == nil {
		if cfg.Again = told.Again; cfg.Again {
			if err := journal.Delete(ctx, cfg); err != nil {
				return fmt.Errorf("the deletion of the session before cannot be finished: %w", err)
			}
		}
		j = journal.Create(cfg, Genesis())
	}
	torn := w.uncommitted(j.State())
	step := w.Step(j.State(), 40)
	res, err := j.Commit(ctx, step)
	if err != nil {
		return fmt.Errorf("the next commit fails: %w", err)
	}
	w.Gave(res.Commit.Seq, step)
	if err := w.aside(ctx, cfg.Backend, torn); err != nil {
		return err
	}
	if int(res.Commit.Seq) < f.Commits {
		return fmt.Errorf("I10: the next commit is number %d behind %d", res.Commit.Seq, f.Commits)
	}
	w.Acked(res.Commit.Seq)
	if close {
		if err := j.Close(ctx); err != nil {
			return fmt.Errorf("close: %w", err)
		}
	}
	return nil
}

// behind returns the bytes of the active segment after the last commit.
func (w *World) uncommitted(st *state.State) []byte {
	ref := st.Active()
	if ref == nil {
		return nil
	}
	seg, ok := layout.ParseSegment(ref.Name)
	if !ok {
		return nil
	}
	p, _ := w.FS.Bytes(seg.PlainKey(Session))
	return p[min(int(ref.Bytes), len(p)):]
}

// aside checks that torn bytes were kept (I14).
func (w *World) aside(ctx context.Context, b backend.Backend, torn []byte) error {
	if len(torn) == 0 {
		return nil
	}
	for info, err := range b.List(ctx, backend.ListOptions{Prefix: layout.SessionPrefix(Session) + layout.Torn}) {
		if err != nil {
			return err
		}
		if p, _ := w.FS.Bytes(info.Key); string(p) == string(torn) {
			return nil
		}
	}
	return fmt.Errorf("I14: %d torn bytes are gone", len(torn))
}

// Again opens once more, after Resume: the new commit follows those found before.
func (w *World) Again(ctx context.Context, f Found) error {
	j, err := journal.Open(ctx, w.Config())
	if w.Told.Deleted {
		if err == nil {
			return errors.New("I1: after the deletion the session opens")
		}
		if !errors.Is(err, store.ErrDeleted) {
			return fmt.Errorf("I1: after the deletion opening gives: %w", err)
		}
		return w.empty(ctx)
	}
	if w.Told.Deleting {
		return nil
	}
	if err != nil {
		return fmt.Errorf("I1: opening after the next commit: %w", err)
	}
	st := j.State()
	if int(st.Summary.Seq)+1 < w.Told.Commits {
		return fmt.Errorf("I1: after the next commit, number %d, the session ends with %d", w.Told.Commits-1,
			st.Summary.Seq)
	}
	for _, c := range st.Lineage {
		if int(c.Seq) == f.Commits-1 && c.Commit != f.Commit {
			return fmt.Errorf("I1: the next commit replaced commit %d", c.Seq)
		}
	}
	return nil
}

// empty checks that nothing of a deleted session is left, and that its id stays used.
func (w *World) empty(ctx context.Context) error {
	cfg := w.Config()
	for info, err := range cfg.Backend.List(ctx, backend.ListOptions{Prefix: layout.SessionPrefix(Session)}) {
		if err != nil {
			return err
		}
		return fmt.Errorf("I3: %s is left of a deleted session", info.Key)
	}
	j := journal.Create(cfg, Genesis())
	_, err := j.Commit(ctx, w.Step(j.State(), 8))
	if err == nil {
		return errors.New("I1: the id of a deleted session is used again")
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("creating a session under the id of a deleted one: %w", err)
	}
	return nil
}

// Healthy verifies every byte, and after a garbage collection once more (I3).
func (w *World) Healthy(ctx context.Context) error {
	if w.Told.Deleting {
		return nil
	}
	for range 2 {
		r, err := check.Verify(ctx, w.Config(), true)
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		for _, p := range r.Problems {
			if p.Kind.Damage() || p.Kind == check.TornTail || p.Kind == check.ForeignBytes {
				return fmt.Errorf("I3: verify finds %w", p)
			}
		}
		if _, err := gc.Run(ctx, w.Config(), false); err != nil {
			return fmt.Errorf("collect: %w", err)
		}
	}
	return nil
}

// boot starts a world from the image after a crash.
func boot(m *vfstest.Image, seed uint64, lim journal.Limits) *World {
	return NewWorld(vfstest.Boot(m), seed, lim)
}
