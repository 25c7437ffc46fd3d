package crash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

// ledger records the answers of callers.
type ledger struct {
	acked     map[string]string // entry -> its commit
	failed    map[string]bool   // entries that were reported as not applied
	snapshots []string
	deleting  bool
	deleted   bool
}

func (l *ledger) clone() ledger {
	c := *l
	c.acked, c.failed = maps.Clone(l.acked), maps.Clone(l.failed)
	return c
}

// life is a few processes on one disk that fails at times.
type life struct {
	*World
	ledger

	faults  *vfstest.FaultFS
	settles bool     // doubts are settled; otherwise the handle is replaced by a new one
	points  []moment // the disk after each answer
	wrong   []error
}

type moment struct {
	at   *vfstest.Point
	told ledger
}

func (l *life) violated(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Errorf(format, args...))
}

// told records the disk at the time of an answer.
func (l *life) told() { l.points = append(l.points, moment{l.FS.Point(), l.clone()}) }

// open opens the session, at the second try if need be: the first may get the fault.
func (l *life) open(ctx context.Context) *journal.Journal {
	for range 3 {
		j, err := journal.Open(ctx, l.Config())
		switch {
		case err == nil:
			return j
		case errors.Is(err, store.ErrCorrupt):
			l.violated("I10: a fault is taken for damage: %w", err)
		case errors.Is(err, fs.ErrNotExist) && len(l.acked) > 0:
			l.violated("I1: a fault makes the session count as missing: %w", err)
		case errors.Is(err, fs.ErrNotExist):
			return journal.Create(l.Config(), Genesis())
		}
	}
	return nil
}

// turn commits a turn on j and records the answer. It returns the handle to continue with.
func (l *life) turn(ctx context.Context, j *journal.Journal, text int, keep bool) *journal.Journal {
	if j == nil {
		if j = l.open(ctx); j == nil {
			return nil
		}
	}
	s := l.Step(j.State(), text)
	s.KeepBoth = keep
	res, err := j.Commit(ctx, s)
	defer l.told()
	if errors.Is(err, journal.ErrUnknown) {
		return l.inDoubt(ctx, j, s.Entries[0].ID, err)
	}
	if !l.answered(s.Entries[0].ID, res, err) {
		return nil
	}
	if j.InDoubt() { // an earlier request of the background work: this turn was not sent
		return l.inDoubt(ctx, j, "", nil)
	}
	return j
}

// answered records the answer to a turn whose outcome is known. It reports whether its handle can be used.
func (l *life) answered(e string, res journal.Outcome, err error) bool {
	lost := errors.Is(err, journal.ErrConflict) || errors.Is(err, journal.ErrFenced)
	switch {
	case err == nil:
		l.acked[e] = res.Commit.Commit
		return true
	case errors.Is(err, store.ErrCorrupt):
		l.violated("I10: a fault is taken for damage: %w", err)
		return false
	case !lost && backend.OutcomeOf(err) != backend.NotApplied:
		l.violated("I2: the outcome is not known, and the error does not say so: %w", err)
	}
	l.failed[e] = true
	return true
}

// inDoubt continues after a request with an unknown outcome: e is its entry; "" = it has none. The doubt is ended by
// Settle, or by a turn with a key; or the handle is replaced by a new one.
func (l *life) inDoubt(ctx context.Context, j *journal.Journal, e string, cause error) *journal.Journal {
	ctx = context.WithoutCancel(ctx) // another caller settles
	if !j.InDoubt() {
		l.violated("I11: there is no doubt after %w", cause)
		return nil
	}
	again := l.Step(j.State(), 4)
	id := again.Entries[0].ID
	switch _, err := j.Commit(ctx, again); {
	case err == nil:
		l.violated("I11: after %w the handle takes another commit", cause)
	case !errors.Is(err, journal.ErrInDoubt):
		l.violated("a turn that names no base got %w after %w", err, cause)
	}
	l.failed[id] = true
	if !l.settles {
		return nil
	}
	commit := ""
	if f, ok := errors.AsType[*store.Failure](cause); ok && l.made%2 == 0 {
		commit, again.Key = f.Commit, "key of "+id
		switch res, err := j.Commit(ctx, again); {
		case err == nil:
			delete(l.failed, id)
			l.acked[id] = res.Commit.Commit
		case errors.Is(err, journal.ErrUnknown): // it is the doubt now
			delete(l.failed, id)
		}
	}
	for range 3 {
		res, err := j.Settle(ctx, commit)
		switch {
		case err == nil && e != "":
			l.acked[e] = res.Commit.Commit
			return j
		case err == nil:
			return j
		case errors.Is(err, store.ErrCorrupt):
			l.violated("I10: a fault is taken for damage: %w", err)
		case !errors.Is(err, journal.ErrUnknown):
			l.failed[e] = true // it was lost
			return j
		}
	}
	return nil // in doubt permanently
}

// close closes a handle; its pending work may fail.
func (l *life) close(ctx context.Context, j *journal.Journal) {
	if j != nil {
		if err := j.Close(ctx); errors.Is(err, store.ErrCorrupt) {
			l.violated("I10: a fault is taken for damage: %w", err)
		}
		l.told()
	}
}

