package journal

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// batch is what one PUT or one append makes durable: the commits of one or more steps.
type batch struct {
	Next     *state.State // after all commits
	Bytes    []byte       // all lines, each with its newline
	Warnings []string
	Ords     map[*Entry]uint64
	Size     int // bytes of the object or the append that carries it
}

// Composer makes commits, one after the other, on top of a state.
type Composer struct {
	batch
	cfg      *Config
	Epoch    uint64
	Synced   int64
	Record   *checkpoint.Record // of the commit composed last
	losing   bool               // the next commit opens the branch of a losing turn
	kept     string             // that branch
	Settle   bool               // one of the steps wants everything sealed and folded first
	MustRoll bool               // append: this batch closes the segment, whatever its size
}

// NewComposer begins a batch on base; fresh: it takes the next epoch.
func NewComposer(cfg *Config, base *state.State, fresh bool) *Composer {
	epoch := base.Summary.Epoch
	if fresh {
		epoch++
	}
	c := &Composer{cfg: cfg, Epoch: epoch, Synced: base.Durable, batch: batch{Next: base, Ords: map[*Entry]uint64{}}}
	if base.Pending != "" {
		c.Warnings = append(c.Warnings, "bytes behind the last commit that were none were moved aside to "+base.Pending)
	}
	return c
}

// Add composes the commit of one step. A session that does not exist yet gets its commit 0 first. On an
// error nothing was added.
func (c *Composer) Add(step *Step) error {
	before := c.batch
	if err := c.addStep(step); err != nil {
		c.batch = before
		return err
	}
	return nil
}

func (c *Composer) addStep(step *Step) error {
	if c.Next.Summary.Tombstone { // whoever has come so far did not look: nothing grows on a deleted session
		return &backend.Error{Op: "commit", Key: c.Next.Summary.ID, Outcome: backend.NotApplied, Err: fmt.Errorf("the session is deleted: %w", fs.ErrNotExist)}
	}
	if c.Next.Summary.Commit == "" && step.Reason != state.ReasonCreate {
		if err := c.commit(&Step{Reason: state.ReasonCreate}, nil); err != nil {
			return err
		}
	}
	return c.commit(step, nil)
}

// AddKept composes a losing step as a branch of its own: its entries hang where they were meant to, its
// document is its own. from is the state that it was made on.
func (c *Composer) AddKept(lost *Step, from *state.State) error {
	before := c.batch
	step := *lost
	step.Window = nil
	if c.kept == "" {
		c.losing = true
	} else {
		step.Branch, step.Kept, from = c.kept, c.kept, nil
	}
	if err := c.commit(&step, from); err != nil {
		c.batch = before
		return err
	}
	c.losing, c.kept = false, c.Record.Kept
	return nil
}

// Back composes the commit that returns to the winner's head and document: the last commit line is
// always the session's.
func (c *Composer) Back(winner *state.State) error {
	return c.commit(&Step{
		Reason: state.ReasonConflict,
		Head:   &Head{ID: winner.Summary.Entry, Ord: winner.HeadOrd}, Branch: winner.Summary.Branch,
		Edit:   func(checkpoint.Document) checkpoint.Document { return winner.Doc },
		Window: winner.Window,
	}, nil)
}

// Roll composes the commit that closes the active segment; the segment named next goes on.
func (c *Composer) Roll(next string) error {
	return c.commit(&Step{Reason: state.ReasonRoll, next: next}, nil)
}

// commit composes one commit. from, where it is not nil, is the state on which the step was meant to
// stand: a loser's, whose document and head are its own.
func (c *Composer) commit(step *Step, from *state.State) error {
	st := c.Next
	if from == nil {
		from = st
	}
	id, now, err := c.newID()
	if err != nil {
		return err
	}
	rec := checkpoint.Record{
		ID: id, Time: now, Seq: st.Summary.Seq + 1, Parent: st.Summary.Commit, Epoch: c.Epoch, Writer: c.cfg.Writer,
		Reason: step.Reason, Key: step.Key, Kept: step.Kept, Claim: step.Claim, Original: step.Original,
		Snapshot: step.Snapshot, Next: step.next, Entries: len(step.Entries), Synced: c.Synced, Torn: st.Pending,
	}
	if st.Summary.Commit == "" {
		rec.Seq = 0
	}
	if !step.Time.IsZero() {
		rec.Time = step.Time.UTC().Truncate(time.Millisecond)
	} else if step.idle() && rec.Seq > 0 {
		rec.Time = st.Summary.Updated
	}
	since, err := c.entries(&rec, st, from, step)
	if err != nil {
		return err
	}
	if rec.Branch = step.Branch; rec.Branch == "" {
		rec.Branch = from.Summary.Branch
	}
	if c.losing {
		rec.Branch = "conflict-" + id[len(id)-8:]
		rec.Kept = rec.Branch
	}
	if err := c.document(&rec, st, from, step); err != nil {
		return err
	}
	if st.Opening {
		rec.Base = st.Base()
	}
	return c.append(&rec, st, step, since)
}

