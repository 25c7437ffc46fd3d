package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// appendStrategy is the commit protocol of one handle on a store that appends.
type appendStrategy struct {
	cfg   *Config
	store *store.Store
	past  *store.History
	b     backend.Appender

	key     atomic.Pointer[segmentKey] // of the active segment, as it was named last
	mu      sync.Mutex
	version backend.Version // of checkpoint_latest, as this handle last saw it
	exists  bool            // there is a checkpoint_latest
	seq     uint64          // of the commit that it holds
	batches uint64          // writes to the log by then
	bytes   int64           // of the transcript then
	runs    []codec.Ref     // of the id index, that it names

	anew bool // the id index is made again, whatever the checkpoint names

	tried *checkpoint.Object // encoded by fits last; the leader's

	last *checkpoint.Object // written in the background last: the next one compresses only what it has not
}

func newAppend(cfg *Config, s *store.Store, past *store.History, b backend.Appender) *appendStrategy {
	return &appendStrategy{cfg: cfg, store: s, past: past, b: b}
}

// segmentKey is the key of a plain segment's object.
type segmentKey struct{ name, key string }

func (a *appendStrategy) activeKey(st *state.State) string {
	name := st.Active().Name
	if last := a.key.Load(); last != nil && last.name == name {
		return last.key
	}
	key := store.SegmentOf(st.Active()).PlainKey(a.cfg.Session)
	a.key.Store(&segmentKey{name: name, key: key})
	return key
}

// Prepare begins a new session's first segment, or confirms what the batch builds upon.
func (a *appendStrategy) Prepare(ctx context.Context, req *request, _ sealing) error {
	st := req.next
	if st.Active() == nil {
		return a.begin(req)
	}
	if st.Missing > st.Summary.Seq {
		return a.endsEarly(st, st.Missing)
	}
	st, err := a.Confirm(ctx, st)
	if err == nil && !st.Sure() {
		err = a.reread(ctx, st)
	}
	if err != nil {
		return err
	}
	req.next, req.synced = st, st.Durable
	return nil
}

// Confirm sees to it that all of the log up to st is on disk: a sync that failed in another process leaves
// pages that look clean and never reached it, so what no one promised is written in place again (I13).
func (a *appendStrategy) Confirm(ctx context.Context, st *state.State) (*state.State, error) {
	spans := st.Unsure
	if end := st.Active().Bytes; st.Durable < end {
		spans = append(slices.Clone(spans), state.Span{Key: a.activeKey(st), From: st.Durable, End: end})
	}
	if len(spans) == 0 {
		return st, nil
	}
	for _, s := range spans {
		size, err := a.size(ctx, s.Key)
		if err == nil && size < s.End {
			err = backend.ErrPrecondition
		}
		if errors.Is(err, fs.ErrNotExist) { // sealed since, or before the checkpoint was lost
			if hardened, herr := a.hardenSealed(ctx, s.Key); herr != nil {
				return nil, herr
			} else if hardened {
				continue
			}
		}
		if err == nil {
			_, err = a.b.Resync(ctx, s.Key, s.From, size)
		}
		if errors.Is(err, backend.ErrPrecondition) || errors.Is(err, fs.ErrNotExist) {
			return st, nil // another process opened it just now: nothing is confirmed in the state
		}
		if err != nil {
			return nil, err
		}
	}
	next := *st
	next.Durable, next.Unsure = st.Active().Bytes, nil
	return &next, nil
}

// hardenSealed makes the sealed form of a plain segment durable; false where there is none.
func (a *appendStrategy) hardenSealed(ctx context.Context, plain string) (bool, error) {
	seg, _, ok := layout.ParseSegmentKey(plain)
	if !ok {
		return false, nil
	}
	key := seg.SealedKey(a.cfg.Session)
	p, info, err := a.b.Get(ctx, key, backend.Range{})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, a.store.Harden(ctx, key, p, info.Version)
}

// begin composes the start of a session's first segment.
func (a *appendStrategy) begin(req *request) error {
	next := *req.next
	ref, lines, err := a.newSegment(&next, layout.Segment{Epoch: req.epoch, Rnd: layout.FirstRandom}, 0)
	if err != nil {
		return err
	}
	next.Plain, next.Key = []checkpoint.PlainRef{ref}, ref.Key
	req.next, req.bytes = &next, lines
	return nil
}

