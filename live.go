package coppice

import (
	"slices"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// liveState is what the readers of a handle see: the state of the journal, and what was computed of it. Guarded by
// Session.mu.
type liveState struct {
	journal.Sight
	win     *transcript.WorkingContext // at winAt, but for later; nil = has to be read
	later   []laterEntry               // since win: only who asks for the window has it grow
	winAt   journal.Place
	base    *transcript.WorkingContext // at the state's head, where State.Window is not what this handle wants
	items   []transcript.Item          // explicit context, appended entries included; nil = derived
	itemsAt int                        // counts calls of SetContext
	// itemsSeen is State.Next when SetContext was called: an amendment from there on is not in items.
	itemsSeen uint64
	unsaved   bool               // items differ from the document's by a SetContext
	held      *docEdit           // of deferred commits
	doubt     *prepared          // a turn of unknown outcome; nil = none
	profile   transcript.Profile // of the working context
	bound     int                // its bytes, as in Window.MaxBytes
	wish      *journal.Config    // may want another profile or bound than the session has
}

// more reports whether the handle has more than entries that is not stored: a context, or what deferred commits hold.
func (v *liveState) more() bool { return v.unsaved || v.held != nil }

// sync brings the view up to date; s.mu is held.
func (s *Session) sync() *liveState {
	now := s.j.Sight()
	if now.Version == s.v.Version && s.v.State != nil {
		return &s.v
	}
	moved := now.State != s.v.State || now.Tip != s.v.Tip
	s.v.adopt(now)
	if moved {
		close(s.wake)
		s.wake = make(chan struct{})
	}
	return &s.v
}

// look calls f with what the view is now.
func (s *Session) look(f func(v *liveState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.sync())
}

// adopt takes over the state that the journal has now.
func (v *liveState) adopt(now journal.Sight) {
	old := v.Sight
	v.Sight = now
	if now.State != old.State {
		v.base = nil
	}
	if now.Head.Is(journal.PlaceOf(now.State)) {
		v.followState()
		return
	}
	if now.Tip != old.Tip && !v.unsaved {
		v.items = broughtBy(v.items, now.Tip.Doc.Context)
	}
	if old.Tip != nil && now.Tip != old.Tip && now.Tip.Amended > old.Tip.Next {
		v.setWindow(nil, v.winAt) // it lacks the amendment
	}
	for i, e := range now.Open {
		if e.Position() >= old.Pos {
			v.push(e, now.State.Next+uint64(i))
		}
	}
	if !v.winAt.Is(now.Head) {
		v.setWindow(nil, now.Head)
	}
}

// push follows an entry that was appended.
func (v *liveState) push(e *journal.Entry, ord uint64) {
	own := e.Head.Entry(ord)
	_, amends := own.Amendment()
	if e.Aside && !amends {
		return
	}
	if v.win != nil {
		if !e.Aside && !e.At().Is(v.winAt) {
			v.setWindow(nil, v.winAt)
		} else if v.later = append(v.later, laterEntry{own, e.Aside}); len(v.later) == laterMax {
			v.grown()
		}
	}
	if e.Aside {
		return
	}
	v.winAt = journal.PlaceAt(e)
	if v.items != nil && speaks(e.Head.Type) {
		v.items = append(v.items, transcript.Item{Entry: e.ID})
	}
}

// laterEntry is between a window and the place up to which it has to be read; aside: it is an amendment off the path.
type laterEntry struct {
	transcript.Entry
	aside bool
}

// laterMax bounds the entries that wait for the window to grow: with several writers the head may never be the
// acknowledged one.
const laterMax = 256

// setWindow sets the window and its place.
func (v *liveState) setWindow(win *transcript.WorkingContext, at journal.Place) {
	clear(v.later)
	v.win, v.winAt, v.later = win, at, v.later[:0]
}

// grown returns the window at winAt; nil = has to be read.
func (v *liveState) grown() *transcript.WorkingContext {
	if len(v.later) == 0 {
		return v.win
	}
	win := v.win.Clone()
	for _, e := range v.later {
		ok := e.aside || win.Push(e.Entry)
		if a, amends := e.Amendment(); ok && amends {
			_, ok = win.Amend(a)
		}
		if !ok {
			win = nil
			break
		}
	}
	v.setWindow(win, v.winAt)
	return win
}

// followState sets window and items to those of the acknowledged state, when its head is the parent of the next entry.
func (v *liveState) followState() {
	v.begin(v.window())
	v.base = nil
	if !v.unsaved {
		v.items = broughtBy(v.State.Doc.Context, v.Tip.Doc.Context)
	}
}

// broughtBy returns items with the messages that those of the same entries have in a newer document.
func broughtBy(items, newer []transcript.Item) []transcript.Item {
	if items == nil {
		return nil
	}
	have := map[string]transcript.Item{}
	for _, it := range newer {
		have[it.Entry] = it
	}
	items = slices.Clone(items)
	for i, it := range items {
		if now, ok := have[it.Entry]; ok && it.Entry != "" && len(it.Message) > 0 {
			items[i] = now
		}
	}
	return items
}

// amendedSince reports whether a state that is newer than the handle's own may have amendments that the window of its
// own lacks.
func (v *liveState) amendedSince() bool { return v.Tip != v.State && v.Tip.Amended > v.State.Next }

// begin sets the window of the acknowledged head, to which pending amendments are still to be applied.
func (v *liveState) begin(win *transcript.WorkingContext) {
	v.setWindow(win, v.Head)
	for i, e := range v.Open {
		own := e.Head.Entry(v.State.Next + uint64(i))
		if _, ok := own.Amendment(); ok && e.Aside && win != nil {
			v.later = append(v.later, laterEntry{own, true})
		}
	}
}

// window is that of the acknowledged head, if the state has it as this handle wants it.
func (v *liveState) window() *transcript.WorkingContext {
	win := v.State.Window
	if win == nil {
		win = v.State.Rules().Empty()
	}
	v.profile, v.bound = win.Profile(), win.MaxBytes()
	if v.wish.Profile != "" {
		v.profile = v.wish.Profile
	}
	if v.wish.MaxBytes != 0 {
		v.bound = transcript.NewWorkingContext(v.profile, v.wish.MaxBytes).MaxBytes()
	}
	if v.State.Window == nil || v.amendedSince() || win.Profile() != v.profile || win.MaxBytes() != v.bound {
		return nil
	}
	return win
}

// encodeItems is the explicit context as the document keeps it: entries bring their message along where
// the window does not hold them.
func (v *liveState) encodeItems() []transcript.Item {
	in := map[string]bool{}
	if win := v.grown(); win != nil {
		for e := range win.All {
			in[e.ID] = true
		}
	}
	var list []transcript.Item
	for _, it := range v.items {
		if in[it.Entry] {
			it.Message = nil
		}
		list = append(list, it)
	}
	return list
}

// speaks reports whether an entry type can put a message into a context.
func speaks(typ string) bool {
	switch typ {
	case "message", "custom_message", "compaction", "branch_summary":
		return true
	}
	return false
}

// deferrable reports whether a session that uses pi's deferred creation has no assistant message yet, these drafts
// included.
func (s *Session) deferrable(drafts []transcript.Draft) (ok bool) {
	for i := range drafts {
		line, err := drafts[i].Line("x", "", s.cfg.Now())
		if err != nil {
			return false
		}
		head, err := transcript.ParseLine(line)
		if err != nil || transcript.RowOf(head, -1).Role == "assistant" {
			return false
		}
	}
	s.look(func(v *liveState) { ok = v.waits() })
	return ok
}

// waits reports whether nothing of the session is worth a file yet.
func (v *liveState) waits() bool {
	return v.State.Summary.Commit == "" && !slices.ContainsFunc(v.Open, func(e *journal.Entry) bool {
		return transcript.RowOf(e.Head, -1).Role == "assistant"
	})
}

// hold defers a commit: the entries stay pending, and the edit goes with the first real commit.
func (s *Session) hold(e *docEdit) (deferred bool) {
	s.look(func(v *liveState) {
		if deferred = v.waits(); deferred {
			v.held = v.held.then(e)
			s.j.Defer(v.Pos)
		}
	})
	return deferred
}

// state is the acknowledged state.
func (s *Session) state() (st *state.State) {
	s.look(func(v *liveState) { st = v.State })
	return st
}

// document returns the acknowledged one, with the changes of deferred commits.
func (s *Session) document() (doc checkpoint.Document) {
	s.look(func(v *liveState) {
		if doc = v.State.Doc; v.held != nil {
			doc = v.held.apply(doc)
		}
	})
	return doc
}

// moved returns the newest state that the handle knows, or what another handle of the store left since, and a channel
// that is closed when either moves or the handle is closed.
func (s *Session) moved() (st *state.State, moved <-chan struct{}) {
	s.look(func(v *liveState) { st, moved = newer(v.Tip, s.told), s.wake })
	return st, moved
}
