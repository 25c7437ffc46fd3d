package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript/pathwindow"
)

// Remake makes commits of a damaged part of the log anew: the same entries under the same ordinals, the same
// commits under the same numbers, with checksums of their own. What it makes is either sealed, to stand in
// the place of the damaged segment, or goes on as the end of the log.
type Remake struct {
	j    *Journal
	st   *State
	name layout.Segment
	pre  checkpoint.Prelude
	head []byte // the session header line; nil = not the first segment
	from uint64 // seq of its first commit
}

// After gives the state as the intact commits of a segment leave it, as far as the segment alone tells: its
// sealed past is not in it.
func (cfg Config) After(seg layout.Segment, raw []byte) (*State, error) {
	o, err := segment.ParseOpening(raw, seg.First == 0)
	if err != nil {
		return nil, corrupt(seg.PlainKey(cfg.Session), 0, err)
	}
	st := &State{HeadOrd: -1, Next: seg.First, key: o.Prelude.Key, self: o.Self(), Header: o.Header}
	st.Summary.ID = cfg.Session
	if seg.First == 0 {
		st.Window = pathwindow.New(cfg.Profile, cfg.MaxBytes)
	}
	segment.Scan(raw[o.Size:], o.Prelude.Key, o.Self(), func(c segment.Commit) bool {
		if b := c.Record.Base; b != nil {
			st.HeadOrd = b.HeadOrd
		}
		next, aerr := st.follows(&c)
		if aerr != nil {
			err = corrupt(seg.PlainKey(cfg.Session), int64(o.Size+c.End), aerr)
			return false
		}
		st = next
		return true
	})
	st.Tail, st.tailSize = nil, 0
	return st, err
}

// Begin starts to make the part anew that begins with ordinal first and commit seq. before is the state at
// that place, nil = the session begins there, with the given header line.
func (cfg Config) Begin(before *State, header []byte, first, seq, epoch uint64) (*Remake, error) {
	j := newJournal(cfg)
	r := &Remake{j: j, from: seq}
	st := &State{HeadOrd: -1, Header: header, Doc: checkpoint.Document{Branch: "main"}, self: segment.GenesisSelf(header)}
	st.Summary.ID, st.Summary.Branch = cfg.Session, "main"
	st.Window = pathwindow.New(cfg.Profile, cfg.MaxBytes)
	if before != nil {
		next := *before
		st = &next
	}
	rnd, err := j.random()
	if err != nil {
		return nil, err
	}
	if st.key, err = j.key(); err != nil {
		return nil, err
	}
	id, now, err := j.lineID()
	if err != nil {
		return nil, err
	}
	r.name = layout.Segment{First: first, Epoch: epoch, Rnd: rnd}
	r.pre = checkpoint.Prelude{
		ID: id, Time: now, Session: cfg.Session, First: first, FirstSeq: seq, Epoch: epoch, Key: st.key, PrevSelf: st.self,
	}
	if first == 0 {
		r.head, r.pre.PrevSelf = header, 0
		st.self = segment.GenesisSelf(header)
	}
	st.Next, st.opening, st.Tail, st.tailSize, st.Plain, st.Segments = first, true, nil, 0, nil, checkpoint.SegmentMap{}
	if st.Lineage == nil { // nothing is known of what was before: seq is what it is said to be
		st.Summary.Seq = seq - 1
		if seq > 0 {
			st.Summary.Commit = id
		}
	}
	r.st = st
	return r, nil
}

// Follows names the segment that stands before, for a later reader to go back by.
func (r *Remake) Follows(name string, bytes int64) { r.pre.PrevName, r.pre.PrevBytes = name, bytes }

// State is the session as the commits so far leave it.
func (r *Remake) State() *State { return r.st }

// Name is that of the segment which Seal makes.
func (r *Remake) Name() layout.Segment { return r.name }

// Commit makes one commit: entries hang where parents says (ordinals, -1 = a root), the record says the
// rest. Its seq, parent and checksums are made here. Of the document it takes Doc, or Patch where that
// fits, else it stays as it was; fits tells whether the document is the one that DocCRC names.
func (r *Remake) Commit(rec checkpoint.Record, entries [][]byte, parents []int64) (fits bool, err error) {
	st := r.st
	rec.Seq, rec.Parent, rec.Parents, rec.Base = st.Summary.Seq+1, st.Summary.Commit, nil, nil
	if st.Summary.Commit == "" {
		rec.Seq = 0
	}
	rec.Entries, rec.ParentID = len(entries), rec.Head
	prev := st.HeadOrd
	var since []byte
	for i, raw := range entries {
		ord := st.Next + uint64(i)
		if parents[i] != prev {
			d := checkpoint.ParentDelta{Index: i}
			if parents[i] >= 0 {
				d.Delta = int64(ord) - parents[i]
			}
			rec.Parents = append(rec.Parents, d)
		}
		prev = int64(ord)
		since = append(append(since, raw...), '\n')
	}
	want := rec.DocCRC
	doc := []byte(st.DocJSON)
	switch {
	case rec.Doc != nil:
		doc = rec.Doc
	case rec.Patch != nil && doc != nil:
		if patched, err := checkpoint.ApplyPatch(doc, rec.Patch, rec.Sorted); err == nil && codec.CRC(patched) == want {
			doc = patched
		} else {
			rec.Patch, rec.Sorted = nil, false
		}
	}
	if doc == nil {
		if doc, err = st.Doc.Encode(); err != nil {
			return false, err
		}
	}
	rec.DocCRC = codec.CRC(doc)
	if st.opening || st.DocJSON == nil {
		rec.Doc, rec.Patch, rec.Sorted = json.RawMessage(doc), nil, false
	}
	if st.opening {
		rec.Base = st.base()
	}
	line, self, err := rec.AppendLine(nil, st.key, st.self, since)
	if err != nil {
		return false, err
	}
	rec.Self = self
	r.st, err = advance(st, &segment.Commit{Record: rec, Entries: entries, Line: line}, nil)
	return rec.DocCRC == want, err
}

