package coppice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// Commit stores everything that was appended and the turn's own entries, with the turn's state: one PUT, or one append
// and one sync, and one PUT more for each new large image. Callers of one handle wait for each other, in order of
// arrival. A nil error means that all of it is stored, on whatever branch; if the receipt is Repeated, nothing was
// done. Only with DeferUntilAssistant it may mean that nothing is stored yet: the receipt has Seq 0 then. A turn with
// nothing to store and no Key commits nothing, and its receipt names the commit that the handle shows.
//
// On an error the handle is as it was before the call: State, and what was appended.
//
//   - ErrCommitUnknown: the turn may be stored. The handle keeps the request: Settle finds out whether it is, and so
//     does the next call with a Key or a Base, or the same turn again with its key. Reload and Discard forget it.
//   - ErrInDoubt: nothing was applied, because an earlier commit of the handle is in doubt. Call Settle first.
//   - ErrConflict, ErrFenced: nothing was applied. Commit it again with KeepBoth, or call Reload.
//   - ErrKeyReused: nothing was applied.
//   - Any other error: nothing was applied.
//
// If ctx ends before the request is sent, nothing was applied. Once it was sent, Commit returns when the store has
// answered.
func (s *Session) Commit(ctx context.Context, t Turn) (Receipt, error) {
	edit, err := t.edit()
	if err != nil {
		return Receipt{}, s.fail("commit", err)
	}
	if err := s.writable(ctx); err != nil {
		return Receipt{}, s.fail("commit", err)
	}
	if t.Reason == "create" && s.state().Summary.Commit != "" {
		return Receipt{}, s.fail("commit", layout.BadInput("reason %q: the session has commits", t.Reason))
	}
	return s.commit(ctx, &t, edit)
}

func (s *Session) commit(ctx context.Context, t *Turn, edit *docEdit) (Receipt, error) {
	before := s.IO()
	r, err := s.commitTurn(ctx, t, edit)
	return s.receipt("commit", before, r, err)
}

func (s *Session) commitTurn(ctx context.Context, t *Turn, edit *docEdit) (journal.Outcome, error) {
	mark := s.streamed()
	if s.o.DeferUntilAssistant {
		r, deferred, err := s.deferTurn(ctx, t, edit)
		if deferred && err == nil {
			s.endPartial(mark, 0)
		}
		if deferred || err != nil {
			return r, err
		}
	}
	drafts, err := s.screen(ctx, t.Entries)
	if err = errors.Join(err, checkKnown(drafts)); err != nil {
		return journal.Outcome{}, err
	}
	p, res, err := s.storeTurn(ctx, t, edit, drafts)
	if err != nil {
		return journal.Outcome{}, err
	}
	s.endPartial(mark, res.Commit.Seq)
	if text := omits(p, res); text != "" {
		res.Warnings = append(slices.Clip(res.Warnings), text)
	}
	if n := len(t.Entries); res.Repeated && n > 0 && res.IDs == nil {
		if res.IDs, res.Known, err = s.firstIDs(ctx, t.Entries, res); err != nil {
			res.Warnings = append(res.Warnings, fmt.Sprintf("the ids of the repeated turn cannot be read: %v", err))
		}
	}
	return res, nil
}