// newSegment makes the reference to a segment that begins after st, and the lines that it starts with.
// firstSeq is the seq of the first commit in it.
func (a *appendStrategy) newSegment(
	st *state.State, name layout.Segment, firstSeq uint64,
) (checkpoint.PlainRef, []byte, error) {
	key, err := a.store.NewKey()
	if err != nil {
		return checkpoint.PlainRef{}, nil, err
	}
	id, now, err := a.store.LineID()
	if err != nil {
		return checkpoint.PlainRef{}, nil, err
	}
	p := checkpoint.Prelude{
		ID: id, Time: now, Session: a.cfg.Session, First: name.First, FirstSeq: firstSeq, Epoch: name.Epoch, Key: key,
	}
	var lines []byte
	if prev := st.Active(); prev != nil {
		p.PrevName, p.PrevBytes, p.PrevSelf = prev.Name, prev.Bytes, st.Self
	} else {
		lines = append(append(lines, st.Header...), '\n')
	}
	line, err := p.Line()
	if err != nil {
		return checkpoint.PlainRef{}, nil, err
	}
	lines = append(append(lines, line...), '\n')
	return checkpoint.PlainRef{
		Name: name.Name(), First: name.First, FirstSeq: firstSeq, Bytes: int64(len(lines)), Epoch: name.Epoch, Key: key,
		Self: st.Self,
	}, lines, nil
}

// Publish appends what was composed to the active segment, iff that ends where base does.
func (a *appendStrategy) Publish(ctx context.Context, req *request) (*state.State, error) {
	base := req.base
	begun := base.Active() == nil
	if err := a.fits(req.next); err != nil {
		return nil, err
	}
	if err := a.roll(ctx, req); err != nil {
		return nil, err
	}
	req.size = len(req.bytes)
	next := req.next
	next.Batches++
	if begun {
		return a.create(ctx, req)
	}
	info, err := a.b.Append(ctx, a.activeKey(base), base.Active().Bytes, req.bytes)
	switch {
	case err == nil:
		if next.Active().Name == base.Active().Name {
			next.Durable = info.Size
		}
		return next, nil
	case errors.Is(err, backend.ErrPrecondition):
		return nil, a.unchanged(ctx, base)
	}
	return nil, err
}

// Resend appends what is missing of a request behind its first k lines, which are there.
func (a *appendStrategy) Resend(ctx context.Context, req *request, now *state.State, k int) (*state.State, error) {
	if now.Summary.Commit == "" {
		return a.create(ctx, req)
	}
	p, next := req.bytes, *req.next
	if k > 0 {
		p = p[req.lines[k-1].end:]
	}
	info, err := a.b.Append(ctx, a.activeKey(now), now.Active().Bytes, p)
	switch {
	case err == nil:
		if next.Active().Name == now.Active().Name {
			next.Durable = info.Size
		}
		return &next, nil
	case errors.Is(err, backend.ErrPrecondition):
		return nil, a.unchanged(ctx, now)
	}
	return nil, err
}

// fits refuses a state whose checkpoint would be too large: what is acknowledged must leave a session that can be
// resumed with one read. Few states are so large that the checkpoint has to be encoded to know.
func (a *appendStrategy) fits(st *state.State) error {
	if !st.MayPass() {
		return nil
	}
	o := st.Object(false)
	o.Reuse(a.tried)
	body, err := o.Encode()
	if size := int64(len(body)) + objectRoom; err == nil && size > checkpoint.MaxObject {
		err = &codec.LimitError{What: "checkpoint with what closing adds", Limit: checkpoint.MaxObject, Value: size}
	}
	if err != nil {
		return notApplied("append", layout.CheckpointKey(a.cfg.Session), err)
	}
	a.tried = o
	return nil
}

// objectRoom is left free for what a checkpoint holds besides, once it is written: references to segments and runs, and
// frames of another size.
const objectRoom = 128 << 10

// unchanged is behind for an append that had no effect, whatever else failed.
func (a *appendStrategy) unchanged(ctx context.Context, base *state.State) error {
	err := a.behind(ctx, base)
	var m *moved
	var f *store.Failure
	if errors.As(err, &m) || errors.As(err, &f) {
		return err
	}
	return notApplied("append", a.activeKey(base), err)
}

