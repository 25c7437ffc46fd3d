package session

import (
	"slices"
	"sync/atomic"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/blob"
	"github.com/coppice-go/coppice/transcript/pathwindow"
	"github.com/coppice-go/coppice/transcript/tree"
)

// work is what the readers of a handle see: the acknowledged state, and behind it what was appended and
// is not acknowledged yet. Its owner holds Session.mu.
type work struct {
	st      *state.State
	open    []*Pending // not acknowledged, in append order
	ids     map[string]*Pending
	given   map[string]struct{} // ids that callers chose, of this handle's whole life
	head    Place
	win     *pathwindow.Window // at head; nil = has to be read
	base    *pathwindow.Window // at the head of st, where that is not st.Window
	items   []transcript.Item  // explicit context, appended entries included; nil = derived
	itemsAt int                // counts calls of SetContext
	unsaved bool               // items differ from the document's by a SetContext
	held    *Edit              // what deferred commits said
	flying  int                // steps that the journal has
	version uint64             // grows with every change
	profile transcript.Profile // of the working context
	bound   int                // its bytes, as Window.MaxBytes gives them
	wish    Options            // may want another profile or bound than the session has
}

// Pending is an entry that is not acknowledged, or was not when it was appended.
type Pending struct {
	e     *journal.Entry  // the journal's; its fields are read under the journal's lock alone
	line  transcript.Line // of the stored form
	at    Place           // where it hangs
	blobs []blob.Blob
	step  bool         // it is in a step that the journal has
	held  bool         // a deferred commit took it
	ord   atomic.Int64 // -1 until it is acknowledged
}

// Place is where an entry can grow: an acknowledged entry, a pending one, or, with ord -1, the place
// before every root.
type Place struct {
	ID  string
	Ord int64
	p   *Pending
}

// Settled is the place by its ordinal, if it has one by now.
func (p Place) Settled() Place {
	if p.p != nil {
		if ord := p.p.ord.Load(); ord >= 0 {
			return Place{ID: p.ID, Ord: ord}
		}
	}
	return p
}

// Is reports whether two places are one.
func (p Place) Is(q Place) bool { return p.p == q.p && p.Ord == q.Ord && p.ID == q.ID }

// HeadOf is the head of an acknowledged state.
func HeadOf(st *state.State) Place { return Place{ID: st.Summary.Entry, Ord: st.HeadOrd} }

// reset stands at an acknowledged state and forgets what is pending.
func (w *work) reset(st *state.State) {
	w.st, w.open, w.held = st, nil, nil
	clear(w.ids)
	w.unsaved = false
	w.settle()
}

// settle follows the state where nothing is pending.
func (w *work) settle() {
	w.version++
	w.head = HeadOf(w.st)
	w.win, w.base = w.window(), nil
	if !w.unsaved {
		w.items = slices.Clone(w.st.Doc.Context)
	}
}

// window is that of the acknowledged head, if the state has it as this handle wants it.
func (w *work) window() *pathwindow.Window {
	win := w.st.Window
	if win == nil {
		win = pathwindow.New(w.profile, w.bound)
	}
	w.profile, w.bound = win.Profile(), win.MaxBytes()
	if w.wish.Profile != "" {
		w.profile = w.wish.Profile
	}
	if w.wish.Bound != 0 {
		w.bound = pathwindow.New(w.profile, w.wish.Bound).MaxBytes()
	}
	if w.st.Window == nil || win.Profile() != w.profile || win.MaxBytes() != w.bound {
		return nil
	}
	return win
}

// adopt takes an acknowledged state over. Entries that it holds are no longer pending. The journal's lock
// is held, under which it marks them.
func (w *work) adopt(st *state.State) {
	if st == w.st {
		return
	}
	w.st = st
	w.version++
	w.open = slices.DeleteFunc(w.open, func(p *Pending) bool {
		if p.e.Done {
			p.ord.Store(int64(p.e.Ord))
			delete(w.ids, p.line.ID)
		}
		return p.e.Done
	})
	w.head = w.head.Settled()
	w.base = nil
	if len(w.open) == 0 {
		w.settle()
	}
}

// drop forgets pending entries, unless others hang on them: then they stay pending.
func (w *work) drop(list []*Pending) {
	gone := map[*Pending]bool{}
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
	w.open = slices.DeleteFunc(w.open, func(p *Pending) bool { return gone[p] })
	w.version++
	if len(w.open) == 0 {
		w.settle()
	}
}

// free are the pending entries that are in no step.
func (w *work) free() []*Pending {
	var list []*Pending
	for _, p := range w.open {
		if !p.step {
			list = append(list, p)
		}
	}
	return list
}

// add appends a pending entry at a place. The head moves to it if grow is set.
func (w *work) add(line transcript.Line, blobs []blob.Blob, at Place, grow bool) *Pending {
	at = at.Settled()
	e := &journal.Entry{Raw: line.Raw, Head: line, ID: line.ID, ParentID: line.ParentID, ParentOrd: at.Ord}
	if at.p != nil {
		e.Parent, e.ParentOrd = at.p.e, -1
	}
	p := &Pending{e: e, line: line, at: at, blobs: blobs}
	p.ord.Store(-1)
	w.open = append(w.open, p)
	w.ids[line.ID] = p
	w.version++
	if !grow {
		return p
	}
	if w.win != nil {
		win := w.win.Clone()
		if !at.Is(w.head) || !win.Push(line.Entry(w.st.Next+uint64(len(w.open)-1))) {
			win = nil
		}
		w.win = win
	}
	if w.items != nil && Speaks(line.Type) {
		w.items = append(w.items, transcript.Item{Entry: line.ID})
	}
	w.head = Place{ID: line.ID, Ord: -1, p: p}
	return p
}

// Speaks reports whether an entry type can put a message into a context.
func Speaks(typ string) bool {
	switch typ {
	case "message", "custom_message", "compaction", "branch_summary":
		return true
	}
	return false
}

// deferrable reports whether a session of pi's manners has nothing yet that is worth a file.
func (w *work) deferrable() bool {
	return w.st.Summary.Commit == "" && !slices.ContainsFunc(w.open, func(p *Pending) bool {
		return tree.Row(p.line, -1).Role == "assistant"
	})
}

// hold takes a deferred commit: its entries stay pending, its edit goes with the first real commit.
func (w *work) hold(list []*Pending, e *Edit) {
	for _, p := range list {
		p.held = true
	}
	w.held = w.held.then(e)
	w.version++
}

// ID is that of the entry.
func (p *Pending) ID() string { return p.line.ID }

// Entry is the entry as it is stored, without an ordinal.
func (p *Pending) Entry() transcript.Entry { return p.line.Entry(0) }

// Head says to a step that the head is to stand at the entry.
func (p *Pending) Head() *journal.Head { return &journal.Head{ID: p.line.ID, Ord: -1, Entry: p.e} }

// Head says to a step that the head is to stand at the place.
func (p Place) Head() *journal.Head {
	if p = p.Settled(); p.p != nil {
		return p.p.Head()
	}
	return &journal.Head{ID: p.ID, Ord: p.Ord}
}

// Anchor is the acknowledged place at or before p.
func (p Place) Anchor() Place {
	for p = p.Settled(); p.p != nil; {
		p = p.p.at.Settled()
	}
	return p
}
