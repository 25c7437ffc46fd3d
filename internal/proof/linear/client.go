package linear

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// tries limits how often a client asks a failing store before it drops the handle.
const tries = 4

// client is one writer and reader, which works sequentially.
type client struct {
	r    *recorder
	n    int
	rng  *rand.Rand
	rand io.Reader
	j    *journal.Journal
}

func (c *client) run(ctx context.Context) {
	for i := range c.r.o.Ops {
		if c.j == nil && !c.open(ctx) {
			continue
		}
		switch c.rng.IntN(10) {
		case 0:
			c.close(ctx)
		case 1:
			if c.r.o.Deliver != nil {
				c.r.o.Deliver(ctx)
			}
		case 2:
			c.claim(ctx)
		case 3:
			c.load(ctx)
		case 4:
			c.note(ctx, fmt.Sprintf("n%d-%d", c.n, i))
		default:
			c.commit(ctx, fmt.Sprintf("e%d-%d", c.n, i))
		}
	}
	c.close(ctx)
}

// open reads the head, which is an operation of the history.
func (c *client) open(ctx context.Context) bool {
	call := c.r.now()
	j, err := journal.Open(ctx, c.r.config(c.r.o.Faulty, c.rand))
	if err != nil {
		return false
	}
	c.j = j
	c.saw(call, j.State())
	return true
}

func (c *client) close(ctx context.Context) {
	if c.j != nil {
		_ = c.j.Close(ctx) // it promises nothing that Commit did not
		c.j = nil
	}
}

func (c *client) load(ctx context.Context) {
	call := c.r.now()
	if st, err := c.j.Latest(ctx); err == nil {
		c.saw(call, st)
	}
}

// saw records a reading: its head for the model, its lineage for the log.
func (c *client) saw(call int64, st *state.State) {
	c.r.note(c.n, call, effect{kind: read, id: st.Summary.Commit})
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.reads = append(c.r.reads, st.Lineage...)
}

func (c *client) claim(ctx context.Context) {
	c.write(ctx, "", &journal.Step{Reason: "claim", Claim: true})
}

// note annotates the session: an entry outside the conversation, which conflicts with no turn.
func (c *client) note(ctx context.Context, id string) {
	turn := c.r.turn(id, c.j.State())
	turn.Entries[0].Aside = true
	c.write(ctx, id, &journal.Step{Reason: "label", Note: true, Entries: turn.Entries})
}

func (c *client) commit(ctx context.Context, id string) {
	step := c.r.turn(id, c.j.State())
	if c.rng.IntN(2) == 0 {
		step.Key, step.Digest = "key of "+id, "digest"
	}
	if c.rng.IntN(4) == 0 { // only the document shows that it was stored
		id, step.Entries = "", nil
	}
	step.KeepBoth = c.rng.IntN(3) == 0
	c.write(ctx, id, step)
}

// write commits a step, and retries until the outcome is known: by its key, or with Settle. A turn that lost is kept as
// a branch, or dropped.
func (c *client) write(ctx context.Context, id string, step *journal.Step) {
	tried := map[string]bool{} // commits that are in the history already, as operations that never returned
	res, err := c.send(ctx, step, tried)
	for range tries {
		drop := c.rng.IntN(3) == 0
		lost := errors.Is(err, journal.ErrConflict) || errors.Is(err, journal.ErrFenced)
		switch {
		case err == nil:
			c.stored(id, res)
			if res.Kept != "" && drop && !c.reload(ctx) {
				c.close(ctx)
			}
			return
		case errors.Is(err, journal.ErrUnknown) && drop:
			if !c.reload(ctx) {
				c.close(ctx)
			}
			return
		case errors.Is(err, journal.ErrUnknown) && step.Key != "":
			res, err = c.send(ctx, step, tried)
		case errors.Is(err, journal.ErrUnknown):
			res, err = c.settle(ctx, step)
		case lost && !drop && !step.Note && !step.Claim:
			step.KeepBoth, step.KeepFenced = true, true
			res, err = c.send(ctx, step, tried)
		default:
			if backend.OutcomeOf(err) == backend.NotApplied || lost {
				c.drop(id)
			}
			if (lost || c.j.InDoubt()) && !c.reload(ctx) {
				c.close(ctx)
			}
			return
		}
	}
	c.close(ctx)
}

// send commits a step once, and records the answer.
func (c *client) send(ctx context.Context, step *journal.Step, tried map[string]bool) (journal.Outcome, error) {
	call, base := c.r.now(), c.j.State().Summary.Commit
	res, err := c.j.Commit(ctx, step)
	switch {
	case err != nil:
		if f, ok := errors.AsType[*store.Failure](err); ok && errors.Is(err, journal.ErrUnknown) {
			if !tried[f.Commit] {
				c.r.note(c.n, call, effect{kind: doubted, id: f.Commit})
			}
			tried[f.Commit] = true
		}
		c.refused(call, base, err)
	case res.Repeated:
		if !tried[res.Commit.Commit] {
			c.r.violation("commit %s is the answer to a key that it was never sent with", res.Commit.Commit)
		}
	default:
		c.r.note(c.n, call, effect{kind: wrote, id: res.Commit.Commit})
		if res.Kept == "" && !step.Note && !step.Claim {
			c.r.builtOn(res.Commit.Commit, base)
		}
	}
	return res, err
}

// refused records that the session has left the handle's view.
func (c *client) refused(call int64, base string, err error) {
	if errors.Is(err, journal.ErrConflict) || errors.Is(err, journal.ErrFenced) {
		c.r.note(c.n, call, effect{kind: refused, base: base})
	}
}

// settle ends the doubt of a commit.
func (c *client) settle(ctx context.Context, step *journal.Step) (journal.Outcome, error) {
	call, base := c.r.now(), c.j.State().Summary.Commit
	res, err := c.j.Settle(ctx, "")
	c.refused(call, base, err)
	if err == nil && res.Kept == "" && !step.Note && !step.Claim {
		c.r.builtOn(res.Commit.Commit, base)
	}
	return res, err
}

// stored records the commit in which an entry was acknowledged; "" = the step had none.
func (c *client) stored(id string, res journal.Outcome) {
	if id == "" {
		return
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.acked[id] = res.Commit.Commit
}

// drop records that an entry was reported as not applied, and was not retried.
func (c *client) drop(id string) {
	if id == "" {
		return
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.failed[id] = true
}

func (c *client) reload(ctx context.Context) bool {
	for range tries {
		call := c.r.now()
		if err := c.j.Reload(ctx); err == nil {
			c.saw(call, c.j.State())
			return true
		}
	}
	return false
}
