package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Commit is what a commit stores besides the buffer.
type Commit struct {
	Reason, Key, Digest string
	Edit                *Edit
	Turn                bool // the caller's own: may be deferred, and may be the reason for a snapshot

	Entries []transcript.Draft // that belong to the turn
	Base    string             // id of the commit that the turn was made on; "" = where the handle is now
	From    *string            // entry that the head moves to before; "" = before the first; nil = the head stays
	Writer  string             // its name in the log; "" = Options.Journal.Writer

	KeepBoth bool // as Options.KeepBoth, of this commit
}

// Commit makes one step of what is pending and has it committed.
func (h *Handle) Commit(ctx context.Context, o Commit) (journal.Result, error) {
	before := h.IO()
	r, err := h.commit(ctx, o)
	if err != nil {
		return journal.Result{}, err
	}
	r.IO = h.IO().Sub(before)
	h.after(r)
	return r, nil
}

// after runs the hook for an acknowledged commit.
func (h *Handle) after(r journal.Result) {
	if hook := h.o.AfterCommit; hook != nil && r.Commit.Commit != "" && !r.Repeated {
		hook(r)
	}
}

// streams reports whether any handle of the store sets or watches partial output.
func (h *Handle) streams() bool { return h.o.Streams != nil && h.o.Streams.used.Load() > 0 }

func (h *Handle) commit(ctx context.Context, o Commit) (journal.Result, error) {
	var mark uint64
	if h.streams() {
		mark = h.streamed()
	}
	if o.Turn && h.o.Defer {
		r, deferred, err := h.deferTurn(ctx, &o)
		if deferred && err == nil {
			h.endPartial(mark, 0)
		}
		if deferred || err != nil {
			return r, err
		}
	}
	drafts, err := h.Screen(ctx, o.Entries)
	if err = errors.Join(err, checkKnown(drafts)); err != nil {
		return journal.Result{}, err
	}
	p, res, err := h.turn(ctx, o, drafts)
	if err != nil {
		return journal.Result{}, err
	}
	if h.streams() && (o.Turn || res.State.HeadOrd != p.from.HeadOrd) {
		h.endPartial(mark, res.Commit.Seq)
	}
	if text := omits(p, res); text != "" {
		res.Warnings = append(slices.Clip(res.Warnings), text)
	}
	if n := len(o.Entries); res.Repeated && n > 0 && res.IDs == nil {
		if res.IDs, err = h.firstIDs(ctx, &o, res); err != nil {
			res.Warnings = append(res.Warnings, fmt.Sprintf("the ids of the repeated turn cannot be read: %v", err))
		}
	}
	return res, nil
}

// turn stores a turn, under the lock. A base that is not in memory is read before the lock is taken: no caller waits
// for that read.
func (h *Handle) turn(
	ctx context.Context, o Commit, drafts []transcript.Draft,
) (p *prepared, res journal.Result, err error) {
	var base *journal.Anchor
	if o.Base != "" && o.Base != Newest {
		base, _ = h.baseOf(ctx, h.j.Tip(), o.Base) // what fails is tried again under the lock, once the key is known
	}
	held, err := h.j.Hold(ctx, "commit")
	if err != nil {
		return nil, res, err
	}
	defer held.Release()
	named := ""
	if h.snapshots != nil {
		named = h.snapshots.taken()
	}
	p = &prepared{from: h.State()}
	c := journal.Call{Key: o.Key, Digest: o.Digest, Based: o.Base != ""}
	res, err = held.Write(ctx, c, func(ctx context.Context, on *state.State) (*journal.Step, error) {
		var err error
		base := base
		if o.Base != "" && base == nil {
			if base, err = h.baseOf(ctx, on, o.Base); err != nil {
				return nil, err
			}
		}
		h.ended()
		if o.From != nil {
			p, err = h.stepFrom(ctx, o, drafts, on, base)
		} else {
			p, err = h.step(ctx, o, drafts, on, base)
		}
		if err != nil {
			return nil, err
		}
		p.step.Snapshot = named
		return p.step, h.images.store(ctx, p.blobs)
	})
	if h.snapshots != nil {
		if err != nil || res.Repeated {
			h.snapshots.giveBack(named)
		} else {
			res.Snapshot, res.Warnings = named, h.snapshots.warnings(slices.Clip(res.Warnings))
		}
	}
	f, ok := errors.AsType[*store.Failure](err)
	if ok && errors.Is(err, journal.ErrUnknown) && p.step != nil && h.j.InDoubt() { // else it is an earlier turn
		p.commit = f.Commit
		h.look(func(v *view) { v.doubt = p })
	}
	if err != nil {
		return nil, journal.Result{}, err
	}
	if res.Repeated && o.Base == "" {
		h.dropBuffer()
	} else if !res.Repeated {
		h.saved(p)
	}
	if h.snapshots != nil && o.Turn && !res.Repeated {
		h.snapshots.due(h.j, p.from, res.Commit.Reason)
	}
	return p, res, nil
}

