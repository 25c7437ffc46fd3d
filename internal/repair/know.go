package repair

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// know is what intact objects contain about the lines of damaged segments: checkpoint, snapshots, indexes, and other
// segments with the same ordinals.
type know struct {
	header    []byte
	bodies    map[uint64][]byte             // whole lines of entries, by ordinal
	ids       map[uint64]string             // of entries, by ordinal
	parents   map[uint64]int64              // of entries, by ordinal
	marks     map[uint64]bool               // by ordinal: whether it is a commit line
	records   map[uint64]*checkpoint.Record // commit lines, by ordinal
	commits   map[uint64]checkpoint.Commit  // by seq
	documents map[uint64][]byte             // by seq
	rules     state.Rules                   // of the working context; zero = not known
	originals []string                      // hex SHA-256s of imported files that an object names, the newest first
	seq, next uint64                        // the newest commit in any of these objects, and the ordinal after it
}

func (k *know) learn(s *check.Survey) {
	*k = know{
		bodies: map[uint64][]byte{}, ids: map[uint64]string{}, marks: map[uint64]bool{},
		parents: map[uint64]int64{},
		records: map[uint64]*checkpoint.Record{}, commits: map[uint64]checkpoint.Commit{},
		documents: map[uint64][]byte{},
	}
	all := s.Snapshots
	if s.Object != nil {
		all = append(all[:len(all):len(all)], s.Object)
	}
	for _, o := range all {
		k.object(o)
	}
	if s.Summary != nil {
		k.reach(*s.Summary)
	}
	for i := len(all) - 1; i >= 0; i-- {
		k.original(all[i].Original)
	}
	if s.State != nil {
		k.original(s.State.Original)
	}
}

func (k *know) reach(sum checkpoint.Summary) {
	if next := sum.Entries + sum.Seq + 1; sum.Commit != "" && next > k.next {
		k.seq, k.next = sum.Seq, next
	}
}

func (k *know) original(sum string) {
	if sum != "" {
		k.originals = append([]string{sum}, k.originals...)
	}
}

// object adds the content of a checkpoint or a snapshot.
func (k *know) object(o *checkpoint.Object) {
	k.reach(o.Summary)
	k.rules = state.Rules{Profile: transcript.Profile(o.Window.Profile), MaxBytes: o.Window.MaxBytes}
	k.header = o.Header
	k.documents[o.Summary.Seq] = o.Document
	next := o.Summary.Entries + o.Summary.Seq + 1
	for i := len(o.Lineage) - 1; i >= 0; i-- {
		c := &o.Lineage[i]
		k.commits[c.Seq] = *c
		if next == 0 || uint64(c.Entries) >= next {
			break
		}
		next--
		k.marks[next] = true
		for n := next - uint64(c.Entries); n < next; n++ {
			k.marks[n] = false
		}
		next -= uint64(c.Entries)
		k.entry(c.Entry, c.HeadOrd)
	}
	for _, b := range o.Branches {
		k.entry(b.Head, b.Ord)
	}
	for ord, line := range o.Pool {
		l, err := transcript.ParseLine(line)
		if err != nil {
			continue
		}
		k.entry(l.ID, int64(ord))
		if whole(line) && !isLost(line) && !slices.Contains(o.Window.Amended, ord) {
			k.bodies[ord] = line
		}
	}
}

func (k *know) entry(id string, ord int64) {
	if id != "" && ord >= 0 {
		k.ids[uint64(ord)], k.marks[uint64(ord)] = id, false
	}
}

// whole reports whether a line of a working window is complete. A window may contain only four fields of a line that no
// context needs.
func whole(line []byte) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &fields) != nil {
		return false
	}
	for _, head := range []string{"type", "id", "parentId", "timestamp"} {
		delete(fields, head)
	}
	return len(fields) > 0
}

// rows adds the rows of a skeleton.
func (k *know) rows(sk *codec.Skeleton) {
	for i := range sk.Len() {
		ord := sk.First() + uint64(i)
		commit := sk.Flags(i)&codec.FlagCommit != 0
		if k.marks[ord] = commit; !commit {
			k.ids[ord], k.parents[ord] = sk.ID(i), sk.Parent(i)
		}
	}
}

// fromOthers adds what intact objects outside of the log contain about its damaged parts: index objects, and segments
// with the same ordinals that are not part of the log.
func (r *repair) fromOthers(ctx context.Context) error {
	if r.intactLog() {
		return nil
	}
	for i := range r.s.Parts {
		if p := &r.s.Parts[i]; p.Intact {
			if err := r.names(ctx, p); err != nil {
				return err
			}
		}
	}
	for key := range r.s.Inventory.Folds {
		p, _, err := r.cfg.Backend.Get(ctx, key, backend.Range{})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		refs, packed, err := codec.DecodeIndex(p)
		if err != nil || !r.indexes(refs) {
			continue
		}
		for _, p := range packed {
			sk, err := codec.DecodeSkeleton(p)
			if err == nil && sk.Len() > 0 && r.hurts(sk.First(), sk.First()+uint64(sk.Len())) {
				r.rows(sk)
			}
		}
	}
	in := map[layout.Segment]bool{}
	for i := range r.s.Parts {
		in[r.s.Parts[i].Seg] = true
	}
	for _, seg := range r.s.Inventory.Segments() {
		if in[seg] || !r.hurts(seg.First, seg.First+1) {
			continue
		}
		if err := r.stray(ctx, seg); err != nil {
			return err
		}
	}
	return nil
}

