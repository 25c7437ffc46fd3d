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

// appendStrategy is the commit protocol of one handle on a store that appends. Publish and Resend run under the lock of
// the handle; the fields after mu are also used by background work.
type appendStrategy struct {
	cfg   *Config
	store *store.Store
	past  *store.History
	b     backend.Appender

	key atomic.Pointer[segmentKey] // cache for activeKey

	// What this handle knows of checkpoint_latest, from its last read or write of it; guarded by mu.
	mu      sync.Mutex
	version backend.Version
	exists  bool
	seq     uint64      // of the newest commit in it
	batches uint64      // State.Batches at that commit
	bytes   int64       // State.Summary.Bytes at that commit
	runs    []codec.Ref // the runs of the id index that it names

	rebuildIDs bool // build a new id index instead of adding to the one that the checkpoint names

	fitted *checkpoint.Object // encoded last by fits, to reuse its frames; used under the lock of the handle

	last *checkpoint.Object // the object that save encoded last in the background, to reuse its frames; guarded by mu
}

func newAppend(cfg *Config, s *store.Store, past *store.History, b backend.Appender) *appendStrategy {
	return &appendStrategy{cfg: cfg, store: s, past: past, b: b}
}

// segmentKey is the name of a segment and the key of its plain object.
type segmentKey struct{ name, key string }

// activeKey returns the key of the active segment's object.
func (a *appendStrategy) activeKey(st *state.State) string {
	name := st.Active().Name
	if last := a.key.Load(); last != nil && last.name == name {
		return last.key
	}
	key := store.SegmentOf(st.Active()).PlainKey(a.cfg.Session)
	a.key.Store(&segmentKey{name: name, key: key})
	return key
}

// ReadyBase composes the beginning of the first segment, if the session is new. Else it makes the log up to req.next
// durable before the request appends to it.
func (a *appendStrategy) ReadyBase(ctx context.Context, req *request, _ sealing) error {
	st := req.next
	if st.Active() == nil {
		return a.begin(req)
	}
	if st.Missing > st.Summary.Seq {
		return a.endsEarly(st, st.Missing)
	}
	st, err := a.Harden(ctx, st)
	if err == nil && !st.Sure() {
		err = a.reread(ctx, st)
	}
	if err != nil {
		return err
	}
	req.next, req.synced = st, st.Durable
	return nil
}

// Harden makes all of the log up to st durable (I13). A sync that failed in another process can leave pages that look
// clean but are not on disk. So Harden rewrites in place, and syncs, the bytes that no commit line promised as durable.
func (a *appendStrategy) Harden(ctx context.Context, st *state.State) (*state.State, error) {
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
			return st, nil // another process changed the segment just now: st stays not Sure
		}
		if err != nil {
			return nil, err
		}
	}
	next := *st
	next.Durable, next.Unsure = st.Active().Bytes, nil
	return &next, nil
}

// hardenSealed makes the sealed form of the segment with the plain key durable. It returns false if no sealed form
// exists.
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

// begin composes the first lines of the first segment of a session, without I/O.
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

// newSegment returns a reference to a new segment that continues st, and the lines that it starts with. firstSeq is the
// seq of the first commit in the segment.
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

// Publish stores the lines of a request: by one append to the active segment, on condition that the segment ends where
// req.base does. There are two exceptions: the first commit of a session creates its first segment (create), and a
// request that fills the segment first creates the next one (roll), because its last line names it.
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
		return nil, a.lostAppend(ctx, base)
	}
	return nil, err
}

// Resend appends the lines of a request from the line k on. The log contains the first k lines already.
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
		return nil, a.lostAppend(ctx, now)
	}
	return nil, err
}

// fits returns an error if the checkpoint of st would exceed checkpoint.MaxObject: a session must stay resumable with
// one read after each acknowledged commit. It encodes the checkpoint only if an estimate (State.MayPass) is near the
// limit.
func (a *appendStrategy) fits(st *state.State) error {
	if !st.MayPass() {
		return nil
	}
	o := st.Object(false)
	o.Reuse(a.fitted)
	body, err := o.Encode()
	if size := int64(len(body)) + objectRoom; err == nil && size > checkpoint.MaxObject {
		err = &codec.LimitError{What: "checkpoint with what closing adds", Limit: checkpoint.MaxObject, Value: size}
	}
	if err != nil {
		return notApplied("append", layout.CheckpointKey(a.cfg.Session), err)
	}
	a.fitted = o
	return nil
}

