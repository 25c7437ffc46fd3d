package sim

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing/synctest"
	"time"

	"github.com/coppice-go/coppice/codec"
)

type codecRef = codec.Ref

// result is the result of a seed.
type result struct {
	Knobs
	Bad    []string
	Hash   uint64
	Events int
	Acked  int // turns that were acknowledged
	Doubt  int // turns that stayed in doubt
	Stuck  bool
}

// life is the virtual time by which every seat must have ended: longer than all delays together.
const life = 400 * 24 * time.Hour

// play runs one seed in the bubble of its caller.
func play(k Knobs, trace io.Writer) result {
	idle := runtime.NumGoroutine()
	w := newWorld(k, trace)
	if trace != nil {
		fmt.Fprintf(trace, "seed %d: %+v faults %v\n", k.Seed, w.plan, w.plan.faults)
	}
	stuck := !w.live()
	if !stuck {
		w.finish()
		time.Sleep(time.Hour) // the requests of dead clients end
		synctest.Wait()
		if runtime.NumGoroutine() != idle { // possibly one of the runtime's own
			if n := inBubble(); n > own {
				w.violation("%d goroutines never ended", n-own)
			}
		}
	}
	r := result{Knobs: k, Bad: w.bad, Hash: w.hash, Events: w.events, Stuck: stuck}
	count := func(f fate) {
		switch f {
		case acked:
			r.Acked++
		case doubt:
			r.Doubt++
		default:
		}
	}
	for _, t := range w.ledger.turns {
		count(t.fate)
	}
	for _, o := range w.ledger.words {
		count(o.fate)
	}
	return r
}

// own is the number of goroutines in an idle bubble: the test, and two that wait for it.
const own = 3

// inBubble counts the goroutines of this bubble.
func inBubble() int {
	p := make([]byte, 1<<20)
	return bytes.Count(p[:runtime.Stack(p, true)], []byte(", synctest bubble"))
}

// live runs all seats at the same time; false if they do not end.
func (w *world) live() bool {
	var all, beside sync.WaitGroup
	over, done := make(chan struct{}), make(chan struct{})
	for i := range w.plan.seats {
		if w.plan.facade {
			all.Go((&agent{seat: w.seat(i + 1)}).run)
		} else {
			all.Go(w.seat(i + 1).run)
		}
	}
	if w.plan.gc {
		beside.Go(func() { w.collect(over) })
	}
	go func() {
		all.Wait()
		close(over)
		beside.Wait()
		close(done)
	}()
	late := time.NewTimer(life)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		w.violation("somebody waits for ever")
		return false
	}
}