// lives are the scripts. Each is played once for each of its calls and each way in which that can fail.
var lives = []struct {
	name   string
	before string // scenario whose disk it begins with; "" = an empty one
	play   func(ctx context.Context, l *life)
}{
	{"create", "", func(ctx context.Context, l *life) {
		j := journal.Create(l.Config(), Genesis())
		for range 2 {
			j = l.turn(ctx, j, 30, false)
		}
		l.close(ctx, j)
	}},
	{"roll", "append", func(ctx context.Context, l *life) {
		j := l.open(ctx)
		for range 3 {
			j = l.turn(ctx, j, 600, false)
		}
		l.close(ctx, j)
	}},
	{"torn", "torn", func(ctx context.Context, l *life) {
		j := l.open(ctx)
		for range 2 {
			j = l.turn(ctx, j, 30, false)
		}
	}},
	{"two", "append", func(ctx context.Context, l *life) {
		a, b := l.open(ctx), l.open(ctx)
		for range 2 {
			a = l.turn(ctx, a, 30, true)
			b = l.turn(ctx, b, 30, true)
		}
	}},
	{"upkeep", "collect", func(ctx context.Context, l *life) {
		j := l.open(ctx)
		if j == nil {
			return
		}
		if info, err := j.Snapshot(ctx, j.State(), ""); err == nil {
			l.snapshots = append(l.snapshots, info.ID)
			l.told()
		}
		_, _ = gc.Run(ctx, l.Config(), false)
		l.told()
		if err := j.Tidy(ctx); errors.Is(err, store.ErrCorrupt) {
			l.violated("I10: a fault is taken for damage: %w", err)
		}
		l.told()
		l.close(ctx, l.turn(ctx, j, 30, false))
	}},
	{"look", "append", lookingOn},
	{"cancel", "append", givingUp},
	{"group", "append", waiting},
	{"program", "", embedding},
	{"delete", "append", func(ctx context.Context, l *life) {
		l.deleting = true
		for range 3 {
			err := journal.Delete(ctx, l.Config())
			if l.deleted = l.deleted || err == nil; err == nil {
				break
			}
			l.told()
		}
		l.told()
	}},
}

// check reads the session from a disk without faults, and compares it with the answers of callers.
func (l *ledger) check(ctx context.Context, w *World, deep bool) error {
	j, err := journal.Open(ctx, w.Config())
	switch {
	case errors.Is(err, store.ErrDeleted) && l.deleting:
		return nil
	case l.deleted && err == nil:
		return errors.New("I1: after a deletion the session opens")
	case l.deleted:
		return fmt.Errorf("I1: after a deletion opening gives: %w", err)
	case errors.Is(err, fs.ErrNotExist) && len(l.acked) == 0:
		return nil
	case err != nil:
		return fmt.Errorf("I1: reopening: %w", err)
	case j.State().Summary.Tombstone && l.deleting:
		return nil
	}
	if err := l.history(ctx, j); err != nil {
		return err
	}
	for _, name := range l.snapshots {
		if _, err := j.ReadSnapshot(ctx, name); err != nil {
			return fmt.Errorf("I9: snapshot %s: %w", name, err)
		}
	}
	if !deep || l.deleting {
		return nil
	}
	if _, err := j.Commit(ctx, w.Step(j.State(), 10)); err != nil {
		return fmt.Errorf("the next commit: %w", err)
	}
	r, err := check.Verify(ctx, w.Config(), true)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	for _, p := range r.Problems {
		if p.Kind.Damage() || p.Kind == check.TornTail {
			return fmt.Errorf("I3: verify finds %w", p)
		}
	}
	again, err := journal.Open(ctx, w.Config())
	if err != nil {
		return fmt.Errorf("I1: reopening after the next commit: %w", err)
	}
	return l.history(ctx, again)
}

// history counts entries and commits.
func (l *ledger) history(ctx context.Context, j *journal.Journal) error {
	entries, commits := map[string]int{}, map[string]int{}
	st := j.State()
	seq := int64(-1)
	for b, err := range j.Since(ctx, st, -1, nil) {
		if err != nil {
			return fmt.Errorf("I3: history: %w", err)
		}
		if seq++; int64(b.Commit.Seq) != seq {
			return fmt.Errorf("I10: commit %d where %d is due", b.Commit.Seq, seq)
		}
		commits[b.Commit.Commit]++
		for _, line := range b.Lines {
			if e, err := segment.Entry(line.Ord, line.Raw); err == nil && !line.Commit {
				entries[e.ID]++
			}
		}
	}
	if seq != int64(st.Summary.Seq) {
		return fmt.Errorf("I1: the history ends with %d, the head is %d", seq, st.Summary.Seq)
	}
	for e, c := range l.acked {
		if entries[e] != 1 || commits[c] != 1 {
			return fmt.Errorf("I1: entry %s was acknowledged by commit %s; they are there %d and %d times", e, c, entries[e], commits[c])
		}
	}
	for e := range l.failed {
		if entries[e] != 0 {
			return fmt.Errorf("I2: entry %s was reported as not applied and is in the history", e)
		}
	}
	for e, n := range entries {
		if n > 1 {
			return fmt.Errorf("I6: entry %s is there %d times", e, n)
		}
	}
	return nil
}
