package journal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// operation is what a leader does: it publishes turns of the queue, or mends the handle.
type operation struct {
	ctx   context.Context //nolint:containedctx // of the leading caller, if it waits for the outcome; nil = its turn's
	turns []*turn         // taken from the queue
	move  *turn           // a navigation
	mends bool            // Rebase, Claim: what failed is looked for and stored
	claim *Step           // takes the session; nil = not
	extra *turn           // Rebase: one more turn
	roll  bool            // append: close the active segment
	idle  bool            // it writes nothing: what the handle has read is confirmed

	knew    []*turn  // the turns that had failed before
	along   int      // entries that were pending, and that the request of a move stored before it
	results []Result // theirs, in their order, that of extra or of the move, and those of what else was pending
}

// plan says on what a batch is composed.
type plan struct {
	base  *state.State // the newest known state
	from  *state.State // on which the turns were made
	fresh bool         // the next epoch is due
	keep  bool         // turns are kept beside the session's line
	grow  origin       // with keep: from which the first of them grows
	found []*sentLine  // what was in doubt and is in the history of base
}

// publish composes what an operation asks for and makes it durable: the one loop in which the handle writes. The caller
// leads. Its outcome is one of four: acknowledged, lost to another writer, refused (nothing applied), in doubt.
func (j *Journal) publish(op *operation) error {
	ctx, land := j.takeOff(op)
	defer land()
	j.mu.Lock()
	p := plan{base: j.st, from: j.st, fresh: j.fresh}
	lost, broken := j.fenced && !op.mends, j.broken
	if broken != nil && !op.mends { // a mending operation failed while these waited
		defer j.mu.Unlock()
		return j.turnAway(op)
	}
	j.mu.Unlock()
	var f *store.Failure
	if on := madeOn(op.turns); lost {
		f = fenced(p.base)
	} else if on != nil && !op.mends {
		p.from = on
		p, f = j.replan(op, p, p.base)
	}
	var err error
	if f != nil {
		return j.lose(ctx, op, p.base, f)
	}
	sound := op.claim != nil && j.sound() && madeOn(op.turns) == nil
	for range j.cfg.Limits.Attempts {
		if op.mends && !sound {
			if p, err = j.look(ctx, op); err != nil {
				return j.refuse(op, nil, err)
			}
		}
		var b *batch
		var next *state.State
		if b, err = j.compose(ctx, op, p); err == nil && b.behind() {
			err = j.newer(ctx)
		}
		if err == nil {
			if b.empty() {
				j.acceptNothing(op, b, p)
				return nil
			}
			if next, err = j.send(ctx, b); err == nil {
				return j.accept(op, b, p, next)
			}
		}
		var m *moved
		if !errors.As(err, &m) {
			return j.outcome(op, b, p, err)
		}
		j.giveBack(b)
		if sound = false; op.mends {
			continue
		}
		if p, f = j.replan(op, p, m.now); f != nil {
			return j.lose(ctx, op, m.now, f)
		}
	}
	return j.refuse(op, nil, fmt.Errorf("the head moved %d times in a row", j.cfg.Limits.Attempts))
}

// newer reads the newest state, and says that the head has moved to it.
func (j *Journal) newer(ctx context.Context) error {
	now, err := j.strategy.Load(ctx)
	if err != nil {
		return j.unsentError(err)
	}
	return &moved{now: now}
}

// sound reports whether a claim need not look before it writes: nothing has failed, and the condition of the write
// shows whether another writer committed.
func (j *Journal) sound() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.broken == nil && !j.fenced && len(j.limbo)+len(j.doubts) == 0 && !j.strays(j.st, nil)
}

// moved says that the base of a batch is no longer the newest state, and that nothing of it was stored.
type moved struct{ now *state.State }

func (m *moved) Error() string { return "the head moved" }

