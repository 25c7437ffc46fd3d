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

// request holds the lines that one step stores, and what they are made of. They are stored together, on condition that
// base is the newest state: the commit line of the step with its entries; before it, for a new session, the create
// line; after it, if the step is kept as a branch, the line that restates the session, and the line that closes a full
// segment.
type request struct {
	// The input.
	base   *state.State
	step   *Step
	kept   bool              // the step lost a conflict and is stored as a branch
	behind bool              // the step was made on another state than base: see Outcome.Behind
	taken  []*Entry          // entries of the buffer, which are stored before those of the step
	known  map[*Entry]uint64 // ordinals of entries that the session has already
	own    []*Entry          // entries that the line of the step stores: taken, and those of the step that are new

	ownDigest string // Step.Digest as the caller gave it: step.Digest covers the taken entries too

	// The result of compose.go.
	cfg      *Config
	next     *state.State // after all lines
	bytes    []byte       // all lines, each with its newline
	lines    []line
	main     int               // index in lines of the step's own line
	ords     map[*Entry]uint64 // ordinals of known and own entries
	epoch    uint64
	synced   int64    // bytes of the active segment that the lines promise as durable
	keptName string   // the branch of the kept line that was composed last
	keptHead int64    // ordinal of the end of that branch
	warnings []string // for the receipt

	// What was sent.
	size int    // bytes of the object or the append that contains the lines
	body []byte // replace: the object
}

// compose makes the request of a step on the state tip; nil = there is nothing to store. It makes the base durable, and
// reads what is needed to know which entries the session has. It stores no part of the step.
func (j *Journal) compose(ctx context.Context, tip *state.State, s *Step, kept bool) (*request, error) {
	if s.sealAll {
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
	if err := j.strategy.ReadyBase(ctx, r, j.sealing()); err != nil {
		j.returnTaken()
		return nil, err
	}
	if err := r.composeAll(j); err != nil {
		j.returnTaken()
		return nil, j.notApplied("commit", err)
	}
	return r, nil
}

// composeAll composes the lines of the request, except those that Publish adds for a new segment.
func (r *request) composeAll(j *Journal) error {
	s := r.step
	if r.step.rolls() {
		return nil // Publish adds the line
	}
	from := AnchorOf(r.next)
	if r.kept {
		base := s.Base
		if base == nil {
			base = AnchorOf(j.State())
		}
		from = base.byOrdinal()
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
	// The line after a kept line restates the document of the session, for readers that start at that line.
	back := &Step{Reason: state.ReasonConflict, Keyframe: true}
	return r.compose(back, nil, AnchorOf(r.next), false)
}

// takesBuffer reports whether a step also stores the entries in the buffer.
func (s *Step) takesBuffer() bool {
	return s.Base == nil && !s.Move && !s.Note && !s.Claim && !s.rolls()
}

// rolls reports whether a step only closes the active segment, whatever its size.
func (s *Step) rolls() bool { return s.Reason == state.ReasonRoll }

// idles reports whether a step has nothing to store: it has no entries that the session does not have, and it changes
// neither head nor document. A step with a key is stored nevertheless, so that the key is remembered, and so is the
// first step of a session.
func (s *Step) idles(r *request, tip *state.State) bool {
	if s.Key != "" || tip.Summary.Commit == "" || len(r.own) > 0 || !s.brings() && !s.MayIdle {
		return false
	}
	if s.Head != nil {
		at := s.Head.ByOrdinal()
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

// send stores the images that a request refers to, then publishes the request. If the outcome is unknown, the request
// becomes the doubt of the handle, and the error is ErrUnknown. With any other error the request was not applied.
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
		return j.acknowledge(r, next), nil
	}
	j.returnTaken()
	if err = j.unknown(err, r); errors.Is(err, ErrUnknown) {
		j.mu.Lock()
		j.doubt = r
		j.mu.Unlock()
	}
	return Outcome{}, err
}

// unknown returns the error for a failed Publish: err itself if nothing was applied, else ErrUnknown with the id of the
// commit.
func (j *Journal) unknown(err error, r *request) error {
	var m *recompose
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
	if f != nil { // the write met damage
		out.Object, out.Offset = f.Object, f.Offset
	}
	return &out
}

// id returns the id of the step's commit; "" if no line is composed.
func (r *request) id() string {
	if len(r.lines) == 0 {
		return ""
	}
	return r.lines[r.main].record.ID
}

// acknowledge updates the handle in memory after the store has confirmed a request, and returns the receipt. next is
// the state after the request.
func (j *Journal) acknowledge(r *request, next *state.State) Outcome {
	j.mu.Lock()
	base := r.base
	j.store.Bind(next.Since)
	j.stored(r)
	if base != j.adopted {
		j.strategy.Adopt(base)
	}
	j.tip, j.adopted, j.fresh, j.committed = next, next, false, true
	j.bg.taken = nil
	j.moveView(r, base, next)
	j.mu.Unlock()
	if !next.Summary.Tombstone { // no background work for a deleted session
		if told := j.cfg.Acknowledged; told != nil {
			told(next)
		}
		j.upkeep(next)
	}
	return r.outcome(next)
}

// stored marks the entries of a request as durable and removes them from the buffer. The caller holds j.mu.
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

// moveView moves the view to the state next, if the step of the request was made on the view, or if next has the same
// branch, head and document. It does not move the view past a claim of another writer, nor if entries in the buffer
// grow from it. The caller holds j.mu.
func (j *Journal) moveView(r *request, base, next *state.State) {
	s := r.step
	if base.Summary.Commit == "" { // the request created the session
		j.view = next
	}
	moves := !s.Note || len(s.Names) > 0 // renaming a branch changes what the view shows
	if moves && !s.Claim && !r.kept && !s.rolls() {
		made := s.Base == nil && !s.Note || sameHead(base, j.view) && !j.fences(base, j.view.Summary.Seq)
		if made && (s.Base == nil && !s.Note || len(s.Names) > 0 || len(j.list) == 0 && !s.Stay) {
			j.view = next
		}
	}
	j.followTip()
}

// followTip moves the view to the tip if both have the same branch, head and document. The caller holds j.mu.
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

// follow makes a state that was read from the store the tip.
func (j *Journal) follow(now *state.State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forget()
	j.tip, j.fresh = now, true
	j.followTip()
}

// outcome returns the receipt of a stored request.
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
