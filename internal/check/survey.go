package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// Survey is the result of a deep check of one session, with what a repair needs.
type Survey struct {
	Report
	Deleted   bool
	Disk      bool
	Parts     []Part               // the log in order, without a gap
	Object    *checkpoint.Object   // checkpoint_latest; nil = it cannot be read
	Summary   *checkpoint.Summary  // of it, where at least that can be read
	Raw       []byte               // its bytes; nil = it is not there
	Version   backend.Version      // of it
	State     *state.State         // the newest state that opening returns; nil = none
	Snapshots []*checkpoint.Object // intact ones, oldest first
	Remap     bool                 // index objects are damaged
	Epoch     uint64               // the highest that anything names
	Since     uint64               // the first one of the session
	Inventory *Inventory
	Recorded  map[string]bool // objects that a repair recorded as lost, by key within the session
}

// Part is a segment of the log, or the place of one.
type Part struct {
	Seg         layout.Segment
	Intact      bool
	Plain       bool
	Ref         codec.Ref // of an intact sealed one
	First, End  uint64    // ordinals; End 0 = not known
	Seq, EndSeq uint64    // of its commits; EndSeq 0 = not known
	Key         uint64    // of its commit lines, if another object has it
}

// Bad returns the keys in which there is damage.
func (s *Survey) Bad() map[string]bool {
	bad := map[string]bool{}
	for _, p := range s.Problems {
		if p.Kind.Damage() {
			bad[p.Object] = true
		}
	}
	return bad
}

// Look surveys cfg's session. It writes nothing.
func Look(ctx context.Context, cfg journal.Config) (*Survey, error) {
	v := newVerifier(cfg, true)
	// The version is read before the content: what a repair writes under it replaces nothing that was not read.
	p, info, err := v.get(ctx, layout.CheckpointKey(v.id), backend.Range{})
	if err != nil {
		return nil, err
	}
	if err := v.run(ctx); err != nil {
		return nil, err
	}
	s := &Survey{
		Report: *v.r, Disk: v.disk, Deleted: v.deleted, Object: v.o, State: v.st, Inventory: v.inv,
		Since: v.since,
	}
	s.Recorded = map[string]bool{}
	for name := range v.lost {
		s.Recorded[name] = true
	}
	if s.Deleted {
		return s, nil
	}
	if v.stale && !v.disk { // then the head is only a witness, as snapshots are
		if v.o != nil {
			s.Snapshots = append(s.Snapshots, v.o)
		}
		v.o, v.st, s.Object, s.State = nil, nil, nil, nil
	}
	if s.Raw, s.Version = p, info.Version; p != nil {
		if sum, err := checkpoint.DecodeSummary(p); err == nil && sum.ID == v.id && sum.Snapshot == "" {
			s.Summary = &sum
			s.Epoch = max(s.Epoch, sum.Epoch)
		}
	}
	bad := s.Bad()
	for key := range bad {
		s.Remap = s.Remap || strings.HasPrefix(key, layout.SessionPrefix(v.id)+layout.Index)
	}
	for _, info := range v.inv.Snapshots {
		p, _, err := v.get(ctx, info.Key, backend.Range{})
		if err != nil {
			return nil, err
		}
		// A damaged log does not show whether an intact snapshot is right.
		if o, err := checkpoint.DecodeObject(p); err == nil && v.isSnapshot(info.Key, &o.Summary) {
			s.Snapshots = append(s.Snapshots, o)
			s.Epoch = max(s.Epoch, o.Summary.Epoch)
		}
	}
	s.dropLate()
	for _, seg := range v.inv.Segments() {
		s.Epoch = max(s.Epoch, seg.Epoch)
	}
	if v.st != nil {
		s.Epoch = max(s.Epoch, v.st.Summary.Epoch)
	}
	if s.Remap || v.st == nil {
		known := v.chain
		t, err := trace(ctx, v.b, v.id, v.inv)
		if err != nil {
			return nil, err
		}
		v.chain = t.links
		if v.st != nil {
			v.chain = within(t.links, known, v.st.Segments.Next())
		}
	}
	return s, s.parts(ctx, v, bad)
}

