package crash

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/transfer"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
	"github.com/coppice-go/coppice/transcript"
)

// Scenario is a short life of a session. Play is crashed; Before and Prepare are the setup. In both a failure of any
// call ends the scenario, and is an error unless a fault was injected.
type Scenario struct {
	Name    string
	Before  int                                       // turns of the session
	Prepare func(ctx context.Context, w *World) error // nil = nothing
	Play    func(ctx context.Context, w *World) error
}

// Scenarios are played by the explorer and the fault injector.
var Scenarios = []Scenario{
	{"create", 0, nil, playCreate},
	{"append", 1, nil, func(ctx context.Context, w *World) error { return w.turns(ctx, 3) }},
	{"batch", 1, nil, playBatch},
	{"roll", 4, nil, func(ctx context.Context, w *World) error { return w.turns(ctx, 4) }},
	{"checkpoint", 2, nil, playCheckpoint},
	{"snapshot", 2, nil, playSnapshot},
	{"collect", 5, leaveGarbage, playCollect},
	{"delete", 5, nil, playDelete},
	{"again", 5, leaveDeletion, playAgain},
	{"import", 0, nil, playImport},
	{"grow", 0, importFirst, playGrow},
	{"rollback", 3, nil, playRollback},
	{"branches", 2, nil, playBranches},
	{"keepboth", 2, nil, playKeepBoth},
	{"conflict", 2, nil, playConflict},
	{"fence", 2, nil, playFence},
	{"torn", 2, leaveTorn, func(ctx context.Context, w *World) error { return w.turns(ctx, 2) }},
	{"images", 1, nil, playImages},
	{"tidy", 3, nil, playTidy},
	{"program", 0, nil, playProgram},
	{"cancel", 1, nil, playCancel},
	{"group", 1, nil, playGroup},
	{"readers", 1, nil, playReaders},
	{"unsynced", 2, leaveUnsynced, playReaders},
}

// Run plays a scenario on the world's empty disk, and returns the moments of Play and the history.
func (s *Scenario) Run(ctx context.Context, w *World) ([]Moment, *History, error) {
	if err := s.Begin(ctx, w); err != nil {
		return nil, nil, fmt.Errorf("before: %w", err)
	}
	h, err := w.History(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("before: %w", err)
	}
	moments, err := w.Track(func() error { return s.Play(ctx, w) })
	if err != nil {
		return moments, h, err
	}
	if !w.Told.Deleting {
		if h, err = w.History(ctx); err != nil {
			return moments, h, err
		}
	}
	return moments, h, h.Keeps(w.given, w.refused)
}

// Begin creates the disk at the start of Play.
func (s *Scenario) Begin(ctx context.Context, w *World) error {
	if s.Before > 0 {
		j := journal.Create(w.Config(), Genesis())
		for range s.Before {
			if err := w.Turn(ctx, j, w.text()); err != nil {
				return err
			}
		}
		if w.Rng.IntN(2) == 0 {
			if err := j.Close(ctx); err != nil {
				return err
			}
		}
	}
	if s.Prepare == nil {
		return nil
	}
	return s.Prepare(ctx, w)
}

// text chooses the length of an entry: mostly within a sector, sometimes over several, rarely over a page.
func (w *World) text() int {
	switch w.Rng.IntN(8) {
	case 0:
		return 1500 + w.Rng.IntN(1500)
	case 1, 2:
		return 400 + w.Rng.IntN(400)
	}
	return w.Rng.IntN(60)
}

// Turn commits a turn of one entry and records it.
func (w *World) Turn(ctx context.Context, j *journal.Journal, text int) error {
	return w.Commit(ctx, j, w.Step(j.State(), text))
}

// Commit commits a step and records it.
func (w *World) Commit(ctx context.Context, j *journal.Journal, s *journal.Step) error {
	res, err := j.Commit(ctx, s)
	if err != nil {
		return err
	}
	w.Acked(res.State.Summary.Seq) // with the other commits of its request
	w.Gave(res.Commit.Seq, s)
	return nil
}

// turns makes some turns of a new process, which then ends without Close.
func (w *World) turns(ctx context.Context, n int) error {
	j, err := journal.Open(ctx, w.Config())
	for i := 0; i < n && err == nil; i++ {
		err = w.Turn(ctx, j, w.text())
	}
	return err
}

func playCreate(ctx context.Context, w *World) error {
	j := journal.Create(w.Config(), Genesis())
	for range 2 {
		if err := w.Turn(ctx, j, w.text()); err != nil {
			return err
		}
	}
	return j.Close(ctx)
}

func playBatch(ctx context.Context, w *World) error {
	j, err := journal.Open(ctx, w.Config())
	if err != nil {
		return err
	}
	s := w.Step(j.State(), w.text())
	for range 2 + w.Rng.IntN(4) {
		e := w.Entry(j.State(), w.text())
		e.Parent = journal.PlaceAt(s.Entries[len(s.Entries)-1])
		s.Entries = append(s.Entries, e)
	}
	if err := w.Commit(ctx, j, s); err != nil {
		return err
	}
	return w.Turn(ctx, j, w.text())
}

