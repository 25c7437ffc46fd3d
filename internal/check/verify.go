package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// verifyRuns bounds how often a session is verified because another process wrote at the same time.
const verifyRuns = 3

// Verify checks cfg's session, "" = every session of the store, and all other objects. It writes nothing. Damage is in
// the report; an error means that the store could not be read. Changes by another process may look like damage: then
// the session is read again, at most verifyRuns times.
func Verify(ctx context.Context, cfg journal.Config, deep bool) (Report, error) {
	return Each(ctx, cfg, func(cfg journal.Config) (Report, error) {
		for try := 1; ; try++ {
			v := newVerifier(cfg, deep)
			err := v.run(ctx)
			if err != nil || !v.damaged() || try == verifyRuns || !v.moved(ctx) {
				return *v.r, err
			}
		}
	})
}

// verifier is one run of Verify on one session.
type verifier struct {
	cfg  journal.Config
	b    backend.Backend
	id   string
	disk bool // the store appends: the log decides, and the checkpoint may be older
	deep bool
	r    *Report
	inv  *Inventory

	o       *checkpoint.Object // checkpoint_latest; nil = it cannot be read
	st      *state.State       // the newest state; nil = it cannot be computed
	since   uint64             // first epoch of the session
	chain   []link
	at      place
	broken  bool // the chain of segments has a gap, so that not all after it can be checked
	tree    *transcript.TreeBuilder
	wishes  map[uint64][]wish
	blobs   map[string]bool // images that entries refer to
	aside   map[string]bool // torn objects that commits name
	ids     []*run          // of the id index, intact ones
	deleted bool
	stale   bool // a snapshot is newer than the head

	// Losses that a repair has recorded: lost are objects, by key within the session, with the ordinal of the entry
	// that records it; standIns are entries in the places of lost ones.
	lost      map[string]uint64
	standIns  []span
	erased    []span
	stateless []span // commits whose state is lost
}

// wish is a claim of an object that the entry with an ordinal has this id.
type wish struct{ object, id, what string }

func newVerifier(cfg journal.Config, deep bool) *verifier {
	cfg.ReadOnly = true
	_, disk := cfg.Backend.(backend.Appender)
	return &verifier{
		cfg: cfg, b: cfg.Backend, id: cfg.Session, disk: disk, deep: deep, r: &Report{Sessions: 1},
		tree: transcript.NewTreeBuilder(), wishes: map[uint64][]wish{},
		blobs: map[string]bool{}, aside: map[string]bool{}, lost: map[string]uint64{},
	}
}

func (v *verifier) run(ctx context.Context) error {
	var err error
	if v.inv, err = TakeInventory(ctx, v.b, v.id, func(key string) { v.r.stranger(v.id, key) }); err != nil {
		return fmt.Errorf("verify session %s: %w", v.id, err)
	}
	v.r.strangers(v.id, layout.SessionPrefix(v.id))
	v.r.Objects = v.inv.Count
	for _, step := range []func(context.Context) error{
		v.checkpoint, v.state, v.incarnation, v.heads, v.snapshots, v.runs, v.segments, v.tail,
		v.strays, v.content,
	} {
		if err := step(ctx); err != nil || v.deleted {
			return err
		}
	}
	v.places()
	v.losses()
	v.diagnostics()
	return nil
}

func (v *verifier) damaged() bool {
	return slices.ContainsFunc(v.r.Problems, func(p *Problem) bool { return p.Kind.Damage() })
}

// moved reports whether another process committed since the state was read, or sealed segments since they were listed.
func (v *verifier) moved(ctx context.Context) bool {
	now, err := journal.Open(ctx, v.cfg)
	if err == nil && (v.st == nil || now.State().Summary.Commit != v.st.Summary.Commit) {
		return true
	}
	inv, err := TakeInventory(ctx, v.b, v.id, func(string) {})
	return err == nil && (len(inv.Plain) != len(v.inv.Plain) || len(inv.Sealed) != len(v.inv.Sealed))
}

func (v *verifier) note(kind Kind, object string, offset int64, err error, format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	if err != nil {
		detail += ": " + err.Error()
		if errors.Is(err, codec.ErrVersion) {
			kind = TooNew
		}
	}
	v.r.note(Problem{Session: v.id, Object: object, Offset: offset, Kind: kind, Detail: detail, Err: err})
}

// get reads an object, or a part of it; nil without an error where it is not there.
func (v *verifier) get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	p, info, err := v.b.Get(ctx, key, r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, info, nil
	}
	if err != nil {
		return nil, info, fmt.Errorf("verify session %s: %w", v.id, err)
	}
	v.r.Bytes += int64(len(p))
	if p == nil {
		p = []byte{}
	}
	return p, info, nil
}

// checkpoint reads checkpoint_latest and checks that its parts agree.
func (v *verifier) checkpoint(ctx context.Context) error {
	key := layout.CheckpointKey(v.id)
	p, _, err := v.get(ctx, key, backend.Range{})
	if err != nil {
		return err
	}
	if p == nil {
		return v.noCheckpoint(key)
	}
	v.r.Objects++
	o, err := checkpoint.DecodeObject(p)
	switch {
	case err != nil:
		v.note(Damaged, key, 0, err, "it cannot be read")
		return nil
	case o.Summary.ID != v.id || o.Summary.Snapshot != "":
		v.note(Mismatch, key, 0, nil, "it is of session %q, snapshot %q", o.Summary.ID, o.Summary.Snapshot)
		return nil
	case o.Summary.Tombstone:
		next := layout.NextEpoch(o.Summary.Epoch)
		begun, err := store.Begun(ctx, v.b, v.id, next)
		if err != nil {
			return fmt.Errorf("verify session %s: %w", v.id, err)
		}
		if begun {
			v.note(NoCheckpoint, key, 0, nil,
				"it is the tombstone of the session before; the log has all that it would hold")
		} else {
			v.noteDeleted()
		}
		return nil
	}
	if _, err := state.FromObject(o); err != nil {
		v.note(Mismatch, key, 0, err, "its parts do not agree")
		return nil
	}
	v.o = o
	for _, ord := range o.Window.Ords {
		v.wishForLine(key, "the working window", ord, o.Pool[ord])
	}
	return nil
}

