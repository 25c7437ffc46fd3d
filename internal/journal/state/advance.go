package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// Advance returns the state after a commit from the state before it. Own commits and those read from the
// log go through it alike. The slices of st are extended in place: only the newest state of a handle is
// ever advanced, and a state never looks past its own lengths.
func Advance(st *State, c *segment.Commit, given Given) (*State, error) {
	next := *st
	next.rules = st.Rules()
	rec := &c.Record
	raw := c.Doc
	if raw == nil || rec.Patch == nil { // a patch that was composed was applied already
		var err error
		if raw, err = DocumentAfter(st.DocumentOfLine(), rec); err != nil {
			return nil, err
		}
	}
	if b := rec.Base; b != nil && len(st.Lineage) == 0 {
		next.rebase(b)
	}
	lines, entries, err := segment.Place(next.Next, next.LineHead(), c)
	if err != nil {
		return nil, err
	}
	next.Next += uint64(len(lines))
	if Kept(rec) {
		next.takeKept(rec, raw)
		if rec.Reason == ReasonInfo || rec.Reason == ReasonHold { // these are the session's, not a branch's
			next.inform(c.Record.Reason, entries)
		}
	} else if err := next.move(st, c, given.Window, raw, lines, entries); err != nil {
		return nil, err
	}
	next.count(rec, entries, lines)
	next.amend(entries, given, rec.Outline != nil)
	next.branch(st, rec)
	next.Tail = append(next.Tail, lines...)
	size := int64(0)
	for _, l := range lines {
		size += int64(len(l.Raw)) + 1
	}
	next.TailBytes += size
	if n := len(next.Plain); n > 0 {
		next.Plain = slices.Clone(next.Plain)
		a := &next.Plain[n-1]
		a.Bytes, a.Count, a.Self = a.Bytes+size, a.Count+uint64(len(lines)), rec.Self
	}
	return &next, nil
}

// Given is the window from which the new head of a commit grows, where the composer has it and the state before has
// not, or has another.
type Given struct {
	Window  *transcript.WorkingContext
	Amended bool // the amendments of the commit are in it
}

// Kept reports whether a commit line keeps a losing turn apart from the session's line: it names its own branch as the
// one of the turn.
func Kept(rec *checkpoint.Record) bool { return rec.Kept != "" && rec.Kept == rec.Branch }

// keyframeDue is a number of commits since the last keyframe at which a document goes whole, whatever the limit is.
const keyframeDue = 1 << 20

// takeKept takes a kept line over. It moves neither head nor document: a write that stops after it does no harm. The
// next line has its document whole, since readers that start here do not have the kept line's.
func (st *State) takeKept(rec *checkpoint.Record, doc json.RawMessage) {
	st.AfterKept, st.lineHead, st.lineDoc = true, rec.HeadOrd, doc
	st.SinceKey = keyframeDue
}

// move takes a line of the session over: head, document, window and summary.
func (st *State) move(before *State, c *segment.Commit, window *transcript.WorkingContext, doc []byte, lines []Line,
	entries []transcript.Entry,
) error {
	rec := &c.Record
	st.AfterKept, st.lineDoc, st.lineHead = false, nil, rec.HeadOrd
	if st.SinceKey++; rec.Doc != nil {
		st.SinceKey = 0
	}
	if !bytes.Equal(doc, before.DocJSON) || before.Summary.Commit == "" {
		d, err := checkpoint.DecodeDocument(doc)
		if err != nil {
			return fmt.Errorf("commit %s: %w", rec.ID, err)
		}
		st.Doc, st.DocJSON = d, json.RawMessage(doc)
	}
	st.HeadOrd = rec.HeadOrd
	st.follow(before, window, lines, entries)
	sum := &st.Summary
	sum.Entry, sum.Branch, sum.Reason = rec.Head, rec.Branch, rec.Reason
	st.inform(rec.Reason, entries)
	st.describe(before, rec, entries)
	return nil
}

