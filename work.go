package coppice

import (
	"slices"
	"sync/atomic"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/transcript"
)

// work is what the readers of a handle see: the acknowledged state, and behind it what was appended and
// is not acknowledged yet. Its owner holds Session.mu.
type work struct {
	st      *journal.State
	open    []*pending // not acknowledged, in append order
	ids     map[string]*pending
	given   map[string]struct{} // ids that callers chose, of this handle's whole life
	head    place
	win     *transcript.PathWindow // at head; nil = has to be read
	base    *transcript.PathWindow // at the head of st, where that is not st.Window
	items   []transcript.Item      // explicit context, appended entries included; nil = derived
	itemsAt int                    // counts calls of SetContext
	unsaved bool                   // items differ from the document's by a SetContext
	held    *edit                  // what deferred commits said
	flying  int                    // steps that the journal has
	version uint64                 // grows with every change
	profile transcript.Profile     // of the working context
	bound   int                    // its bytes, as PathWindow.MaxBytes gives them
	wish    *SessionOptions        // may want another profile or bound than the session has
}

// pending is an entry that is not acknowledged, or was not when it was appended.
type pending struct {
	e     *journal.Entry  // the journal's; its fields are read under the journal's lock alone
	line  transcript.Line // of the stored form
	at    place           // where it hangs
	blobs []transcript.Blob
	step  bool         // it is in a step that the journal has
	held  bool         // a deferred commit took it
	ord   atomic.Int64 // -1 until it is acknowledged
}

// place is where an entry can grow: an acknowledged entry, a pending one, or, with ord -1, the place
// before every root.
type place struct {
	id  string
	ord int64
	p   *pending
}

// settled is the place by its ordinal, if it has one by now.
func (p place) settled() place {
	if p.p != nil {
		if ord := p.p.ord.Load(); ord >= 0 {
			return place{id: p.id, ord: ord}
		}
	}
	return p
}

func (p place) is(q place) bool { return p.p == q.p && p.ord == q.ord && p.id == q.id }

// headOf is the head of an acknowledged state.
func headOf(st *journal.State) place { return place{id: st.Summary.Entry, ord: st.HeadOrd} }

// reset stands at an acknowledged state and forgets what is pending.
func (w *work) reset(st *journal.State) {
	w.st, w.open, w.held = st, nil, nil
	clear(w.ids)
	w.unsaved = false
	w.settle()
}

// settle follows the state where nothing is pending.
func (w *work) settle() {
	w.version++
	w.head = headOf(w.st)
	w.win, w.base = w.window(), nil
	if !w.unsaved {
		w.items = slices.Clone(w.st.Doc.Context)
	}
}

// window is that of the acknowledged head, if the state has it as this handle wants it.
func (w *work) window() *transcript.PathWindow {
	win := w.st.Window
	if win == nil {
		win = transcript.NewPathWindow(w.profile, w.bound)
	}
	w.profile, w.bound = win.Profile(), win.MaxBytes()
	if w.wish.Profile != "" {
		w.profile = w.wish.Profile
	}
	if w.wish.ContextBytes != 0 {
		w.bound = transcript.NewPathWindow(w.profile, w.wish.ContextBytes).MaxBytes()
	}
	if w.st.Window == nil || win.Profile() != w.profile || win.MaxBytes() != w.bound {
		return nil
	}
	return win
}

// adopt takes an acknowledged state over. Entries that it holds are no longer pending. The journal's lock
// is held, under which it marks them.
func (w *work) adopt(st *journal.State) {
	if st == w.st {
		return
	}
	w.st = st
	w.version++
	w.open = slices.DeleteFunc(w.open, func(p *pending) bool {
		if p.e.Done {
			p.ord.Store(int64(p.e.Ord))
			delete(w.ids, p.line.ID)
		}
		return p.e.Done
	})
	w.head = w.head.settled()
	w.base = nil
	if len(w.open) == 0 {
		w.settle()
	}
}

// drop forgets pending entries, unless others hang on them: then they stay pending.
func (w *work) drop(list []*pending) {
	gone := map[*pending]bool{}
	for _, p := range list {
		p.step, gone[p] = false, true
	}
	for _, p := range w.open {
		if !gone[p] && gone[p.at.p] {
			return
		}
	}
	for _, p := range list {
		delete(w.ids, p.line.ID)
	}
	w.open = slices.DeleteFunc(w.open, func(p *pending) bool { return gone[p] })
	w.version++
	if len(w.open) == 0 {
		w.settle()
	}
}

