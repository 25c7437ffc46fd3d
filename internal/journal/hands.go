package journal

import (
	"context"

	"github.com/coppice-go/coppice/internal/journal/state"
)

// hands are what a strategy may do with the handle that it serves.
type hands struct{ j *Journal }

// State is the newest state that the handle acknowledged or read.
func (h hands) State() *state.State { return h.j.State() }

// Broken is nil, or what makes the handle refuse commits.
func (h hands) Broken() error { return h.j.Broken() }

// Start runs a job in the background unless one runs already. What it makes is taken in by the next
// commit, unless the handle has been reloaded by then: an object of an earlier epoch may be collected.
func (h hands) Start(job func(ctx context.Context) ([]state.Change, error)) {
	j := h.j
	j.mu.Lock()
	if j.bg.busy || j.closed {
		j.mu.Unlock()
		return
	}
	if j.bg.ctx == nil {
		j.bg.ctx, j.bg.cancel = context.WithCancel(context.Background())
	}
	ctx, age := j.bg.ctx, j.bg.age
	j.bg.busy = true
	j.work.Add(1)
	j.mu.Unlock()
	run := func() {
		defer j.work.Done()
		made, err := job(ctx)
		j.ended(age, made, err)
	}
	if j.cfg.Go != nil {
		j.cfg.Go(run)
		return
	}
	go run()
}

// TakeIn applies to st what the background has made.
func (h hands) TakeIn(st *state.State) *state.State {
	j := h.j
	j.mu.Lock()
	made := j.bg.made
	j.bg.made, j.bg.taken = nil, append(j.bg.taken, made...)
	j.mu.Unlock()
	for _, c := range made {
		if next, err := st.With(c); err == nil {
			st = next
		}
	}
	return st
}

// Idle tells whether no job is under way, and all that was made is taken in.
func (h hands) Idle() bool {
	j := h.j
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.bg.busy && len(j.bg.made) == 0
}

// Wait waits until no job is under way.
func (h hands) Wait() { h.j.work.Wait() }

// Boundary is the ordinal up to which the tail is being sealed, or was; 0 = none.
func (h hands) Boundary() uint64 {
	h.j.mu.Lock()
	defer h.j.mu.Unlock()
	return h.j.bg.boundary
}

// Bound sets the boundary; false where a job is under way, or one beyond first is set already.
func (h hands) Bound(first, end uint64) bool {
	h.j.mu.Lock()
	defer h.j.mu.Unlock()
	if h.j.bg.boundary > first || h.j.bg.busy {
		return false
	}
	h.j.bg.boundary = end
	return true
}

// Compose begins a batch of the strategy's own. The handle leads.
func (h hands) Compose(base *state.State) *Composer {
	h.j.mu.Lock()
	fresh := h.j.fresh
	h.j.mu.Unlock()
	return h.j.compose(base, fresh).Composer
}

// Accept makes next the handle's state: what the strategy composed is durable.
func (h hands) Accept(c *Composer, next *state.State) { h.j.accept(&draft{Composer: c}, next) }

// Adopt makes st the handle's state: of the same commit, but tidier. The handle leads.
func (h hands) Adopt(st *state.State) {
	h.j.mu.Lock()
	defer h.j.mu.Unlock()
	h.j.st, h.j.bg.taken = st, nil
}
