// Package gc collects garbage. A collection never removes an object to which any present or later head refers, while
// writers and readers work. It uses no clock and no lock (I12).
//
// The rule for segments, index objects and runs of the id index: an object is removed iff its epoch is below that of
// the head and it is not reachable from the head. The objects are listed first, the head is read afterwards. A writer
// refers only to objects to which an earlier head referred (I7), and to those that it uploaded itself under the epoch
// of its own first commit; once a later epoch is in force none of its commits can succeed (I8). Snapshots, images and
// originals are kept as long as their session; everything of a deleted session is removed. A writer that merged runs
// removes the old ones itself once its checkpoint is in force.
//
// On a disk the log is authoritative: the roots are the segments of the chain, plain and sealed, and the segment map of
// the published checkpoint. A plain segment is also removed if that checkpoint names its sealed form, as its writer
// would do next. A segment with commits that the log does not reach is damage and not garbage, unless a repair replaced
// it.
package gc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// Run collects the garbage of the session of cfg; "" = of every session of the store. With dryRun nothing is removed:
// the report lists as leftovers the objects that would be removed. If the head of a session cannot be read nothing of
// the session is removed, and the report contains the problem. It may run concurrently with writers and other
// collections.
func Run(ctx context.Context, cfg journal.Config, dryRun bool) (check.Report, error) {
	cfg.ReadOnly = true
	return check.Each(ctx, cfg, func(cfg journal.Config) (check.Report, error) {
		c := newCollection(cfg, dryRun)
		err := c.run(ctx)
		if err == nil && c.completed {
			cfg.Unfinished = nil // once: another caller may have begun the next erasure
			c = newCollection(cfg, dryRun)
			err = c.run(ctx)
		}
		return c.r, err
	})
}

func newCollection(cfg journal.Config, dry bool) *collection {
	return &collection{
		cfg: cfg, b: cfg.Backend, id: cfg.Session, dry: dry, r: check.Report{Sessions: 1}, keep: map[string]bool{},
	}
}

// collection is the collection of one session.
type collection struct {
	cfg journal.Config
	b   backend.Backend
	id  string
	dry bool
	r   check.Report

	listed []candidate
	keep   map[string]bool // reachable from the head, by key
	chain  check.Chain     // on a disk: the segments of the log
	sealed map[string]bool // on a disk: plain keys whose sealed form the published checkpoint names
	epoch  uint64          // of the head
	shown  uint64          // of the published checkpoint
	since  uint64          // first epoch of the session: objects of earlier epochs belong to a deleted one

	completed bool // an erasure was completed, and nothing collected: what was listed is out of date
}

// candidate is an object that may be garbage.
type candidate struct {
	key   string
	size  int64
	seg   layout.Segment
	index bool // an index object, or a run of the id index
	plain bool
}

func (c *collection) run(ctx context.Context) error {
	if err := c.list(ctx); err != nil {
		return err
	}
	o, ok, err := c.head(ctx)
	switch {
	case err != nil:
		return err
	case o == nil && len(c.listed) == 0 && len(c.r.Problems) == 0:
		return &backend.Error{Op: "collect", Key: c.id, Outcome: backend.NotApplied, Err: fs.ErrNotExist}
	case !ok:
		return nil
	case o != nil && o.Summary.Tombstone:
		return c.removeDead(ctx, true, layout.NextEpoch(o.Summary.Epoch))
	}
	ok, err = c.roots(ctx, o)
	switch {
	case errors.Is(err, store.ErrDeleted): // the log ends with a deletion that has no tombstone
		return c.removeDead(ctx, true, math.MaxUint64)
	case err != nil || !ok:
		return err
	}
	if c.completed, err = c.erasure(ctx); err != nil || c.completed {
		return err
	}
	if c.since > 0 {
		if err := c.removeDead(ctx, false, c.since); err != nil {
			return err
		}
	}
	if o != nil && o.Erased > 0 {
		if err := c.late(ctx, o.Erased); err != nil {
			return err
		}
	}
	for _, cand := range c.listed {
		goes, err := c.garbage(ctx, cand)
		if err != nil {
			return err
		}
		if goes {
			if err := c.remove(ctx, cand.key, cand.size, "nothing can refer to it any more"); err != nil {
				return err
			}
		}
	}
	return nil
}

// list records the objects that exist before the head is read.
func (c *collection) list(ctx context.Context) error {
	for _, folder := range []string{layout.Transcript, layout.Index, layout.IDs} {
		for info, err := range c.b.List(ctx, backend.ListOptions{Prefix: layout.SessionPrefix(c.id) + folder}) {
			if err != nil {
				return fmt.Errorf("collect session %s: %w", c.id, err)
			}
			cand := candidate{key: info.Key, size: info.Size, index: folder != layout.Transcript}
			ok := false
			switch {
			case folder == layout.IDs:
				cand.seg, ok = layout.ParseSegment(info.Key[strings.LastIndexByte(info.Key, '/')+1:])
				ok = ok && layout.IDsKey(c.id, cand.seg) == info.Key
			case cand.index:
				var level int
				level, cand.seg, ok = layout.ParseIndexKey(info.Key)
				ok = ok && layout.IndexKey(c.id, level, cand.seg) == info.Key
			default:
				var sealed bool
				cand.seg, sealed, ok = layout.ParseSegmentKey(info.Key)
				cand.plain = !sealed
				ok = ok && (cand.seg.SealedKey(c.id) == info.Key || cand.seg.PlainKey(c.id) == info.Key)
			}
			if ok { // other objects are left alone
				c.r.Objects++
				c.listed = append(c.listed, cand)
			}
		}
	}
	return nil
}