// create writes a session's first segment: that is the creation of the session.
func (a *appendStrategy) create(ctx context.Context, req *request) (*state.State, error) {
	next := req.next
	first := layout.Segment{Epoch: req.epoch, Rnd: layout.FirstRandom}
	o, _, err := a.store.Checkpoint(ctx)
	switch {
	case err == nil:
		return nil, a.taken(o.Summary.Tombstone)
	case errors.Is(err, store.ErrCorrupt):
		return nil, a.taken(false)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, notApplied("create", a.cfg.Session, err)
	}
	// The first segment of a session whose checkpoint is lost may be sealed by now.
	_, _, err = a.b.Get(ctx, first.SealedKey(a.cfg.Session), backend.Tail(0))
	switch {
	case err == nil:
		return nil, a.taken(false)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, notApplied("create", a.cfg.Session, err)
	}
	if next.Since > 0 {
		if err := a.renewTombstone(ctx); err != nil {
			return nil, err
		}
	}
	err = a.store.Create(ctx, first.PlainKey(a.cfg.Session), req.bytes)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, a.taken(false)
	case err != nil:
		return nil, err
	}
	if err := a.overtaken(ctx, first, next.Plain[0].Key, next.Since); err != nil {
		return nil, err
	}
	if next.Active().Name == first.Name() {
		next.Durable = next.Active().Bytes
	}
	_ = a.save(ctx, next, false) // a cache: what is acknowledged is in the log
	return next, nil
}

// overtaken returns why a first segment that was just written, and has the key, is not that of the session. Between the
// looks before that and the write, another process may have created the session, and moved its first segment to the
// sealed form, or deleted it: then the checkpoint is there by now, since it comes before the first object goes.
// After a deleted session of the id, there always is its tombstone, or what replaced that.
func (a *appendStrategy) overtaken(ctx context.Context, first layout.Segment, key, since uint64) error {
	a.store.Bind(since)
	o, info, err := a.store.Checkpoint(ctx)
	deleted := err == nil && o.Summary.Tombstone
	switch {
	case errors.Is(err, fs.ErrNotExist) && (since == 0 || info.Version != ""):
		return nil
	case since > 0 && errors.Is(err, store.ErrCorrupt):
	case err == nil && !deleted, errors.Is(err, store.ErrCorrupt):
		raw, _, _, rerr := a.store.SegmentRaw(ctx, first)
		if rerr != nil {
			err = rerr
			break
		}
		p, perr := segment.ParseOpening(raw, true)
		if err = perr; err == nil && p.Prelude.Key == key {
			return nil // another handle has opened the session already
		}
	}
	if err != nil { // the segment is there
		return &backend.Error{Op: "create", Key: a.cfg.Session, Outcome: backend.Unknown, Err: err}
	}
	return errors.Join(a.taken(deleted), a.b.Delete(ctx, first.PlainKey(a.cfg.Session)))
}

// renewTombstone writes the tombstone of the session before once more, as Again may have done so a while ago: a listing
// that knows the id as deleted looks again when it has changed, and by nothing else.
func (a *appendStrategy) renewTombstone(ctx context.Context) error {
	key := layout.CheckpointKey(a.cfg.Session)
	p, info, err := a.b.Get(ctx, key, backend.Range{})
	if err == nil {
		err = a.store.Harden(ctx, key, p, info.Version)
	}
	if err != nil && !errors.Is(err, backend.ErrPrecondition) && !errors.Is(err, fs.ErrNotExist) {
		return notApplied("create", a.cfg.Session, err)
	}
	return nil // another writer has replaced it, which changes it too
}

func (a *appendStrategy) taken(deleted bool) error {
	cause := fmt.Errorf("the session already exists: %w", fs.ErrExist)
	if deleted {
		cause = fmt.Errorf("the id belongs to a deleted session: %w", fs.ErrExist)
	}
	return &backend.Error{Op: "create", Key: a.cfg.Session, Outcome: backend.NotApplied, Err: cause}
}

