package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// patience is how long a request waits for its part of a budget.
const patience = 5 * time.Second

// maxWholes is how many requests read a session as a whole at a time: their memory grows with it.
const maxWholes = 16

var errWholes = errors.New("too many sessions are being read as a whole")

// budget bounds what is under way at a time: all of it, and that of each tenant, "" = of none. So none of them takes
// everything.
type budget struct {
	all, each int64
	wait      time.Duration // for a part; 0 = not at all
	full      error         // why there is none

	mu    sync.Mutex
	used  int64
	of    map[string]int64 // by tenant
	freed chan struct{}    // closed when a part becomes free, and replaced
}

func newBudget(all, each int64, wait time.Duration, full error) *budget {
	return &budget{
		all: all, each: each, wait: wait, full: full, of: map[string]int64{}, freed: make(chan struct{}),
	}
}

// take takes a part, which is free again after give, to be called once. The end of ctx ends the waiting for it.
func (b *budget) take(ctx context.Context, tenant string, n int64) (give func(), err error) {
	late := time.NewTimer(b.wait)
	defer late.Stop()
	for {
		freed, ok := b.tryTake(tenant, n)
		if ok {
			return func() { b.giveBack(tenant, n) }, nil
		}
		if b.wait == 0 {
			return nil, b.busy()
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-late.C:
			return nil, b.busy()
		}
	}
}

func (b *budget) busy() error {
	return retry(newProblem(http.StatusServiceUnavailable, "busy", "send it again", b.full))
}

// tryTake takes n units if they are free. If ok is false it took nothing, and freed is closed when units become free.
func (b *budget) tryTake(tenant string, n int64) (freed <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.all || b.of[tenant]+n > b.each {
		return b.freed, false
	}
	b.used += n
	b.of[tenant] += n
	return nil, true
}

func (b *budget) giveBack(tenant string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.of[tenant] -= n; b.of[tenant] == 0 {
		delete(b.of, tenant)
	}
	close(b.freed)
	b.freed = make(chan struct{})
}

// taken returns how much is taken, for the metrics.
func (b *budget) taken() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return float64(b.used)
}
