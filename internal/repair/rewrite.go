package repair

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// remake writes commits of a damaged part of the log again: the same entries under the same ordinals, the same commits
// under the same numbers, with checksums of their own. What it writes is either sealed and replaces the damaged
// segment, or it is the end of the log.
type remake struct {
	cfg   journal.Config
	store *store.Store
	past  *store.History

	st   *state.State
	name layout.Segment
	pre  checkpoint.Prelude
	head []byte // the session header line; nil = not the first segment
	from uint64 // seq of its first commit

	total              int      // entries and commits
	commits, documents int      // what of them is lost
	entries            []string // ids of those that are lost
	loose              []string // ids of entries that were read and have no place
}

func (r *remake) lost() int { return len(r.entries) + r.commits + r.documents + len(r.loose) }

// told returns the sentence of the report about what is lost.
func (r *remake) told() string {
	var lost []string
	for _, l := range []struct {
		n    int
		one  string
		more string
		ids  []string
	}{
		{len(r.entries), "entry", "entries", r.entries},
		{r.commits, "time and author of a commit", "times and authors of commits", nil},
		{r.documents, "state after a commit", "states after commits", nil},
		{len(r.loose), "entry without a place, kept in torn/", "entries without a place, kept in torn/", r.loose},
	} {
		if l.n == 0 {
			continue
		}
		if l.n == 1 {
			l.more = l.one
		}
		text := fmt.Sprintf("%d %s", l.n, l.more)
		if shown := l.ids[:min(len(l.ids), namesMost)]; len(shown) > 0 {
			text += " (" + strings.Join(shown, ", ")
			if len(l.ids) > len(shown) {
				text += ", ..."
			}
			text += ")"
		}
		lost = append(lost, text)
	}
	if len(lost) == 0 {
		return "nothing is lost"
	}
	return "lost: " + strings.Join(lost, ", ")
}

// namesMost bounds the entries that a report names.
const namesMost = 5

// after returns the state after the intact commits of a segment, of which the sealed segments before are not a part.
func after(cfg journal.Config, seg layout.Segment, raw []byte) (*state.State, error) {
	o, err := segment.ParseOpening(raw, seg.First == 0)
	if err != nil {
		return nil, store.Corrupt(seg.PlainKey(cfg.Session), 0, err)
	}
	st, _ := state.Opened(cfg.Session, &o, raw[o.Size:], state.Rules{Profile: cfg.Profile, MaxBytes: cfg.MaxBytes})
	st, _, end, err := st.Play(raw[o.Size:])
	if err != nil {
		return nil, store.Corrupt(seg.PlainKey(cfg.Session), int64(o.Size+end), err)
	}
	st.Tail, st.TailBytes = nil, 0
	return st, nil
}

// begin starts to write the part that begins with ordinal first and commit seq. If no state is known at that place, the
// session begins there, with the header line.
func (r *repair) begin(cfg journal.Config, first, seq uint64) (*remake, error) {
	m, header := &remake{cfg: cfg, from: seq, store: r.store, past: r.past}, r.header
	st := state.Genesis{Header: header}.State(cfg.Session, cfg.Profile, cfg.MaxBytes)
	st.Since = cfg.Since
	if r.before != nil {
		next := *r.before
		if st = &next; len(st.Header) == 0 { // only the first segment has it
			st.Begins(header)
		}
	}
	rnd, err := r.store.Random()
	if err != nil {
		return nil, err
	}
	if st.Key, err = r.store.NewKey(); err != nil {
		return nil, err
	}
	id, now, err := r.store.LineID()
	if err != nil {
		return nil, err
	}
	m.name = layout.Segment{First: first, Epoch: r.epoch, Rnd: rnd}
	m.pre = checkpoint.Prelude{
		ID: id, Time: now, Session: cfg.Session, First: first, FirstSeq: seq, Epoch: r.epoch, Key: st.Key,
		PrevSelf: st.Self,
	}
	if first == 0 {
		m.head, m.pre.PrevSelf = header, 0
		st.Self = segment.GenesisSelf(header)
	}
	st.Next, st.Opening, st.Tail, st.TailBytes, st.Plain, st.Segments = first, true, nil, 0, nil,
		checkpoint.SegmentMap{}
	if st.Lineage == nil { // nothing is known of the commits before: seq is the caller's
		st.Summary.Seq = seq - 1
		if seq > 0 {
			st.Summary.Commit = id
		}
	}
	m.st = st
	return m, nil
}

// follows names the segment before, by which readers find earlier commits.
func (r *remake) follows(name string, bytes int64) { r.pre.PrevName, r.pre.PrevBytes = name, bytes }

// commit writes one commit: parents are the ordinals of the entries' parents (-1 = a root), rec holds the rest. Seq,
// parent and checksums are computed. The document is Doc, or Patch applied to the one before where that fits, else the
// one before; fits reports whether it is the one that DocCRC names, or is known to be it. Of one that is not, the state
// is recorded as lost.
func (r *remake) commit(
	rec checkpoint.Record, entries [][]byte, parents []int64, known bool,
) (fits bool, err error) {
	st := r.st
	rec.Seq, rec.Parent, rec.Parents, rec.Base = st.Summary.Seq+1, st.Summary.Commit, nil, nil
	if st.Summary.Commit == "" {
		rec.Seq = 0
	}
	rec.Entries, rec.ParentID = len(entries), rec.Head
	prev := st.LineHead()
	if st.AfterKept {
		prev = -2 // readers that start at a checkpoint here do not know the kept line's head
	}
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
	known = known || rec.Doc != nil
	doc := []byte(st.DocumentOfLine())
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
	if fits = known || codec.CRC(doc) == want; !fits {
		is, err := checkpoint.DecodeDocument(doc)
		if err != nil {
			return false, err
		}
		if doc, err = is.WithoutState().Encode(); err != nil {
			return false, err
		}
		rec.Doc, rec.Patch, rec.Sorted = doc, nil, false
	}
	rec.DocCRC = codec.CRC(doc)
	if st.Opening || st.DocJSON == nil || st.AfterKept {
		rec.Doc, rec.Patch, rec.Sorted = json.RawMessage(doc), nil, false
	}
	if st.Opening {
		rec.Base = st.Base()
	}
	line, self, err := rec.AppendLine(nil, st.Key, st.Self, since)
	if err != nil {
		return false, err
	}
	rec.Self = self
	r.st, err = state.Advance(st, &segment.Commit{Record: rec, Entries: entries, Line: line}, state.Given{})
	return fits, err
}

