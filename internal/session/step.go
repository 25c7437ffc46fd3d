package session

import (
	"errors"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/pathwindow"
)

// Wish says what a step does beside taking pending entries.
type Wish struct {
	Reason, Key string // Reason "" = turn, or compaction where one is among the entries
	Edit        *Edit  // nil = no change of the document
	Claim       bool
	Snapshot    string              // to be named by the commit
	Move        func(*journal.Step) // completes the step of a navigation, which brings its own document
}

// Flight is a step on its way through the journal. Settle ends it.
type Flight struct {
	Step *journal.Step
	From *state.State // acknowledged when the step was made

	list    []*Pending
	itemsAt int
	held    *Edit
	move    bool
}

// Take makes the step of those entries of list that are still in none.
func (h *Handle) Take(list []*Pending, o Wish) (*Flight, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, backend.ErrClosed
	}
	w := h.sync()
	list = slices.DeleteFunc(slices.Clone(list), func(p *Pending) bool { return p.step || p.ord.Load() >= 0 })
	f := &Flight{list: list, From: w.st, itemsAt: w.itemsAt, held: w.held, move: o.Move != nil}
	f.Step = &journal.Step{
		Reason: o.Reason, Key: o.Key, Claim: o.Claim, KeepBoth: h.o.KeepBoth && !o.Claim, Snapshot: o.Snapshot,
	}
	path := f.take()
	if o.Move != nil {
		o.Move(f.Step)
	} else {
		w.complete(f, w.held.then(o.Edit), path)
	}
	w.flying++
	return f, nil
}

// take puts the entries into the step, and gives them as entries.
func (f *Flight) take() []transcript.Entry {
	var path []transcript.Entry
	reason := "turn"
	for i, p := range f.list {
		p.step = true
		f.Step.Entries = append(f.Step.Entries, p.e)
		path = append(path, p.line.Entry(uint64(i)))
		if p.line.Type == "compaction" {
			reason = "compaction"
		}
		for _, b := range p.blobs {
			if len(b.Data) <= checkpoint.MaxBlob {
				if f.Step.Blobs == nil {
					f.Step.Blobs = map[string][]byte{}
				}
				f.Step.Blobs[b.Sum] = b.Data
			}
		}
	}
	if f.Step.Reason == "" {
		f.Step.Reason = reason
	}
	return path
}

// complete adds head, window and edit to a step that is no navigation.
func (w *work) complete(f *Flight, e *Edit, path []transcript.Entry) {
	if e == nil {
		e = &Edit{}
	}
	if w.items != nil || w.unsaved {
		whole := *e
		e = &whole
		e.context, e.setContext = w.encodeItems(), true
	}
	f.Step.Head = w.journalHead(f.list)
	if w.window() == nil {
		f.Step.Window = w.base
	}
	quiet := e.State == nil && e.Manager == nil && !e.setContext && w.flying == 0
	if p := w.profile; !quiet || Settings(p, w.st.Doc.Settings, path) != w.st.Doc.Settings {
		f.Step.Edit = func(d checkpoint.Document) checkpoint.Document {
			d = e.apply(d)
			d.Settings = Settings(p, d.Settings, path)
			return d
		}
	}
}

// encodeItems is the explicit context as the document keeps it: entries bring their message along where
// the window does not hold them.
func (w *work) encodeItems() []transcript.Item {
	in := map[string]bool{}
	if w.win != nil {
		for e := range w.win.All {
			in[e.ID] = true
		}
	}
	var list []transcript.Item
	for _, it := range w.items {
		if in[it.Entry] {
			it.Message = nil
		}
		list = append(list, it)
	}
	return list
}

// journalHead says where a step with these entries leaves the head; nil = at the last, or where it stood.
// It is as far on the way to the working head as what is committed, or on its way, reaches.
func (w *work) journalHead(entries []*Pending) *journal.Head {
	head := w.head.Settled()
	for head.p != nil && !head.p.step {
		head = head.p.at.Settled()
	}
	if len(entries) > 0 && head.p == entries[len(entries)-1] || len(entries) == 0 && head.Is(HeadOf(w.st)) {
		return nil
	}
	return head.Head()
}

// Settle takes over what became of a step.
func (h *Handle) Settle(f *Flight, res journal.Result, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.sync()
	w.flying--
	w.version++
	if err != nil {
		w.release(f, err)
		return
	}
	if w.held == f.held {
		w.held = nil
	}
	if w.itemsAt == f.itemsAt {
		w.unsaved = false
	}
	if res.Repeated {
		w.drop(f.list)
	}
	if res.Kept != "" || f.move {
		w.settle() // the head is where the commit left it, whatever was inserted meanwhile
	}
}

// SettleRebase takes over what became of the steps that the journal had kept, and of f, which may be nil.
func (h *Handle) SettleRebase(f *Flight, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.sync()
	if f != nil {
		w.flying--
	}
	if err != nil {
		if f != nil && !errors.Is(err, journal.ErrUnknown) { // the journal kept no step that it did not send
			for _, p := range f.list {
				p.step = false
			}
		}
		return
	}
	w.held, w.unsaved = nil, false
	w.drop(slices.DeleteFunc(slices.Clone(w.open), func(p *Pending) bool { return !p.step })) // known by their key
	w.settle()
}

// release makes the entries of a failed step free again, unless the journal kept it.
func (w *work) release(f *Flight, err error) {
	if Kept(err) {
		return
	}
	for _, p := range f.list {
		p.step = false
	}
}

// Kept reports whether the journal kept the step of a failed commit for Rebase.
func Kept(err error) bool {
	var f *store.Failure
	return errors.As(err, &f) && !errors.Is(err, journal.ErrReadOnly)
}

// Settings are those in force after entries, where now is in force before them.
func Settings(p transcript.Profile, now transcript.Settings, entries []transcript.Entry) transcript.Settings {
	if len(entries) == 0 {
		return now
	}
	return pathwindow.Restore(p, -1, now, 0, entries).Settings()
}

// Edit is a change of the document.
type Edit struct {
	State, Manager []byte // nil = unchanged; "null" = cleared

	context    []transcript.Item
	setContext bool
}

// then is the edit of doing e and then f.
func (e *Edit) then(f *Edit) *Edit {
	if e == nil {
		return f
	}
	sum := *e
	if f.State != nil {
		sum.State = f.State
	}
	if f.Manager != nil {
		sum.Manager = f.Manager
	}
	if f.setContext {
		sum.context, sum.setContext = f.context, true
	}
	return &sum
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
	if e.setContext {
		d.Context = e.context
	}
	return d
}
