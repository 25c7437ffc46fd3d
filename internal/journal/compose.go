package journal

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/branch"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// The lines of a request are composed one after the other, each on the state that the line before it leaves. Composing
// does no I/O. If a line cannot be composed, the request is as it was before.

// line is a commit line with its entries.
type line struct {
	record *checkpoint.Record
	after  *state.State // after the line
	end    int          // in request.bytes
}

// begin sets the state on which the request is composed. With fresh the request takes the next epoch.
func (r *request) begin(cfg *Config, base *state.State, fresh bool) {
	r.cfg, r.base, r.next = cfg, base, base
	r.epoch, r.synced, r.ords, r.keptHead = base.Summary.Epoch, base.Durable, map[*Entry]uint64{}, -2
	if fresh {
		r.epoch++
	}
	if base.Pending != "" {
		r.warnings = append(r.warnings, "moved uncommitted bytes after the last commit to "+base.Pending)
	}
}

// add composes the line of one step and its entries at the session's head.
func (r *request) add(step *Step) error {
	return r.compose(step, step.Entries, AnchorOf(r.next), false)
}

// roll composes the commit that closes the active segment; the segment named next follows it.
func (r *request) roll(next string) error {
	return r.add(&Step{Reason: state.ReasonRoll, next: next})
}

// compose composes the commit line of a step at an anchor. With kept the step has lost against another writer and is
// stored as a branch, which leaves the session's head where it is. A session that does not exist gets its commit 0
// first.
func (r *request) compose(step *Step, entries []*Entry, from *Anchor, kept bool) error {
	before := *r
	if r.next.Summary.Tombstone { // Delete raced with this caller: nothing grows on a deleted session
		return &backend.Error{
			Op: "commit", Key: r.next.Summary.ID, Outcome: backend.NotApplied,
			Err: fmt.Errorf("the session is deleted: %w", fs.ErrNotExist),
		}
	}
	if r.next.Summary.Commit == "" && step.Reason != state.ReasonCreate {
		if err := r.composeLine(&Step{Reason: state.ReasonCreate}, nil, AnchorOf(r.next), false); err != nil {
			*r = before
			return err
		}
		if !kept {
			from = AnchorOf(r.next)
		}
	}
	err := r.composeLine(step, entries, from, kept)
	if err != nil {
		*r = before
	}
	return err
}

