package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// Composer makes commit lines, one after the other, on top of a state: what one PUT or one append makes durable. It
// does no I/O. A line that cannot be composed leaves no trace.
type Composer struct {
	Next     *state.State // after all lines
	Bytes    []byte       // all lines, each with its newline
	Warnings []string
	Size     int // bytes of the object or the append that carries them
	Lines    []ComposedLine
	Body     []byte // replace: the object that was sent

	cfg      *Config
	ords     map[*Entry]uint64 // of the entries in the lines
	Epoch    uint64
	Synced   int64
	kept     string // name of the losing line composed last
	keptHead int64  // its head
	Settle   bool   // replace: everything is to be sealed and folded first
	Anew     bool   // replace: the id index is to be made anew first
	MustRoll bool   // append: this batch closes the segment, whatever its size
}

// ComposedLine is a commit line with its entries.
type ComposedLine struct {
	Record *checkpoint.Record
	After  *state.State // after the line
	End    int          // in Composer.Bytes
}

// NewComposer begins a batch on base; fresh: it takes the next epoch.
func NewComposer(cfg *Config, base *state.State, fresh bool) *Composer {
	epoch := base.Summary.Epoch
	if fresh {
		epoch++
	}
	c := &Composer{cfg: cfg, Epoch: epoch, Synced: base.Durable, Next: base, ords: map[*Entry]uint64{}, keptHead: -2}
	if base.Pending != "" {
		c.Warnings = append(c.Warnings, "moved uncommitted bytes after the last commit to "+base.Pending)
	}
	return c
}

// origin is what a commit line grows from: head, branch and document.
type origin struct {
	ord    int64
	entry  string
	branch string
	doc    checkpoint.Document
	json   json.RawMessage
}

func originOf(st *state.State) origin {
	return origin{ord: st.HeadOrd, entry: st.Summary.Entry, branch: st.Summary.Branch, doc: st.Doc, json: st.DocJSON}
}

// Add composes the line of one step with its own entries, on the session's head.
func (c *Composer) Add(step *Step) error {
	return c.add(step, step.Entries, originOf(c.Next), false)
}

// Roll composes the commit that closes the active segment; the segment named next follows it.
func (c *Composer) Roll(next string) error {
	return c.Add(&Step{Reason: state.ReasonRoll, next: next})
}

// add composes one commit line. kept: it is a losing turn's, apart from the session's line. A session that does not
// exist yet gets its commit 0 first.
func (c *Composer) add(step *Step, entries []*Entry, from origin, kept bool) error {
	before := *c
	if c.Next.Summary.Tombstone { // Delete raced with this caller: nothing grows on a deleted session
		return &backend.Error{
			Op: "commit", Key: c.Next.Summary.ID, Outcome: backend.NotApplied,
			Err: fmt.Errorf("the session is deleted: %w", fs.ErrNotExist),
		}
	}
	if c.Next.Summary.Commit == "" && step.Reason != state.ReasonCreate {
		if err := c.line(&Step{Reason: state.ReasonCreate}, nil, originOf(c.Next), false); err != nil {
			*c = before
			return err
		}
		if !kept {
			from = originOf(c.Next)
		}
	}
	err := c.line(step, entries, from, kept)
	if err != nil {
		*c = before
	}
	return err
}