// storeTurn stores a turn, under the lock. A base that is not in memory is read before the lock is taken: no caller
// waits for that read.
func (s *Session) storeTurn(
	ctx context.Context, t *Turn, edit *docEdit, drafts []transcript.Draft,
) (p *prepared, res journal.Outcome, err error) {
	var base *journal.Anchor
	if t.Base != "" && t.Base != Newest {
		base, _ = s.baseOf(ctx, s.j.Tip(), t.Base) // what fails is tried again under the lock, once the key is known
	}
	held, err := s.j.Hold(ctx, "commit")
	if err != nil {
		return nil, res, err
	}
	defer held.Release()
	named := ""
	if s.snapshots != nil {
		named = s.snapshots.taken()
	}
	p = &prepared{from: s.state()}
	c := journal.Step{Key: t.Key, Digest: t.digest(edit), Writer: t.Writer, Based: t.Base != ""}
	res, err = held.Write(ctx, c, func(ctx context.Context, on *state.State) (*journal.Step, error) {
		var err error
		base := base
		if t.Base != "" && base == nil {
			if base, err = s.baseOf(ctx, on, t.Base); err != nil {
				return nil, err
			}
		}
		s.ended()
		if t.From != nil {
			p, err = s.stepFrom(ctx, t, edit, drafts, on, base)
		} else {
			p, err = s.step(ctx, t, edit, drafts, on, base)
			if err == nil {
				err = errors.Join(s.nameLeftBy(ctx, p.step, on, base), s.giveWindow(ctx, on, p.step, p.amends))
			}
		}
		if err != nil {
			return nil, err
		}
		p.step.Snapshot = named
		return p.step, s.images.store(ctx, p.blobs)
	})
	if s.snapshots != nil {
		if err != nil || res.Repeated {
			s.snapshots.giveBack(named)
		} else {
			res.Snapshot, res.Warnings = named, s.snapshots.warnings(slices.Clip(res.Warnings))
		}
	}
	f, ok := errors.AsType[*store.Failure](err)
	if ok && errors.Is(err, journal.ErrUnknown) && p.step != nil && s.j.InDoubt() { // else it is an earlier turn
		p.commit = f.Commit
		s.look(func(v *liveState) { v.doubt = p })
	}
	if err != nil {
		return nil, journal.Outcome{}, err
	}
	if res.Repeated && t.Base == "" {
		s.dropBuffer()
	} else if !res.Repeated {
		s.saved(p)
	}
	if s.snapshots != nil && t.Reason != reasonFork && !res.Repeated {
		s.snapshots.due(s.j, p.from, res.Commit.Reason)
	}
	return p, res, nil
}

// omits returns a warning where a commit is the first whose working context is not whole; "" = it is not.
func omits(p *prepared, res journal.Outcome) string {
	if res.Repeated || res.Kept != "" {
		return ""
	}
	from, now := p.from, res.State
	if from.Window == nil || now.Window == nil || from.Window.Omitted() > 0 || now.Window.Omitted() == 0 {
		return ""
	}
	return fmt.Sprintf("the context passed its bound of %d bytes: its oldest %d messages are left out from here on;"+
		" compact it, or raise ContextBytes", now.Window.MaxBytes(), now.Window.Omitted())
}

// deferTurn keeps a turn in memory, as pi does before the first assistant message. One with an idempotency key is never
// deferred: only the log remembers keys.
func (s *Session) deferTurn(ctx context.Context, t *Turn, edit *docEdit) (journal.Outcome, bool, error) {
	plain := t.Key == "" && t.Base == "" && t.From == nil && t.Reason == "" && t.Writer == ""
	if !plain || slices.ContainsFunc(t.Entries, mayKnow) || !s.deferrable(t.Entries) {
		return journal.Outcome{}, false, nil
	}
	ids, err := s.append(ctx, t.Entries)
	if err != nil || !s.hold(edit) {
		t.Entries = nil
		return journal.Outcome{}, false, err
	}
	at := checkpoint.Head{Entry: s.Head().Entry, Branch: s.state().Summary.Branch}
	return journal.Outcome{Commit: checkpoint.Commit{Head: at}, IDs: ids}, true, nil
}

// prepared is a step, and what the handle has to remember of the moment at which it was made.
type prepared struct {
	step    *journal.Step
	from    *state.State // the view
	blobs   []string     // of what it takes along
	amends  []transcript.Amendment
	itemsAt int
	held    *docEdit
	commit  string // id, if its outcome is unknown
}

