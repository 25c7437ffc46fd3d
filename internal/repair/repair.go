// Package repair makes a damaged session usable again and loses nothing that is intact: what verifies or parses is
// taken over, under its old ordinals, ids and commit numbers; all other bytes are kept aside as they are, and
// recorded as lost (I14).
//
// For each segment of the log that is damaged or gone, a new sealed one is made with as many lines and commits: the
// entries as they were, new commit lines, and for each lost entry one of type custom, customType "coppice.lost". So
// ordinals and numbers stay (I6), and snapshots, branches and later segments refer to the same entries as before. Lost
// entries are looked for first: in the other form of a segment, in segments of the same ordinals, in checkpoint and
// snapshots, and in the imported file of the session, which is read again. Indexes have their ids and parents.
//
// Other objects (images, snapshots, imported files) come back in the same way or move to torn/, and an entry
// "coppice.lost" with the key records the loss. A repair converges: it ends when a deep verify of its result finds no
// damage, and a second repair has nothing to do.
//
// For the log, one write puts the result in force: checkpoint_latest, with a commit of the reason "repair"
// that claims the session, so that every earlier writer is refused. On a disk the active segment is closed
// before that by a line after its end, which no writer who knew it can pass, and a new one begins.
package repair

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

const reason = "repair"

// Repair makes cfg's session usable again, "" = every session of the store. With dryRun it does so in memory, and
// reports what it would do. Its problems are what was rebuilt, salvaged and lost. A problem that is damage is still
// there: Repair reads all of its result before it returns, and reports what it found then. again reads the imported
// file of a session again; nil = a repair does without it.
func Repair(ctx context.Context, cfg journal.Config, again Reread, dryRun bool) (check.Report, error) {
	return check.Each(ctx, cfg, func(cfg journal.Config) (check.Report, error) {
		cfg.ReadOnly = false
		if !dryRun {
			return one(ctx, cfg, again)
		}
		_, rep, err := Try(ctx, cfg, again)
		rep.Objects, rep.Removed, rep.Bytes = 0, 0, 0
		return rep, err
	})
}

// Trial is the writer of the commits that Try makes.
const Trial = "repair-in-memory"

// Try repairs cfg's session in memory, and returns the store as a repair would leave it. Changes of that store stay in
// memory too.
func Try(ctx context.Context, cfg journal.Config, again Reread) (backend.Backend, check.Report, error) {
	b := newScratch(cfg.Backend)
	cfg.Backend, cfg.ReadOnly, cfg.Writer, cfg.Acknowledged, cfg.Proof = b, false, Trial, nil, nil
	rep, err := one(ctx, cfg, again)
	return b, rep, err
}

// roundsMost bounds how often a session is checked and repaired: damage may hide other damage until it is repaired.
const roundsMost = 4

func one(ctx context.Context, cfg journal.Config, again Reread) (check.Report, error) {
	rep := check.Report{Sessions: 1}
	for n := 1; ; n++ {
		s, err := check.Look(ctx, cfg)
		if err != nil {
			return rep, err
		}
		for _, p := range s.Problems {
			if p.Kind == check.TooNew {
				return s.Report, fmt.Errorf("repair session %s: %w", cfg.Session, p)
			}
		}
		if s.Deleted {
			return s.Report, nil
		}
		if n == 1 && len(s.Inventory.Erasures) > 0 && cfg.Unfinished != nil {
			// A repair must not recover entries whose erasure has begun, so it is completed first. That
			// may fail because of the damage; then it is tried again after the repair.
			_ = cfg.Unfinished(ctx, cfg)
			continue
		}
		cfg.Since = s.Since
		r := &repair{cfg: cfg, s: s, rep: rep, again: again, bad: s.Bad()}
		r.store, r.past = journal.Tools(cfg)
		err = errors.Join(r.round(ctx), r.close())
		if rep = r.rep; err != nil {
			return rep, fmt.Errorf("repair session %s: %w", cfg.Session, err)
		}
		if !r.worked {
			return rep, nil
		}
		now, err := check.Verify(ctx, cfg, true)
		if err != nil {
			return rep, err
		}
		left := damage(now.Problems)
		if len(left) == 0 && len(s.Inventory.Erasures) > 0 && cfg.Unfinished != nil {
			if err := cfg.Unfinished(ctx, cfg); err != nil {
				return rep, err
			}
		}
		if len(left) == 0 || n == roundsMost {
			rep.Problems = append(rep.Problems, left...)
			return rep, nil
		}
	}
}