// inform takes over title, working directory and metadata. Only a commit of the reason hold changes a hold.
func (st *State) inform(reason string, entries []transcript.Entry) {
	for i := range entries {
		if title, ok := entries[i].Title(); ok {
			st.Summary.Title = checkpoint.CutText(title)
		}
		if cwd, ok := entries[i].Cwd(); ok {
			st.Summary.Cwd = checkpoint.CutText(cwd)
		}
		if change, ok := entries[i].Meta(); ok {
			if _, hold := change[checkpoint.MetaHold]; hold && reason != ReasonHold {
				change = maps.Clone(change)
				delete(change, checkpoint.MetaHold)
			}
			st.changeMeta(change)
		}
	}
}

// amend applies the amendments of a commit, those of a kept line too, to what the window shows, and to the preview. The
// window becomes nil where more of its path is needed to know where it begins; then an outline of the commit counts.
func (st *State) amend(entries []transcript.Entry, given Given, outlined bool) {
	w, shows, known := st.Window, false, true
	for i := range entries {
		a, ok := entries[i].Amendment()
		if !ok {
			continue
		}
		if st.Amended = entries[i].Ordinal + 1; a.First {
			st.Summary.First = transcript.RowOf(transcript.Line{
				Type: entries[i].Type, ID: a.ID, Raw: entries[i].Raw,
			}, codec.NoParent).Preview
		}
		switch {
		case w == nil:
		case given.Amended:
			shows = shows || holds(w, a.Target)
		default:
			w = w.Clone()
			changed, ok := w.Amend(a)
			shows, known = shows || changed, known && ok
		}
	}
	if shows && (known || !outlined) {
		kept := w.Entries()
		st.Summary.Preview, _ = newest(kept[max(0, len(kept)-lookBack):])
	}
	if st.Window = w; !known {
		st.Window = nil
	}
}

// holds reports whether a window holds an entry.
func holds(w *transcript.WorkingContext, id string) bool {
	for e := range w.All {
		if e.ID == id {
			return true
		}
	}
	return false
}

// DocumentOfLine returns the document of the newest line, to which the next one's patch applies. It is the session's
// but for lines of kept turns.
func (st *State) DocumentOfLine() json.RawMessage {
	if st.AfterKept && st.lineDoc != nil {
		return st.lineDoc
	}
	return st.DocJSON
}

// LineHead returns the ordinal of the head that the newest line names: the session's, but for a kept line.
func (st *State) LineHead() int64 {
	if st.AfterKept {
		return st.lineHead
	}
	return st.HeadOrd
}

// DocumentAfter returns the encoded document that a record carries, whole, as a patch of the one before, or as it was.
func DocumentAfter(before []byte, rec *checkpoint.Record) (raw []byte, err error) {
	raw = before
	switch {
	case rec.Doc != nil:
		raw = rec.Doc
	case rec.Patch != nil:
		if raw, err = checkpoint.ApplyPatch(before, rec.Patch, rec.Sorted); err != nil {
			return nil, fmt.Errorf("commit %s: %w", rec.ID, err)
		}
	}
	if codec.CRC(raw) != rec.DocCRC {
		return nil, fmt.Errorf("commit %s: document: %w", rec.ID, codec.ErrChecksum)
	}
	return raw, nil
}

// rebase takes the fields of the whole session from a keyframe, if nothing earlier is known.
func (st *State) rebase(b *checkpoint.Base) {
	st.Branches = slices.Clone(b.Branches)
	st.Summary.Title, st.Summary.Cwd = checkpoint.CutText(b.Title), checkpoint.CutText(b.Cwd)
	st.Summary.Parent = b.Parent
	st.Summary.Created, st.Summary.Entries, st.Summary.Bytes = b.Created, b.Entries, b.Bytes
	st.Original, st.Claimed, st.Summary.First, st.Source = b.Original, b.Claimed, b.First, b.Source
	st.Summary.Preview, st.Summary.Status = b.Outline.Preview, b.Outline.Status
	st.rules = RulesOf(b, st.rules)
	st.Since = b.Since
	if st.Summary.Meta = nil; len(st.Header) > 0 {
		_, st.Summary.Meta = checkpoint.HeaderRelation(st.Header)
	}
	st.Meta, st.Summary.Meta = b.Meta, b.Meta.Apply(st.Summary.Meta)
}