func playCheckpoint(ctx context.Context, w *World) error {
	for range 2 {
		j, err := journal.Open(ctx, w.Config())
		if err != nil {
			return err
		}
		if err := w.Turn(ctx, j, w.text()); err != nil {
			return err
		}
		if err := j.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

func playSnapshot(ctx context.Context, w *World) error {
	j, err := journal.Open(ctx, w.Config())
	if err != nil {
		return err
	}
	first, err := j.Snapshot(ctx, j.State(), "tag")
	if err != nil {
		return err
	}
	w.Told.Snapshots = []string{first.ID}
	if err := w.Turn(ctx, j, w.text()); err != nil {
		return err
	}
	second, err := j.Snapshot(ctx, j.State(), "")
	if err != nil {
		return err
	}
	w.Told.Snapshots = []string{second.ID} // the first one may be removed from here on
	if err := j.DropSnapshot(ctx, first.ID); err != nil {
		return err
	}
	return w.Turn(ctx, j, w.text())
}

// leaveGarbage leaves the disk of a process that died between creating the next segment and the commit that would have
// named it.
func leaveGarbage(ctx context.Context, w *World) error {
	return w.die(ctx, func(j *journal.Journal) error { return j.Tidy(ctx) }, func(m Moment) []*vfstest.Image {
		if m.Op.Kind == "write" && strings.Contains(m.Op.Name, "/"+layout.Transcript) {
			return []*vfstest.Image{m.At.Kept()}
		}
		return nil
	})
}

// leaveUnsynced leaves the disk of a process that was killed between the write of a turn and its sync, without a power
// loss: the bytes can be read.
func leaveUnsynced(ctx context.Context, w *World) error {
	j, err := journal.Open(ctx, w.Config())
	if err != nil {
		return err
	}
	var left *vfstest.CrashFS
	moments, err := w.Track(func() error {
		_, err := j.Commit(ctx, w.Step(j.State(), 300+w.text()))
		return err
	})
	for _, m := range moments {
		if m.Op.Kind == "sync" && strings.Contains(m.Op.Name, "/"+layout.Transcript) {
			left = m.At.Fork()
		}
	}
	if err == nil && left == nil {
		err = errors.New("no sync of the log")
	}
	if left != nil {
		w.FS = left
	}
	return err
}

func playCollect(ctx context.Context, w *World) error {
	j, err := journal.Open(ctx, w.Config())
	if err != nil {
		return err
	}
	if err := w.Commit(ctx, j, &journal.Step{Reason: "claim", Claim: true}); err != nil {
		return err
	}
	if _, err := gc.Run(ctx, w.Config(), false); err != nil {
		return err
	}
	return w.Turn(ctx, j, w.text())
}

func playDelete(ctx context.Context, w *World) error {
	w.Told.Deleting = true
	if err := journal.Delete(ctx, w.Config()); err != nil {
		return err
	}
	w.Told.Deleted = true
	return nil
}

// leaveDeletion leaves the disk of a process that was killed while it deleted the session, once that counts as deleted,
// without a power loss: unsynced bytes can be read.
func leaveDeletion(ctx context.Context, w *World) error {
	moments, err := w.Track(func() error { return journal.Delete(ctx, w.Config()) })
	if err != nil {
		return err
	}
	var left []*vfstest.Point
	for _, m := range moments {
		_, err := journal.Open(ctx, NewWorld(m.At.Fork(), w.seed, w.Limits).Config())
		if errors.Is(err, store.ErrDeleted) {
			left = append(left, m.At)
		}
	}
	if len(left) == 0 {
		return errors.New("at no moment the session counts as deleted")
	}
	w.FS = left[w.Rng.IntN(len(left))].Fork()
	w.given, w.refused, w.Told = nil, nil, Promise{Again: true}
	return nil
}

// playAgain creates a session under the id of the deleted one, and removes the objects that that one left.
func playAgain(ctx context.Context, w *World) error {
	cfg := w.Config()
	cfg.Again = true
	j := journal.Create(cfg, Genesis())
	for range 2 {
		if err := w.Turn(ctx, j, w.text()); err != nil {
			return err
		}
	}
	if err := j.Close(ctx); err != nil {
		return err
	}
	if _, err := gc.Run(ctx, w.Config(), false); err != nil {
		return err
	}
	return w.turns(ctx, 2)
}

func playImport(ctx context.Context, w *World) error {
	j, err := transfer.Import(ctx, transfer.Into{Config: w.Config()}, w.lines(3+w.Rng.IntN(6)), Genesis(), nil)
	return w.brought(ctx, j, err)
}

// importFirst imports the first lines of playGrow.
func importFirst(ctx context.Context, w *World) error {
	w.file = w.lines(6 + w.Rng.IntN(6))
	first := func(yield func(transcript.Draft, error) bool) {
		n := 0
		for d, err := range w.file {
			if n++; n > 3 || !yield(d, err) {
				return
			}
		}
	}
	j, err := transfer.Import(ctx, transfer.Into{Config: w.Config()}, first, Genesis(), nil)
	return w.brought(ctx, j, err)
}

func playGrow(ctx context.Context, w *World) error {
	j, _, err := transfer.Grow(ctx, transfer.Into{Config: w.Config()}, w.file, nil)
	return w.brought(ctx, j, err)
}

// lines returns n lines of a file, each the child of the one before.
func (w *World) lines(n int) iter.Seq2[transcript.Draft, error] {
	raw := make([][]byte, n)
	st := &state.State{}
	for i := range raw {
		e := w.Entry(st, w.text())
		st.Summary.Entry, raw[i] = e.ID, e.Raw
	}
	w.given = append(w.given, Given{Seq: whole, Lines: raw})
	return func(yield func(transcript.Draft, error) bool) {
		for _, l := range raw {
			if !yield(entry.Line(l), nil) {
				return
			}
		}
	}
}

// brought records an acknowledged import.
func (w *World) brought(ctx context.Context, j *journal.Journal, err error) error {
	if err != nil {
		return err
	}
	w.Acked(j.State().Summary.Seq)
	return j.Close(ctx)
}
