package journal

import (
	"context"
	"runtime"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

const (
	batchMax = 1024 // turns that share one request; who comes later goes with the next
	limboMax = 4096 // failed turns that a broken handle keeps for Rebase
)

// turn is a step on its way: a cut in the list of entries, after those that it takes along.
type turn struct {
	step *Step
	ctx  context.Context //nolint:containedctx // of a queued call: a request ends when all its calls are cancelled
	upto uint64          // it takes the entries before this position
	// what it was made on, if the handle went to another writer's head since; nil = what the handle has
	on     *state.State
	joined *turn // a turn that was sent or had failed, with the same key: it gets that one's answer
	twin   *turn // the same, within a batch

	kept    bool                     // it failed, and Rebase knows it
	found   *sentLine                // it was in doubt, and is in the history
	known   *keyed                   // its key is in the history
	lost    error                    // why it has no line in the batch: returned when the batch is decided
	stored  map[string]store.KnownID // entries of it that the base has, by id
	skipped map[*Entry]uint64        // that the batch leaves out, with the ordinals of those that are known
	idle    bool                     // that is all of it: nothing is stored
	line    *sentLine                // that carries it, once it was composed
	tried   string                   // id of the line that carried it last
	later   Result                   // what it became in the end; guarded by Journal.mu
	result  Result                   // with err: stand when done is closed
	err     error
	done    chan struct{}
	lead    chan struct{} // receives the lead
	over    bool          // done is closed; guarded by Journal.mu
}

func newTurn(ctx context.Context, step *Step) *turn {
	return &turn{step: step, ctx: ctx, done: make(chan struct{}), lead: make(chan struct{}, 1)}
}

// answer ends the turn for its caller, once; j.mu is held. What Rebase makes of it later only Rebase's caller gets.
func (t *turn) answer(r Result, err error) {
	t.later = r
	if !t.over {
		t.result, t.err, t.over = r, err, true
		close(t.done)
	}
}

// withdrawn reports whether the step leaves nothing to Rebase when it loses: navigations, and turns that carry their
// entries on an anchor, which their callers still have.
func (s *Step) withdrawn() bool { return s.moves || s.Anchor != nil }

// Commit makes a step durable, and everything that was appended before it: one conditional PUT, or one append. Steps
// that meet share it, each with its own line and seq. The first that finds no leader publishes for all that wait (no
// goroutine is owned by the queue); the others wait for their answer. A caller whose context ends while the step waits
// in the queue takes it back; once it was sent, the caller waits for the outcome.
//
// The errors say what became of the data:
//
//   - ErrConflict, ErrFenced: not applied; the step stays in the handle until Rebase or Reload, but for navigations and
//     steps with an anchor, which are withdrawn with their entries.
//   - ErrUnknown: perhaps applied; the step stays in the handle until Rebase or Reload.
//   - ErrKeyReused: not applied; the key belongs to a step with another digest.
//   - all others: not applied. The step's document and key are dropped, its own entries too; what was appended is
//     pending, and the next step stores it. ErrInDoubt is one of these: Rebase has to come first.
func (j *Journal) Commit(ctx context.Context, step *Step) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, j.notApplied("commit", err)
	}
	t := newTurn(ctx, step)
	for _, e := range step.Entries {
		e.take()
	}
	j.mu.Lock()
	lead, err := j.admit(t)
	j.mu.Unlock()
	switch {
	case err != nil:
		return Result{}, err
	case lead:
		j.leadUntil(t)
	default:
		j.wait(t)
	}
	return t.result, t.err
}

// admit lets a turn join the queue, or the turn with the same key; j.mu is held. lead: no one leads, so the caller
// does.
func (j *Journal) admit(t *turn) (lead bool, err error) {
	switch {
	case j.closed:
		return false, j.notApplied("commit", backend.ErrClosed)
	case j.cfg.ReadOnly:
		return false, &store.Failure{Err: ErrReadOnly}
	}
	if t.upto = t.step.Upto; t.upto == 0 {
		t.upto = j.pos
	}
	for _, o := range []*turn{j.flight.turnOf(t.step.Key), j.limboOf(t.step.Key)} {
		switch {
		case o == nil:
		case o.step.Digest != t.step.Digest:
			return false, j.notApplied("commit", ErrKeyReused)
		case !o.over && j.flight.live == 0: // given up by all who shared it: t waits for what becomes of it
		case !o.over:
			t.joined = o
			j.flight.share(t.ctx)
			return false, nil
		case j.broken != nil && !j.mending:
			return false, o.err
		}
	}
	if j.broken != nil && !j.mending {
		_ = j.turnAway(&operation{turns: []*turn{t}})
		return false, t.err
	}
	j.queue = append(j.queue, t)
	lead, j.leading = !j.leading, true
	return lead, nil
}

// Waiting counts the turns in the queue and in the request on its way.
func (j *Journal) Waiting() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := len(j.queue)
	if j.flight != nil {
		n += len(j.flight.turns)
	}
	return n
}

// limboOf finds the turn with a key that Rebase knows; j.mu is held.
func (j *Journal) limboOf(key string) *turn {
	if key == "" {
		return nil
	}
	for _, t := range j.limbo {
		if t.step.Key == key {
			return t
		}
	}
	return nil
}

// Broken is nil, or what makes the handle refuse commits until Rebase or Reload (I11).
func (j *Journal) Broken() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.broken
}