// damage returns the problems that are damage.
func damage(list []*check.Problem) (out []*check.Problem) {
	for _, p := range list {
		if p.Kind.Damage() {
			out = append(out, p)
		}
	}
	return out
}

// round repairs the damage that one survey has found.
func (r *repair) round(ctx context.Context) error {
	r.learn(r.s)
	if err := r.fromOthers(ctx); err != nil {
		return err
	}
	r.worked = true
	reindex, err := r.runs(ctx)
	if err != nil {
		return err
	}
	switch {
	case r.logDamaged():
		reindex = false
		if err := r.log(ctx); err != nil {
			return err
		}
	case r.s.Disk && (r.s.Object == nil || r.has(check.TornTail) || r.has(check.ForeignBytes)):
		if err := r.touch(ctx); err != nil {
			return err
		}
	case len(r.bad) == 0:
		r.worked = false
	}
	if reindex {
		if err := journal.Reindex(ctx, r.cfg); err != nil {
			return fmt.Errorf("the id index: %w", err)
		}
	}
	return r.objects(ctx)
}

// runs moves the bytes of damaged objects of the id index aside, and reports whether there are any. The index is then
// made from the lines: by a repair of the log, or by Reindex.
func (r *repair) runs(ctx context.Context) (bad bool, err error) {
	for _, p := range r.s.Problems {
		if !p.Kind.Damage() || !strings.HasPrefix(p.Object, layout.SessionPrefix(r.cfg.Session)+layout.IDs) {
			continue
		}
		bad = true
		r.note(check.Rebuilt, p.Object, "it is written again from the entries: nothing is lost")
		raw, _, err := r.cfg.Backend.Get(ctx, p.Object, backend.Range{})
		if err == nil {
			err = r.aside(ctx, layout.Segment{Epoch: r.s.Epoch}, raw)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return bad, err
		}
	}
	return bad, nil
}

// close closes the imported file, if it was read.
func (r *repair) close() error {
	if r.origin.file == nil {
		return nil
	}
	return r.origin.file.Close()
}

// repair is one round of Repair on one session.
type repair struct {
	cfg    journal.Config
	store  *store.Store
	past   *store.History
	s      *check.Survey
	worked bool // the round had something to repair
	rep    check.Report
	bad    map[string]bool // objects in which there is damage
	again  Reread
	origin origin
	know
	epoch    uint64
	before   *state.State      // after the segments that are done
	sound    *state.State      // the newest state up to before in which the agent's state is not lost
	last     string            // name of the last segment that is done
	lastN    int64             // bytes of its lines
	shown    map[uint64][]byte // lines of the repaired log that are in a working window, by ordinal
	amending map[string]bool   // ids of amendments that are in a working window: whether the repaired log has them
	refs     []codec.Ref
	// segments of the session that are under the names of others, by first ordinal and epoch
	misplaced map[layout.Segment][]byte
	gone      []string // keys to remove once the result is in force
	torn      string   // the newest object that bytes were moved to, within the session
}

func (r *repair) has(kind check.Kind) bool {
	return slices.ContainsFunc(r.s.Problems, func(p *check.Problem) bool { return p.Kind == kind })
}

