package repair

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// part keeps one intact segment, or makes one new segment in place of adjacent damaged ones.
func (r *repair) part(ctx context.Context, parts []check.Part, last bool) error {
	p, end := &parts[0], &parts[len(parts)-1]
	if p.Intact {
		return r.intact(ctx, p)
	}
	d := r.damaged(p.First, end.End, p.Seq, end.EndSeq)
	if r.before != nil {
		d.Seq = r.before.Summary.Seq + 1
	}
	name := p.Seg.PlainKey(r.cfg.Session)
	for i := range parts {
		key, err := r.gather(ctx, &d, &parts[i])
		if err != nil {
			return err
		}
		if i == 0 && key != "" {
			name = key
		}
	}
	if last {
		r.bound(&d)
	}
	d.Marks = maps.Clone(d.Marks)
	for i := range parts { // a segment ends with a commit line
		if end := parts[i].End; end > parts[i].First && (i+1 < len(parts) || end == d.End) {
			d.Marks[end-1] = true
		}
	}
	return r.standIn(ctx, &d, name, r.follower(ctx, end))
}

// gather reads the lines that are left of a damaged segment, in its sealed and its plain form, and stores the bytes of
// both under torn/.
func (r *repair) gather(ctx context.Context, d *Damaged, p *check.Part) (key string, err error) {
	var forms [][]Line
	for _, sealed := range []bool{true, false} {
		obj, at, err := r.form(ctx, p.Seg, sealed)
		if err != nil {
			return key, err
		}
		if at == "" {
			continue
		}
		if key == "" || r.bad[at] {
			key = at
		}
		raw := obj
		if sealed {
			raw = lines(obj)
		} else {
			raw = mend(obj, p.First == 0)
		}
		if r.foreign(raw, p.Seg) {
			r.note(check.Salvaged, at, "it is not the segment that belongs here, and is moved to torn/")
		} else {
			if sealed {
				r.index(obj)
			}
			forms = append(forms, r.known(raw, p, sealed))
		}
		r.gone = append(r.gone, at)
		if err := r.aside(ctx, p.Seg, obj); err != nil {
			return key, err
		}
	}
	if raw := r.misplaced[layout.Segment{First: p.First, Epoch: p.Seg.Epoch}]; raw != nil {
		forms = append(forms, r.known(raw, p, true))
	}
	if key == "" {
		return "", nil
	}
	best := 0
	for i := range forms {
		if goodLines(forms[i]) > goodLines(forms[best]) {
			best = i
		}
	}
	d.Lines = append(d.Lines, Line{gap: true})
	for i, found := range forms {
		if len(found) == 0 {
			continue
		}
		if i == best {
			d.Lines = append(d.Lines, found...)
		} else {
			d.Others = append(d.Others, found)
		}
	}
	return key, nil
}

// known returns the lines of a form of a segment, and collects the facts of their commits.
func (r *repair) known(raw []byte, p *check.Part, sealed bool) []Line {
	o, err := segment.ParseOpening(raw, p.First == 0)
	found := r.parse(raw, p, sealed)
	for i := range found {
		found[i].sure = found[i].sure || sealed // frames have checksums of their own
		if rec := found[i].Record; rec != nil {
			r.learnCommit(rec)
		}
	}
	if len(found) > 0 {
		found[0].At, found[0].First, found[0].seq, found[0].loose = p.First, true, o.Prelude.FirstSeq, err != nil
	}
	return found
}

// foreign reports whether an object is not the segment under whose name it is: another session's, or another one of
// this session.
func (r *repair) foreign(raw []byte, seg layout.Segment) bool {
	for _, opens := range []bool{true, false} {
		if o, err := segment.ParseOpening(raw, opens); err == nil {
			return !o.Of(r.cfg.Session, seg)
		}
	}
	return false
}