// head reads checkpoint_latest; false: it does not exist or cannot be used.
func (c *collection) head(ctx context.Context) (*checkpoint.Object, bool, error) {
	_, disk := c.b.(backend.Appender)
	key := layout.CheckpointKey(c.id)
	p, _, err := c.b.Get(ctx, key, backend.Range{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, disk, nil // on other stores a session may be about to be created
	case err != nil:
		return nil, false, fmt.Errorf("collect session %s: %w", c.id, err)
	}
	o, err := checkpoint.DecodeObject(p)
	if err == nil && o.Summary.ID != c.id {
		err = fmt.Errorf("it belongs to session %q: %w", o.Summary.ID, codec.ErrFormat)
	}
	if err != nil {
		c.problem(key, err)
		return nil, false, nil
	}
	return o, true, nil
}

// late removes snapshots that arrived after the erasure of a commit and are of a state before it.
func (c *collection) late(ctx context.Context, erased uint64) error {
	prefix := layout.SessionPrefix(c.id) + layout.Snapshots
	for info, err := range c.b.List(ctx, backend.ListOptions{Prefix: prefix}) {
		if err != nil {
			return fmt.Errorf("collect session %s: %w", c.id, err)
		}
		p, _, err := c.b.Get(ctx, info.Key, backend.Range{})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("collect session %s: %w", c.id, err)
		}
		o, err := checkpoint.DecodeObject(p)
		if err != nil || o.Summary.ID != c.id || o.Since != c.since || o.Erased >= erased {
			continue
		}
		if err := c.remove(ctx, info.Key, info.Size, "it was made before entries were erased"); err != nil {
			return err
		}
	}
	return nil
}

// problem reports why nothing is collected.
func (c *collection) problem(key string, err error) {
	p := &check.Problem{
		Session: c.id, Object: key, Kind: check.Damaged, Detail: "nothing is collected: " + err.Error(),
		Err: err,
	}
	if f, ok := errors.AsType[*store.Failure](err); ok {
		p.Object, p.Offset = f.Object, f.Offset
	}
	c.r.Problems = append(c.r.Problems, p)
}

// erasure completes an erasure that was broken off, if there is one, and reports whether it did. In a dry run, and
// where a hold refuses that, it reports what was begun.
func (c *collection) erasure(ctx context.Context) (done bool, err error) {
	if c.cfg.Unfinished == nil {
		return false, nil
	}
	key := layout.ErasureKey(c.id, c.since)
	switch _, err := c.b.Stat(ctx, key); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("collect session %s: %w", c.id, err)
	}
	p := &check.Problem{Session: c.id, Object: key, Kind: check.Leftover}
	if c.dry {
		p.Detail = "an erasure was begun and is not complete; it would be completed"
		c.r.Problems = append(c.r.Problems, p)
		return false, nil
	}
	err = c.cfg.Unfinished(ctx, c.cfg)
	if errors.Is(err, journal.ErrHeld) {
		p.Detail, p.Err = "an erasure was begun and is not complete: the session is held", err
		c.r.Problems = append(c.r.Problems, p)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("collect session %s: nothing was removed: %w", c.id, err)
	}
	return true, nil
}

// roots collects the objects that the head reaches; false if they cannot be determined.
func (c *collection) roots(ctx context.Context, o *checkpoint.Object) (bool, error) {
	_, disk := c.b.(backend.Appender)
	if o != nil {
		c.epoch, c.shown, c.since = o.Summary.Epoch, o.Summary.Epoch, o.Since
		c.runs(o.IDs)
		if ok, err := c.reach(ctx, o.Segments); err != nil || !ok {
			return false, err
		}
	}
	if !disk {
		return true, nil
	}
	c.sealed = map[string]bool{}
	for _, cand := range c.listed {
		if !cand.index && !cand.plain && c.keep[cand.key] {
			c.sealed[cand.seg.PlainKey(c.id)] = true
		}
	}
	j, err := journal.Open(ctx, c.cfg)
	switch {
	case errors.Is(err, store.ErrDeleted):
		return false, err
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, store.ErrCorrupt), errors.Is(err, codec.ErrVersion):
		c.problem(layout.SessionPrefix(c.id), err)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("collect session %s: %w", c.id, err)
	}
	st := j.State()
	c.epoch, c.since = st.Summary.Epoch, st.Since
	c.runs(st.IDs)
	var plain check.Chain
	for i := range st.Plain {
		if seg, ok := layout.ParseSegment(st.Plain[i].Name); ok {
			c.keep[seg.PlainKey(c.id)], c.keep[seg.SealedKey(c.id)] = true, true
			plain = append(plain, seg)
			delete(c.sealed, seg.PlainKey(c.id))
		}
	}
	c.chain = nil
	ok, err := c.reach(ctx, st.Segments)
	c.chain = append(c.chain, plain...)
	return ok, err
}