// beginAt takes the head on which a keyframe's commit was made, where nothing earlier is known: the branch that it was
// on names it.
func (st *State) beginAt(b *checkpoint.Base) {
	st.HeadOrd = b.HeadOrd
	for i := range b.Branches {
		if b.Branches[i].Ord == b.HeadOrd {
			st.Summary.Entry = b.Branches[i].Head
		}
	}
}

// follow moves the window along to the new head; it becomes nil where that takes more than is in memory.
// given is the window from which the head grows, where the composer has it.
func (st *State) follow(before *State, given *transcript.WorkingContext, lines []Line, entries []transcript.Entry) {
	if given == nil && len(entries) == 0 && st.HeadOrd == before.HeadOrd {
		return
	}
	onPath, from := st.grown(before, lines, entries)
	w := before.Window
	switch {
	case given != nil:
		w = given
	case w != nil && LeafOf(w) != from:
		w = rewound(w, from)
	}
	st.Window = extended(w, onPath)
}

// extended is w with more entries of its path; nil where that takes more than it holds.
func extended(w *transcript.WorkingContext, onPath []transcript.Entry) *transcript.WorkingContext {
	if w == nil || len(onPath) == 0 {
		return w
	}
	w = w.Clone()
	if !w.PushAll(onPath) {
		return nil
	}
	return w
}

// grown returns the commit's entries on the way to the new head, root first, and the ordinal of the entry
// from which they grow: the head itself where it is none of them.
func (st *State) grown(
	before *State, lines []Line, entries []transcript.Entry,
) (onPath []transcript.Entry, from int64) {
	from = st.HeadOrd
	for from >= int64(before.Next) && from < int64(before.Next)+int64(len(entries)) {
		i := int(from - int64(before.Next))
		onPath = append(onPath, entries[i])
		if lines[i].Parent >= from {
			return nil, -2 // a forward reference: not from what is in memory
		}
		from = lines[i].Parent
	}
	slices.Reverse(onPath)
	return onPath, from
}

// LeafOf is the ordinal at which a window ends, -1 for an empty one.
func LeafOf(w *transcript.WorkingContext) int64 {
	if e, ok := w.Leaf(); ok {
		return int64(e.Ordinal)
	}
	return -1
}

// rewound is w cut back until it ends at ord; nil where that is not possible from what it holds.
func rewound(w *transcript.WorkingContext, ord int64) *transcript.WorkingContext {
	switch {
	case ord == -1:
		return transcript.NewWorkingContext(w.Profile(), w.MaxBytes())
	case ord < -1:
		return nil
	}
	back := w.Clone()
	if !back.Rewind(uint64(ord)) {
		return nil
	}
	return back
}

// count updates what every line counts for, also one of a kept turn: seq, lineage, keys, sizes, the chain.
func (st *State) count(rec *checkpoint.Record, entries []transcript.Entry, lines []Line) {
	sum := &st.Summary
	sum.Seq, sum.Epoch, sum.Commit, sum.Updated = rec.Seq, rec.Epoch, rec.ID, rec.Time
	if rec.Seq == 0 && sum.Created.IsZero() {
		sum.Created = rec.Time
	}
	if sum.Entries == 0 { // later, a state that was built from the end of a log could not know
		sum.First = first(entries)
	}
	sum.Entries += uint64(len(entries))
	for _, l := range lines {
		sum.Bytes += int64(len(l.Raw)) + 1
	}
	if rec.Reason == ReasonDelete {
		sum.Tombstone = true
	}
	st.Lineage = append(st.Lineage, rec.Commit())
	if n := len(st.Lineage) - lineageMax; n > 0 {
		st.Lineage = st.Lineage[n:]
	}
	if rec.Key != "" {
		own := lines[len(lines)-1].Ord
		st.Keys = checkpoint.AppendKey(st.Keys,
			checkpoint.KeyRef{Hash: checkpoint.KeyHash(rec.Key), Seq: rec.Seq, Ord: own})
	}
	if rec.Claim {
		st.Claimed = rec.Seq
	}
	if rec.Erase {
		st.erase(rec, entries)
	}
	if rec.Original != "" {
		st.Original = rec.Original
	}
	if rec.Source != nil {
		st.Source = rec.Source
	}
	st.Self, st.Opening, st.Pending = rec.Self, false, ""
	st.LastLine = int64(len(lines[len(lines)-1].Raw)) + 1
}

