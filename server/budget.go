package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// patience is the maximum time that a request waits for units of a budget.
const patience = 5 * time.Second

// maxWholes is the maximum number of requests at a time that read a whole session: their memory grows with its size.
const maxWholes = 16

var errWholes = errors.New("too many sessions are being read as a whole")

// budget bounds a resource, such as bytes of bodies in memory, that requests use while they are under way. No tenant
// can use all of it. Requests outside of any tenant count as the tenant "".
type budget struct {
	all, each int64         // maximum number of units in use: of all tenants together, and of each tenant
	wait      time.Duration // maximum time that take waits; 0 = it does not wait
	full      error         // the cause in the error of take

	mu    sync.Mutex
	used  int64
	of    map[string]int64 // units in use, by tenant
	freed chan struct{}    // closed when units become free, and then replaced
}

func newBudget(all, each int64, wait time.Duration, full error) *budget {
	return &budget{
		all: all, each: each, wait: wait, full: full, of: map[string]int64{}, freed: make(chan struct{}),
	}
}

// take takes n units for a tenant, and waits for them if necessary. The caller must call give once, to return them. The
// error is a 503 after b.wait, or the cause of ctx.
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

// busy returns the error of a request for which no units became free in time.
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

// giveBack returns n units of a tenant, and wakes the callers of take.
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

// taken returns the number of units in use, for the metrics.
func (b *budget) taken() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return float64(b.used)
}