// step makes the step of a turn, on the newest state that is known. Without a base it takes the buffer along.
func (s *Session) step(
	ctx context.Context, t *Turn, edit *docEdit, drafts []transcript.Draft, on *state.State, base *journal.Anchor,
) (p *prepared, err error) {
	known, err := s.parents(ctx, on, drafts)
	if err != nil {
		return nil, err
	}
	var before checkpoint.Document
	if base == nil {
		err = s.amendUnsaved(ctx, on)
	} else if before.Context = base.Doc.Context; on.Erased > base.Seq {
		err = s.amendItemsOn(ctx, on, &before)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.sync()
	p = &prepared{from: v.State}
	p.step = s.turnStep(t, edit, base, v.profile)
	at, find := v.Sight.Head, s.j.Pending
	if base != nil {
		at, find = base.At, func(string) *journal.Entry { return nil }
	}
	if p.step.Entries, p.step.IDs, err = s.build(drafts, at, known, find); err != nil {
		return nil, err
	}
	p.amends = amendmentsOf(p.step.Entries, known)
	if base != nil {
		p.step.Stay = v.more()
		if err := s.apart(p.step.Entries); err != nil {
			return nil, err
		}
	}
	s.holdBlobs(p.step.Entries)
	if base != nil {
		if c := before.Context; c != nil {
			edit = edit.then(&docEdit{context: broughtBy(c, on.Doc.Context), own: p.step.Entries, setContext: true})
		}
	} else {
		p.amends = append(amendmentsOf(v.Open, places{}), p.amends...)
		if v.window() == nil {
			p.step.Window, p.step.Seen = v.base, v.State.Next
		}
		p.itemsAt, p.held = v.itemsAt, v.held
		if edit = v.held.then(edit); v.items != nil || v.unsaved {
			edit = edit.then(&docEdit{context: v.encodeItems(), own: p.step.Entries, setContext: true})
		}
		p.step.MayIdle = p.step.MayIdle && !v.more()
		p.blobs = v.blobs(p.step.Entries)
	}
	if edit.changes() {
		p.step.Edit = edit.apply
	}
	return p, nil
}

// nameLeftBy makes a turn name the line that it leaves, as moves do: its entries grow from one before the head. The
// tree is read only for such a turn.
func (s *Session) nameLeftBy(ctx context.Context, step *journal.Step, on *state.State, base *journal.Anchor) error {
	if !s.o.NameLeft || on.Summary.Entry == "" || base == nil && s.uncommitted() {
		return nil
	}
	head := journal.PlaceOf(on)
	mv := &move{at: head}
	tail, err := s.leadingToHead(ctx, on, mv, step.Entries)
	if err != nil || len(tail) == 0 || mv.at.Is(head) {
		return err
	}
	m, err := s.treeOn(ctx, on)
	if err != nil {
		return err
	}
	nameLeft(m, mv)
	step.Kept = mv.kept
	return nil
}

// apart refuses drafts with ids that the buffer has, of a turn that leaves the buffer alone.
func (s *Session) apart(entries []*journal.Entry) error {
	for _, e := range entries {
		if e.Named && s.j.Pending(e.ID) != nil {
			return exists(e.ID)
		}
	}
	return nil
}

// turnStep returns the step of a turn, without its entries and its edit.
func (s *Session) turnStep(t *Turn, edit *docEdit, base *journal.Anchor, profile transcript.Profile) *journal.Step {
	return &journal.Step{
		Reason: t.Reason, Base: base, Settings: true, Profile: profile,
		KeepBoth: s.o.KeepBoth || t.KeepBoth, KeepFenced: t.KeepBoth && !t.FailFenced,
		MayIdle: t.Reason == "" && !edit.changes(),
	}
}

// holdBlobs keeps the images of a turn's entries until they are stored.
func (s *Session) holdBlobs(entries []*journal.Entry) {
	for _, e := range entries {
		s.j.HoldBlobs(e.Blobs)
		if e.Instead != nil {
			s.j.HoldBlobs(e.Instead.Blobs)
		}
	}
}

// stepFrom makes the step of a turn that moves the head to an entry before. It takes no buffer along, and its document
// is made of the one in force at that entry.
func (s *Session) stepFrom(
	ctx context.Context, t *Turn, edit *docEdit, drafts []transcript.Draft, on *state.State, base *journal.Anchor,
) (*prepared, error) {
	if base == nil && s.uncommitted() {
		return nil, journal.ErrUncommitted
	}
	m, err := s.treeOn(ctx, on)
	if err != nil {
		return nil, err
	}
	mv := &move{at: journal.Place{Ord: -1}}
	if *t.From != "" {
		ord, err := m.find(*t.From)
		if err != nil {
			return nil, fmt.Errorf("from: %w", err)
		}
		mv.at = m.place(ord)
	}
	if mv.branch = branchAt(m, mv.at); s.o.NameLeft {
		nameLeft(m, mv)
	}
	path, err := s.arrive(ctx, m, mv)
	if err != nil {
		return nil, err
	}
	known, err := s.parents(ctx, on, drafts)
	if err != nil {
		return nil, err
	}
	profile, _ := s.rules()
	step := s.turnStep(t, edit, base, profile)
	none := func(string) *journal.Entry { return nil }
	if step.Entries, step.IDs, err = s.build(drafts, mv.at, known, none); err == nil {
		err = s.apart(step.Entries)
	}
	if err != nil {
		return nil, err
	}
	s.look(func(v *liveState) { step.Stay = v.more() })
	s.holdBlobs(step.Entries)
	step.Branch, step.Kept, step.Window, step.Seen = mv.branch, mv.kept, mv.window, mv.seen
	from := mv.at
	tail, err := s.leadingToHead(ctx, on, mv, step.Entries)
	if err != nil {
		return nil, err
	}
	if !mv.at.Is(from) || len(tail) < len(step.Entries) {
		step.Window = nil // what is stored does not all lead from there to the head
		if path, err = s.arrive(ctx, m, mv); err != nil {
			return nil, err
		}
	}
	if step.Head = &mv.at; len(tail) > 0 {
		at := journal.PlaceAt(tail[len(tail)-1])
		step.Head = &at
	}
	step.Edit = mv.edit(edit, step.Entries)
	for _, e := range tail {
		path = append(slices.Clip(path), e.Head.Entry(0))
	}
	outline := state.Outline(path)
	step.Outline = &outline
	return &prepared{step: step, from: s.state()}, nil
}

// edit returns the change of the document that a move makes, and a turn with it, in the one in force where it arrived.
func (mv *move) edit(own *docEdit, entries []*journal.Entry) func(checkpoint.Document) checkpoint.Document {
	doc := *mv.doc
	if doc.Settings = mv.setting; doc.Context != nil {
		own = own.then(&docEdit{context: doc.Context, own: entries, setContext: true})
	}
	return func(checkpoint.Document) checkpoint.Document {
		if own == nil {
			return doc
		}
		return own.apply(doc)
	}
}

// leadingToHead returns the last entries of a turn that lead to its head, and has the move arrive where the first of
// them grows: at an entry that the state has, at a parent that the caller named, or where the move went.
func (s *Session) leadingToHead(
	ctx context.Context, on *state.State, mv *move, entries []*journal.Entry,
) ([]*journal.Entry, error) {
	var ids []string
	for _, e := range entries {
		if e.Named && e.Ignore {
			ids = append(ids, e.ID)
		}
	}
	known, err := s.j.Known(ctx, on, ids)
	if err != nil || len(entries) == 0 {
		return entries, err
	}
	at := journal.PlaceAt(entries[len(entries)-1])
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		if l, ok := known[e.ID]; ok && e.Ignore && !l.Commit && at.Entry == e {
			mv.at = journal.Place{ID: e.ID, Ord: int64(l.Ord)}
			return entries[i+1:], nil
		}
		if at.Entry != e { // it is on another line
			mv.at = at
			return entries[i+1:], nil
		}
		at = e.At()
	}
	mv.at = at
	return entries, nil
}