// compose makes the batch of an operation.
func (j *Journal) compose(ctx context.Context, op *operation, p plan) (*batch, error) {
	turns := j.all(op)
	settle := slices.ContainsFunc(turns, func(t *turn) bool { return t.step.settle })
	if settle {
		j.work.Wait()
	}
	b := &batch{j: j, base: p.base, keep: p.keep, from: p.grow}
	b.Composer = NewComposer(&j.cfg, j.takeIn(p.base), p.fresh)
	b.Settle, b.MustRoll = settle, op.roll
	b.Anew = slices.ContainsFunc(turns, func(t *turn) bool { return t.step.anew })
	if err := j.strategy.Prepare(ctx, b.Composer, j.sealing()); err != nil {
		return b, j.unsentError(err)
	}
	for _, l := range p.found {
		for i, e := range l.entries {
			b.ords[e] = l.first + uint64(i)
		}
	}
	for _, t := range turns {
		t.known, t.lost = nil, nil // what a batch in doubt said of it does not count
		t.stored, t.skipped, t.idle = nil, nil, false
		var err error
		if t.step.Key != "" {
			err = j.lookUp(ctx, p.base, t)
		}
		if err == nil && t.step.names() {
			err = j.lookUpIDs(ctx, p.base, t)
		}
		if err != nil {
			return b, j.notApplied("commit", err)
		}
	}
	j.mu.Lock()
	b.pend = j.waitingEntries()
	b.waits = p.keep || op.move != nil || op.mends && j.head.Anchor().Ord != p.base.HeadOrd || anchored(turns)
	if b.waits && j.hold == nil {
		j.hold = make(chan struct{})
	}
	j.mu.Unlock()
	err := b.fill(op, turns)
	j.mu.Lock()
	b.held(func(e *Entry) { e.stage = inFlight })
	j.mu.Unlock()
	return b, err
}

// unsentError is the error of a batch that was not sent: whatever failed, nothing of it was applied.
func (j *Journal) unsentError(err error) error {
	var m *moved
	var f *store.Failure
	if errors.As(err, &m) || errors.As(err, &f) || backend.OutcomeOf(err) == backend.NotApplied {
		return err
	}
	return j.notApplied("commit", err)
}

// fill composes the lines of an operation, in the order that batch names.
func (b *batch) fill(op *operation, turns []*turn) error {
	if op.idle {
		return nil
	}
	for _, t := range turns {
		b.turn(t)
		if (t.kept || t == op.extra) && t.lost != nil { // all that Rebase knows is stored, or nothing
			if t.kept && errors.Is(t.lost, ErrKeyReused) {
				return b.j.notApplied("commit", errMisused)
			}
			return t.lost
		}
	}
	if b.keep || op.mends || op.move != nil {
		if err := b.rest(b.restStep()); err != nil {
			return b.j.notApplied("commit", err)
		}
	}
	b.navigations()
	b.siblings()
	err := b.back()
	if err == nil && op.claim != nil {
		err = b.fence(op.claim)
	}
	if err != nil {
		return b.j.notApplied("commit", err)
	}
	return nil
}

// all returns the turns that an operation decides, in the order of their calls.
func (j *Journal) all(op *operation) []*turn {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []*turn
	if op.mends {
		for _, t := range j.limbo {
			if t.found == nil {
				list = append(list, t)
			}
		}
	}
	list = append(list, op.turns...)
	if op.extra != nil {
		list = append(list, op.extra)
	}
	if op.move != nil {
		list = append(list, op.move)
	}
	return list
}

func anchored(turns []*turn) bool {
	for _, t := range turns {
		if t.step.Anchor != nil {
			return true
		}
	}
	return false
}

// restStep is the step of entries that no turn takes along.
func (b *batch) restStep() *Step {
	profile := b.j.cfg.Profile
	if profile == "" {
		profile = b.Next.Rules().Profile
	}
	return &Step{Settings: true, Profile: profile}
}

// send stores the images that the batch refers to, then the batch itself.
func (j *Journal) send(ctx context.Context, b *batch) (*state.State, error) {
	var sums []string
	b.held(func(e *Entry) {
		for _, blob := range e.Blobs {
			sums = append(sums, blob.Sum)
		}
	})
	if len(sums) > 0 {
		if err := j.StoreBlobs(ctx, sums); err != nil {
			return nil, j.notApplied("commit", err)
		}
	}
	return j.strategy.Publish(ctx, b.base, b.Composer)
}

// replan decides how a batch goes on after others committed: what changed neither head nor document is folded in, and
// turns that want it are kept beside the winner's. Else it returns the conflict.
func (j *Journal) replan(op *operation, p plan, now *state.State) (plan, *store.Failure) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forget()
	j.noteFence(now)
	next := plan{base: now, from: p.from, fresh: true}
	switch {
	case now.Summary.Tombstone || j.fenced:
		return next, fenced(now)
	case sameHead(p.from, now):
		return next, nil
	case len(j.list) == 0 && allAnchored(op.turns): // each is held against what it was made on itself
		next.from = now
		return next, nil
	case keepBoth(op, j.queue):
		j.takeAlong(op)
		next.keep, next.grow = true, originOf(p.from)
		return next, nil
	}
	return next, conflict(now)
}