// logDamaged reports whether any part of the log, or an object that leads to it, has to be written again.
func (r *repair) logDamaged() bool {
	s := r.s
	if s.Remap || s.State == nil || s.Object != nil && r.bad[layout.CheckpointKey(r.cfg.Session)] {
		return true
	}
	prefix := layout.SessionPrefix(r.cfg.Session) + layout.Transcript
	for _, p := range s.Problems {
		if p.Kind.Damage() && strings.HasPrefix(p.Object, prefix) {
			return true
		}
	}
	return slices.ContainsFunc(s.Parts, func(p check.Part) bool { return !p.Intact })
}

func (r *repair) note(kind check.Kind, object, format string, args ...any) {
	r.rep.Problems = append(r.rep.Problems,
		&check.Problem{Session: r.cfg.Session, Object: object, Kind: kind, Detail: fmt.Sprintf(format, args...)})
}

// touch makes an empty commit. A commit moves torn bytes aside, and closing the handle writes the checkpoint.
func (r *repair) touch(ctx context.Context) error {
	key := layout.CheckpointKey(r.cfg.Session)
	if r.s.Object == nil {
		r.note(check.Rebuilt, key, "written again from the log")
	}
	for _, p := range r.s.Problems {
		if p.Kind == check.TornTail || p.Kind == check.ForeignBytes {
			r.note(check.Salvaged, p.Object, "%s; moved aside to torn/", p.Detail)
		}
	}
	if r.s.Object == nil && r.s.Raw != nil {
		if err := r.aside(ctx, layout.Segment{Epoch: r.s.Epoch + 1}, r.s.Raw); err != nil {
			return err
		}
	}
	cfg := r.cfg
	cfg.ReadOnly = false
	j, err := journal.Open(ctx, cfg)
	if err != nil {
		return err
	}
	_, err = j.Commit(ctx, &journal.Step{Reason: reason})
	return errors.Join(err, j.Close(ctx))
}

// aside stores bytes under torn/, before the object that contains them is replaced or removed.
func (r *repair) aside(ctx context.Context, seg layout.Segment, p []byte) error {
	rnd, err := r.store.Random()
	if err != nil {
		return err
	}
	if seg.Rnd == "" {
		seg.Rnd = layout.FirstRandom
	}
	key := layout.TornKey(r.cfg.Session, seg, 0, rnd)
	if _, err := r.cfg.Backend.Put(ctx, key, p, backend.IfAbsent()); err != nil {
		return err
	}
	r.wrote(len(p))
	r.torn = strings.TrimPrefix(key, layout.SessionPrefix(r.cfg.Session))
	return nil
}

func (r *repair) wrote(n int) {
	r.rep.Objects++
	r.rep.Bytes += int64(n)
}

// log repairs the log.
func (r *repair) log(ctx context.Context) error {
	r.epoch = r.s.Epoch + 1
	if r.s.Object == nil && r.s.Summary == nil && !r.s.Disk {
		r.epoch += epochGap // the head's own is not known, and epochs never fall (I8)
	}
	r.show()
	if err := r.misplace(ctx); err != nil {
		return err
	}
	parts := r.s.Parts
	if err := r.fence(ctx, parts); err != nil {
		return err
	}
	for len(parts) > 0 {
		n := 1 // adjacent damaged parts are repaired as one: where they met is not certain
		for !parts[0].Intact && n < len(parts) && !parts[n].Intact {
			n++
		}
		if err := r.part(ctx, parts[:n], n == len(parts)); err != nil {
			return err
		}
		parts = parts[n:]
	}
	return r.finish(ctx)
}

// epochGap is how far the epoch goes up where the one in force cannot be read.
const epochGap = 1 << 10

// fence closes the active segment of a disk before it is read.
func (r *repair) fence(ctx context.Context, parts []check.Part) error {
	if !r.s.Disk {
		return nil
	}
	for i := len(parts) - 1; i >= 0; i-- {
		p := &parts[i]
		if !p.Plain {
			continue
		}
		raw, _, err := r.cfg.Backend.Get(ctx, p.Seg.PlainKey(r.cfg.Session), backend.Range{})
		if errors.Is(err, fs.ErrNotExist) { // it is lost, or a writer sealed it
			obj, _, _, oerr := r.object(ctx, p.Seg)
			return errors.Join(oerr, r.newest(ctx, p, lines(obj)))
		}
		if err == nil {
			err = r.newest(ctx, p, raw)
		}
		if err == nil {
			err = r.closeWith(ctx, p.Seg, p.Key, int64(len(raw)))
		}
		if err != nil {
			return fmt.Errorf("close %s: %w", p.Seg.Name(), err)
		}
		return nil
	}
	return nil
}