// adopt copies from an object what the log does not hold, if the object is of the newest commit of r: the working
// window, the table of branches, the summary that listings show.
func (r *remake) adopt(o *checkpoint.Object) {
	if o.Summary.Commit != r.st.Summary.Commit || o.HeadOrd != r.st.HeadOrd {
		return
	}
	next := *r.st
	next.Branches, next.Original, next.Claimed, next.CAS = o.Branches, o.Original, o.Claimed, o.CAS
	next.Summary.Title, next.Summary.Cwd, next.Summary.Preview = o.Summary.Title, o.Summary.Cwd, o.Summary.Preview
	next.Meta, next.Summary.Meta, next.Source = o.Meta, o.Summary.Meta, o.Source
	next.Summary.Created, next.Summary.Parent, next.Blobs = o.Summary.Created, o.Summary.Parent, o.Blobs
	if of, err := state.FromObject(o); err == nil && of.Window != nil {
		next.Window = of.Window
	}
	r.st = &next
}

// seal stores the commits as a sealed segment.
func (r *remake) seal(ctx context.Context) (codec.Ref, error) {
	line, err := r.pre.Line()
	if err != nil {
		return codec.Ref{}, err
	}
	prelude := [][]byte{line}
	if r.head != nil {
		prelude = [][]byte{r.head, line}
	}
	c, err := r.past.WriteSealed(ctx, r.name, prelude, r.st.Tail, r.from)
	return c.Ref, err
}

// remap returns the segment map over the sealed segments in order, and writes the index objects that it needs.
func (r *repair) remap(ctx context.Context) (checkpoint.SegmentMap, error) {
	st := &state.State{Since: r.cfg.Since}
	for _, ref := range r.refs {
		if err := st.Segments.Append(ref); err != nil {
			return st.Segments, err
		}
		for level, due, ok := st.Foldable(); ok; level, due, ok = st.Foldable() {
			c, err := r.past.Fold(ctx, level, due, r.epoch)
			if err != nil {
				return checkpoint.SegmentMap{}, err
			}
			if st, err = st.With(c); err != nil {
				return checkpoint.SegmentMap{}, err
			}
		}
	}
	return st.Segments, nil
}

// install publishes the end of a repaired log and the map of its sealed part: on a store that only replaces objects as
// checkpoint_latest, under the version that the damaged one had; on a disk as a new active segment and a
// checkpoint_latest for it.
func (r *remake) install(ctx context.Context, m checkpoint.SegmentMap, was backend.Version, exists bool) error {
	st := *r.st
	st.Segments = m
	st.Opening = false
	st.IDs = nil
	if indexed, err := r.past.Reindexed(ctx, &st); err == nil { // else a later seal makes it
		st = *indexed
	}
	cond := backend.IfMatch(was)
	if !exists {
		cond = backend.IfAbsent()
	}
	key := layout.CheckpointKey(r.cfg.Session)
	if _, disk := r.cfg.Backend.(backend.Appender); disk {
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
		if err := r.store.Create(ctx, r.name.PlainKey(r.cfg.Session), raw); err != nil {
			return err
		}
		st.Plain = []checkpoint.PlainRef{{
			Name: r.name.Name(), First: r.name.First, Count: uint64(len(st.Tail)), FirstSeq: r.from,
			Bytes: int64(len(raw)), Epoch: r.name.Epoch, Key: st.Key, Self: st.Self,
		}}
		body, err := st.Object(false).Encode()
		if err != nil {
			return err
		}
		_, err = r.cfg.Backend.Put(ctx, key, body, cond)
		return err
	}
	body, err := st.Object(true).Encode()
	if err != nil {
		return err
	}
	_, err = r.cfg.Backend.Put(ctx, key, body, cond)
	return err
}

// closeWith closes a damaged active segment of size bytes: it appends a line that is no commit and promises that more
// bytes than those were durable. So a writer that had the segment open meets damage, and not a torn tail that it would
// cut off.
func (r *repair) closeWith(ctx context.Context, seg layout.Segment, key uint64, size int64) error {
	a, ok := r.cfg.Backend.(backend.Appender)
	if !ok {
		return fmt.Errorf("fence %s: %w", seg.Name(), backend.ErrPrecondition)
	}
	id, now, err := r.store.LineID()
	if err != nil {
		return err
	}
	rec := checkpoint.Record{
		ID: id, Time: now, Writer: r.cfg.Writer, Reason: reason, HeadOrd: -1, Branch: "main", Next: seg.Name(),
		Synced: size + 1, Seq: segment.Fence,
	}
	line, _, err := rec.AppendLine([]byte("\n"), key, ^uint32(0), []byte("fence"))
	if err != nil {
		return err
	}
	_, err = a.Append(ctx, seg.PlainKey(r.cfg.Session), size, append(line, '\n'))
	return err
}