// takeAlong has the turns of the queue share the request of an operation, unless it was given up; j.mu is held.
func (j *Journal) takeAlong(op *operation) {
	if j.flight.live == 0 {
		return
	}
	for _, t := range j.queue {
		j.flight.share(t.ctx)
	}
	op.turns = append(op.turns, j.queue...)
	j.flight.turns, j.queue = op.turns, nil
}

// madeOn returns the state on which the first of these turns was made that the handle has left for another writer's
// head since; nil = there is none.
func madeOn(turns []*turn) *state.State {
	for _, t := range turns {
		if t.on != nil {
			return t.on
		}
	}
	return nil
}

// overtaken notes what the turns of the queue were made on, when the handle moves to another writer's head that none of
// their callers has seen: what they hold must not replace it. Anchored turns name what they were made on. j.mu is held.
func (j *Journal) overtaken(now *state.State) {
	if now == j.st || sameHead(now, j.st) {
		return
	}
	for _, t := range j.queue {
		if t.on == nil && t.step.Anchor == nil {
			t.on = j.st
		}
	}
}

// sameHead reports whether a turn that was made on one state can be stored on the other.
func sameHead(a, b *state.State) bool {
	return a.HeadOrd == b.HeadOrd && a.Summary.Branch == b.Summary.Branch && bytes.Equal(a.DocJSON, b.DocJSON)
}

func allAnchored(turns []*turn) bool {
	for _, t := range turns {
		if t.step.Anchor == nil {
			return false
		}
	}
	return len(turns) > 0
}

// keepBoth reports whether every turn of an operation and of the queue wants to be kept when it loses.
func keepBoth(op *operation, queue []*turn) bool {
	if op.move != nil && len(op.turns)+len(queue) == 0 {
		return false
	}
	for _, list := range [][]*turn{op.turns, queue} {
		for _, t := range list {
			if !t.step.KeepBoth {
				return false
			}
		}
	}
	return len(op.turns) > 0
}

// noteFence takes notice of the newest claim: the handle is fenced while it is another writer's. j.mu is held.
func (j *Journal) noteFence(now *state.State, found ...*sentLine) {
	if now.Claimed <= j.claimSeen {
		return
	}
	j.claimSeen, j.fenced = now.Claimed, true
	for _, l := range found {
		if l.rec.Claim && l.rec.Seq == now.Claimed {
			j.fenced = false
		}
	}
}

// accept makes next the handle's state and answers the turns of the batch.
func (j *Journal) accept(op *operation, b *batch, p plan, next *state.State) error {
	j.mu.Lock()
	for _, l := range b.lines {
		l.store()
		if l.rec.Claim {
			j.fenced = false
		}
	}
	j.settled(op, b, p, next)
	j.fresh, j.committed = false, true
	if b.base != j.stood {
		j.strategy.Stand(b.base)
	}
	j.stood = next
	j.mu.Unlock()
	if next.Summary.Tombstone { // of a session that is being removed nothing more is made
		return nil
	}
	if told := j.cfg.Acknowledged; told != nil {
		told(next)
	}
	j.upkeep(next)
	return nil
}

// result says what a line that is durable became.
func (l *sentLine) result(st *state.State) Result {
	r := Result{Commit: l.rec.Commit(), State: st}
	if l.kept() {
		r.Kept = l.rec.Kept
	}
	if l.turn != nil {
		r.IDs = l.turn.ids()
	}
	return r
}

// store marks the entries of a line as durable; Journal.mu is held.
func (l *sentLine) store() {
	for i, e := range l.entries {
		e.store(l.first + uint64(i))
	}
}