// newest makes sure that no writer closed a segment and began the next one since the survey: the repaired log would
// leave that one out. A segment that is named and is not there is lost, and the repair continues.
func (r *repair) newest(ctx context.Context, p *check.Part, raw []byte) error {
	c, err := segment.Read(raw, p.Seg)
	next, ok := layout.ParseSegment(c.Next)
	if err != nil || !ok || next.Name() == p.Seg.Name() {
		return nil // it is damaged, it is the newest, or an earlier repair closed it
	}
	for i := range r.s.Parts {
		if r.s.Parts[i].Seg == next {
			return nil
		}
	}
	_, key, _, err := r.object(ctx, next)
	if err != nil || key == "" {
		return err
	}
	return &backend.Error{Op: "repair", Key: key, Outcome: backend.NotApplied, Err: errWentOn}
}

var errWentOn = errors.New("a writer went on while the session was surveyed: run repair again")

// finish makes the end of the log and publishes the repaired session.
func (r *repair) finish(ctx context.Context) error {
	end, err := r.end(ctx)
	if err != nil {
		return err
	}
	key := layout.CheckpointKey(r.cfg.Session)
	r.note(check.Rebuilt, key, "written again: commit %d, entry %s on branch %s", end.st.Summary.Seq,
		end.st.Summary.Entry, end.st.Summary.Branch)
	m, err := r.remap(ctx)
	if err != nil {
		return err
	}
	end.follows(r.last, r.lastN)
	if err := end.install(ctx, m, r.s.Version, r.s.Raw != nil); err != nil {
		return err
	}
	r.rep.Objects++
	for _, key := range r.gone {
		if err := r.cfg.Backend.Delete(ctx, key); err != nil {
			return err
		}
		r.rep.Removed++
	}
	return nil
}

// end makes the part of the log after the last segment: the tail in a checkpoint, what only a checkpoint or a snapshot
// has, and the commit that records the repair.
func (r *repair) end(ctx context.Context) (*remake, error) {
	next, seq := uint64(0), uint64(0)
	if r.before != nil {
		next, seq = r.before.Next, r.before.Summary.Seq+1
	}
	d := r.damaged(next, next, seq, seq)
	o := r.s.Object
	switch {
	case o != nil && !r.s.Disk:
		if n := len(o.Tail.Lines); n > 0 {
			d.Lines = Parse(append(bytes.Join(o.Tail.Lines, []byte{'\n'}), '\n'), o.Key, 0)
			d.Lines[0].At, d.Lines[0].First = next, true
		}
		d.End, d.EndSeq = next+uint64(len(o.Tail.Lines)), o.Summary.Seq+1
	case r.seq+1 > seq && r.next > next:
		d.End, d.EndSeq = r.next, r.seq+1
	}
	if r.s.Object == nil && r.s.Raw != nil {
		if err := r.aside(ctx, layout.Segment{First: next, Epoch: r.epoch}, r.s.Raw); err != nil {
			return nil, err
		}
	}
	m, err := r.remake(ctx, &d, "")
	if err != nil {
		return nil, err
	}
	if m.lost() > 0 {
		r.note(check.Lost, layout.CheckpointKey(r.cfg.Session), "the end of the log, lines %d to %d: %s", d.First,
			int64(d.End)-1, m.told())
	}
	r.see(m.st.Tail)
	for _, o := range append(r.s.Snapshots[:len(r.s.Snapshots):len(r.s.Snapshots)], r.s.Object) {
		if o != nil {
			m.adopt(r.asLogged(o))
		}
	}
	return m, r.closing(ctx, m)
}