// misplace collects the segments of the session that are under the names of others.
func (r *repair) misplace(ctx context.Context) error {
	r.misplaced = map[layout.Segment][]byte{}
	for _, seg := range r.s.Inventory.Segments() {
		for _, sealed := range []bool{true, false} {
			key := seg.PlainKey(r.cfg.Session)
			if sealed {
				key = seg.SealedKey(r.cfg.Session)
			}
			if !r.bad[key] {
				continue
			}
			raw, _, err := r.form(ctx, seg, sealed)
			if err != nil {
				return err
			}
			if sealed {
				raw = lines(raw)
			}
			for _, opens := range []bool{true, false} {
				o, err := segment.ParseOpening(raw, opens)
				if p := &o.Prelude; err == nil && p.Session == r.cfg.Session && !o.Of(r.cfg.Session, seg) {
					r.misplaced[layout.Segment{First: p.First, Epoch: p.Epoch}] = raw
				}
			}
		}
	}
	return nil
}

func goodLines(list []Line) (n int) {
	for i := range list {
		if list[i].good() {
			n++
		}
	}
	return n
}

// index adds the rows of a damaged sealed segment whose index is intact.
func (r *repair) index(obj []byte) {
	idx, _, err := codec.DecodeSegmentIndex(obj, int64(len(obj)))
	if err != nil || idx == nil {
		return
	}
	if sk, err := idx.Skeleton(); err == nil && sk.Verify() == nil {
		r.rows(sk)
	}
}

// bound finds where the newest part ends, from checkpoint and snapshots.
func (r *repair) bound(d *Damaged) {
	d.End, d.EndSeq = 0, 0
	switch o := r.s.Object; {
	case o != nil && !r.s.Disk:
		d.End, d.EndSeq = o.Segments.Next(), o.Tail.FirstSeq
		if len(o.Tail.Lines) == 0 {
			d.EndSeq = o.Summary.Seq + 1
		}
	case r.s.Disk && r.next > d.First:
		d.End, d.EndSeq = r.next, r.seq+1
	}
	for i := range d.Lines {
		if rec := d.Lines[i].Record; rec != nil && d.End > 0 && rec.Seq >= d.EndSeq {
			d.End, d.EndSeq = 0, 0 // the log itself goes further
			return
		}
	}
}

// standIn makes the segment that takes the place of a damaged one.
func (r *repair) standIn(ctx context.Context, d *Damaged, object, follower string) error {
	m, err := r.remake(ctx, d, follower)
	if err != nil || m.total == 0 {
		return err
	}
	kind := check.Salvaged
	if m.lost() > 0 {
		kind = check.Lost
	}
	r.note(kind, object, "lines %d to %d are written again: %s", d.First, int64(m.st.Next)-1, m.told())
	m.follows(r.last, r.lastN)
	r.see(m.st.Tail)
	r.before, r.last = m.st, m.name.Name()
	ref, err := m.seal(ctx)
	if err != nil {
		return err
	}
	r.refs, r.lastN = append(r.refs, ref), ref.RawBytes
	r.wrote(int(ref.Bytes))
	return nil
}

// intact adds an intact segment to the repaired log; it seals a plain one.
func (r *repair) intact(ctx context.Context, p *check.Part) error {
	id := r.cfg.Session
	obj, _, sealed, err := r.object(ctx, p.Seg)
	if err != nil {
		return err
	}
	raw := obj
	if sealed {
		if raw, _, err = codec.DecodeSegment(obj, check.MaxRaw); err != nil {
			return err
		}
	}
	c, err := segment.Read(raw, p.Seg)
	if err != nil {
		return err
	}
	if c.Opening.Header != nil {
		r.header = c.Opening.Header
	}
	r.see(c.Lines)
	if p.Plain {
		r.gone = append(r.gone, p.Seg.PlainKey(id))
	}
	if !sealed && c.End < len(raw) { // what is after the last commit is in no sealed segment
		if err := r.aside(ctx, p.Seg, raw); err != nil {
			return err
		}
	}
	if c.Commits == 0 {
		return nil // it was just begun
	}
	if r.before, err = after(r.cfg, p.Seg, raw[:c.End]); err != nil {
		return err
	}
	r.passed(r.before)
	r.last, r.lastN = p.Seg.Name(), int64(c.End)
	ref := p.Ref
	if !sealed {
		s, err := c.Seal(p.Seg, c.Opening.Prelude.FirstSeq)
		if err != nil {
			return err
		}
		ref = s.Ref
		_, err = r.cfg.Backend.Put(ctx, p.Seg.SealedKey(id), s.Bytes, backend.IfAbsent())
		if err != nil && !errors.Is(err, backend.ErrPrecondition) {
			return err
		}
		r.wrote(len(s.Bytes))
	}
	if sealed && p.Plain {
		if ref, err = r.sealedBefore(ctx, p, obj, raw, &c); err != nil {
			return err
		}
	}
	r.refs = append(r.refs, ref)
	return nil
}