// omits returns a warning where a commit is the first whose working context is not whole; "" = it is not.
func omits(p *prepared, res journal.Result) string {
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
func (h *Handle) deferTurn(ctx context.Context, o *Commit) (journal.Result, bool, error) {
	plain := o.Key == "" && o.Base == "" && o.From == nil && o.Reason == "" && o.Writer == ""
	if !plain || slices.ContainsFunc(o.Entries, mayKnow) || !h.deferrable(o.Entries) {
		return journal.Result{}, false, nil
	}
	ids, err := h.Append(ctx, o.Entries)
	if err != nil || !h.hold(o.Edit) {
		o.Entries = nil
		return journal.Result{}, false, err
	}
	at := checkpoint.Head{Entry: h.Head(), Branch: h.State().Summary.Branch}
	return journal.Result{Commit: checkpoint.Commit{Head: at}, IDs: ids}, true, nil
}

// prepared is a step, and what the handle has to remember of the moment at which it was made.
type prepared struct {
	step    *journal.Step
	from    *state.State // the view
	blobs   []string     // of what it takes along
	itemsAt int
	held    *Edit
	commit  string // id, if its outcome is unknown
}

// step makes the step of a turn, on the newest state that is known. Without a base it takes the buffer along.
func (h *Handle) step(
	ctx context.Context, o Commit, drafts []transcript.Draft, on *state.State, base *journal.Anchor,
) (p *prepared, err error) {
	known, err := h.parents(ctx, on, drafts)
	if err != nil {
		return nil, err
	}
	if base == nil {
		if err := h.amendUnsaved(ctx, on); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.sync()
	p = &prepared{from: v.State}
	p.step = h.turnStep(o, base, v.profile)
	at, find := v.View.Head, h.j.Pending
	if base != nil {
		at, find = base.At, func(string) *journal.Entry { return nil }
	}
	if p.step.Entries, p.step.IDs, err = h.build(drafts, at, known, find); err != nil {
		return nil, err
	}
	if base != nil {
		p.step.Stay = v.more()
		if err := h.apart(p.step.Entries); err != nil {
			return nil, err
		}
	}
	h.holdBlobs(p.step.Entries)
	edit := o.Edit
	if base != nil {
		if c := base.Doc.Context; c != nil {
			edit = edit.then(&Edit{context: broughtBy(c, on.Doc.Context), own: p.step.Entries, setContext: true})
		}
	} else {
		if v.window() == nil {
			p.step.Window, p.step.Seen = v.base, v.State.Next
		}
		p.itemsAt, p.held = v.itemsAt, v.held
		if edit = v.held.then(edit); v.items != nil || v.unsaved {
			edit = edit.then(&Edit{context: v.encodeItems(), own: p.step.Entries, setContext: true})
		}
		p.step.MayIdle = p.step.MayIdle && !v.more()
		p.blobs = v.blobs(p.step.Entries)
	}
	if edit.changes() {
		p.step.Edit = edit.apply
	}
	return p, nil
}

// apart refuses drafts with ids that the buffer has, of a turn that leaves the buffer alone.
func (h *Handle) apart(entries []*journal.Entry) error {
	for _, e := range entries {
		if e.Named && h.j.Pending(e.ID) != nil {
			return exists(e.ID)
		}
	}
	return nil
}

// turnStep returns the step of a turn, without its entries and its edit.
func (h *Handle) turnStep(o Commit, base *journal.Anchor, profile transcript.Profile) *journal.Step {
	return &journal.Step{
		Reason: o.Reason, Key: o.Key, Digest: o.Digest, Writer: o.Writer, Base: base, Settings: true, Profile: profile,
		KeepBoth: h.o.KeepBoth || o.KeepBoth, KeepFenced: o.KeepBoth,
		MayIdle: o.Reason == "" && !o.Edit.changes(),
	}
}

// holdBlobs keeps the images of a turn's entries until they are stored.
func (h *Handle) holdBlobs(entries []*journal.Entry) {
	for _, e := range entries {
		h.j.HoldBlobs(e.Blobs)
		if e.Instead != nil {
			h.j.HoldBlobs(e.Instead.Blobs)
		}
	}
}

// stepFrom makes the step of a turn that moves the head to an entry before. It takes no buffer along, and its document
// is made of the one in force at that entry.
func (h *Handle) stepFrom(
	ctx context.Context, o Commit, drafts []transcript.Draft, on *state.State, base *journal.Anchor,
) (*prepared, error) {
	if base == nil && h.uncommitted() {
		return nil, journal.ErrUncommitted
	}
	m, err := h.momentOn(ctx, on)
	if err != nil {
		return nil, err
	}
	mv := &move{at: journal.Place{Ord: -1}}
	if *o.From != "" {
		ord, err := m.Find(*o.From)
		if err != nil {
			return nil, fmt.Errorf("from: %w", err)
		}
		mv.at = m.Place(ord)
	}
	if mv.branch = branchAt(m, mv.at); h.o.NameLeft {
		nameLeft(m, mv)
	}
	path, err := h.arrive(ctx, m, mv)
	if err != nil {
		return nil, err
	}
	known, err := h.parents(ctx, on, drafts)
	if err != nil {
		return nil, err
	}
	profile, _ := h.Rules()
	step := h.turnStep(o, base, profile)
	none := func(string) *journal.Entry { return nil }
	if step.Entries, step.IDs, err = h.build(drafts, mv.at, known, none); err == nil {
		err = h.apart(step.Entries)
	}
	if err != nil {
		return nil, err
	}
	h.look(func(v *view) { step.Stay = v.more() })
	h.holdBlobs(step.Entries)
	step.Branch, step.Kept, step.Window, step.Seen = mv.branch, mv.kept, mv.window, mv.seen
	from := mv.at
	tail, err := h.leadingToHead(ctx, on, mv, step.Entries)
	if err != nil {
		return nil, err
	}
	if !mv.at.Is(from) || len(tail) < len(step.Entries) {
		step.Window = nil // what is stored does not all lead from there to the head
		if path, err = h.arrive(ctx, m, mv); err != nil {
			return nil, err
		}
	}
	if step.Head = &mv.at; len(tail) > 0 {
		at := journal.PlaceAt(tail[len(tail)-1])
		step.Head = &at
	}
	step.Edit = mv.edit(o.Edit, step.Entries)
	for _, e := range tail {
		path = append(slices.Clip(path), e.Head.Entry(0))
	}
	outline := state.Outline(path)
	step.Outline = &outline
	return &prepared{step: step, from: h.State()}, nil
}

// edit returns the change of the document that a move makes, and a turn with it, in the one in force where it arrived.
func (mv *move) edit(own *Edit, entries []*journal.Entry) func(checkpoint.Document) checkpoint.Document {
	doc := *mv.doc
	if doc.Settings = mv.setting; doc.Context != nil {
		own = own.then(&Edit{context: doc.Context, own: entries, setContext: true})
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
func (h *Handle) leadingToHead(
	ctx context.Context, on *state.State, mv *move, entries []*journal.Entry,
) ([]*journal.Entry, error) {
	var ids []string
	for _, e := range entries {
		if e.Named && e.Ignore {
			ids = append(ids, e.ID)
		}
	}
	known, err := h.j.Known(ctx, on, ids)
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
		if items != nil && Speaks(e.Head.Type) && !e.Skipped() {
			items = append(items, transcript.Item{Entry: e.ID})
		}
	}
	return items
}

// blobs are the sums of the images that a commit refers to.
func (v *view) blobs(own []*journal.Entry) (sums []string) {
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
func (h *Handle) saved(p *prepared) {
	if p.step.Base != nil {
		return
	}
	h.look(func(v *view) {
		if v.held == p.held {
			v.held = nil
		}
		if v.itemsAt == p.itemsAt && v.unsaved {
			if v.unsaved = false; v.View.Head.Is(journal.PlaceOf(v.State)) {
				v.settle() // a move may have put another context in force since
			}
		}
	})
}

// ended takes over that a turn of unknown outcome was found to be stored.
func (h *Handle) ended() {
	var p *prepared
	h.look(func(v *view) { p = v.doubt })
	if p == nil {
		return
	}
	stored, ended := h.j.Ended(p.commit)
	if !ended {
		return
	}
	h.look(func(v *view) { v.doubt = nil })
	if stored {
		h.saved(p)
	}
}

// dropBuffer forgets a context and a document that were to be saved with the next turn.
func (h *Handle) dropBuffer() {
	h.look(func(v *view) {
		v.held, v.unsaved, v.doubt = nil, false, nil
		v.settle()
	})
}

// Newest is the base of what is made on the newest commit, whichever that is.
const Newest = "*"

// baseOf finds the commit that a turn was made on.
func (h *Handle) baseOf(ctx context.Context, on *state.State, id string) (*journal.Anchor, error) {
	if id == Newest {
		return journal.AnchorOf(on), nil
	}
	view := &View{Commit: on.Newest(), Doc: on.Doc, Head: journal.PlaceOf(on)}
	if on.Summary.Commit != id || on.AfterKept {
		var err error
		if view, err = h.commitByID(ctx, on, id); err != nil {
			return nil, fmt.Errorf("base: %w", err)
		}
	}
	raw, err := view.Doc.Encode()
	if err != nil {
		return nil, err
	}
	c := view.Commit
	return &journal.Anchor{
		Commit: id, Seq: c.Seq, At: view.Head, Branch: view.Doc.Branch, Doc: view.Doc, JSON: raw,
		Kept: c.Kept != "" && c.Kept == c.Branch,
	}, nil
}

// commitByID finds a commit of st by its whole id: in memory, or in the id index, and then by one read of the segment
// that has its line.
func (h *Handle) commitByID(ctx context.Context, st *state.State, id string) (*View, error) {
	if len(id) != 36 { // no UUID, and so no commit's: nothing is read
		return nil, Missing("commit", id)
	}
	for _, c := range st.Lineage {
		if c.Commit == id {
			return h.atSeq(ctx, st, c.Seq)
		}
	}
	known, err := h.j.Known(ctx, st, []string{id})
	if err != nil {
		return nil, err
	}
	l, ok := known[id]
	if !ok || !l.Commit {
		return nil, Missing("commit", id)
	}
	mo, err := h.j.CommitLine(ctx, st, l.Ord)
	if err != nil {
		return nil, err
	}
	if mo.Commit.Commit != id { // another id of the same hash
		return nil, Missing("commit", id)
	}
	return h.viewOf(st, mo), nil
}

// firstIDs returns the ids that the entries of a repeated turn got the first time.
func (h *Handle) firstIDs(ctx context.Context, o *Commit, res journal.Result) (ids []string, err error) {
	n := uint64(min(len(o.Entries), res.Commit.Entries))
	if res.Line < n || n == 0 && !slices.ContainsFunc(o.Entries, mayKnow) {
		return nil, nil
	}
	own := map[string]bool{} // ids that the turn names: with KnownAmend an amendment can be in the place of each
	for _, d := range o.Entries {
		if d, err = plain(d); err != nil {
			return nil, err
		}
		own[d.ID] = d.ID != "" && d.OnKnownID == transcript.KnownAmend
	}
	ords := make([]uint64, n)
	for i := range ords {
		ords[i] = res.Line - n + uint64(i)
	}
	for l, err := range h.j.Lines(ctx, res.State, ords) {
		if err != nil {
			return nil, err
		}
		e, err := Stored(l)
		if err != nil {
			return nil, err
		}
		id := e.ID
		if a, ok := e.Amendment(); ok && own[a.Target] {
			id = a.Target
		}
		ids = append(ids, id)
	}
	if slices.ContainsFunc(o.Entries, mayKnow) {
		return withKnown(o.Entries, ids)
	}
	return ids, nil
}

// withKnown returns the ids of all drafts of a turn, where those of its stored entries are the last of some: a draft
// whose own id the session had before has no entry among them.
func withKnown(drafts []transcript.Draft, stored []string) ([]string, error) {
	ids := make([]string, len(drafts))
	for i := len(drafts) - 1; i >= 0; i-- {
		d, err := plain(drafts[i])
		if err != nil {
			return nil, err
		}
		last := len(stored) - 1
		switch {
		case d.ID != "" && (last < 0 || stored[last] != d.ID):
			ids[i] = d.ID
		case last < 0:
			return nil, Missing("entry of draft", strconv.Itoa(i))
		default:
			ids[i], stored = stored[last], stored[:last]
		}
	}
	return ids, nil
}

// CheckName refuses a name, such as a key or that of a branch, that is too long or not valid UTF-8.
func CheckName(what, name string) error {
	if len(name) > checkpoint.MaxName {
		return LimitError(what, checkpoint.MaxName, len(name))
	}
	return rawjson.CheckText(what, name)
}

// Edit is a change of the document.
type Edit struct {
	State, Manager []byte            // nil = unchanged; "null" = cleared
	Docs           map[string][]byte // by name, the same of each

	context    []transcript.Item
	own        []*journal.Entry // of the turn: what is stored of them goes with context
	setContext bool
}

// then is the edit of doing e and then f; either may be nil.
func (e *Edit) then(f *Edit) *Edit {
	switch {
	case e == nil:
		return f
	case f == nil:
		return e
	}
	sum := *e
	if f.State != nil {
		sum.State = f.State
	}
	if f.Manager != nil {
		sum.Manager = f.Manager
	}
	if len(f.Docs) > 0 {
		sum.Docs = maps.Clone(f.Docs)
		for name, p := range e.Docs {
			if _, again := f.Docs[name]; !again {
				sum.Docs[name] = p
			}
		}
	}
	if f.setContext {
		sum.context, sum.own, sum.setContext = f.context, f.own, true
	}
	return &sum
}

// changes reports whether the edit can change a document.
func (e *Edit) changes() bool {
	return e != nil && (e.State != nil || e.Manager != nil || len(e.Docs) > 0 || e.setContext)
}

// withDocs returns a copy of documents after a change of them; nil where none is left.
func withDocs(docs map[string]json.RawMessage, change map[string][]byte) map[string]json.RawMessage {
	after := make(map[string]json.RawMessage, len(docs)+len(change))
	maps.Copy(after, docs)
	for name, p := range change {
		if after[name] = p; string(p) == "null" {
			delete(after, name)
		}
	}
	if len(after) == 0 {
		return nil
	}
	return after
}

// apply makes the document after the edit.
func (e *Edit) apply(d checkpoint.Document) checkpoint.Document {
	set := func(dst *[]byte, src []byte) {
		switch {
		case string(src) == "null":
			*dst = nil
		case src != nil:
			*dst = src
		}
	}
	set((*[]byte)(&d.State), e.State)
	set((*[]byte)(&d.Manager), e.Manager)
	if len(e.Docs) > 0 {
		d.Docs = withDocs(d.Docs, e.Docs)
	}
	if e.setContext {
		d.Context = withOwn(e.context, e.own)
	}
	return d
}