// Adopt takes over what an object knows better than the log, if it is of the commit at which r stands: the
// working window, the table of branches, what a listing shows.
func (r *Remake) Adopt(o *checkpoint.Object) {
	if o.Summary.Commit != r.st.Summary.Commit || o.HeadOrd != r.st.HeadOrd {
		return
	}
	next := *r.st
	next.Branches, next.Original, next.Claimed, next.CAS = o.Branches, o.Original, o.Claimed, o.CAS
	next.Summary.Title, next.Summary.Cwd, next.Summary.Preview = o.Summary.Title, o.Summary.Cwd, o.Summary.Preview
	next.Summary.Created, next.Summary.Parent, next.Blobs = o.Summary.Created, o.Summary.Parent, o.Blobs
	if w, err := window(o); err == nil && w != nil {
		next.Window = w
	}
	r.st = &next
}

// Seal stores what was made as a sealed segment.
func (r *Remake) Seal(ctx context.Context) (codec.Ref, error) {
	line, err := r.pre.Line()
	if err != nil {
		return codec.Ref{}, err
	}
	prelude := [][]byte{line}
	if r.head != nil {
		prelude = [][]byte{r.head, line}
	}
	c, err := r.j.writeSealed(ctx, r.name, prelude, r.st.Tail, r.from)
	return c.ref, err
}

// Remap makes the segment map over references in order, with the index objects that it takes.
func (cfg Config) Remap(ctx context.Context, refs []codec.Ref, epoch uint64) (checkpoint.SegmentMap, error) {
	j := newJournal(cfg)
	st := &State{}
	for _, ref := range refs {
		if err := st.Segments.Append(ref); err != nil {
			return st.Segments, err
		}
		for level, due, ok := st.foldable(); ok; level, due, ok = st.foldable() {
			c, err := j.fold(ctx, level, due, epoch)
			if err == nil {
				st, err = st.with(c)
			}
			if err != nil {
				return checkpoint.SegmentMap{}, err
			}
		}
	}
	return st.Segments, nil
}

// Install puts the end of a repaired log in force, with the map of its sealed part: where objects are only
// replaced as checkpoint_latest, under the version that the damaged one had; on a disk as a new active
// segment, and checkpoint_latest for it.
func (r *Remake) Install(ctx context.Context, m checkpoint.SegmentMap, was backend.Version, exists bool) error {
	st := *r.st
	st.Segments = m
	st.opening = false
	cond := backend.IfMatch(was)
	if !exists {
		cond = backend.IfAbsent()
	}
	key := layout.CheckpointKey(r.j.cfg.Session)
	if a, ok := r.j.strategy.(*appendLog); ok {
		line, err := r.pre.Line()
		if err != nil {
			return err
		}
		raw := append(slices.Clone(line), '\n')
		if r.head != nil {
			raw = append(append(slices.Clone(r.head), '\n'), raw...)
		}
		for _, l := range st.Tail {
			raw = append(append(raw, l.Raw...), '\n')
		}
		if err := r.j.store.create(ctx, r.name.PlainKey(r.j.cfg.Session), raw); err != nil {
			return err
		}
		st.Plain = []checkpoint.PlainRef{{
			Name: r.name.Name(), First: r.name.First, Count: uint64(len(st.Tail)), FirstSeq: r.from,
			Bytes: int64(len(raw)), Epoch: r.name.Epoch, Key: st.key, Self: st.self,
		}}
		body, err := st.object(false).Encode()
		if err != nil {
			return err
		}
		_, err = a.b.Put(ctx, key, body, cond)
		return err
	}
	body, err := st.object(true).Encode()
	if err != nil {
		return err
	}
	_, err = r.j.store.b.Put(ctx, key, body, cond)
	return err
}

// Fence closes a damaged active segment of size bytes for good, so that no writer who knows it appends to
// it any more: behind its end comes a line that is no commit and says that all before it was durable.
func (cfg Config) Fence(ctx context.Context, seg layout.Segment, key uint64, size int64, next string) error {
	j := newJournal(cfg)
	a, ok := j.strategy.(*appendLog)
	if !ok {
		return fmt.Errorf("fence %s: %w", seg.Name(), backend.ErrPrecondition)
	}
	id, now, err := j.lineID()
	if err != nil {
		return err
	}
	rec := checkpoint.Record{
		ID: id, Time: now, Writer: cfg.Writer, Reason: "repair", HeadOrd: -1, Branch: "main", Next: next, Synced: size, Seq: 1 << 62,
	}
	line, _, err := rec.AppendLine([]byte("\n"), key, ^uint32(0), []byte("fence"))
	if err != nil {
		return err
	}
	_, err = a.b.Append(ctx, seg.PlainKey(cfg.Session), size, append(line, '\n'))
	return err
}