func (c *Composer) line(step *Step, entries []*Entry, from origin, kept bool) error {
	st := c.Next
	id, now, err := c.newID()
	if err != nil {
		return err
	}
	rec := &checkpoint.Record{
		ID: id, Time: now, Seq: st.Summary.Seq + 1, Parent: st.Summary.Commit, Epoch: c.Epoch,
		Writer: cmp.Or(step.Writer, c.cfg.Writer), Reason: reasonOf(step, entries), Key: step.Key, Digest: step.Digest,
		Kept: step.Kept, Claim: step.Claim && !kept,
		Original: step.Original, Snapshot: step.Snapshot, Next: step.next, Entries: len(entries), Synced: c.Synced,
		Torn: st.Pending, Source: step.Source,
	}
	if st.Summary.Commit == "" {
		rec.Seq = 0
	}
	if !step.Time.IsZero() {
		rec.Time = step.Time.UTC().Truncate(time.Millisecond)
	} else if step.idle() && rec.Seq > 0 {
		rec.Time = st.Summary.Updated
	}
	start, p := len(c.Bytes), placing{c: c, rec: rec, from: from}
	if err := p.place(step, entries); err != nil {
		return err
	}
	if rec.Branch = step.Branch; rec.Branch == "" {
		rec.Branch = from.branch
	}
	if kept {
		c.nameKept(rec, p.growsFrom())
	} else {
		rec.Outline = step.Outline
	}
	if len(step.Names) > 0 && !kept {
		if err := c.rename(rec, step.Names); err != nil {
			return err
		}
	} else if len(st.Branches)+2 > checkpoint.MaxBranches {
		c.makeRoom(rec)
	}
	if err := c.document(rec, step, entries, from); err != nil {
		return err
	}
	if st.Opening {
		rec.Base = st.Base()
	}
	window := step.Window
	if kept || st.Amended > step.Seen {
		window = nil
	}
	return c.append(rec, step, entries, start, window)
}

func reasonOf(step *Step, entries []*Entry) string {
	if step.Reason != "" {
		return step.Reason
	}
	for _, e := range entries {
		if e.Head.Type == "compaction" {
			return "compaction"
		}
	}
	return "turn"
}

// nameKept names the branch of a losing line: that of the one before where it grows from there.
func (c *Composer) nameKept(rec *checkpoint.Record, from int64) {
	if c.kept == "" || from != c.keptHead {
		c.kept = "conflict-" + rec.ID[len(rec.ID)-8:]
	}
	rec.Branch, rec.Kept = c.kept, c.kept
	c.keptHead = rec.HeadOrd
}

// rename renames branches as a step asks for.
func (c *Composer) rename(rec *checkpoint.Record, names []checkpoint.Rename) error {
	for _, n := range names {
		_, known := c.Next.Branch(n.From)
		_, taken := c.Next.Branch(n.To)
		switch {
		case !known:
			return fmt.Errorf("branch %q: %w", n.From, fs.ErrNotExist)
		case taken:
			return fmt.Errorf("branch %q: %w", n.To, fs.ErrExist)
		case n.From == rec.Branch && n.To == "":
			return layout.BadInput("branch %q: the session is on it", n.From)
		case n.From == rec.Branch:
			rec.Branch = n.To
		}
		rec.Names = append(rec.Names, n)
	}
	return nil
}

// makeRoom makes room in the table of branches for the names that a line adds: at the limit the oldest names that no
// caller chose go. Their lines stay.
func (c *Composer) makeRoom(rec *checkpoint.Record) {
	st, over := c.Next, len(c.Next.Branches)-checkpoint.MaxBranches
	for i, name := range [...]string{rec.Branch, rec.Kept} {
		if _, known := st.Branch(name); name != "" && !known && (i == 0 || name != rec.Branch) {
			over++
		}
	}
	for i := 0; i < len(st.Branches) && over > 0; i++ {
		name := st.Branches[i].Name
		if state.Automatic(name) && name != rec.Branch && name != rec.Kept && name != st.Summary.Branch {
			rec.Names = append(rec.Names, checkpoint.Rename{From: name})
			over--
		}
	}
}

// lineBytes is about the length of a commit line without its document.
const lineBytes = 640