// wait waits for a leader to publish t, or to hand the lead over.
func (j *Journal) wait(t *turn) {
	if o := t.joined; o != nil {
		<-o.done
		t.result, t.err = j.again(t, o.result), o.err
		return
	}
	select {
	case <-t.done:
		return
	case <-t.lead:
		j.leadUntil(t)
		return
	case <-t.ctx.Done():
	}
	if j.withdraw(t) {
		return
	}
	select { // it is on its way, or it was just made the leader
	case <-t.done:
	case <-t.lead:
		j.leadUntil(t)
	}
}

// again returns the result that a turn shares with the one that it joined: nothing was applied for it, and what was
// appended before it may be stored later than that one.
func (j *Journal) again(t *turn, r Result) Result {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.Repeated, r.Pending = true, j.pendingBefore(t.upto)
	return r
}

// withdraw takes a cancelled turn out of the queue; false where it is no longer there, or is to lead.
func (j *Journal) withdraw(t *turn) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(t.lead) > 0 || !j.unqueue(t) {
		return false
	}
	t.answer(Result{}, j.notApplied("commit", t.ctx.Err()))
	return true
}

func (j *Journal) unqueue(t *turn) bool {
	for i, q := range j.queue {
		if q == t {
			j.queue = append(j.queue[:i:i], j.queue[i+1:]...)
			return true
		}
	}
	return false
}

// leadUntil publishes what is queued until t has its answer, then hands the lead on.
func (j *Journal) leadUntil(t *turn) {
	for {
		j.mu.Lock()
		if !t.over && t.ctx.Err() != nil && j.unqueue(t) {
			t.answer(Result{}, j.notApplied("commit", t.ctx.Err()))
		}
		over := t.over
		j.mu.Unlock()
		if over {
			j.dropLead()
			return
		}
		_ = j.publish(&operation{turns: j.gather()}) // each turn has its own answer
	}
}

// patience bounds how often a leader looks in vain for those who shared the request before.
const patience = 4

// gather takes what is queued, once no one more comes who could: those whose commits were just acknowledged
// often have the next one at hand, and it may share the request.
func (j *Journal) gather() []*turn {
	for before, quiet := 0, 0; ; runtime.Gosched() {
		j.mu.Lock()
		n := min(len(j.queue), batchMax)
		if quiet++; n > before {
			quiet = 0
		}
		if n == batchMax || quiet > 0 && (n >= j.shared || quiet > patience) {
			j.shared = n
			turns := append([]*turn(nil), j.queue[:n]...)
			j.queue = append([]*turn(nil), j.queue[n:]...)
			j.mu.Unlock()
			return turns
		}
		before = len(j.queue)
		j.mu.Unlock()
	}
}

// waiter is a caller who wants the lead for an operation of its own.
type waiter struct {
	ready chan error // nil: it leads
}

// takeLead waits until no one publishes, and leads.
func (j *Journal) takeLead(ctx context.Context, op string) error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return j.notApplied(op, backend.ErrClosed)
	}
	if !j.leading {
		j.leading = true
		j.mu.Unlock()
		return nil
	}
	w := &waiter{ready: make(chan error, 1)}
	j.waiters = append(j.waiters, w)
	j.mu.Unlock()
	select {
	case err := <-w.ready:
		return err
	case <-ctx.Done():
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, q := range j.waiters {
		if q == w {
			j.waiters = append(j.waiters[:i:i], j.waiters[i+1:]...)
			return j.notApplied(op, ctx.Err())
		}
	}
	return <-w.ready // it was handed over just now
}

// dropLead hands the lead on: to Close, to operations that want it for themselves, to the queue.
func (j *Journal) dropLead() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mending = false
	switch {
	case len(j.waiters) > 0:
		w := j.waiters[0]
		j.waiters = j.waiters[1:]
		w.ready <- nil
	case len(j.queue) > 0:
		j.queue[0].lead <- struct{}{}
	default:
		j.leading = false
	}
}

// flight is the request on its way. It is given up once the contexts of all who share it are done: a caller's
// cancellation decides for no one else.
type flight struct {
	j      *Journal
	turns  []*turn
	cancel context.CancelFunc
	live   int             // contexts that are not done; guarded by Journal.mu
	last   <-chan struct{} // Done of the one counted last: callers in a row often share theirs
	stops  []func() bool
}

// turnOf finds the turn with a key; Journal.mu is held.
func (f *flight) turnOf(key string) *turn {
	if f == nil || key == "" {
		return nil
	}
	for _, t := range f.turns {
		if t.step.Key == key {
			return t
		}
	}
	return nil
}

// share counts one more context; Journal.mu is held.
func (f *flight) share(ctx context.Context) {
	done := ctx.Done()
	if f.live > 0 && done == f.last {
		return
	}
	f.last = done
	f.live++
	f.stops = append(f.stops, context.AfterFunc(ctx, func() {
		f.j.mu.Lock()
		defer f.j.mu.Unlock()
		if f.live--; f.live == 0 {
			f.cancel()
		}
	}))
}

// takeOff begins the request of an operation, and returns its context and what ends it.
func (j *Journal) takeOff(op *operation) (ctx context.Context, land func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := &flight{j: j, turns: op.turns}
	sharers := make([]context.Context, 0, len(op.turns)+1)
	if op.ctx != nil {
		sharers = append(sharers, op.ctx)
	}
	for _, t := range op.turns {
		sharers = append(sharers, t.ctx)
	}
	if len(sharers) == 0 {
		sharers = append(sharers, context.Background())
	}
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(sharers[0]))
	for _, s := range sharers {
		f.share(s)
	}
	op.ctx = ctx
	j.flight, j.mending = f, op.mends
	return ctx, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, stop := range f.stops {
			stop()
		}
		f.cancel()
		j.flight = nil
		if j.hold != nil {
			close(j.hold)
			j.hold = nil
		}
	}
}
