package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Commit says what a commit saves beside the pending entries.
type Commit struct {
	Reason, Key, Digest string
	Edit                *Edit
	Turn                bool // the caller's own: may be deferred, and may be the reason for a snapshot

	Names []checkpoint.Rename // of branches

	Entries []transcript.Draft // that belong to the turn
	Base    string             // id of the commit that the turn was made on; "" = where the handle is now
	OnKnown OnKnown

	KeepBoth bool // as Options.KeepBoth, of this commit
}

// carries reports whether the commit brings entries of its own, or names what it was made on.
func (o *Commit) carries() bool { return len(o.Entries) > 0 || o.Base != "" }

// Commit makes one step of what is pending and has it committed.
func (h *Handle) Commit(ctx context.Context, o Commit) (journal.Result, error) {
	before := h.IO()
	r, err := h.commit(ctx, o)
	if err != nil {
		return journal.Result{}, err
	}
	r.IO = h.IO().Sub(before)
	return r, h.after(r, nil)
}

// after runs the hook for an acknowledged commit.
func (h *Handle) after(r journal.Result, err error) error {
	if hook := h.o.AfterCommit; hook != nil && err == nil && r.Commit.Commit != "" && !r.Repeated {
		hook(r)
	}
	return err
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
	p, err := h.step(ctx, o)
	if err != nil {
		return journal.Result{}, err
	}
	if len(p.blobs) > 0 {
		if err := h.images.store(ctx, p.blobs); err != nil {
			return journal.Result{}, err
		}
	}
	var res journal.Result
	if h.snapshots == nil {
		res, err = h.j.Commit(ctx, p.step)
	} else {
		res, err = h.snapshots.commit(ctx, h.j, p, o.Turn)
	}
	if err != nil {
		return journal.Result{}, err
	}
	h.saved(p, res)
	if h.streams() && (o.Turn || res.State.HeadOrd != p.from.HeadOrd) {
		h.endPartial(mark, res.Commit.Seq)
	}
	if text := omits(p.from, res.State); text != "" && !res.Repeated {
		res.Warnings = append(slices.Clip(res.Warnings), text)
	}
	if n := len(o.Entries); res.Repeated && n > 0 && res.IDs == nil {
		if res.IDs, err = h.firstIDs(ctx, &o, res); err != nil {
			res.Warnings = append(res.Warnings, fmt.Sprintf("the ids of the repeated turn cannot be read: %v", err))
		}
	}
	return res, nil
}

// omits says that a commit is the first since from whose working context is not whole; "" = it is not.
func omits(from, now *state.State) string {
	if from.Window == nil || now.Window == nil || from.Window.Omitted() > 0 || now.Window.Omitted() == 0 {
		return ""
	}
	return fmt.Sprintf("the context passed its bound of %d bytes: its oldest %d messages are left out from here on;"+
		" compact it, or raise ContextBytes", now.Window.MaxBytes(), now.Window.Omitted())
}

