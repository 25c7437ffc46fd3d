package transcript

import (
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// WorkingContext is the working context of a path, kept entry by entry: what a checkpoint holds so that a
// resumed session need not read its history. It holds, root first, the end of the path from where it can
// still reach the context: everything since the latest compaction and what that one keeps, cut at the front
// to a bound of bytes. Where it is cut depends on the path alone (working_cut.go), not on when it was
// computed: I16. Summaries always stay. Entries that never reach a context are held by their heads only,
// since a compaction may name them.
//
// Unbounded, its Context is exactly BuildContext of the whole path. Where a question needs entries that the
// window does not hold, it returns false; the caller then rebuilds it from the whole path with
// RestoreWorkingContext. Not safe for concurrent use.
type WorkingContext struct {
	profile Profile
	rules   rules
	max     int // bound of bytes; -1 = none
	base    Settings
	omitted int
	entries []Entry   // never changed in place below its length: clones share it
	full    [][]Entry // pushed since, freshMax at a time: clones share these too
	fresh   []Entry   // pushed since, at most freshMax: what a push on a clone has to copy
	bytes   int
	front   front // where the window begins, once it has passed its bound
}

// defaultWindowBytes limits the working context (docs/design.md, Limits).
const defaultWindowBytes = 4 << 20

// NewWorkingContext makes the working context of an empty path. maxBytes bounds the bytes of the lines held: 0 means 4
// MiB, negative no bound. Only summaries and the newest group may pass it.
func NewWorkingContext(p Profile, maxBytes int) *WorkingContext {
	switch {
	case maxBytes == 0:
		maxBytes = defaultWindowBytes
	case maxBytes < 0:
		maxBytes = -1
	}
	return &WorkingContext{profile: p, rules: rulesOf(p), max: maxBytes}
}

// RestoreWorkingContext makes a working context from what Base, Omitted and Entries of an earlier one gave, or from a
// whole path (zero base, omitted 0), which it cuts. It continues as the earlier one would have.
func RestoreWorkingContext(
	p Profile, maxBytes int, base Settings, omitted int, entries []Entry,
) *WorkingContext {
	w := NewWorkingContext(p, maxBytes)
	w.base, w.omitted = base, max(omitted, 0)
	var found DiagnosticList
	if settled := w.rules.followLeaves(entries, &found); len(settled) > 0 {
		entries = settled
	} else if len(entries) > 0 {
		return NewWorkingContext(p, maxBytes) // the head was moved before the first entry
	}
	w.entries = make([]Entry, len(entries))
	for i, e := range entries {
		w.entries[i] = headOnly(w.rules, e)
		w.bytes += len(w.entries[i].Raw)
	}
	if sel := w.rules.choose(w.entries); sel.boundary >= 0 && (sel.missing == "" || w.omitted == 0) {
		w.drop(sel.kept)
	}
	if w.omitted == 0 { // else it begins where it has to
		w.trim()
	}
	return w
}

// Push adds the next entry of the path, a child of the window's leaf. A leaf entry moves the leaf to its
// target where the profile has it so. false: the window does not hold enough to decide, as for a compaction
// that keeps entries from before it, or an entry with another parent; nothing has changed.
func (w *WorkingContext) Push(e Entry) bool {
	if !w.push(e) {
		return false
	}
	w.trim()
	return true
}

// PushAll adds entries that follow one another, and cuts once after the last. false: one of them could not be pushed,
// and the window is of no more use.
func (w *WorkingContext) PushAll(entries []Entry) bool {
	for _, e := range entries {
		if !w.push(e) {
			return false
		}
	}
	w.trim()
	return true
}

// push is Push without the cut.
func (w *WorkingContext) push(e Entry) bool {
	if leaf, ok := w.Leaf(); ok && e.ParentID != leaf.ID {
		return false
	}
	switch {
	case w.rules.moves && e.Type == "leaf":
		w.merge()
		return w.move(e)
	case w.rules.boundary(e):
		w.merge()
		from, ok := w.keptFrom(e)
		if !ok {
			return false
		}
		w.entries = append(w.entries, e)
		w.bytes += len(e.Raw)
		w.drop(from)
		w.omitted = 0 // whatever was cut off before cannot reach the context any more
		w.front = front{}
		return true
	}
	e = headOnly(w.rules, e)
	w.follow(e)
	if len(w.fresh) == freshMax {
		w.full, w.fresh = append(w.full[:len(w.full):len(w.full)], w.fresh), nil
	}
	w.fresh = append(w.fresh, e)
	w.bytes += len(e.Raw)
	return true
}

// freshMax bounds what a push on a clone copies.
const freshMax = 16

// merge makes one list of what the window holds, before it is changed otherwise than at its end.
func (w *WorkingContext) merge() {
	w.entries, w.full, w.fresh = w.Entries(), nil, nil
}

// keptFrom returns the index from which the new boundary keeps entries; len(w.entries) = none. false: that
// lies before what the window holds, or may.
func (w *WorkingContext) keptFrom(e Entry) (int, bool) {
	id, after, wanted := w.rules.keeps(e)
	if !wanted {
		return len(w.entries), true
	}
	for i := w.solid(); i < len(w.entries); i++ {
		if w.entries[i].ID == id {
			if after {
				i++
			}
			return i, true
		}
	}
	return len(w.entries), !w.cut()
}

// solid returns the index from which on no entry of the path is missing between those held.
func (w *WorkingContext) solid() int {
	i := len(w.entries) - 1
	for i > 0 && w.entries[i].ParentID == w.entries[i-1].ID {
		i--
	}
	return max(i, 0)
}

// cut reports whether the window lacks entries of the path in front of its leaf, as far as it knows.
func (w *WorkingContext) cut() bool {
	return w.omitted > 0 || len(w.entries) > 0 && (w.entries[0].ParentID != "" || w.solid() > 0)
}

// latest returns the index of the latest boundary held; -1 = none.
func (w *WorkingContext) latest() int {
	for i := len(w.entries) - 1; i >= 0; i-- {
		if w.rules.boundary(w.entries[i]) {
			return i
		}
	}
	return -1
}

// move follows a leaf entry.
func (w *WorkingContext) move(e Entry) bool {
	target := rawjson.Text(w.rules.value(e.Raw, "targetId", "target_id"))
	if target == "" {
		*w = *NewWorkingContext(w.profile, w.max)
		return true
	}
	for i := len(w.entries) - 1; i >= 0; i-- {
		if w.entries[i].ID == target {
			return w.rewind(i)
		}
	}
	if w.cut() {
		return false
	}
	w.entries = append(w.entries, e) // it leads nowhere: BuildContext reports it
	w.bytes += len(e.Raw)
	w.front = front{}
	return true
}

// Rewind cuts the path back so that the entry with this ordinal is the leaf. false: the window does not hold
// what the context was on there; nothing has changed.
func (w *WorkingContext) Rewind(ordinal uint64) bool {
	w.merge()
	for i := len(w.entries) - 1; i >= 0; i-- {
		if w.entries[i].Ordinal == ordinal {
			return w.rewind(i)
		}
	}
	return false
}

func (w *WorkingContext) rewind(i int) bool {
	if i == len(w.entries)-1 {
		return true
	}
	// What the bound cut off might fit again, and what the latest boundary let go is needed before it.
	if w.omitted > 0 || w.cut() && w.latest() > i {
		return false
	}
	for _, e := range w.entries[i+1:] {
		w.bytes -= len(e.Raw)
	}
	w.entries = w.entries[: i+1 : i+1]
	w.front = front{}
	return true
}

// Entries returns what the window holds, root first. It may not be a copy: it must not be changed.
func (w *WorkingContext) Entries() []Entry {
	if len(w.fresh) == 0 {
		return w.entries[:len(w.entries):len(w.entries)]
	}
	all := make([]Entry, 0, w.Len()+1)
	for part := range w.parts {
		all = append(all, part...)
	}
	return all
}

// All returns what the window holds, root first, and copies none of it.
func (w *WorkingContext) All(yield func(Entry) bool) {
	for part := range w.parts {
		for _, e := range part {
			if !yield(e) {
				return
			}
		}
	}
}

// Lines returns the ordinals of what the window holds, root first, and its lines.
func (w *WorkingContext) Lines() (ords []uint64, lines [][]byte) {
	ords, lines = make([]uint64, 0, w.Len()), make([][]byte, 0, w.Len())
	for part := range w.parts {
		for i := range part {
			ords, lines = append(ords, part[i].Ordinal), append(lines, part[i].Raw)
		}
	}
	return ords, lines
}

// Len counts the entries that the window holds.
func (w *WorkingContext) Len() int { return len(w.entries) + len(w.full)*freshMax + len(w.fresh) }

// parts returns the lists that make up the window, oldest first. Nothing is full where nothing is fresh.
func (w *WorkingContext) parts(yield func([]Entry) bool) {
	if !yield(w.entries) {
		return
	}
	for _, part := range w.full {
		if !yield(part) {
			return
		}
	}
	yield(w.fresh)
}

// Base returns the settings in force before the first entry held.
func (w *WorkingContext) Base() Settings { return w.base }

// Omitted counts the entries whose messages belong to the context and were cut off by the bound.
func (w *WorkingContext) Omitted() int { return w.omitted }

// Leaf returns the last entry of the path. false: the path is empty.
func (w *WorkingContext) Leaf() (Entry, bool) {
	for _, list := range [...][]Entry{w.fresh, w.entries} {
		if n := len(list); n > 0 {
			return list[n-1], true
		}
	}
	return Entry{}, false
}

// Bytes is the length of all lines held.
func (w *WorkingContext) Bytes() int { return w.bytes }

// Clone returns a second window that goes its own way. It copies no entries.
func (w *WorkingContext) Clone() *WorkingContext {
	c := *w
	c.entries = w.entries[:len(w.entries):len(w.entries)]
	c.fresh = w.fresh[:len(w.fresh):len(w.fresh)]
	return &c
}

// Context returns BuildContext of the whole path, cut to the bound.
func (w *WorkingContext) Context() Context {
	b := contextBuilder{rules: w.rules}
	return b.build(w.Entries(), w.base, w.omitted)
}

// Profile is the rules by which the window builds its context.
func (w *WorkingContext) Profile() Profile { return w.profile }

// MaxBytes is the window's bound, as RestoreWorkingContext takes it; -1 = none.
func (w *WorkingContext) MaxBytes() int { return w.max }

// SettingsAfter returns the settings in force after entries of a path, where now is in force before them.
func SettingsAfter(p Profile, now Settings, path []Entry) Settings {
	rules := rulesOf(p)
	turns := func(e Entry) bool { return e.Type == "leaf" || rules.boundary(e) }
	if slices.ContainsFunc(path, turns) {
		return RestoreWorkingContext(p, -1, now, 0, path).Settings()
	}
	return rules.settings(path, now)
}

// Settings returns the settings in force at the window's leaf. It reads from the end until each is known.
func (w *WorkingContext) Settings() Settings {
	if w.rules.explicit { // an explicit model outranks what comes after it
		return w.rules.settings(w.Entries(), w.base)
	}
	now := w.base
	for part := range w.parts {
		now = w.rules.settings(part, now)
	}
	return now
}