// append writes the line of a commit, whose entries are in Bytes from start on, and advances the state.
func (c *Composer) append(
	rec *checkpoint.Record, step *Step, entries []*Entry, start int, window *transcript.WorkingContext,
) error {
	st, since := c.Next, c.Bytes[start:]
	own := segment.Commit{}
	if n := len(entries); n > 0 {
		own.Entries, own.Heads = make([][]byte, n), make([]transcript.Line, n)
	}
	small := step.Blobs
	for i, e := range entries {
		own.Entries[i], own.Heads[i] = e.Raw, e.Head
		for _, b := range e.Blobs {
			if small == nil {
				small = map[string][]byte{}
			}
			small[b.Sum] = b.Data
		}
	}
	next, err := c.advance(rec, &own, since, window)
	if err == nil && rec.Outline == nil && !state.Kept(rec) && next.Window != nil && amends(entries) {
		// A reader of the log may not have the window that shows what is amended.
		rec.Outline = &checkpoint.Outline{Preview: next.Summary.Preview, Status: next.Summary.Status}
		next, err = c.advance(rec, &own, since, window)
	}
	if err != nil {
		return err
	}
	if err := next.Fits(st); err != nil {
		return err
	}
	for i, e := range entries {
		c.ords[e] = st.Next + uint64(i)
	}
	next.Remember(small)
	c.Bytes = append(append(c.Bytes, own.Line...), '\n')
	c.Next = next
	c.Lines = append(c.Lines[:len(c.Lines):len(c.Lines)], ComposedLine{Record: rec, After: next, End: len(c.Bytes)})
	return nil
}

// advance writes the line of a commit, whose other parts own has, and returns the state after it.
func (c *Composer) advance(
	rec *checkpoint.Record, own *segment.Commit, since []byte, window *transcript.WorkingContext,
) (*state.State, error) {
	st := c.Next
	line, self, err := rec.AppendLine(make([]byte, 0, lineBytes+len(rec.Doc)+len(rec.Patch)), st.Key, st.Self, since)
	if err != nil {
		return nil, err
	}
	rec.Self = self
	own.Record, own.Line = *rec, line
	return state.Advance(st, own, window)
}

func amends(entries []*Entry) bool {
	return slices.ContainsFunc(entries, func(e *Entry) bool {
		_, ok := e.Head.Entry(0).Amendment()
		return ok
	})
}

// setBack is how far a clock can have been set back while the times of a session's commits do not decrease. If the last
// commit is dated later still, it is that date which is wrong.
const setBack = 24 * time.Hour

// newID makes a commit's id and its time.
func (c *Composer) newID() (string, time.Time, error) {
	now := c.cfg.Now().UTC().Truncate(time.Millisecond)
	if last := c.Next.Summary.Updated; last.After(now) && last.Sub(now) <= setBack {
		now = last
	}
	id, err := transcript.NewID(now, c.cfg.Rand)
	if err != nil {
		return "", now, fmt.Errorf("make a commit id: %w", err)
	}
	return id, now, nil
}

// placing resolves the parents of a line's entries, writes them, and says where the head is after them.
type placing struct {
	c       *Composer
	rec     *checkpoint.Record
	from    origin
	local   map[*Entry]uint64 // ordinals of the line's entries; nil = not needed so far
	parents []int64           // of the entries, by ordinal
}

func (p *placing) place(step *Step, entries []*Entry) error {
	st, size := p.c.Next, 0
	for _, e := range entries {
		size += len(e.Raw) + 1
	}
	p.c.Bytes = slices.Grow(p.c.Bytes, size+lineBytes)
	p.parents = make([]int64, 0, len(entries))
	prev := st.LineHead()
	if st.AfterKept {
		prev = -2 // readers that start at a checkpoint here do not know the kept line's head
	}
	p.rec.HeadOrd, p.rec.Head = p.from.ord, p.from.entry
	for i, e := range entries {
		ord := st.Next + uint64(i)
		parent, err := p.ordinal(e.At(), entries, i)
		if err != nil {
			return err
		}
		if parent != prev {
			d := checkpoint.ParentDelta{Index: i}
			if parent >= 0 {
				d.Delta = int64(ord) - parent
			}
			p.rec.Parents = append(p.rec.Parents, d)
		}
		p.parents = append(p.parents, parent)
		prev = int64(ord)
		if !e.Aside {
			p.rec.HeadOrd, p.rec.Head = int64(ord), e.ID
		}
		p.c.Bytes = append(append(p.c.Bytes, e.Raw...), '\n')
	}
	if h := step.Head; h != nil {
		ord, err := p.ordinal(h.Settled(), entries, len(entries))
		if err != nil {
			return err
		}
		p.rec.HeadOrd, p.rec.Head = ord, h.ID
	}
	p.rec.ParentID = p.rec.Head
	return nil
}

