package journal

import (
	"fmt"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// batch is what one PUT or one append makes durable: the commits of one or more steps.
type batch struct {
	next  *State // after all commits
	bytes []byte // all lines, each with its newline
	warn  []string
	ords  map[*Entry]uint64
	size  int // bytes of the object or the append that carries it
}

// composer makes commits, one after the other, on top of a state.
type composer struct {
	batch
	cfg      *Config
	epoch    uint64
	synced   int64
	record   *checkpoint.Record // of the commit composed last
	losing   bool               // the next commit opens the branch of a losing turn
	kept     string             // that branch
	settle   bool               // one of the steps wants everything sealed and folded first
	mustRoll bool               // append: this batch closes the segment, whatever its size
}

// newComposer begins a batch on base; fresh: it takes the next epoch.
func newComposer(cfg *Config, base *State, fresh bool) *composer {
	epoch := base.Summary.Epoch
	if fresh {
		epoch++
	}
	c := &composer{cfg: cfg, epoch: epoch, synced: base.durable, batch: batch{next: base, ords: map[*Entry]uint64{}}}
	if base.pending != "" {
		c.warn = append(c.warn, "bytes behind the last commit that were none were moved aside to "+base.pending)
	}
	return c
}

// add composes the commit of one step. A session that does not exist yet gets its commit 0 first. On an
// error nothing was added.
func (c *composer) add(step *Step) error {
	before := c.batch
	if err := c.addStep(step); err != nil {
		c.batch = before
		return err
	}
	return nil
}

func (c *composer) addStep(step *Step) error {
	if c.next.Summary.Commit == "" && step.Reason != reasonCreate {
		if err := c.commit(&Step{Reason: reasonCreate}, nil); err != nil {
			return err
		}
	}
	return c.commit(step, nil)
}

// addKept composes a losing step as a branch of its own: its entries hang where they were meant to, its
// document is its own. from is the state that it was made on.
func (c *composer) addKept(lost *Step, from *State) error {
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
	c.losing, c.kept = false, c.record.Kept
	return nil
}

// back composes the commit that returns to the winner's head and document: the last commit line is
// always the session's.
func (c *composer) back(winner *State) error {
	return c.commit(&Step{
		Reason: reasonConflict,
		Head:   &Head{ID: winner.Summary.Entry, Ord: winner.HeadOrd}, Branch: winner.Summary.Branch,
		Edit:   func(checkpoint.Document) checkpoint.Document { return winner.Doc },
		Window: winner.Window,
	}, nil)
}

// roll composes the commit that closes the active segment; the segment named next goes on.
func (c *composer) roll(next string) error {
	return c.commit(&Step{Reason: reasonRoll, next: next}, nil)
}

// commit composes one commit. from, where it is not nil, is the state on which the step was meant to
// stand: a loser's, whose document and head are its own.
func (c *composer) commit(step *Step, from *State) error {
	st := c.next
	if from == nil {
		from = st
	}
	id, now, err := c.newID()
	if err != nil {
		return err
	}
	rec := checkpoint.Record{
		ID: id, Time: now, Seq: st.Summary.Seq + 1, Parent: st.Summary.Commit, Epoch: c.epoch, Writer: c.cfg.Writer,
		Reason: step.Reason, Key: step.Key, Kept: step.Kept, Claim: step.Claim, Original: step.Original,
		Snapshot: step.Snapshot, Next: step.next, Entries: len(step.Entries), Synced: c.synced, Torn: st.pending,
	}
	if st.Summary.Commit == "" {
		rec.Seq = 0
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
	if st.opening {
		rec.Base = st.base()
	}
	return c.append(&rec, st, step, since)
}

// append writes the commit's lines and advances the state.
func (c *composer) append(rec *checkpoint.Record, st *State, step *Step, since []byte) error {
	line, self, err := rec.AppendLine(nil, st.key, st.self, since)
	if err != nil {
		return err
	}
	rec.Self = self
	raws := make([][]byte, len(step.Entries))
	for i, e := range step.Entries {
		raws[i] = e.Raw
	}
	next, err := advance(st, &segment.Commit{Record: *rec, Entries: raws, Line: line}, step.Window)
	if err != nil {
		return err
	}
	for i, e := range step.Entries {
		c.ords[e] = st.Next + uint64(i)
	}
	next.remember(step.Blobs)
	c.bytes = append(append(append(c.bytes, since...), line...), '\n')
	c.next, c.record = next, rec
	return nil
}

// newID makes a commit's id and its time.
func (c *composer) newID() (string, time.Time, error) {
	now := c.cfg.Now().UTC().Truncate(time.Millisecond)
	id, err := transcript.NewID(now, c.cfg.Rand)
	if err != nil {
		return "", now, fmt.Errorf("make a commit id: %w", err)
	}
	return id, now, nil
}

// entries resolves the parents of the step's entries and says where the head stands after them.
func (c *composer) entries(rec *checkpoint.Record, st, from *State, step *Step) (since []byte, err error) {
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

func (c *composer) parent(e *Entry, local map[*Entry]uint64) (int64, error) {
	if e.Parent == nil {
		return e.ParentOrd, nil
	}
	return c.ordinal(e.Parent, local)
}

func (c *composer) ordinal(e *Entry, local map[*Entry]uint64) (int64, error) {
	if ord, ok := local[e]; ok {
		return int64(ord), nil
	}
	if ord, ok := c.ords[e]; ok {
		return int64(ord), nil
	}
	if e.Done {
		return int64(e.Ord), nil
	}
	return 0, fmt.Errorf("entry %s: it was never committed", e.ID)
}

// document sets the record's document: whole on keyframes, else a patch that was seen to give it back
// byte for byte, else nothing where it is the same.
func (c *composer) document(rec *checkpoint.Record, st, from *State, step *Step) error {
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
	case st.opening, step.Keyframe, st.sinceKey+1 >= c.cfg.Limits.Keyframe:
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