// append writes the commit's lines and advances the state.
func (c *Composer) append(rec *checkpoint.Record, st *state.State, step *Step, since []byte) error {
	line, self, err := rec.AppendLine(nil, st.Key, st.Self, since)
	if err != nil {
		return err
	}
	rec.Self = self
	own := segment.Commit{Record: *rec, Line: line}
	if n := len(step.Entries); n > 0 {
		own.Entries, own.Heads = make([][]byte, n), make([]transcript.Line, n)
	}
	for i, e := range step.Entries {
		own.Entries[i], own.Heads[i] = e.Raw, e.Head
	}
	next, err := state.Advance(st, &own, step.Window)
	if err != nil {
		return err
	}
	for i, e := range step.Entries {
		c.Ords[e] = st.Next + uint64(i)
	}
	next.Remember(step.Blobs)
	c.Bytes = append(append(append(c.Bytes, since...), line...), '\n')
	c.Next, c.Record = next, rec
	return nil
}

// newID makes a commit's id and its time.
func (c *Composer) newID() (string, time.Time, error) {
	now := c.cfg.Now().UTC().Truncate(time.Millisecond)
	id, err := transcript.NewID(now, c.cfg.Rand)
	if err != nil {
		return "", now, fmt.Errorf("make a commit id: %w", err)
	}
	return id, now, nil
}

// entries resolves the parents of the step's entries and says where the head stands after them.
func (c *Composer) entries(rec *checkpoint.Record, st, from *state.State, step *Step) (since []byte, err error) {
	size := 0
	local := make(map[*Entry]uint64, len(step.Entries)) // an import may refer forward
	for i, e := range step.Entries {
		size += len(e.Raw) + 1
		local[e] = st.Next + uint64(i)
	}
	since = make([]byte, 0, size)
	prev := st.HeadOrd
	rec.HeadOrd, rec.Head = from.HeadOrd, from.Summary.Entry
	for i, e := range step.Entries {
		ord := st.Next + uint64(i)
		parent, err := c.parent(e, local)
		if err != nil {
			return nil, err
		}
		if parent != prev {
			d := checkpoint.ParentDelta{Index: i}
			if parent >= 0 {
				d.Delta = int64(ord) - parent
			}
			rec.Parents = append(rec.Parents, d)
		}
		prev = int64(ord)
		rec.HeadOrd, rec.Head = int64(ord), e.ID
		since = append(append(since, e.Raw...), '\n')
	}
	if h := step.Head; h != nil {
		rec.HeadOrd, rec.Head = h.Ord, h.ID
		if h.Entry != nil {
			if rec.HeadOrd, err = c.ordinal(h.Entry, local); err != nil {
				return nil, err
			}
			rec.Head = h.Entry.ID
		}
	}
	rec.ParentID = rec.Head
	return since, nil
}

func (c *Composer) parent(e *Entry, local map[*Entry]uint64) (int64, error) {
	if e.Parent == nil {
		return e.ParentOrd, nil
	}
	return c.ordinal(e.Parent, local)
}

func (c *Composer) ordinal(e *Entry, local map[*Entry]uint64) (int64, error) {
	if ord, ok := local[e]; ok {
		return int64(ord), nil
	}
	if ord, ok := c.Ords[e]; ok {
		return int64(ord), nil
	}
	if e.Done {
		return int64(e.Ord), nil
	}
	return 0, fmt.Errorf("entry %s: it was never committed", e.ID)
}

// document sets the record's document: whole on keyframes, else a patch that was seen to give it back
// byte for byte, else nothing where it is the same.
func (c *Composer) document(rec *checkpoint.Record, st, from *state.State, step *Step) error {
	doc := from.Doc
	if step.Edit != nil {
		doc = step.Edit(doc)
	}
	doc.Branch = rec.Branch
	raw := []byte(st.DocJSON)
	if step.Edit != nil || from != st || doc.Branch != st.Doc.Branch || st.Summary.Commit == "" {
		var err error
		if raw, err = doc.Encode(); err != nil {
			return err
		}
	}
	rec.DocCRC = codec.CRC(raw)
	same := st.Summary.Commit != "" && string(raw) == string(st.DocJSON)
	switch {
	case st.Opening, step.Keyframe, st.SinceKey+1 >= c.cfg.Limits.Keyframe:
		rec.Doc = raw
	case same:
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