// indexes reports whether an index object may be one of the session: its segments are where those of the log are.
func (r *repair) indexes(refs []codec.Ref) bool {
	agrees := false
	for _, ref := range refs {
		for i := range r.s.Parts {
			seg := r.s.Parts[i].Seg
			if seg.First != ref.First || seg.Rnd == "" {
				continue
			}
			if seg != (layout.Segment{First: ref.First, Epoch: ref.Epoch, Rnd: ref.Rnd}) {
				return false
			}
			agrees = agrees || ref.Rnd != layout.FirstRandom
		}
	}
	return agrees
}

// contents reads an intact segment.
func (r *repair) contents(ctx context.Context, p *check.Part) (segment.Contents, error) {
	raw, _, err := check.ReadSegment(ctx, r.cfg.Backend, r.cfg.Session, p.Seg)
	if err != nil {
		return segment.Contents{}, err
	}
	return segment.Read(raw, p.Seg)
}

// names adds the ids of entries of other segments to which an intact segment refers: parents, heads and branches.
func (r *repair) names(ctx context.Context, p *check.Part) error {
	c, err := r.contents(ctx, p)
	if err != nil {
		return err
	}
	for _, l := range c.Lines {
		if l.Commit {
			if rec, _, err := checkpoint.ParseRecord(l.Raw, c.Opening.Prelude.Key); err == nil {
				r.learnCommit(&rec)
			}
			continue
		}
		if h, err := transcript.ParseLine(l.Raw); err == nil && l.Parent >= 0 && uint64(l.Parent) < p.First {
			r.entry(h.ParentID, l.Parent)
		}
	}
	return nil
}

// learnCommit adds the ids of entries that a commit line contains.
func (k *know) learnCommit(rec *checkpoint.Record) {
	k.entry(rec.Head, rec.HeadOrd)
	k.original(rec.Original)
	if rec.Base == nil {
		return
	}
	k.original(rec.Base.Original)
	if k.rules == (state.Rules{}) {
		k.rules = state.RulesOf(rec.Base, k.rules)
	}
	for _, b := range rec.Base.Branches {
		k.entry(b.Head, b.Ord)
	}
}

// parentsBefore adds to known the ordinals of entries before ordinal first that entries of a part have as parents.
func (r *repair) parentsBefore(ctx context.Context, first uint64, list []Commit, known map[string]int64) error {
	wanted := map[string]bool{}
	for i := range list {
		for _, e := range list[i].Entries {
			wanted[e.From] = true
		}
	}
	delete(wanted, "")
	for i := range list {
		for _, e := range list[i].Entries {
			delete(wanted, e.ID)
		}
	}
	for id := range known {
		delete(wanted, id)
	}
	for ord, id := range r.ids {
		if wanted[id] && ord < first {
			known[id] = int64(ord)
			delete(wanted, id)
		}
	}
	for i := len(r.s.Parts) - 1; i >= 0 && len(wanted) > 0; i-- {
		p := &r.s.Parts[i]
		if !p.Intact || p.First >= first {
			continue
		}
		c, err := r.contents(ctx, p)
		if err != nil {
			return err
		}
		for _, l := range c.Lines {
			if h, err := transcript.ParseLine(l.Raw); err == nil && !l.Commit && wanted[h.ID] {
				known[h.ID] = int64(l.Ord)
			}
		}
		for id := range known {
			delete(wanted, id)
		}
	}
	return nil
}

func (r *repair) intactLog() bool {
	for i := range r.s.Parts {
		if !r.s.Parts[i].Intact {
			return false
		}
	}
	return true
}

// hurts reports whether any of the ordinals from first to before end lies in a damaged part, or after all of them.
func (r *repair) hurts(first, end uint64) bool {
	for i := range r.s.Parts {
		p := &r.s.Parts[i]
		if !p.Intact && end > p.First && (p.End == 0 || first < p.End || i == len(r.s.Parts)-1) {
			return true
		}
	}
	return false
}

// stray takes in the commits of a segment that is not in the log: an earlier repair's that did not come to its end.
// It must agree with what is known of the commits: the segment of a writer that lost may hold others.
func (r *repair) stray(ctx context.Context, seg layout.Segment) error {
	raw, _, err := check.ReadSegment(ctx, r.cfg.Backend, r.cfg.Session, seg)
	if err != nil {
		if check.Unreadable(err) {
			return nil
		}
		return err
	}
	o, err := segment.ParseOpening(raw, seg.First == 0)
	if err != nil || !o.Of(r.cfg.Session, seg) {
		return nil
	}
	var found []segment.Commit
	agrees := false
	segment.Scan(raw[o.Size:], o.Prelude.Key, o.Self(), func(c segment.Commit) bool {
		k, known := r.commits[c.Record.Seq]
		if known && k.Commit != c.Record.ID {
			agrees, found = false, nil
			return false
		}
		agrees, found = agrees || known, append(found, c)
		return true
	})
	if !agrees {
		return nil
	}
	ord := seg.First
	for i := range found {
		for _, line := range found[i].Entries {
			if h, err := segment.Entry(ord, line); err == nil && !isLost(line) {
				r.bodies[ord] = line
				r.entry(h.ID, int64(ord))
			}
			ord++
		}
		r.records[ord], r.marks[ord] = &found[i].Record, true
		ord++
	}
	return nil
}