func (r *request) composeLine(step *Step, entries []*Entry, from *Anchor, kept bool) error {
	st := r.next
	id, now, err := r.newID()
	if err != nil {
		return err
	}
	rec := &checkpoint.Record{
		ID: id, Time: now, Seq: st.Summary.Seq + 1, Parent: st.Summary.Commit, Epoch: r.epoch,
		Writer: cmp.Or(step.Writer, r.cfg.Writer), Reason: reasonOf(step, entries), Key: step.Key, Digest: step.Digest,
		Kept: step.Kept, Claim: step.Claim && !kept, Erase: step.erase,
		Original: step.Original, Snapshot: step.Snapshot, Next: step.next, Entries: len(entries), Synced: r.synced,
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
	start, p := len(r.bytes), placing{r: r, rec: rec, from: from}
	if err := p.place(step, entries); err != nil {
		return err
	}
	if rec.Branch = step.Branch; rec.Branch == "" {
		rec.Branch = from.Branch
	}
	if kept {
		r.nameKept(rec, p.growsFrom())
	} else {
		rec.Outline = step.Outline
	}
	if len(step.Names) > 0 && !kept {
		if err := r.rename(rec, step.Names); err != nil {
			return err
		}
	} else if len(st.Branches)+2 > checkpoint.MaxBranches {
		r.makeRoom(rec)
	}
	doc, err := r.document(rec, step, entries, from)
	if err != nil {
		return err
	}
	if st.Opening {
		rec.Base = st.Base()
	}
	given := state.Given{Window: step.Window, Amended: step.Amended}
	if kept || st.Amended > step.Seen {
		given = state.Given{}
	}
	return r.append(rec, step, entries, start, &segment.Commit{Doc: doc}, given)
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

// nameKept names the branch on which a losing turn is kept. A turn that continues the kept turn before it is on the
// same branch.
func (r *request) nameKept(rec *checkpoint.Record, from int64) {
	if r.keptName == "" || from != r.keptHead {
		r.keptName = "conflict-" + rec.ID[len(rec.ID)-8:]
	}
	rec.Branch, rec.Kept = r.keptName, r.keptName
	r.keptHead = rec.HeadOrd
}

// rename renames branches as a step asks for.
func (r *request) rename(rec *checkpoint.Record, names []checkpoint.Rename) error {
	for _, n := range names {
		_, known := r.next.Branch(n.From)
		_, taken := r.next.Branch(n.To)
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

// makeRoom removes names from a full table of branches, as many as a line adds: the oldest ones that were not chosen by
// a caller. The entries of those branches stay.
func (r *request) makeRoom(rec *checkpoint.Record) {
	st, over := r.next, len(r.next.Branches)-checkpoint.MaxBranches
	for i, name := range [...]string{rec.Branch, rec.Kept} {
		if _, known := st.Branch(name); name != "" && !known && (i == 0 || name != rec.Branch) {
			over++
		}
	}
	for i := 0; i < len(st.Branches) && over > 0; i++ {
		name := st.Branches[i].Name
		if branch.Automatic(name) && name != rec.Branch && name != rec.Kept && name != st.Summary.Branch {
			rec.Names = append(rec.Names, checkpoint.Rename{From: name})
			over--
		}
	}
}

// lineBytes is about the length of a commit line without its document.
const lineBytes = 640

// append writes the commit line for the entries at r.bytes[start:], and advances the state.
func (r *request) append(rec *checkpoint.Record, step *Step, entries []*Entry, start int, own *segment.Commit,
	given state.Given,
) error {
	st, since := r.next, r.bytes[start:]
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
	next, err := r.advance(rec, own, since, given)
	had := st.Window != nil || given.Window != nil
	if err == nil && rec.Outline == nil && !state.Kept(rec) && had && amends(entries) {
		// A reader of the log may lack the window that has the amended entries, and so could not compute the preview.
		rec.Outline = &checkpoint.Outline{Preview: next.Summary.Preview, Status: next.Summary.Status}
		next, err = r.advance(rec, own, since, given)
	}
	if err != nil {
		return err
	}
	if err := next.Fits(st); err != nil {
		return err
	}
	for i, e := range entries {
		r.ords[e] = st.Next + uint64(i)
	}
	next.Remember(small)
	r.bytes = append(append(r.bytes, own.Line...), '\n')
	r.next = next
	r.lines = append(r.lines[:len(r.lines):len(r.lines)], line{record: rec, after: next, end: len(r.bytes)})
	return nil
}

// advance encodes a commit line, completes own with it, and returns the state after the commit.
func (r *request) advance(
	rec *checkpoint.Record, own *segment.Commit, since []byte, given state.Given,
) (*state.State, error) {
	st := r.next
	line, self, err := rec.AppendLine(make([]byte, 0, lineBytes+len(rec.Doc)+len(rec.Patch)), st.Key, st.Self, since)
	if err != nil {
		return nil, err
	}
	rec.Self = self
	own.Record, own.Line = *rec, line
	return state.Advance(st, own, given)
}

func amends(entries []*Entry) bool {
	return slices.ContainsFunc(entries, func(e *Entry) bool {
		_, ok := e.Head.Entry(0).Amendment()
		return ok
	})
}

// setBack bounds the correction of a clock that was set back: within it a new commit gets the time of the last one, so
// that times do not decrease. If the last commit is further in the future, its own time is wrong and is not repeated.
const setBack = 24 * time.Hour

// newID makes a commit's id and its time.
func (r *request) newID() (string, time.Time, error) {
	now := r.cfg.Now().UTC().Truncate(time.Millisecond)
	if last := r.next.Summary.Updated; last.After(now) && last.Sub(now) <= setBack {
		now = last
	}
	id, err := transcript.NewID(now, r.cfg.Rand)
	if err != nil {
		return "", now, fmt.Errorf("make a commit id: %w", err)
	}
	return id, now, nil
}

// placing writes the entries of a line, and sets their parents and the head after them in its record.
type placing struct {
	r       *request
	rec     *checkpoint.Record
	from    *Anchor
	local   map[*Entry]uint64 // ordinals of the line's entries; nil = not computed yet
	parents []int64           // of the entries, by ordinal
}

func (p *placing) place(step *Step, entries []*Entry) error {
	st, size := p.r.next, 0
	for _, e := range entries {
		size += len(e.Raw) + 1
	}
	p.r.bytes = slices.Grow(p.r.bytes, size+lineBytes+min(len(st.DocJSON), p.r.cfg.Limits.WholeDoc))
	p.parents = make([]int64, 0, len(entries))
	prev := st.LineHead()
	if st.AfterKept {
		prev = -2 // readers that start at a checkpoint here do not know the kept line's head
	}
	p.rec.HeadOrd, p.rec.Head = p.from.At.Ord, p.from.At.ID
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
		p.r.bytes = append(append(p.r.bytes, e.Raw...), '\n')
	}
	if h := step.Head; h != nil {
		ord, err := p.ordinal(h.ByOrdinal(), entries, len(entries))
		if err != nil {
			return err
		}
		p.rec.HeadOrd, p.rec.Head = ord, h.ID
	}
	p.rec.ParentID = p.rec.Head
	return nil
}

// growsFrom returns the ordinal of the entry below which the line's own entries begin that lead to its head; the head
// itself if it is not one of them.
func (p *placing) growsFrom() int64 {
	at, first := p.rec.HeadOrd, int64(p.r.next.Next)
	for range p.parents {
		if at < first {
			break
		}
		at = p.parents[at-first]
	}
	return at
}

// ordinal returns the ordinal of a place that the i-th entry of the line names. This may be another entry of the line:
// mostly the one before, in an import also a later one.
func (p *placing) ordinal(at Place, entries []*Entry, i int) (int64, error) {
	first := p.r.next.Next
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
	return p.r.ordinal(at)
}

// ordinal returns the ordinal of a place, which may be an entry of an earlier line of the request.
func (r *request) ordinal(p Place) (int64, error) {
	if p.Entry == nil {
		return p.Ord, nil
	}
	if ord, ok := r.ords[p.Entry]; ok {
		return int64(ord), nil
	}
	return 0, fmt.Errorf("entry %s was withdrawn: its descendants cannot be stored: %w", p.ID, fs.ErrNotExist)
}

// document returns the document after a step, and sets how the record stores it: whole at keyframes and up to
// Limits.WholeDoc bytes, not at all if it is unchanged, else as a patch that MakePatch has verified.
func (r *request) document(rec *checkpoint.Record, step *Step, entries []*Entry, from *Anchor) ([]byte, error) {
	st, doc := r.next, from.Doc
	if step.Edit != nil {
		doc = step.Edit(doc)
	}
	settings := doc.Settings
	if step.Settings && len(entries) > 0 {
		doc.Settings = settingsAfter(step.Profile, settings, entries)
	}
	doc.Branch = rec.Branch
	raw := []byte(from.JSON)
	if step.Edit != nil || doc.Settings != settings || doc.Branch != from.Doc.Branch || raw == nil {
		var err error
		if raw, err = doc.Encode(); err != nil {
			return nil, err
		}
	}
	rec.DocCRC = codec.CRC(raw)
	switch {
	case st.Opening, step.Keyframe, st.SinceKey+1 >= r.cfg.Limits.Keyframe:
		rec.Doc = raw
	case st.Summary.Commit != "" && bytes.Equal(raw, st.DocJSON):
	case len(raw) <= r.cfg.Limits.WholeDoc:
		rec.Doc = raw
	default:
		if patch, sorted, ok := checkpoint.MakePatch(st.DocJSON, raw); ok {
			rec.Patch, rec.Sorted = patch, sorted
		} else {
			rec.Doc = raw
		}
	}
	return raw, nil
}

// settingsAfter returns the settings in force after entries; now are those before them.
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

// idle reports whether the step is upkeep and not an act of a user, so that it does not change the session's time.
func (s *Step) idle() bool { return s.sealAll || s.Reason == state.ReasonRoll }