// withOwn adds the entries of a turn to an explicit context, and what they amend.
func withOwn(items []transcript.Item, own []*journal.Entry) []transcript.Item {
	items = slices.Clip(items)
	for _, e := range own {
		if e.Skipped() && e.Instead != nil {
			if a, ok := e.Instead.Head.Entry(0).Amendment(); ok {
				items, _ = amendItems(items, a)
			}
		}
		if items != nil && speaks(e.Head.Type) && !e.Skipped() {
			items = append(items, transcript.Item{Entry: e.ID})
		}
	}
	return items
}

// blobs are the sums of the images that a commit refers to.
func (v *liveState) blobs(own []*journal.Entry) (sums []string) {
	for _, list := range [][]*journal.Entry{v.Open, own} {
		for _, e := range list {
			for _, b := range e.Blobs {
				sums = append(sums, b.Sum)
			}
		}
	}
	for _, it := range v.items {
		for _, ref := range blob.Refs(it.Message) {
			sums = append(sums, ref.Sum)
		}
	}
	return sums
}

// saved takes over that a turn is stored: what it took of the buffer is gone.
func (s *Session) saved(p *prepared) {
	if p.step.Base != nil {
		return
	}
	s.look(func(v *liveState) {
		if v.held == p.held {
			v.held = nil
		}
		if v.itemsAt == p.itemsAt && v.unsaved {
			if v.unsaved = false; v.Sight.Head.Is(journal.PlaceOf(v.State)) {
				v.followState() // a move may have put another context in force since
			}
		}
	})
}

