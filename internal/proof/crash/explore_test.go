package crash

import (
	"context"
	"fmt"
	"sync"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

// Moment is a point of a scenario: the disk before a change, and the answers to callers by then.
type Moment struct {
	Op   vfstest.Op
	At   *vfstest.Point
	Told Promise
}

// Track plays a part of a scenario and returns its moments, the end included.
func (w *World) Track(play func() error) ([]Moment, error) {
	var out []Moment
	w.FS.Watch(func(op vfstest.Op, at *vfstest.Point) { out = append(out, Moment{op, at, w.Told}) })
	err := play()
	w.FS.Watch(nil)
	return append(out, Moment{vfstest.Op{N: w.FS.Ops(), Kind: "end"}, w.FS.Point(), w.Told}), err
}

// Plan is the extent of an exploration.
type Plan struct {
	First  vfstest.Spread // crash states of a scenario
	Second vfstest.Spread // crash states of a recovery; none: one level only
	Every  int            // one in so many first states also closes, and is crashed before each change of its recovery
	Kill   int            // at one in so many moments the processes die, and power is lost only during the recovery
	Verify int            // one in so many first states is verified to the byte, collected, and verified again
}

// Explorer explores one scenario. Not for concurrent use.
type Explorer struct {
	Plan  Plan
	Where string // scenario and seed, for reports
	Bad   func(format string, args ...any)
	// First counts the distinct states after a crash of the scenario that were recovered and checked, Recovery those
	// after a crash of a recovery.
	First, Recovery int
	// Blank holds, for all explorers of a suite, the states after a disk without a commit: they do not depend on the
	// scenario, and count once.
	Blank *sync.Map

	lim    journal.Limits
	seen   map[[2]uint64]Found
	shown  map[Found]bool // what users saw
	firsts int
	blank  bool   // the present states follow from a disk without a commit
	torn   []byte // the torn bytes found by the recovery that is being crashed; all of them are durable
}

// count counts a recovered state in n, and the result of the recovery.
func (x *Explorer) count(n *int, img *vfstest.Image, f Found) {
	if x.seen[img.Sum()] = f; f.Commits > 0 {
		x.shown[f] = true
	}
	if x.blank {
		if _, known := x.Blank.LoadOrStore(img.Sum(), nil); known {
			return
		}
	}
	*n++
}

// Report adds the counts to a suite's figures. Distinct are the states of a session visible to users that differ in the
// newest commit, the number of commits or the snapshots; sessions without a commit are left out.
func (x *Explorer) Report(r *proof.Report) {
	r.Explored(x.First + x.Recovery)
	r.Figure("first", x.First)
	r.Figure("recovery", x.Recovery)
	r.Figure("distinct", len(x.shown))
}

// Seeds of the worlds that recover. They differ from those of scenarios.
const (
	seedFirst  = 1 << 33
	seedSecond = 1 << 34
)

// NewExplorer makes an explorer whose processes have these limits.
func NewExplorer(
	lim journal.Limits, where string, plan Plan, blank *sync.Map, bad func(format string, args ...any),
) *Explorer {
	return &Explorer{
		Plan: plan, Blank: blank, Where: where, Bad: bad, lim: lim,
		seen: map[[2]uint64]Found{}, shown: map[Found]bool{},
	}
}

// Explore crashes a scenario at each of its moments. The last ones are first, so that a state that follows from several
// moments is recovered with the strictest promise; for the other moments the earlier result is checked.
func (x *Explorer) Explore(ctx context.Context, moments []Moment, h *History) {
	for i := len(moments) - 1; i >= 0; i-- {
		m := &moments[i]
		n := 0
		for img := range m.At.States(x.Plan.First, uint64(i)) {
			x.first(ctx, m, n, img, h)
			n++
		}
		if x.Plan.Second.States > 0 && i%x.Plan.Kill == 0 {
			x.killed(ctx, m, h)
		}
	}
}

// known checks an image that was recovered before against another promise.
func (x *Explorer) known(img *vfstest.Image, told *Promise, h *History) (bool, error) {
	f, ok := x.seen[img.Sum()]
	if !ok {
		return false, nil
	}
	return true, f.Against(told, h)
}

func (x *Explorer) first(ctx context.Context, m *Moment, n int, img *vfstest.Image, h *History) {
	where := fmt.Sprintf("%s, crash before change %d (%s %s), state %d", x.Where, m.Op.N, m.Op.Kind, m.Op.Name, n)
	if ok, err := x.known(img, &m.Told, h); ok {
		if err != nil {
			x.Bad("%s: %v\n%s", where, err, img)
		}
		return
	}
	x.firsts++
	again := x.Plan.Second.States > 0 && x.firsts%x.Plan.Every == 0
	f, err := x.goOn(ctx, boot(img, seedFirst, x.lim), true, where, m, h, again)
	x.blank = f.Commits == 0
	x.count(&x.First, img, f)
	if err != nil {
		x.Bad("%s: %v\n%s", where, err, img)
	}
}

// killed lets the processes die without a power loss: the next one finds bytes that are not durable yet, continues from
// them, and loses power then.
func (x *Explorer) killed(ctx context.Context, m *Moment, h *History) {
	where := fmt.Sprintf("%s, killed before change %d (%s %s)", x.Where, m.Op.N, m.Op.Kind, m.Op.Name)
	if _, err := x.goOn(ctx, NewWorld(m.At.Fork(), seedFirst, x.lim), false, where, m, h, true); err != nil {
		x.Bad("%s: %v\n%s", where, err, m.At.Kept())
	}
}

// goOn recovers a world as its next user would, and returns the result. durable: all of its disk is durable. again: the
// recovery is crashed too.
func (x *Explorer) goOn(
	ctx context.Context, w *World, durable bool, where string, m *Moment, h *History, again bool,
) (Found, error) {
	cfg := w.Config()
	if !again {
		cfg.Go = idle
	}
	f, j, err := w.Look(ctx, cfg, &m.Told, h)
	if err != nil {
		return f, err
	}
	w.Told, x.blank = m.Told, f.Commits == 0
	var after []Moment
	if x.torn = nil; durable && j != nil && !f.Deleted && !m.Told.Deleting {
		x.torn = w.uncommitted(j.State())
	}
	if again && !durable || x.firsts%x.Plan.Verify == 0 {
		if err := w.Peek(ctx, x.firsts%2 == 0, f.shown()); err != nil {
			return f, err
		}
	}
	resume := func() error { return w.Resume(ctx, cfg, f, j, &m.Told, again) }
	if again {
		after, err = w.Track(resume)
	} else {
		err = resume()
	}
	if err != nil {
		return f, err
	}
	if err := w.Again(ctx, f); err != nil {
		return f, err
	}
	if x.firsts%x.Plan.Verify == 0 {
		if err := w.Healthy(ctx); err != nil {
			return f, err
		}
	}
	if !again {
		return f, nil
	}
	whole, err := w.whole(ctx, h, f)
	if err != nil {
		return f, err
	}
	for i := len(after) - 1; i >= 0; i-- {
		n := 0
		for img := range after[i].At.States(x.Plan.Second, uint64(i)) {
			x.second(ctx, where, &after[i], n, img, whole)
			n++
		}
	}
	return f, nil
}

// idle is the background work of a process that dies before it begins.
func idle(func()) {}

// whole returns the history including the commit of the recovery; that of a deleted session is unchanged.
func (w *World) whole(ctx context.Context, h *History, f Found) (*History, error) {
	if w.Told.Deleting {
		return h, nil
	}
	j, err := journal.Open(ctx, w.Config())
	if err != nil {
		return nil, err
	}
	all, err := ReadHistory(ctx, j)
	if err != nil {
		return nil, err
	}
	if err := all.Keeps(w.given, w.refused); err != nil {
		return nil, err
	}
	if len(all.Commits) <= f.Commits {
		return nil,
			fmt.Errorf("I1: behind the recovery's commit are %d commits, before it %d", len(all.Commits), f.Commits)
	}
	for i := range f.Commits {
		if all.Commits[i] != h.Commits[i] {
			return nil, fmt.Errorf("I1: the recovery changed commit %d", i)
		}
	}
	return all, nil
}

func (x *Explorer) second(ctx context.Context, first string, m *Moment, n int, img *vfstest.Image, h *History) {
	where := fmt.Sprintf("%s; then crash of the recovery before change %d (%s %s), state %d", first, m.Op.N, m.Op.Kind,
		m.Op.Name, n)
	if ok, err := x.known(img, &m.Told, h); ok {
		if err != nil {
			x.Bad("%s: %v\n%s", where, err, img)
		}
		return
	}
	if err := x.recoverAgain(ctx, m, img, h); err != nil {
		x.Bad("%s: %v\n%s", where, err, img)
	}
}

// recoverAgain opens the session on the disk that a crash of its recovery left.
func (x *Explorer) recoverAgain(ctx context.Context, m *Moment, img *vfstest.Image, h *History) error {
	w := boot(img, seedSecond, x.lim)
	cfg := w.Config()
	cfg.Go = idle
	f, j, err := w.Look(ctx, cfg, &m.Told, h)
	x.count(&x.Recovery, img, f)
	if err != nil {
		return err
	}
	if err := w.Resume(ctx, cfg, f, j, &m.Told, false); err != nil {
		return err
	}
	if !m.Told.Deleting {
		if err := w.aside(ctx, cfg.Backend, x.torn); err != nil {
			return err
		}
	}
	if len(x.seen)%4 == 0 {
		return w.Again(ctx, f)
	}
	return nil
}