// runs marks the runs of the id index that a head names.
func (c *collection) runs(refs []codec.Ref) {
	for _, ref := range refs {
		c.keep[layout.IDsKey(c.id, layout.Segment{First: ref.First, Epoch: ref.Epoch, Rnd: ref.Rnd})] = true
	}
}

// reach marks all objects that a segment map reaches.
func (c *collection) reach(ctx context.Context, m checkpoint.SegmentMap) (bool, error) {
	ok := true
	var err error
	var down func(level int, ref codec.Ref) bool
	down = func(level int, ref codec.Ref) bool {
		seg := layout.Segment{First: ref.First, Epoch: ref.Epoch, Rnd: ref.Rnd}
		if level == 0 {
			c.keep[seg.SealedKey(c.id)] = true
			c.chain = append(c.chain, seg)
			return true
		}
		key := layout.IndexKey(c.id, level, seg)
		c.keep[key] = true
		refs, ferr := check.FoldIndex(ctx, c.b, key, ref)
		if ferr != nil {
			ok = false
			if !check.Unreadable(ferr) {
				err = fmt.Errorf("collect session %s: %w", c.id, ferr)
				return false
			}
			c.problem(key, ferr)
			return false
		}
		for _, r := range refs {
			if !down(level-1, r) {
				return false
			}
		}
		return true
	}
	m.Refs(down)
	return ok, err
}

// garbage reports whether a candidate may be removed, by the rule of the package.
func (c *collection) garbage(ctx context.Context, cand candidate) (bool, error) {
	_, disk := c.b.(backend.Appender)
	switch {
	case c.sealed[cand.key]:
		return true, nil // its sealed form is published
	case cand.seg.Epoch < c.since: // of a deleted session with this id
		return false, nil
	case c.keep[cand.key] || cand.seg.Epoch >= c.epoch:
		return false, nil
	case !disk:
		return true, nil
	case cand.index:
		// A writer of checkpoints first folds references. A writer of an epoch below the published one can no longer
		// publish.
		return cand.seg.Epoch < c.shown, nil
	}
	if c.chain.Replaced(cand.seg) {
		return true, nil
	}
	holds, err := c.holdsCommits(ctx, cand)
	return !holds, err
}

// holdsCommits reports whether a segment on a disk that the log does not reach contains commits.
func (c *collection) holdsCommits(ctx context.Context, cand candidate) (bool, error) {
	raw, _, err := c.b.Get(ctx, cand.key, backend.Range{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, fmt.Errorf("collect session %s: %w", c.id, err)
	}
	if !cand.plain {
		raw, _, err = codec.DecodeSegment(raw, check.MaxRaw)
	}
	var got segment.Contents
	if err == nil {
		got, err = segment.Read(raw, cand.seg)
	}
	if err == nil && got.Commits == 0 && got.End == len(raw) {
		return false, nil
	}
	c.r.Problems = append(c.r.Problems, &check.Problem{
		Session: c.id, Object: cand.key, Kind: check.Mismatch, Err: err,
		Detail: fmt.Sprintf("the log does not lead to it, and it holds %d commits or damage: it is kept; run repair",
			got.Commits),
	})
	return true, nil
}

// removeDead removes the objects of a deleted session, also if another session has its id now; the tombstone stays.
// all: also objects of unknown kinds. A dry run counts objects of epochs below the given one as dead.
func (c *collection) removeDead(ctx context.Context, all bool, below uint64) error {
	var left []backend.Info
	for info, err := range c.b.List(ctx, backend.ListOptions{Prefix: layout.SessionPrefix(c.id)}) {
		if err != nil {
			return fmt.Errorf("collect session %s: %w", c.id, err)
		}
		if all || check.IsObject(c.id, info) {
			left = append(left, info)
		}
	}
	if all {
		c.r.Objects = len(left)
	}
	if len(left) == 0 {
		return nil
	}
	if !c.dry { // objects are removed only after the tombstone is durable (I13)
		var err error
		if below, err = journal.Entomb(ctx, c.cfg); err != nil {
			return fmt.Errorf("collect session %s: %w", c.id, err)
		}
	}
	for _, info := range left {
		if layout.Epoch(info.Key) >= below {
			continue
		}
		if err := c.remove(ctx, info.Key, info.Size, "its session is deleted"); err != nil {
			return err
		}
	}
	return nil
}

func (c *collection) remove(ctx context.Context, key string, size int64, why string) error {
	c.r.Removed++
	c.r.Bytes += size
	if c.dry {
		c.r.Problems = append(c.r.Problems,
			&check.Problem{Session: c.id, Object: key, Kind: check.Leftover, Detail: why + "; it would be removed"})
		return nil
	}
	if err := c.b.Delete(ctx, key); err != nil {
		return fmt.Errorf("collect session %s: %w", c.id, err)
	}
	return nil
}