// objectRoom is the number of bytes below checkpoint.MaxObject that fits keeps free, because the checkpoint that is
// written later has more references to segments and runs, and frames of other sizes.
const objectRoom = 128 << 10

// lostAppend returns the error of an append that had no effect because the segment did not end where base does: a
// *recompose with the newest state, damage, or NotApplied if the newest state cannot be read.
func (a *appendStrategy) lostAppend(ctx context.Context, base *state.State) error {
	err := a.resolveLost(ctx, base)
	var m *recompose
	var f *store.Failure
	if errors.As(err, &m) || errors.As(err, &f) {
		return err
	}
	return notApplied("append", a.activeKey(base), err)
}

// create writes the first segment of a session and thereby creates the session. It is fs.ErrExist if the session
// exists. Unlike an append it takes several requests: reads that look for an existing session, one create, and the
// checkpoint.
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
	_ = a.save(ctx, next, false) // the checkpoint is a cache: the commit is in the log
	return next, nil
}

// overtaken returns an error if the first segment that this handle just created, with the given key, does not belong to
// the session. Between the reads of create and its write, another process may have created the session and then sealed
// or deleted its first segment. Then the checkpoint exists by now, because it is written before the first object is
// removed. If since > 0, an earlier session had the same id, and its tombstone or a later object is at the key of the
// checkpoint.
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

// resolveLost finds out why the active segment does not end where base does, and returns a *recompose with the newest
// state. That state is base if the segment only had torn bytes, which trimTail has removed.
func (a *appendStrategy) resolveLost(ctx context.Context, base *state.State) error {
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
	if errors.Is(err, fs.ErrNotExist) { // another writer sealed the segment between the two reads
		return a.reread(ctx, base)
	}
	if err != nil {
		return err
	}
	if now.Summary.Seq > base.Summary.Seq {
		return &recompose{now: now}
	}
	if rest == 0 {
		return a.reread(ctx, base)
	}
	now, err = a.trimTail(ctx, base)
	if err != nil {
		return err
	}
	return &recompose{now: now}
}

// reread returns a *recompose with the newest state, read from the checkpoint. It returns ErrCorrupt if that is base
// again and the active segment does not exist: a repair died before its end, and trying again would not help.
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
	return &recompose{now: now}
}

// Changed reports whether any writer committed after st, by the length of the active segment.
func (a *appendStrategy) Changed(ctx context.Context, st *state.State) (bool, error) {
	size, err := a.size(ctx, a.activeKey(st))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && size != st.Active().Bytes, err
}

// size returns the length of an object in bytes. It does not use Stat, which reads the whole object on a disk to
// compute its version.
func (a *appendStrategy) size(ctx context.Context, key string) (int64, error) {
	_, info, err := a.b.Get(ctx, key, backend.Tail(0))
	return info.Size, err
}

// notApplied returns the error of a write that failed before it had an effect, for example at a read.
func notApplied(op, key string, err error) error {
	return &backend.Error{Op: op, Key: key, Outcome: backend.NotApplied, Err: err}
}

// Upkeep returns the background work that tidy does, if a segment waits to be sealed, or if checkpoint_latest is old
// enough: Limits.PublishBytes of log since it, or the bytes of the window if those are more; or Limits.PublishCommits
// appends that together have at least a sixteenth of the bytes of the window, or PublishBytes.
func (a *appendStrategy) Upkeep(st *state.State, bg sealing) *job {
	if !bg.idle || st.Stale() { // st may lack the changes of background work
		return nil
	}
	l := &a.cfg.Limits
	enough, few := l.PublishBytes, int64(0)
	if w := st.Window; w != nil { // so that checkpoints take no more bytes than the log
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
