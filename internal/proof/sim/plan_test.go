package sim

import (
	"time"

	"github.com/coppice-go/coppice/internal/journal"
)

// Knobs are the parameters of a run. Only Seed matters to find a run again; the others reduce a failing seed.
type Knobs struct {
	Seed  uint64
	Seats int   // maximum number of writers; 0 = as the seed has it
	Ops   int   // maximum number of operations of each
	Drop  fault // faults to leave out
}

// plan is the part of a run that a seed fixes in advance.
type plan struct {
	seats, ops int
	burst      int // maximum number of goroutines that use a seat's handle at once
	limits     journal.Limits
	faults     fault   // kinds of faults
	rate       float64 // probability of a fault for each message
	keepBoth   bool
	gc         bool
	deletes    bool
	outages    bool // hosts are cut off at times
	keys       bool // turns have idempotency keys
	settling   bool // the history is settled often, so that the lineage is short
	settles    bool // a commit without faults separates the last writer and the last message
	sweeps     bool // garbage is collected at the end, and exactly the needed objects must remain
	facade     bool // writers use package coppice
	shares     bool // in these, several goroutines commit at once, and callers cancel
}

// Most seeds are small, since small ones find most faults, and some are large enough for index objects.
func planOf(k Knobs) plan {
	c := seeded(k.Seed, 1)
	p := plan{burst: 1}
	switch size := c.n(1000); {
	case size < 740:
		p.seats, p.ops = c.in(1, 2), c.in(3, 5)
	case size < 960:
		p.seats, p.ops = c.in(2, 3), c.in(4, 7)
	case size < 998:
		p.seats, p.ops = c.in(2, 4), c.in(10, 20)
	default:
		p.seats, p.ops = 2, c.in(80, 100)
	}
	p.facade = c.one(4) && p.ops < 21
	if c.one(3) {
		p.burst = c.in(2, 3)
	}
	p.shares = p.facade && p.burst > 1
	p.limits = journal.Limits{
		SealEntries: []int{2, 3, 4, 6, 12}[c.n(5)], Keyframe: []int{2, 4, 64}[c.n(3)],
		WholeDoc: []int{8, 4096}[c.n(2)], Attempts: []int{2, 3, 4, 8, 12}[c.n(5)],
	}
	if p.ops >= 80 {
		p.limits.SealEntries = 2
	}
	p.rate = []float64{0, 0.03, 0.1, 0.2, 0.35}[c.n(5)]
	if p.ops >= 80 {
		p.rate = 0.03
	}
	if p.faults = allFaults; !c.one(3) { // some kinds only: one fault often hides another
		some := c.next()
		p.faults &= fault(some | c.next())
	}
	p.keepBoth, p.gc, p.deletes, p.settles, p.sweeps = c.one(3), c.one(2), c.one(8), c.one(2), c.one(2)
	p.outages, p.keys = p.rate > 0 && c.one(3), p.ops < 21 && c.one(3)
	p.settling = !p.keys && c.one(4)
	p.faults &^= k.Drop
	if k.Seats > 0 {
		p.seats = min(p.seats, k.Seats)
	}
	if k.Ops > 0 {
		p.ops = min(p.ops, k.Ops)
	}
	return p
}

// patience is how long a client waits for an answer.
const patience = 5 * time.Second

// pause is the time between two calls: mostly shorter than a round trip, sometimes so long that all others have ended.
func (c *chance) pause() time.Duration {
	switch k := c.n(20); {
	case k < 13:
		return time.Duration(c.n(60)) * time.Millisecond
	case k < 18:
		return time.Duration(c.n(4000)) * time.Millisecond
	case k < 19:
		return time.Duration(c.in(1, 30)) * time.Minute
	}
	return time.Duration(c.in(1, 8)) * time.Hour
}

// Special delays.
const (
	whenOver   time.Duration = -1 // the message arrives after all writers have ended
	overtaking time.Duration = -2 // just before another message about the same object
)

// delay returns how late a message arrives that was taken for lost.
func (c *chance) delay() time.Duration {
	switch k := c.n(16); {
	case k < 5:
		return time.Duration(c.n(6000)) * time.Millisecond
	case k < 7:
		return patience + time.Duration(c.n(8000))*time.Millisecond // while the sender still asks for the outcome
	case k < 9:
		return time.Duration(c.in(1, 60)) * time.Minute
	case k < 10:
		return time.Duration(c.in(1, 24)) * time.Hour
	}
	if c.one(3) {
		return whenOver
	}
	return overtaking
}