// deferTurn keeps a turn in memory, as pi does before the first assistant message. One with an idempotency key is never
// deferred: only the log remembers keys.
func (h *Handle) deferTurn(ctx context.Context, o *Commit) (journal.Result, bool, error) {
	if o.Key != "" || o.Base != "" || o.OnKnown != KnownError || !h.deferrable(o.Entries) {
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
	from    *state.State // acknowledged then
	blobs   []string     // of what it takes along
	itemsAt int
	held    *Edit
}

// own is what a turn brings beside its document.
type own struct {
	drafts []transcript.Draft
	known  places
	base   *journal.Anchor // nil = where the handle is
	refuse error           // why it is refused, unless its key is known: its ids are taken, its base is no commit
}

// own looks at what a turn names: its drafts, their parents, and the commit that it was made on.
func (h *Handle) own(ctx context.Context, o *Commit) (w own, err error) {
	if w.drafts, err = h.Screen(ctx, o.Entries); err != nil {
		return w, err
	}
	if o.Base != "" {
		w.base, err = h.baseOf(ctx, o.Base)
		if err != nil && o.Key != "" && errors.Is(err, fs.ErrNotExist) {
			return own{refuse: err}, nil
		}
		if err != nil {
			return w, err
		}
	}
	w.known, err = h.parents(ctx, w.drafts, o.OnKnown)
	if err != nil && o.Key != "" && errors.Is(err, fs.ErrExist) {
		w.drafts, w.refuse, err = nil, err, nil // they may be those of the first time
	}
	return w, err
}

// step makes the step of a commit: it takes what was appended before it was called.
func (h *Handle) step(ctx context.Context, o Commit) (p *prepared, err error) {
	var brought own
	if o.carries() {
		if brought, err = h.own(ctx, &o); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.sync()
	p = &prepared{from: v.State, itemsAt: v.itemsAt, held: v.held}
	p.step = &journal.Step{
		Reason: o.Reason, Key: o.Key, Digest: o.Digest, Refuse: brought.refuse, Upto: v.Pos,
		KeepBoth: h.o.KeepBoth || o.KeepBoth, Settings: true, Profile: v.profile, Names: o.Names,
	}
	if o.carries() {
		if p.step.Anchor = brought.base; p.step.Anchor == nil {
			p.step.Anchor = &journal.Anchor{
				At: v.View.Head, Branch: v.State.Summary.Branch, Doc: v.State.Doc, JSON: v.State.DocJSON,
			}
		}
		p.step.Ignore = o.OnKnown != KnownError
		p.step.Entries, p.step.IDs, err = h.build(brought.drafts, p.step.Anchor.At, brought.known, h.j.Pending)
		if err != nil {
			return nil, err
		}
		for _, e := range p.step.Entries {
			h.j.HoldBlobs(e.Blobs)
			if e.Instead != nil {
				h.j.HoldBlobs(e.Instead.Blobs)
			}
		}
	}
	if v.window() == nil {
		p.step.Window, p.step.Seen = v.base, v.State.Next
	}
	edit := v.held.then(o.Edit)
	if v.items != nil || v.unsaved {
		edit = edit.then(&Edit{context: v.encodeItems(), own: p.step.Entries, setContext: true})
	}
	if edit.changes() {
		p.step.Edit = edit.apply
	}
	p.blobs = v.blobs(p.step.Entries)
	return p, nil
}

// withOwn adds the entries of a turn to an explicit context.
func withOwn(items []transcript.Item, own []*journal.Entry) []transcript.Item {
	items = slices.Clip(items)
	for _, e := range own {
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

// saved takes over that a step is stored.
func (h *Handle) saved(p *prepared, res journal.Result) {
	if res.Repeated {
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

// unsaved makes the step that saves what a SetContext, or a deferred commit, left to the next one; nil where there is
// nothing of the kind.
func (h *Handle) unsaved(ctx context.Context) (p *prepared, err error) {
	wanted := false
	h.look(func(v *view) { wanted = v.unsaved || v.held != nil })
	if !wanted {
		return nil, nil
	}
	if p, err = h.step(ctx, Commit{}); err != nil {
		return nil, err
	}
	return p, h.images.store(ctx, p.blobs)
}

// with runs an operation of the journal with such a step. run reports whether it committed anything: else the step is
// left to the next commit.
func (h *Handle) with(ctx context.Context, run func(extra *journal.Step) (bool, error)) error {
	p, err := h.unsaved(ctx)
	if err != nil {
		return err
	}
	if p == nil {
		_, err = run(nil)
		return err
	}
	committed, err := run(p.step)
	if err == nil && committed {
		h.saved(p, journal.Result{})
	}
	return err
}

// baseOf finds the commit that a turn was made on.
func (h *Handle) baseOf(ctx context.Context, id string) (*journal.Anchor, error) {
	st := h.State()
	view := &View{Commit: st.Newest(), Doc: st.Doc, Head: journal.PlaceOf(st)}
	if st.Summary.Commit != id || st.AfterKept {
		var err error
		if view, err = h.commitByID(ctx, st, id); errors.Is(err, fs.ErrNotExist) {
			if st, err = h.j.Latest(ctx); err == nil { // another writer's, of after what this handle has seen
				view, err = h.commitByID(ctx, st, id)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("base: %w", err)
		}
	}
	raw, err := view.Doc.Encode()
	if err != nil {
		return nil, err
	}
	return &journal.Anchor{At: view.Head, Branch: view.Doc.Branch, Doc: view.Doc, JSON: raw, Seq: view.Commit.Seq}, nil
}

// commitByID finds a commit of st by its whole id.
func (h *Handle) commitByID(ctx context.Context, st *state.State, id string) (*View, error) {
	if len(id) != 36 { // no UUID, and so no commit's: nothing is read
		return nil, Missing("commit", id)
	}
	for c, err := range h.j.Log(ctx, st, st.Summary.Seq) {
		if err != nil {
			return nil, err
		}
		if c.Commit == id {
			return h.atSeq(ctx, st, c.Seq)
		}
	}
	return nil, Missing("commit", id)
}

// firstIDs returns the ids that the entries of a repeated turn got the first time.
func (h *Handle) firstIDs(ctx context.Context, o *Commit, res journal.Result) (ids []string, err error) {
	n := uint64(min(len(o.Entries), res.Commit.Entries))
	if res.Line < n || n == 0 && o.OnKnown == KnownError {
		return nil, nil
	}
	own := map[string]bool{} // ids that the turn names: with KnownAmend an amendment can be in the place of each
	for _, d := range o.Entries {
		if d, err = plain(d); err != nil {
			return nil, err
		}
		own[d.ID] = d.ID != ""
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
		if a, ok := e.Amendment(); ok && o.OnKnown == KnownAmend && own[a.Target] {
			id = a.Target
		}
		ids = append(ids, id)
	}
	if o.OnKnown != KnownError {
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