// passed records the newest state of the session in which the agent's state is not lost.
func (r *repair) passed(st *state.State) {
	if !st.Doc.StateLost() {
		r.sound = st
	}
}

// sealedBefore adds the sealed form of a plain segment, which an interrupted repair left. That repair had closed the
// plain form before, so both contain the same commits. The sealed form may not be durable, so it is written once more
// (I13).
func (r *repair) sealedBefore(
	ctx context.Context, p *check.Part, obj, raw []byte, c *segment.Contents,
) (codec.Ref, error) {
	ref := codec.Ref{
		First: p.First, Count: uint32(len(c.Lines)), FirstSeq: c.Opening.Prelude.FirstSeq, RawBytes: int64(len(raw)),
		Epoch: p.Seg.Epoch, Rnd: p.Seg.Rnd,
	}
	ref.Seal(obj)
	key := p.Seg.SealedKey(r.cfg.Session)
	info, err := r.cfg.Backend.Stat(ctx, key)
	if err == nil {
		_, err = r.cfg.Backend.Put(ctx, key, obj, backend.IfMatch(info.Version))
	}
	return ref, err
}

// remake makes new commits of a damaged part. follower is the id of its last commit, if the next segment names it.
func (r *repair) remake(ctx context.Context, d *Damaged, follower string) (*remake, error) {
	commits, err := r.recall(ctx, d)
	if err != nil {
		return nil, err
	}
	if file := r.origin.file; file != nil && len(r.header) == 0 {
		r.header = file.Header()
	}
	if r.before == nil && d.First == 0 && len(r.header) == 0 {
		header := map[string]any{"type": "session", "version": 3, "id": r.cfg.Session}
		if r.header, err = json.Marshal(header); err != nil {
			return nil, err
		}
	}
	cfg := r.cfg
	if r.rules != (state.Rules{}) {
		cfg.Profile, cfg.MaxBytes = r.rules.Profile, r.rules.MaxBytes
	}
	m, err := r.begin(cfg, d.First, d.Seq)
	if err != nil {
		return nil, err
	}
	m.loose = d.loose(commits)
	w := writer{
		repair: r, made: m, known: map[string]int64{}, ids: map[int64]string{}, ups: map[int64]int64{}, exact: true,
	}
	if st := m.st; st.HeadOrd >= 0 {
		w.known[st.Summary.Entry], w.ids[st.HeadOrd] = st.HeadOrd, st.Summary.Entry
	}
	if err := r.parentsBefore(ctx, d.First, commits, w.known); err != nil {
		return nil, err
	}
	nameHeads(commits)
	for i := range commits {
		after := follower
		if i+1 < len(commits) {
			if after, commits[i].next = "", commits[i+1].Record; commits[i].next != nil {
				after = commits[i].next.Parent
			}
		}
		if err := w.commit(&commits[i], after); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// nameHeads names the last entries of commits of which both the commit line and that entry are lost: the next entry
// grows from there, unless its commit has another parent.
func nameHeads(list []Commit) {
	known := map[string]bool{}
	for i := range list {
		for _, e := range list[i].Entries {
			known[e.ID] = true
		}
	}
	for i := range list[:max(0, len(list)-1)] {
		own, next := list[i].Entries, list[i+1]
		if len(own) == 0 || len(next.Entries) == 0 || list[i].Record != nil {
			continue
		}
		last, from := &own[len(own)-1], next.Entries[0].From
		moved := next.Record != nil && len(next.Record.Parents) > 0 && next.Record.Parents[0].Index == 0
		if last.Raw == nil && last.ID == "" && from != "" && !known[from] && !moved {
			last.ID, known[from] = from, true
		}
	}
}

// object reads a segment as it is stored, sealed or plain; key "" = it does not exist.
func (r *repair) object(ctx context.Context, seg layout.Segment) (p []byte, key string, sealed bool, err error) {
	for _, sealed := range []bool{true, false} {
		if p, key, err = r.form(ctx, seg, sealed); err != nil || key != "" {
			return p, key, sealed, err
		}
	}
	return nil, "", false, nil
}

// form reads one form of a segment; key "" = it does not exist.
func (r *repair) form(ctx context.Context, seg layout.Segment, sealed bool) (p []byte, key string, err error) {
	if seg.Rnd == "" {
		return nil, "", nil
	}
	key = seg.PlainKey(r.cfg.Session)
	if sealed {
		key = seg.SealedKey(r.cfg.Session)
	}
	p, _, err = r.cfg.Backend.Get(ctx, key, backend.Range{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return p, key, nil
}

// parse reads the lines of a damaged segment with the key of its prelude, even of a damaged prelude.
func (r *repair) parse(raw []byte, p *check.Part, sealed bool) []Line {
	opening, key := 0, p.Key
	for rest := raw; opening < 2 && len(rest) > 0; opening++ {
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			break
		}
		line := rest[:n]
		rest = rest[n+1:]
		if pre, ok := checkpoint.ParsePrelude(line); ok {
			key = pre.Key
		} else if k, ok := keyIn(line); ok && key == 0 {
			key = k
		}
		l, err := transcript.ParseLine(line)
		if head := err == nil && l.Type == "session"; head && p.First == 0 {
			r.header = bytes.Clone(line)
		} else if looksCommit(line) {
			break
		} else if p.First > 0 || opening == 1 {
			opening++
			break
		}
	}
	if key == 0 {
		key = solve(raw, sealed)
	}
	return Parse(raw, key, min(opening, 2))
}

// solve finds a key under which the commit lines of a segment verify whose prelude is lost. Two of them must agree,
// since any line verifies under some key, unless the lines have other checksums too, as in a sealed segment. A key
// that is not the segment's own will do: of its 64 bits a CRC of 32 sees 32. At most so many lines are tried.
func solve(raw []byte, sealed bool) uint64 {
	const most = 64
	var list [][]byte
	for line := range bytes.Lines(raw) {
		if line = bytes.TrimSuffix(line, []byte("\n")); looksCommit(line) && len(list) < most {
			list = append(list, line)
		}
	}
	for _, line := range list {
		key, ok := checkpoint.KeyOf(line)
		if rec, ours, err := checkpoint.ParseRecord(line, key); sealed && len(list) == 1 && ok && ours && err == nil &&
			rec.Seq < segment.Fence {
			return key
		}
		for _, other := range list {
			_, ours, err := checkpoint.ParseRecord(other, key)
			if ok && ours && err == nil && !bytes.Equal(line, other) {
				return key
			}
		}
	}
	return 0
}

// keyIn looks for the key in what is left of a prelude.
func keyIn(line []byte) (uint64, bool) {
	mark := []byte(`"key":"`)
	i := bytes.Index(line, mark)
	if i < 0 || len(line) < i+len(mark)+16 {
		return 0, false
	}
	b, err := hex.DecodeString(string(line[i+len(mark) : i+len(mark)+16]))
	if err != nil {
		return 0, false
	}
	var k uint64
	for _, c := range b {
		k = k<<8 | uint64(c)
	}
	return k, true
}

// follower is the id of the last commit of the segment after p.
func (r *repair) follower(ctx context.Context, p *check.Part) string {
	for i := range r.s.Parts {
		q := &r.s.Parts[i]
		if q.First != p.End || q.First == p.First || !q.Intact {
			continue
		}
		obj, _, sealed, err := r.object(ctx, q.Seg)
		if err != nil {
			return ""
		}
		if sealed {
			obj = lines(obj)
		}
		id := ""
		if o, err := segment.ParseOpening(obj, false); err == nil {
			segment.Scan(obj[o.Size:], o.Prelude.Key, o.Self(), func(c segment.Commit) bool {
				id = c.Record.Parent
				return false
			})
		}
		return id
	}
	return ""
}