// roll closes the active segment with the batch where that makes it large enough: the next segment is
// created first, and the last commit line of the batch names it. So there is one chain, and a stale
// writer meets a changed length.
func (a *appendStrategy) roll(ctx context.Context, req *request) error {
	st := req.next
	l := &a.cfg.Limits
	ref := st.Active()
	// A segment begins with the whole document: a large one is to be a quarter of it at most.
	full := ref.Bytes >= max(l.RollBytes, 4*int64(len(st.DocJSON))) || ref.Count >= uint64(l.RollEntries)
	if !full && !req.step.rolls() || st.Summary.Tombstone { // nothing follows the end of a session
		return nil
	}
	rnd, err := a.store.Random()
	if err != nil {
		return notApplied("roll", a.cfg.Session, err)
	}
	name := layout.Segment{First: st.Next + 1, Epoch: req.epoch, Rnd: rnd}
	if err := req.roll(name.Name()); err != nil {
		return notApplied("roll", a.cfg.Session, err)
	}
	next := *req.next
	opened, lines, err := a.newSegment(&next, name, next.Summary.Seq+1)
	if err != nil {
		return notApplied("roll", a.cfg.Session, err)
	}
	if err := a.store.Create(ctx, name.PlainKey(a.cfg.Session), lines); err != nil {
		return notApplied("roll", name.PlainKey(a.cfg.Session), err) // the batch itself was not sent
	}
	req.next = next.Rolled(opened)
	return nil
}

// Upkeep has checkpoint_latest written once enough was committed since: 256 appends if they are a sixteenth of
// what the window holds or 512 KiB, or 512 KiB of log (or as much as the window holds), or a segment that can be
// sealed.
func (a *appendStrategy) Upkeep(st *state.State, bg sealing) *job {
	if !bg.idle || st.Stale() { // st may not know what was made
		return nil
	}
	l := &a.cfg.Limits
	enough, few := l.PublishBytes, int64(0)
	if w := st.Window; w != nil { // so that, over time, the cache costs no more than the log
		enough, few = max(enough, int64(w.Bytes())), min(enough, int64(w.Bytes())/16)
	}
	a.mu.Lock()
	due := len(st.Plain) > 1 || st.Summary.Bytes >= a.bytes+enough ||
		st.Batches >= a.batches+uint64(l.PublishCommits) && st.Summary.Bytes >= a.bytes+few
	a.mu.Unlock()
	if !due {
		return nil
	}
	return &job{run: func(ctx context.Context) ([]state.Change, error) {
		_, made, err := a.tidy(ctx, st, true)
		return made, err
	}}
}

// behind finds out why the active segment does not end where base does. It returns a *moved with the
// newest state, which is base itself where only torn bytes were there and have been moved aside.
func (a *appendStrategy) behind(ctx context.Context, base *state.State) error {
	key := a.activeKey(base)
	size, err := a.size(ctx, key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || size == base.Active().Bytes {
		return a.reread(ctx, base)
	}
	if size < base.Active().Bytes {
		return store.Corrupt(key, size,
			fmt.Errorf("the segment had %d committed bytes: %w", base.Active().Bytes, codec.ErrFormat))
	}
	now, rest, err := a.play(ctx, base)
	if errors.Is(err, fs.ErrNotExist) { // another writer rolled over, and sealed it between the two looks
		return a.reread(ctx, base)
	}
	if err != nil {
		return err
	}
	if now.Summary.Seq > base.Summary.Seq {
		return &moved{now: now}
	}
	if rest == 0 {
		return a.reread(ctx, base)
	}
	now, err = a.mend(ctx, base)
	if err != nil {
		return err
	}
	return &moved{now: now}
}

// reread answers with the newest state, read from the start. Where that is base again, and the segment that
// the next append goes to is not there, nothing will change by itself: a repair died before its end.
func (a *appendStrategy) reread(ctx context.Context, base *state.State) error {
	now, err := a.Load(ctx)
	if err != nil {
		return err
	}
	if now.Summary.Commit == base.Summary.Commit && now.Active().Name == base.Active().Name {
		key := a.activeKey(now)
		if _, err := a.size(ctx, key); errors.Is(err, fs.ErrNotExist) {
			return store.Corrupt(key, 0, fmt.Errorf("the active segment is missing: %w", codec.ErrFormat))
		}
	}
	return &moved{now: now}
}

// Changed reports by the length of the active segment whether anyone committed after st.
func (a *appendStrategy) Changed(ctx context.Context, st *state.State) (bool, error) {
	size, err := a.size(ctx, a.activeKey(st))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && size != st.Active().Bytes, err
}

// size returns the length of an object. Stat would do as well, but a disk has to read the whole object for its version.
func (a *appendStrategy) size(ctx context.Context, key string) (int64, error) {
	_, info, err := a.b.Get(ctx, key, backend.Tail(0))
	return info.Size, err
}

// notApplied is a failed read in the course of a write that had no effect.
func notApplied(op, key string, err error) error {
	return &backend.Error{Op: op, Key: key, Outcome: backend.NotApplied, Err: err}
}