// settled makes st the state that the handle is on, and answers the turns of the operation; j.mu is held.
func (j *Journal) settled(op *operation, b *batch, p plan, st *state.State) {
	for _, l := range p.found {
		l.store()
		j.committed = true
	}
	if !op.mends { // who calls Rebase or Claim wants the newest head, for every caller of the handle
		j.overtaken(p.base)
	}
	j.st, j.claimSeen, j.bg.taken = st, max(j.claimSeen, st.Claimed), nil
	if op.mends {
		j.broken, j.limbo, j.doubts = nil, nil, nil
	}
	for _, t := range b.turns {
		for e, ord := range t.skipped {
			if t.lost == nil {
				e.store(ord)
			}
		}
		if t.line == nil { // it is repeated, or lost: its entries go with it
			for _, e := range t.step.Entries {
				if e.own && e.stage != durable {
					e.stage = dropped
				}
			}
		}
	}
	j.prune()
	if !j.headPending() {
		j.head = PlaceOf(st)
	}
	for _, t := range op.knew {
		if t.found != nil {
			t.answer(t.found.result(st), nil)
		}
	}
	for _, t := range b.turns {
		t.answer(b.resultOf(t, st))
	}
	j.collect(op, b, st)
}

// headPending reports whether anything is pending that moves the head; j.mu is held.
func (j *Journal) headPending() bool {
	for _, e := range j.list {
		if !e.Aside {
			return true
		}
	}
	return false
}

// resultOf returns what became of a turn of a batch that is durable.
func (b *batch) resultOf(t *turn, next *state.State) (Result, error) {
	src := t
	if t.twin != nil {
		src = t.twin
	}
	switch {
	case t.lost != nil:
		return Result{}, t.lost
	case src.known != nil:
		r := src.known.result(next, b.j.pendingBefore(t.upto))
		r.Kept = cmp.Or(r.Kept, b.keptBefore(t.upto))
		return r, nil
	case src.idle:
		return b.nothingApplied(src, next), nil
	case src.line == nil:
		return Result{}, src.lost
	}
	r := src.line.result(next)
	r.Bytes, r.Warnings = b.Size, b.Warnings
	if t.twin != nil { // nothing was applied for it
		r.Repeated, r.Pending = true, b.j.pendingBefore(t.upto)
	}
	return r, nil
}

// keptBefore returns the branch that keeps entries of before a position beside the winner, which belong to no turn;
// "" = none does.
func (b *batch) keptBefore(upto uint64) (branch string) {
	for _, l := range b.lines {
		if l.turn == nil && l.kept() && len(l.entries) > 0 && l.entries[0].pos < upto {
			branch = l.rec.Kept
		}
	}
	return branch
}

// pendingBefore counts the entries before a position that are not durable, those in flight or in doubt too; j.mu is
// held.
func (j *Journal) pendingBefore(upto uint64) (n int) {
	for _, e := range j.list {
		if !e.own && e.pos < upto {
			n++
		}
	}
	return n
}

// collect gathers the results that the caller of a mending operation or of a navigation gets.
func (j *Journal) collect(op *operation, b *batch, next *state.State) {
	list := op.knew
	for _, t := range []*turn{op.extra, op.move} {
		if t != nil {
			list = append(list, t)
		}
	}
	for _, t := range list {
		op.results = append(op.results, t.later)
	}
	if op.move != nil {
		for _, l := range b.lines {
			if l.turn == nil || l.turn == op.extra {
				op.along += len(l.entries)
			}
		}
	}
	if !op.mends {
		return
	}
	for _, l := range b.lines {
		if l.turn == nil && (len(l.entries) > 0 || l.rec.Claim) {
			r := l.result(next)
			r.Bytes, r.Warnings = b.Size, b.Warnings
			op.results = append(op.results, r)
		}
	}
}

// stays reports whether an operation that had nothing to write leaves the handle where it was: all its turns failed. A
// turn that is computed from what the handle shows must not replace a winner that no caller was shown.
func (b *batch) stays() bool {
	return len(b.turns) > 0 && !slices.ContainsFunc(b.turns, func(t *turn) bool { return t.lost == nil })
}

// acceptNothing ends an operation that had nothing to write.
func (j *Journal) acceptNothing(op *operation, b *batch, p plan) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.returnChanges()
	if !op.mends && b.stays() { // a commit that fails leaves the handle where it was
		for _, t := range b.turns {
			t.answer(Result{}, t.lost)
		}
		return
	}
	if p.base != j.st {
		j.forget()
		j.fresh = true
	}
	if p.base != j.stood {
		j.strategy.Stand(p.base)
		j.stood = p.base
	}
	j.settled(op, b, p, p.base)
}
