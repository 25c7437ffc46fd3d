package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// request is what one step publishes, by one append or one conditional PUT: the line of the step and, with it, the
// create line of a new session, the line that restates the session after a kept one, and the line that closes a full
// segment. It is conditional on base being the newest state.
type request struct {
	// What is asked for.
	base   *state.State
	step   *Step
	kept   bool
	behind bool     // base has left what the step was made on
	taken  []*Entry // the buffer, whose entries come before the step's own
	known  map[*Entry]uint64
	own    []*Entry // entries of the step's line

	ownDigest string // Step.Digest without the drafts that it takes

	// What was composed: compose.go.
	cfg      *Config
	next     *state.State // after all lines
	bytes    []byte       // all lines, each with its newline
	lines    []line
	main     int               // number of the step's own line in lines
	ords     map[*Entry]uint64 // of the entries in the lines
	epoch    uint64
	synced   int64
	keptName string // of the losing line composed last
	keptHead int64  // its head
	warnings []string

	// What was sent.
	size int    // bytes of the object or the append that carries the lines
	body []byte // replace: the object
}

// compose makes the request of a step; nil: there is nothing to store.
func (j *Journal) compose(ctx context.Context, tip *state.State, s *Step, kept bool) (*request, error) {
	if s.settle {
		j.work.Wait()
	}
	withDrafts := *s
	r := &request{step: &withDrafts, kept: kept, ownDigest: s.Digest}
	j.mu.Lock()
	fresh := j.fresh
	if s.takesBuffer() {
		r.taken = j.list
		withDrafts.Digest = digestWith(s.Digest, r.taken)
	}
	j.mu.Unlock()
	for _, e := range s.Entries {
		e.take()
	}
	var err error
	if r.known, err = j.knownEntries(ctx, tip, append(slices.Clip(r.taken), s.Entries...)); err != nil {
		return nil, err
	}
	r.own = append(slices.Clip(r.taken), s.own(r.known)...)
	if s.idles(r, tip) {
		return nil, nil
	}
	r.begin(&j.cfg, j.takeIn(tip), fresh)
	maps.Copy(r.ords, r.known)
	if err := j.strategy.Prepare(ctx, r, j.sealing()); err != nil {
		j.returnTaken()
		return nil, err
	}
	if err := r.composeAll(j); err != nil {
		j.returnTaken()
		return nil, j.notApplied("commit", err)
	}
	return r, nil
}

// composeAll composes the lines of the request.
func (r *request) composeAll(j *Journal) error {
	s := r.step
	if r.step.rolls() {
		return nil // the strategy adds the line
	}
	from := AnchorOf(r.next)
	if r.kept {
		base := s.Base
		if base == nil {
			base = AnchorOf(j.State())
		}
		from = base.settled()
		if from.endsBranch(r.next) {
			r.keptName, r.keptHead = from.Branch, from.At.Ord
		}
	}
	if err := r.compose(s, r.own, from, r.kept); err != nil {
		return err
	}
	r.main = len(r.lines) - 1
	if !r.kept {
		return nil
	}
	// What follows a kept line restates the session: readers that start there do not have its document.
	back := &Step{Reason: state.ReasonConflict, Keyframe: true}
	return r.compose(back, nil, AnchorOf(r.next), false)
}

// takesBuffer reports whether a step stores the entries that were appended before it.
func (s *Step) takesBuffer() bool {
	return s.Base == nil && !s.Move && !s.Note && !s.Claim && !s.rolls()
}

// rolls reports whether a step closes the active segment, whatever its size.
func (s *Step) rolls() bool { return s.Reason == state.ReasonRoll }

// idles reports whether a step has nothing to store: the session has its entries, or it has none, and head and document
// stay. One with a key is stored nevertheless, so that the key is known, and so is the first one of a session.
func (s *Step) idles(r *request, tip *state.State) bool {
	if s.Key != "" || tip.Summary.Commit == "" || len(r.own) > 0 || !s.brings() && !s.MayIdle {
		return false
	}
	if s.Head != nil {
		at := s.Head.Settled()
		if ord, known := r.known[at.Entry]; known {
			at = Place{ID: at.ID, Ord: int64(ord)}
		}
		if !at.Is(PlaceOf(tip)) {
			return false
		}
	}
	if s.Edit == nil {
		return true
	}
	doc, was := tip.Doc, []byte(tip.DocJSON)
	if r.kept && s.Base != nil {
		doc, was = s.Base.Doc, s.Base.JSON
	}
	raw, err := s.Edit(doc).Encode()
	return err == nil && string(raw) == string(was)
}