// dropLate drops snapshots of states before an erasure that were written after it: they contain the erased text.
func (s *Survey) dropLate() {
	erased := uint64(0)
	if s.Object != nil {
		erased = s.Object.Erased
	}
	for _, o := range s.Snapshots {
		erased = max(erased, o.Erased)
	}
	s.Snapshots = slices.DeleteFunc(s.Snapshots, func(o *checkpoint.Object) bool { return o.Erased < erased })
}

// within returns the known links, and those found links that lie in the gaps between them, up to ordinal end. Outside
// of the gaps a found segment may not be part of the log: a writer sealed it, but did not commit a reference to it.
func within(found, known []link, end uint64) []link {
	var out []link
	next := uint64(0)
	fill := func(to uint64) {
		for _, l := range found {
			if l.seg.First >= next && l.seg.First < to {
				out = append(out, l)
			}
		}
	}
	for _, l := range known {
		fill(l.seg.First)
		out = append(out, l)
		if next = l.seg.First; l.ref != nil {
			next += uint64(l.ref.Count)
		} else if l.plain != nil {
			next += l.plain.Count
		}
	}
	fill(end)
	return out
}

// parts makes the parts of the chain, with those between them of which nothing is there.
func (s *Survey) parts(ctx context.Context, v *verifier, bad map[string]bool) error {
	next, seq := uint64(0), uint64(0)
	for i := range v.chain {
		p, err := s.part(ctx, v, &v.chain[i], bad)
		if err != nil {
			return err
		}
		if p.First > next {
			s.Parts = append(s.Parts,
				Part{Seg: layout.Segment{First: next}, First: next, End: p.First, Seq: seq, EndSeq: p.Seq})
		}
		if n := len(s.Parts); n > 0 && !s.Parts[n-1].Intact {
			s.Parts[n-1].End, s.Parts[n-1].EndSeq = p.First, p.Seq
		}
		s.Parts = append(s.Parts, p)
		next, seq = p.End, p.EndSeq
	}
	return nil
}

// part looks what is known of one segment of the chain.
func (s *Survey) part(ctx context.Context, v *verifier, l *link, bad map[string]bool) (Part, error) {
	p := Part{Seg: l.seg, First: l.seg.First, Plain: l.plain != nil}
	p.Intact = !bad[l.seg.SealedKey(v.id)] && !bad[l.seg.PlainKey(v.id)]
	raw, err := readEither(ctx, v.b, v.id, l.seg)
	if err != nil && !Unreadable(err) {
		return p, fmt.Errorf("survey session %s: %w", v.id, err)
	}
	c, rerr := segment.Read(raw, l.seg)
	p.Intact = p.Intact && err == nil && rerr == nil
	p.Seq, p.Key = c.Opening.Prelude.FirstSeq, c.Opening.Prelude.Key
	p.End, p.EndSeq = p.First+uint64(len(c.Lines)), p.Seq+uint64(c.Commits)
	if l.plain != nil {
		if l.plain.Key != 0 {
			p.Seq, p.Key = l.plain.FirstSeq, l.plain.Key
		}
		return p, nil
	}
	if p.Intact {
		obj, _, err := v.b.Get(ctx, l.seg.SealedKey(v.id), backend.Range{})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p, fmt.Errorf("survey session %s: %w", v.id, err)
		}
		p.Ref = codec.Ref{
			First: p.First, Count: uint32(len(c.Lines)), FirstSeq: p.Seq, RawBytes: int64(len(raw)),
			Epoch: l.seg.Epoch, Rnd: l.seg.Rnd,
		}
		p.Ref.Seal(obj)
	} else if l.ref != nil {
		p.Seq, p.End = l.ref.FirstSeq, p.First+uint64(l.ref.Count)
	}
	return p, nil
}