// growsFrom returns the ordinal from which the line's own entries lead to its head: the head itself where they do not.
func (p *placing) growsFrom() int64 {
	at, first := p.rec.HeadOrd, int64(p.c.Next.Next)
	for range p.parents {
		if at < first {
			break
		}
		at = p.parents[at-first]
	}
	return at
}

// ordinal returns the ordinal of a place that the i-th entry of the line names, which may be another entry of it:
// mostly the one before. An import may refer forward.
func (p *placing) ordinal(at Place, entries []*Entry, i int) (int64, error) {
	first := p.c.Next.Next
	switch {
	case at.Entry == nil:
	case i > 0 && at.Entry == entries[i-1]:
		return int64(first) + int64(i) - 1, nil
	case p.local == nil && len(entries) > 0:
		p.local = make(map[*Entry]uint64, len(entries))
		for k, e := range entries {
			p.local[e] = first + uint64(k)
		}
	}
	if ord, ok := p.local[at.Entry]; ok {
		return int64(ord), nil
	}
	return p.c.ordinal(at)
}

// ordinal returns the ordinal of a place, which may be an entry of a line before in the batch.
func (c *Composer) ordinal(p Place) (int64, error) {
	if p.Entry == nil {
		return p.Ord, nil
	}
	if ord, ok := c.ords[p.Entry]; ok {
		return int64(ord), nil
	}
	return 0, fmt.Errorf("entry %s was withdrawn: its descendants cannot be stored: %w", p.ID, fs.ErrNotExist)
}

// document sets the record's document: whole on keyframes, else a patch that was seen to give it back
// byte for byte, else nothing where it is the same.
func (c *Composer) document(rec *checkpoint.Record, step *Step, entries []*Entry, from origin) error {
	st, doc := c.Next, from.doc
	if step.Edit != nil {
		doc = step.Edit(doc)
	}
	settings := doc.Settings
	if step.Settings && len(entries) > 0 {
		doc.Settings = settingsAfter(step.Profile, settings, entries)
	}
	doc.Branch = rec.Branch
	raw := []byte(from.json)
	if step.Edit != nil || doc.Settings != settings || doc.Branch != from.doc.Branch || raw == nil {
		var err error
		if raw, err = doc.Encode(); err != nil {
			return err
		}
	}
	rec.DocCRC = codec.CRC(raw)
	switch {
	case st.Opening, step.Keyframe, st.SinceKey+1 >= c.cfg.Limits.Keyframe:
		rec.Doc = raw
	case st.Summary.Commit != "" && bytes.Equal(raw, st.DocJSON):
	case len(raw) <= c.cfg.Limits.WholeDoc:
		rec.Doc = raw
	default:
		if patch, sorted, ok := checkpoint.MakePatch(st.DocJSON, raw); ok {
			rec.Patch, rec.Sorted = patch, sorted
		} else {
			rec.Doc = raw
		}
	}
	return nil
}

// settingsAfter returns the settings in force after entries, where now is in force before them.
func settingsAfter(p transcript.Profile, now transcript.Settings, entries []*Entry) transcript.Settings {
	path := make([]transcript.Entry, 0, len(entries))
	for i, e := range entries {
		if !e.Aside {
			path = append(path, e.Head.Entry(uint64(i)))
		}
	}
	if len(path) == 0 {
		return now
	}
	return transcript.SettingsAfter(p, now, path)
}

// idle reports whether the step is none of the session's users: it does not count as activity.
func (s *Step) idle() bool { return s.settle || s.Reason == state.ReasonRoll }
