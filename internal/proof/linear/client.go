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

// client is one writer and reader. It does one thing at a time.
type client struct {
	r    *recorder
	n    int
	rng  *rand.Rand
	rand io.Reader
	j    *journal.Journal

	fenced bool // the handle may be fenced by a claim that it has read already
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
	c.j, c.fenced = j, false
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

// saw takes a reading down: its head for the model, its lineage for the log.
func (c *client) saw(call int64, st *state.State) {
	c.r.note(c.n, call, effect{kind: read, id: st.Summary.Commit})
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.reads = append(c.r.reads, st.Lineage...)
}

func (c *client) claim(ctx context.Context) {
	call, base := c.r.now(), c.j.State().Summary.Commit
	res, err := c.j.Commit(ctx, &journal.Step{Reason: "claim", Claim: true})
	if err == nil {
		c.r.note(c.n, call, effect{kind: wrote, id: res.Commit.Commit})
		return
	}
	c.failed(call, base, err)
	if c.j.Broken() != nil && !c.reload(ctx) {
		c.close(ctx)
	}
}

// failed takes down what an error says of a commit, and reports whether it is in doubt.
func (c *client) failed(call int64, base string, err error) bool {
	switch {
	case errors.Is(err, journal.ErrUnknown):
		if f, ok := errors.AsType[*store.Failure](err); ok {
			c.r.note(c.n, call, effect{kind: doubted, id: f.Commit})
		}
		return true
	case errors.Is(err, journal.ErrFenced) && c.fenced: // it stays fenced, whatever the newest commit is
	case errors.Is(err, journal.ErrConflict), errors.Is(err, journal.ErrFenced):
		c.fenced = c.fenced || errors.Is(err, journal.ErrFenced)
		c.r.note(c.n, call, effect{kind: refused, base: base})
	}
	return false
}

func (c *client) commit(ctx context.Context, id string) {
	step := c.r.turn(id, c.j.State())
	if c.rng.IntN(4) == 0 { // only the document says that another process was there
		id, step.Entries = "", nil
	}
	step.KeepBoth = c.rng.IntN(3) == 0
	call, base := c.r.now(), c.j.State().Summary.Commit
	res, err := c.j.Commit(ctx, step)
	if err == nil {
		c.ack(call, id, res)
		if res.Kept == "" {
			c.r.builtOn(res.Commit.Commit, base)
		}
		return
	}
	doubt := c.failed(call, base, err)
	switch {
	case c.j.Broken() == nil:
		if backend.OutcomeOf(err) == backend.NotApplied {
			c.drop(id)
		}
		return
	case c.rng.IntN(3) == 0:
		if !doubt {
			c.drop(id)
		}
		if !c.reload(ctx) {
			c.close(ctx)
		}
		return
	}
	c.rebase(ctx, id, err, doubt)
}

func (c *client) ack(call int64, id string, res journal.Result) {
	c.r.note(c.n, call, effect{kind: wrote, id: res.Commit.Commit})
	c.stored(id, res)
}

// stored takes down in which commit an entry was acknowledged; "" = the turn had none.
func (c *client) stored(id string, res journal.Result) {
	if id == "" {
		return
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.acked[id] = res.Commit.Commit
}

// drop takes down that an entry was reported as not applied, and that no one tried again.
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
			c.fenced = false
			c.saw(call, c.j.State())
			return true
		}
	}
	return false
}

// rebase keeps the turn of a commit that failed with err. What is found was committed by an earlier try,
// which is in the history already as an operation that never returned.
func (c *client) rebase(ctx context.Context, id string, err error, doubt bool) {
	tried := map[string]bool{}
	for range tries {
		if f, ok := errors.AsType[*store.Failure](err); ok && doubt {
			tried[f.Commit] = true
		}
		call := c.r.now()
		res, rerr := c.j.Rebase(ctx, nil)
		c.fenced = true // where it found a claim, it says so at the next commit only
		if rerr == nil {
			switch got := res[0]; {
			case tried[got.Commit.Commit]:
				c.stored(id, got)
			default:
				c.ack(call, id, got)
			}
			return
		}
		if err = rerr; c.failed(call, c.j.State().Summary.Commit, err) {
			doubt = true
		}
	}
	c.close(ctx)
}