// branch renames branches, and moves the names of the head and of a line that is left.
func (st *State) branch(before *State, rec *checkpoint.Record) {
	table := slices.Clone(before.Branches)
	if len(before.Lineage) == 0 && rec.Base != nil {
		table = slices.Clone(rec.Base.Branches)
	}
	set := func(name, head string, ord int64) {
		for i := range table {
			if table[i].Name == name {
				table[i].Head, table[i].Ord = head, ord
				return
			}
		}
		table = append(table, checkpoint.BranchRef{Name: name, Head: head, Ord: ord})
	}
	table = renamed(table, rec.Names)
	if rec.Kept != "" && rec.Kept != rec.Branch {
		set(rec.Kept, before.Summary.Entry, before.HeadOrd)
	}
	set(rec.Branch, rec.Head, rec.HeadOrd)
	st.Branches = table
}

// renamed changes names in a table of branches, which it owns.
func renamed(table []checkpoint.BranchRef, names []checkpoint.Rename) []checkpoint.BranchRef {
	for _, n := range names {
		at := slices.IndexFunc(table, func(b checkpoint.BranchRef) bool { return b.Name == n.From })
		taken := slices.ContainsFunc(table, func(b checkpoint.BranchRef) bool { return b.Name == n.To })
		switch {
		case at < 0 || taken:
		case n.To == "":
			table = slices.Delete(table, at, at+1)
		default:
			table[at].Name = n.To
		}
	}
	return table
}

// Follows advances st by a commit that must be the one after it.
func (st *State) Follows(c *segment.Commit) (*State, error) {
	want := st.Summary.Seq + 1
	if st.Summary.Commit == "" {
		want = 0
		if c.Record.Base != nil {
			want = c.Record.Seq
		}
	}
	if c.Record.Seq != want || (st.Summary.Commit != "" && c.Record.Parent != st.Summary.Commit) ||
		c.Record.Epoch < st.Summary.Epoch {
		return nil, fmt.Errorf("commit %s of seq %d and epoch %d after seq %d: %w", c.Record.ID, c.Record.Seq,
			c.Record.Epoch, st.Summary.Seq, codec.ErrFormat)
	}
	return Advance(st, c, Given{})
}

// Opened returns the state before the first commit of a segment, as far as that commit determines it. data are the
// bytes after the opening, or is as in RulesOf. first is that commit; nil = nothing is committed to the segment.
func Opened(session string, o *segment.Opening, data []byte, or Rules) (st *State, first *checkpoint.Record) {
	p := &o.Prelude
	st = &State{HeadOrd: -1, Next: p.First, Key: p.Key, Self: o.Self(), Opening: true}
	st.Begins(o.Header)
	st.Summary.ID = session
	segment.Scan(data, p.Key, st.Self, func(c segment.Commit) bool {
		first = &c.Record
		if first.Base != nil {
			st.beginAt(first.Base)
		}
		if p.First == 0 {
			st.Window = RulesOf(first.Base, or).Empty()
		}
		return false
	})
	return st, first
}

// Play advances st over the commits in data, the bytes after it in its segment. A losing turn's line counts too: it
// moves nothing. next names the segment that the last commit rolls over to, end is the offset after it. If a commit
// does not follow, the error is of the one that ends at end.
func (st *State) Play(data []byte) (now *State, next string, end int, err error) {
	now = st
	good := segment.Scan(data, st.Key, st.Self, func(c segment.Commit) bool {
		advanced, aerr := now.Follows(&c)
		if aerr != nil {
			end, err = c.End, aerr
			return false
		}
		now, next = advanced, c.Record.Next
		now.Unsure = nil // its writer confirmed all before it
		now.Durable = max(now.Durable, c.Record.Synced)
		return next == ""
	})
	if err == nil {
		end = good
	}
	return now, next, end, err
}