// free are the pending entries that are in no step.
func (w *work) free() []*pending {
	var list []*pending
	for _, p := range w.open {
		if !p.step {
			list = append(list, p)
		}
	}
	return list
}

// add appends a pending entry at a place. The head moves to it if grow is set.
func (w *work) add(line transcript.Line, blobs []transcript.Blob, at place, grow bool) *pending {
	at = at.settled()
	e := &journal.Entry{Raw: line.Raw, ID: line.ID, ParentID: line.ParentID, ParentOrd: at.ord}
	if at.p != nil {
		e.Parent, e.ParentOrd = at.p.e, -1
	}
	p := &pending{e: e, line: line, at: at, blobs: blobs}
	p.ord.Store(-1)
	w.open = append(w.open, p)
	w.ids[line.ID] = p
	w.version++
	if !grow {
		return p
	}
	if w.win != nil {
		win := w.win.Clone()
		if !at.is(w.head) || !win.Push(entryOf(line, w.st.Next+uint64(len(w.open)-1))) {
			win = nil
		}
		w.win = win
	}
	if w.items != nil && speaks(line.Type) {
		w.items = append(w.items, transcript.Item{Entry: line.ID})
	}
	w.head = place{id: line.ID, ord: -1, p: p}
	return p
}

// speaks reports whether an entry type can put a message into a context.
func speaks(typ string) bool {
	switch typ {
	case "message", "custom_message", "compaction", "branch_summary":
		return true
	}
	return false
}

func entryOf(l transcript.Line, ord uint64) transcript.Entry {
	return transcript.Entry{Ordinal: ord, ID: l.ID, ParentID: l.ParentID, Type: l.Type, Time: l.Time, Raw: l.Raw}
}

// settings are those in force after entries, where now is in force before them.
func settings(p transcript.Profile, now transcript.Settings, entries []transcript.Entry) transcript.Settings {
	if len(entries) == 0 {
		return now
	}
	return transcript.RestorePathWindow(p, -1, now, 0, entries).Context().Settings
}

// deferrable reports whether a session of pi's manners has nothing yet that is worth a file.
func (w *work) deferrable() bool {
	return w.st.Summary.Commit == "" && !slices.ContainsFunc(w.open, func(p *pending) bool {
		return transcript.Row(p.line, -1).Role == "assistant"
	})
}

// hold takes a deferred commit: its entries stay pending, its edit goes with the first real commit.
func (w *work) hold(list []*pending, e *edit) {
	for _, p := range list {
		p.held = true
	}
	w.held = w.held.then(e)
	w.version++
}

// journalHead says where a step with these entries leaves the head; nil = at the last, or where it stood.
// It is as far on the way to the working head as what is committed, or on its way, reaches.
func (w *work) journalHead(entries []*pending) *journal.Head {
	head := w.head.settled()
	for head.p != nil && !head.p.step {
		head = head.p.at.settled()
	}
	switch {
	case len(entries) > 0 && head.p == entries[len(entries)-1]:
		return nil
	case head.p != nil:
		return &journal.Head{ID: head.id, Ord: -1, Entry: head.p.e}
	case len(entries) == 0 && head.is(headOf(w.st)):
		return nil
	}
	return &journal.Head{ID: head.id, Ord: head.ord}
}

// edit is a change of the document.
type edit struct {
	state, manager []byte // nil = unchanged; "null" = cleared
	context        []transcript.Item
	setContext     bool
}

// then is the edit of doing e and then f.
func (e *edit) then(f *edit) *edit {
	if e == nil {
		return f
	}
	sum := *e
	if f.state != nil {
		sum.state = f.state
	}
	if f.manager != nil {
		sum.manager = f.manager
	}
	if f.setContext {
		sum.context, sum.setContext = f.context, true
	}
	return &sum
}

// apply makes the document after the edit.
func (e *edit) apply(d checkpoint.Document) checkpoint.Document {
	set := func(dst *[]byte, src []byte) {
		switch {
		case string(src) == "null":
			*dst = nil
		case src != nil:
			*dst = src
		}
	}
	set((*[]byte)(&d.State), e.state)
	set((*[]byte)(&d.Manager), e.manager)
	if e.setContext {
		d.Context = e.context
	}
	return d
}