// noteDeleted ends the verification of a deleted session.
func (v *verifier) noteDeleted() {
	v.deleted = true
	if v.inv.Count > 0 {
		v.note(Leftover, layout.SessionPrefix(v.id), 0, nil,
			"%d objects of a deleted session; a collection removes them", v.inv.Count)
	}
}

func (v *verifier) noCheckpoint(key string) error {
	switch {
	case v.inv.Count == 0:
		return &backend.Error{Op: "verify", Key: v.id, Outcome: backend.NotApplied, Err: fs.ErrNotExist}
	case len(v.inv.Plain)+len(v.inv.Sealed) == 0:
		v.deleted = true
		v.note(Leftover, layout.SessionPrefix(v.id), 0, nil, "%d objects of a session that never came to be",
			v.inv.Count)
	case v.disk:
		v.note(NoCheckpoint, key, 0, nil, "it is not there; the log tells all that it held")
	default:
		v.note(Missing, key, 0, errGone, "the session's head and the end of its transcript")
	}
	return nil
}

// state finds the newest state: the checkpoint's own, on a disk with what the log holds after it.
func (v *verifier) state(ctx context.Context) error {
	if !v.disk {
		if v.o != nil {
			v.st, _ = state.FromObject(v.o)
		}
		return nil
	}
	j, err := journal.Open(ctx, v.cfg)
	var f *store.Failure
	switch {
	case err == nil:
		v.st = j.State()
		if v.o != nil && v.o.Summary.Seq > v.st.Summary.Seq {
			ref := v.st.Plain[len(v.st.Plain)-1]
			v.note(Damaged, plainKey(v.id, ref.Name), ref.Bytes, nil,
				"the log ends with commit %d, checkpoint_latest is of commit %d", v.st.Summary.Seq, v.o.Summary.Seq)
		}
	case errors.Is(err, store.ErrDeleted): // its end is in the log, and was not followed by a tombstone
		v.noteDeleted()
	case errors.As(err, &f):
		v.note(Damaged, f.Object, f.Offset, err, "the session cannot be opened")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, codec.ErrVersion):
		v.note(Damaged, layout.SessionPrefix(v.id)+layout.Transcript, 0, err, "the session cannot be opened")
	default:
		return fmt.Errorf("verify session %s: %w", v.id, err)
	}
	return nil
}

// incarnation finds the first epoch of the session, because earlier sessions may have had its id, and removes their
// objects from the inventory.
func (v *verifier) incarnation(ctx context.Context) error {
	switch {
	case v.st != nil:
		v.since = v.st.Since
	case v.o != nil:
		v.since = v.o.Since
	default: // the newest one: by its segments
		s := &store.Store{Backend: v.b, Session: v.id}
		all := v.inv.Segments()
		slices.SortFunc(all, func(x, y layout.Segment) int { return cmp.Compare(y.Epoch, x.Epoch) })
		for _, seg := range all {
			v.since = max(v.since, seg.Since())
		}
		for _, seg := range all {
			since, ok, err := s.SinceOf(ctx, seg)
			if err != nil {
				return fmt.Errorf("verify session %s: %w", v.id, err)
			}
			if ok {
				v.since = max(v.since, since)
				break
			}
		}
	}
	if v.inv.of(v.since); v.inv.Dead > 0 {
		v.note(Leftover, layout.SessionPrefix(v.id), 0, nil,
			"%d objects of a deleted session that had the id before; a collection removes them", v.inv.Dead)
	}
	return nil
}

// heads records the claims of head and branches about entries.
func (v *verifier) heads(context.Context) error {
	if v.st == nil {
		return nil
	}
	key := layout.CheckpointKey(v.id)
	v.wishFor(key, "the head", v.st.Summary.Entry, v.st.HeadOrd)
	for _, b := range v.st.Branches {
		v.wishFor(key, "branch "+b.Name, b.Head, b.Ord)
	}
	return nil
}

func plainKey(id, name string) string {
	seg, _ := layout.ParseSegment(name)
	return seg.PlainKey(id)
}

// wishForLine records the claim of an object that contains a copy of an entry's line.
func (v *verifier) wishForLine(object, what string, ord uint64, line []byte) {
	if l, err := transcript.ParseLine(line); err == nil {
		v.wishes[ord] = append(v.wishes[ord], wish{object, l.ID, what})
	}
}

func (v *verifier) wishFor(object, what, id string, ord int64) {
	switch {
	case ord >= 0:
		v.wishes[uint64(ord)] = append(v.wishes[uint64(ord)], wish{object, id, what})
	case id != "":
		v.note(Mismatch, object, 0, nil, "%s is entry %s, which has no ordinal", what, id)
	}
}

// longID is the length from which on an id in a summary may be cut.
const longID = 250

// seen compares an entry of the log with the claims of other objects about it.
func (v *verifier) seen(ord uint64, id string) {
	for _, w := range v.wishes[ord] {
		if w.id != id && len(w.id) < longID {
			v.note(Mismatch, w.object, 0, nil, "%s: entry %d is %s, not %s", w.what, ord, id, w.id)
		}
	}
	delete(v.wishes, ord)
}

// errGone is the cause of a problem with an object that does not exist.
var errGone = fmt.Errorf("it is not there: %w", fs.ErrNotExist)