// ended takes over that a turn of unknown outcome was found to be stored.
func (s *Session) ended() {
	var p *prepared
	s.look(func(v *liveState) { p = v.doubt })
	if p == nil {
		return
	}
	stored, ended := s.j.Ended(p.commit)
	if !ended {
		return
	}
	s.look(func(v *liveState) { v.doubt = nil })
	if stored {
		s.saved(p)
	}
}

// dropBuffer forgets a context and a document that were to be saved with the next turn.
func (s *Session) dropBuffer() {
	s.look(func(v *liveState) {
		v.held, v.unsaved, v.doubt = nil, false, nil
		v.followState()
	})
}

// baseOf finds the commit that a turn was made on.
func (s *Session) baseOf(ctx context.Context, on *state.State, id string) (*journal.Anchor, error) {
	if id == Newest {
		return journal.AnchorOf(on), nil
	}
	view := s.viewAt(on)
	if on.Summary.Commit != id || on.AfterKept {
		var err error
		if view, err = s.commitByID(ctx, on, id); err != nil {
			return nil, fmt.Errorf("base: %w", err)
		}
	}
	raw, err := view.doc.Encode()
	if err != nil {
		return nil, err
	}
	c := view.commit
	return &journal.Anchor{
		Commit: id, Seq: c.Seq, At: view.head, Branch: view.doc.Branch, Doc: view.doc, JSON: raw,
		Kept: c.Kept != "" && c.Kept == c.Branch,
	}, nil
}

// firstIDs returns the ids that the entries of a repeated turn got the first time, and those that were known then.
func (s *Session) firstIDs(
	ctx context.Context, drafts []transcript.Draft, res journal.Outcome,
) (ids, known []string, err error) {
	n := uint64(min(len(drafts), res.Commit.Entries))
	if res.Line < n || n == 0 && !slices.ContainsFunc(drafts, mayKnow) {
		return nil, nil, nil
	}
	own := map[string]bool{} // ids that the turn names: with KnownAmend an amendment can be in the place of each
	for _, d := range drafts {
		if d, err = plain(d); err != nil {
			return nil, nil, err
		}
		own[d.ID] = d.ID != "" && d.OnKnownID == transcript.KnownAmend
	}
	ords := make([]uint64, n)
	for i := range ords {
		ords[i] = res.Line - n + uint64(i)
	}
	amended := map[string]bool{}
	for l, err := range s.j.Lines(ctx, res.State, ords) {
		if err != nil {
			return nil, nil, err
		}
		e, err := stored(l)
		if err != nil {
			return nil, nil, err
		}
		id := e.ID
		if a, ok := e.Amendment(); ok && own[a.Target] {
			id = a.Target
			amended[id] = true
		}
		ids = append(ids, id)
	}
	if !slices.ContainsFunc(drafts, mayKnow) {
		return ids, nil, nil
	}
	return withKnown(drafts, ids, amended)
}

// withKnown returns the ids of all drafts of a turn, where those of its stored entries are the last of some: a draft
// whose own id the session had before has no entry among them, unless it is an amendment.
func withKnown(
	drafts []transcript.Draft, stored []string, amended map[string]bool,
) (ids, known []string, err error) {
	ids = make([]string, len(drafts))
	for i := len(drafts) - 1; i >= 0; i-- {
		d, err := plain(drafts[i])
		if err != nil {
			return nil, nil, err
		}
		last := len(stored) - 1
		switch {
		case d.ID != "" && (last < 0 || stored[last] != d.ID):
			ids[i], known = d.ID, append(known, d.ID)
		case last < 0:
			return nil, nil, missing("entry of draft", strconv.Itoa(i))
		default:
			ids[i], stored = stored[last], stored[:last]
			if amended[ids[i]] {
				known = append(known, ids[i])
			}
		}
	}
	slices.Reverse(known)
	return ids, known, nil
}