// closing adds the commit that records the repair.
func (r *repair) closing(ctx context.Context, m *remake) error {
	st := m.st
	rec := checkpoint.Record{
		Reason: reason, Writer: r.cfg.Writer, Epoch: r.epoch, Head: st.Summary.Entry, HeadOrd: st.HeadOrd,
		Branch: st.Summary.Branch, Claim: true, Torn: r.torn,
	}
	if was := r.sound; st.Doc.StateLost() && was != nil && was.HeadOrd == st.HeadOrd {
		rec.Doc = []byte(was.DocumentOfLine()) // what was committed on the way from there is lost
	}
	if st.Original == "" {
		var err error
		if rec.Original, err = r.file(ctx); err != nil {
			return err
		}
	}
	var entries [][]byte
	var parents []int64
	if o := r.s.Object; o == nil && !r.s.Disk {
		id, now, err := r.store.LineID()
		if err != nil {
			return err
		}
		l := loss{name: layout.CheckpointKey(r.cfg.Session), how: check.Missing, torn: r.torn}
		raw, err := lostObject(l, id, rec.Head, now)
		if err != nil {
			return err
		}
		entries, parents = [][]byte{raw}, []int64{rec.HeadOrd}
		r.note(check.Lost, l.name, "the end of the transcript was in it alone: what was committed after commit %d, "+
			"if anything was, is recorded as lost", st.Summary.Seq)
	}
	var err error
	if rec.ID, rec.Time, err = r.store.LineID(); err != nil {
		return err
	}
	_, err = m.commit(rec, entries, parents, true)
	return err
}

// damaged returns a part of the log without lines, with what other objects contain about them.
func (r *repair) damaged(first, end, seq, endSeq uint64) Damaged {
	return Damaged{
		First: first, End: end, Seq: seq, EndSeq: endSeq, Bodies: r.bodies, IDs: r.ids, Marks: r.marks,
		Records: r.records,
	}
}

// show finds which lines and amendments the working windows of checkpoint and snapshots contain. see then fills in
// those that the repaired log has.
func (r *repair) show() {
	r.shown, r.amending = map[uint64][]byte{}, map[string]bool{}
	for _, o := range append(r.s.Snapshots[:len(r.s.Snapshots):len(r.s.Snapshots)], r.s.Object) {
		if o == nil {
			continue
		}
		for _, ord := range o.Window.Ords {
			r.shown[ord] = nil
		}
		for _, id := range o.Window.AmendedBy {
			r.amending[id] = false
		}
	}
}

// see records lines of the repaired log that working windows contain.
func (r *repair) see(lines []segment.Line) {
	for _, l := range lines {
		if _, is := r.shown[l.Ord]; is && !l.Commit {
			r.shown[l.Ord] = l.Raw
		}
		if len(r.amending) == 0 || l.Commit {
			continue
		}
		if e, err := segment.Entry(l.Ord, l.Raw); err == nil {
			if _, ok := e.Amendment(); ok {
				r.amending[e.ID] = true
			}
		}
	}
}

// asLogged returns an object whose working window shows the entries of the repaired log. A window that shows a lost
// amendment cannot be kept: it is built from the path.
func (r *repair) asLogged(o *checkpoint.Object) *checkpoint.Object {
	out := *o
	for _, id := range o.Window.AmendedBy {
		if !r.amending[id] {
			out.Window = checkpoint.WindowState{Profile: o.Window.Profile, MaxBytes: o.Window.MaxBytes}
			out.Pool = nil
			return &out
		}
	}
	out.Pool = maps.Clone(o.Pool)
	for _, ord := range o.Window.Ords {
		line := r.shown[ord]
		is, err := transcript.ParseLine(line)
		if line == nil || err != nil {
			continue
		}
		if was, err := transcript.ParseLine(o.Pool[ord]); err != nil || was.ID != is.ID || isLost(line) {
			out.Pool[ord] = line
		}
	}
	return &out
}