// send stores the images that a request refers to, then the request itself.
func (j *Journal) send(ctx context.Context, r *request) (Outcome, error) {
	var sums []string
	for _, e := range r.own {
		for _, b := range e.Blobs {
			sums = append(sums, b.Sum)
		}
	}
	if err := j.StoreBlobs(ctx, sums); err != nil {
		j.returnTaken()
		return Outcome{}, j.notApplied("commit", err)
	}
	next, err := j.strategy.Publish(ctx, r)
	if err == nil {
		return j.accept(r, next), nil
	}
	j.returnTaken()
	if err = j.unknown(err, r); errors.Is(err, ErrUnknown) {
		j.mu.Lock()
		j.doubt = r
		j.mu.Unlock()
	}
	return Outcome{}, err
}

// unknown returns the error of a request that was sent and is not acknowledged: ErrUnknown with its commit, unless
// nothing was applied.
func (j *Journal) unknown(err error, r *request) error {
	var m *moved
	var f *store.Failure
	switch {
	case errors.As(err, &m):
		return err
	case errors.As(err, &f) && !errors.Is(f.Err, ErrUnknown):
		return err
	case f == nil && backend.OutcomeOf(err) == backend.NotApplied:
		return err
	case f == nil:
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	out := store.Failure{Err: err, Commit: r.id()}
	if f != nil { // of damage that was met
		out.Object, out.Offset = f.Object, f.Offset
	}
	return &out
}

// id returns the id of the step's commit.
func (r *request) id() string {
	if len(r.lines) == 0 {
		return ""
	}
	return r.lines[r.main].record.ID
}

// accept takes over that a request is stored, and that next is the state after it.
func (j *Journal) accept(r *request, next *state.State) Outcome {
	j.mu.Lock()
	base := r.base
	j.store.Bind(next.Since)
	j.stored(r)
	if base != j.stood {
		j.strategy.Adopt(base)
	}
	j.tip, j.stood, j.fresh, j.committed = next, next, false, true
	j.bg.taken = nil
	j.moveView(r, base, next)
	j.mu.Unlock()
	if !next.Summary.Tombstone { // of a session that is being removed nothing more is made
		if told := j.cfg.Acknowledged; told != nil {
			told(next)
		}
		j.upkeep(next)
	}
	return r.outcome(next)
}

// stored marks the entries of a request as durable, and takes those of the buffer off it; j.mu is held.
func (j *Journal) stored(r *request) {
	if r.step.rolls() {
		return
	}
	main := r.lines[r.main]
	first := main.after.Next - 1 - uint64(len(r.own))
	for i, e := range r.own {
		e.store(first + uint64(i))
	}
	for e, ord := range r.known {
		e.store(ord)
	}
	if main.record.Claim {
		j.claim, j.claimant = main.record.Seq, r.step.Writer
	}
	j.prune()
}

// moveView moves the view to an own step that was made on it, or to a state that does not differ; j.mu is held. It does
// not move past another writer's claim, nor under a buffer.
func (j *Journal) moveView(r *request, base, next *state.State) {
	s := r.step
	if base.Summary.Commit == "" { // it created the session
		j.view = next
	}
	moves := !s.Note || len(s.Names) > 0 // a branch that has another name
	if moves && !s.Claim && !r.kept && !s.rolls() {
		made := s.Base == nil && !s.Note || sameHead(base, j.view) && !j.fences(base, j.view.Summary.Seq)
		if made && (s.Base == nil && !s.Note || len(s.Names) > 0 || len(j.list) == 0 && !s.Stay) {
			j.view = next
		}
	}
	j.followTip()
}

// followTip moves the view to a tip that differs in neither branch nor head nor document; j.mu is held.
func (j *Journal) followTip() {
	if j.view != j.tip && sameHead(j.view, j.tip) && !j.fences(j.tip, j.view.Summary.Seq) {
		j.view = j.tip
	}
	j.version++
	j.head = PlaceOf(j.view)
	for _, e := range j.list {
		if !e.Aside {
			j.head = PlaceAt(e)
		}
	}
}

// follow takes a newer state of other writers.
func (j *Journal) follow(now *state.State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forget()
	j.tip, j.fresh = now, true
	j.followTip()
}

// outcome returns the receipt of a request that is stored.
func (r *request) outcome(st *state.State) Outcome {
	out := Outcome{State: st, Bytes: r.size, Warnings: r.warnings, IDs: r.step.ids(), Behind: r.behind}
	if r.step.rolls() {
		out.Commit = checkpoint.Commit{Head: st.Head()}
		return out
	}
	for _, e := range r.step.Entries {
		if _, ok := r.known[e]; ok {
			out.Known = append(out.Known, e.ID)
		}
	}
	out.Commit = r.lines[r.main].record.Commit()
	if r.kept {
		out.Kept = out.Commit.Kept
	} else if k := r.step.Kept; k != "" {
		out.Kept = k
	}
	return out
}
