package integration

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/integration/faultproxy"
	"github.com/coppice-go/coppice/internal/journal"
)

// COPPICE_CHAOS_SEED repeats the faults of a run, COPPICE_CHAOS_TIME (60s) makes it longer.
const (
	seedEnv = "COPPICE_CHAOS_SEED"
	timeEnv = "COPPICE_CHAOS_TIME"
)

// weather chooses the fault of a request at random.
func weather(rng *rand.Rand) func(r *http.Request) faultproxy.Fault {
	return func(r *http.Request) faultproxy.Fault {
		conditional := faultproxy.Conditional(r)
		if rng.IntN(100) >= 25 || !conditional && rng.IntN(3) > 0 {
			return faultproxy.Fault{}
		}
		if !conditional {
			return []faultproxy.Fault{
				{Kind: faultproxy.LoseRequest},
				{Kind: faultproxy.LoseAnswer},
				{Kind: faultproxy.CutAnswer},
				{Kind: faultproxy.Refuse, Status: 500, Code: "InternalError"},
				{Kind: faultproxy.Refuse, Status: 503, Code: "SlowDown"},
			}[rng.IntN(5)]
		}
		f := faults[rng.IntN(len(faults))]
		if f.Kind == faultproxy.DelayAnswer {
			f.Delay = time.Duration(rng.IntN(20)) * time.Millisecond
		}
		return f
	}
}

// Eight writers on one session over a store with many faults. Every turn is acknowledged, at once or at the end; the
// history has exactly those, each once; and no error was false.
func TestChaos(t *testing.T) {
	seed := maphash.String(maphash.MakeSeed(), "chaos")
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the faults again: %s=%d", seedEnv, seed)
		}
	})
	c := &chaos{world: newWorld(t), ledger: newLedger(), turns: 12}
	if text := os.Getenv(timeEnv); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		c.until, c.turns = time.Now().Add(d), 1<<30
	}
	c.limits = journal.Limits{SealEntries: 48, Attempts: 10}
	c.ledger.acked["first"] = c.turn(c.create(c.direct), "first").Commit.Commit
	c.proxy.Decide(weather(rand.New(rand.NewPCG(seed, 0))))
	start := time.Now()
	var writers, postman sync.WaitGroup
	over := make(chan struct{})
	postman.Go(func() { c.deliver(over) })
	for i := range 8 {
		writers.Go(func() { c.write(i, rand.New(rand.NewPCG(seed, uint64(i+1)))) })
	}
	writers.Wait()
	close(over)
	postman.Wait()
	took := time.Since(start)
	c.proxy.Decide(nil)
	if _, err := c.proxy.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	st := c.check(c.ledger)
	if n := len(c.ledger.failed) + len(c.ledger.doubt); n > 0 {
		t.Errorf("%d turns were not acknowledged: %v %v", n, c.ledger.failed, c.ledger.doubt)
	}
	met := map[string]int{}
	for _, e := range c.proxy.Log() {
		met[e.Fault.Kind.String()]++
	}
	t.Logf("%d turns acknowledged in %v, head at seq %d, %d conflicts, %d unknown, %d not applied, requests by fault: %v",
		len(c.ledger.acked), took.Round(time.Millisecond), st.Summary.Seq, c.conflicts, c.unknown, c.refused, met)
}

type chaos struct {
	*world
	*ledger
	turns int
	until time.Time

	mu                 sync.Mutex
	conflicts, unknown int
	refused            int
}

// deliver sometimes delivers requests that were held back.
func (c *chaos) deliver(over chan struct{}) {
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			if _, err := c.proxy.Deliver(context.Background()); err != nil {
				c.t.Errorf("deliver: %v", err)
			}
		}
	}
}

// write is one writer: it commits turns, recovers its handle after an error, and sometimes starts again as another
// process would.
func (c *chaos) write(who int, rng *rand.Rand) {
	ctx := c.t.Context()
	var j *journal.Journal
	for n := 0; n < c.turns && (c.until.IsZero() || time.Now().Before(c.until)); n++ {
		if j != nil && rng.IntN(10) == 0 {
			if err := j.Close(ctx); err != nil {
				c.t.Logf("close: %v", err)
			}
			j = nil
		}
		for try := 0; j == nil; try++ {
			var err error
			if j, err = journal.Open(ctx, c.config(c.faulty)); err != nil {
				if j = nil; try == 20 {
					c.t.Errorf("open: %v", err)
					return
				}
			}
		}
		id := fmt.Sprintf("w%d-%d", who, n)
		s := step(j, id)
		s.KeepBoth = rng.IntN(2) == 0
		r, err := j.Commit(ctx, s)
		if err != nil {
			r, err = c.recover(ctx, j, s, err)
		}
		if err != nil || r.Kept != "" && j.Reload(ctx) != nil {
			j = nil
		}
		c.note(id, r, err)
	}
	if j != nil {
		if err := j.Close(ctx); err != nil {
			c.t.Logf("close: %v", err)
		}
	}
}

// recover is a program that wants its turn kept: it settles a doubt, keeps a turn that lost as a branch, and commits
// again what was not stored.
func (c *chaos) recover(ctx context.Context, j *journal.Journal, s *journal.Step, err error) (r journal.Outcome, _ error) {
	for try := 0; err != nil && try < 100; try++ {
		unknown := errors.Is(err, journal.ErrUnknown)
		lost := errors.Is(err, journal.ErrConflict) || errors.Is(err, journal.ErrFenced)
		c.mu.Lock()
		switch {
		case unknown:
			c.unknown++
		case lost:
			c.conflicts++
		case backend.OutcomeOf(err) == backend.NotApplied:
			c.refused++
		default:
			c.mu.Unlock()
			return r, err
		}
		c.mu.Unlock()
		switch {
		case unknown || j.InDoubt():
			r, err = j.Settle(ctx, "")
		case lost:
			r, err = keepBoth(ctx, j, s)
		default:
			r, err = j.Commit(ctx, s)
		}
	}
	return r, err
}
