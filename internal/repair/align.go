package repair

import (
	"bytes"
	"maps"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// Damaged is a damaged part of the log: its lines, and what other objects contain about them.
type Damaged struct {
	Lines       []Line            // what was read of it, in order
	Others      [][]Line          // what was read of its other form, plain or sealed
	First, End  uint64            // ordinals; End 0 = not known
	Seq, EndSeq uint64            // of its commits; EndSeq 0 = not known
	Bodies      map[uint64][]byte // of entries that something else holds, by ordinal
	IDs         map[uint64]string // of entries, where something names them
	// by ordinal: whether the line is a commit line, where that is known
	Marks   map[uint64]bool
	Records map[uint64]*checkpoint.Record // commit lines that something else holds, by ordinal
	late    map[uint64]*checkpoint.Record // commit lines that were found after later ones, by seq
}

// Line is a line of a damaged part: an entry or a commit line that is by itself, or neither.
type Line struct {
	Raw    []byte
	ID     string             // "" = no entry can be made of it
	Record *checkpoint.Record // it is a commit line that verifies by itself
	At     uint64             // its ordinal, where First is set: it is the first of a segment
	First  bool
	seq    uint64 // of the segment's first commit, where First is set and loose is not
	from   string // id of the parent; "" = a root
	loose  bool   // of the first line of a segment: what is before it is damaged, and may have held lines
	gap    bool   // no line at all: something between two segments
	sure   bool   // a checksum covers it
}

// Parse splits what was read of a segment into lines. Commit lines are told by key. The header line and the
// prelude at its start are no lines of the transcript. A line that looks like a commit line and does not
// verify is what is left of one, unless a commit that verifies covers it: then it is an entry, of an export
// that was imported.
func Parse(raw []byte, key uint64, opening int) []Line {
	var out []Line
	var before *checkpoint.Record
	from, since := 0, 0 // in out, and in raw: what is after the commit before
	for pos := 0; pos < len(raw); {
		n := bytes.IndexByte(raw[pos:], '\n')
		whole := n >= 0
		if !whole {
			n = len(raw) - pos
		}
		line := raw[pos : pos+n : pos+n]
		start := pos
		pos = min(pos+n+1, len(raw))
		if opening > 0 {
			opening--
			since = pos
			continue
		}
		if pre, ok := checkpoint.ParsePrelude(line); ok && pre.Key == key {
			continue // the segment's own line, in another place or twice
		}
		l := Line{Raw: line}
		if rec, ours, err := checkpoint.ParseRecord(line, key); whole && ours && err == nil {
			if rec.Seq >= segment.Fence {
				continue // what an earlier repair put after the end
			}
			self := uint32(0)
			switch {
			case before != nil:
				self = before.Self
			case rec.Base != nil:
				self = rec.Base.Self
			}
			if rec.Covers(self, raw[since:start]) {
				for i := from; i < len(out); i++ {
					out[i].read()
					out[i].sure = true
				}
			}
			l.Record, l.ID, l.sure = &rec, rec.ID, true
			before, from, since = &rec, len(out)+1, pos
		} else if whole && !looksCommit(line) {
			l.read()
		}
		out = append(out, l)
	}
	return out
}

// read takes the line as an entry, if it is one.
func (l *Line) read() {
	if h, err := transcript.ParseLine(l.Raw); err == nil && h.ID != "" {
		l.ID, l.from = h.ID, h.ParentID
	}
}

// looksCommit reports whether a line is a commit line, or the rest of one.
func looksCommit(line []byte) bool {
	n := 0
	for _, mark := range []string{`coppice.commit`, `,"headOrd":`, `,"docCRC":"`, `,"synced":`, `,"self":"`} {
		if bytes.Contains(line, []byte(mark)) {
			n++
		}
	}
	return n >= 3
}

func (l *Line) good() bool { return l.ID != "" }

// run is a stretch of good lines.
type run struct {
	from, to int // in Lines
	at       uint64
}

// place returns the lines by ordinal, of all forms of the segments that were read, and the commit lines that other
// objects contain. If forms differ at an ordinal, a line that a checksum covers wins.
func (d *Damaged) place() map[uint64]*Line {
	slots := map[uint64]*Line{}
	d.late = map[uint64]*checkpoint.Record{}
	for _, form := range append([][]Line{d.Lines}, d.Others...) {
		one := *d
		var late map[uint64]*checkpoint.Record
		one.Lines, late = inOrder(form, d.Seq)
		maps.Copy(d.late, late)
		for ord, l := range one.align() {
			if have := slots[ord]; have == nil || l.sure && !have.sure {
				slots[ord] = l
			}
		}
	}
	for ord, rec := range d.Records {
		if have := slots[ord]; ord >= d.First && (d.End == 0 || ord < d.End) && (have == nil || have.Record == nil) {
			slots[ord] = &Line{ID: rec.ID, Record: rec, sure: true}
		}
	}
	return slots
}

// align assigns each good line its ordinal. A bad line counts as one line, unless a commit line after it, or the end of
// the part, shows that there were more or fewer.
func (d *Damaged) align() map[uint64]*Line {
	where := d.where()
	var runs []run
	for i := 0; i < len(d.Lines); i++ {
		if !d.Lines[i].good() {
			continue
		}
		r := run{from: i, to: i + 1}
		for r.to < len(d.Lines) && d.Lines[r.to].good() && !d.Lines[r.to].First {
			r.to++
		}
		runs, i = append(runs, r), r.to-1
	}
	slots := map[uint64]*Line{}
	next, line := d.First, 0
	seq := d.Seq
	for k := range runs {
		r := &runs[k]
		at, sure := next, false
		for i := line; i <= r.from; i++ {
			if l := &d.Lines[i]; l.First && l.At >= next {
				at, sure = l.At, i == r.from && !l.loose
			}
			if i < r.from && !d.Lines[i].gap {
				at++
			}
		}
		r.at = at
		if n := uint64(r.to - r.from); !sure {
			r.at = max(at, next+d.lostCommits(r, seq))
			if at, ok := d.anchor(r, where); ok && at >= next {
				r.at = at
			} else if k == len(runs)-1 && d.End > 0 && r.to == len(d.Lines) && d.End >= next+n {
				r.at = d.End - n
			}
		}
		for i := r.from; i < r.to; i++ {
			if ord := r.at + uint64(i-r.from); d.End == 0 || ord < d.End {
				slots[ord] = &d.Lines[i]
			}
			if rec := d.Lines[i].Record; rec != nil {
				seq = rec.Seq + 1
			}
		}
		next, line = r.at+uint64(r.to-r.from), r.to
	}
	return slots
}

// lostCommits returns how many commit lines are missing before the first one of a run.
func (d *Damaged) lostCommits(r *run, seq uint64) uint64 {
	for i := r.from; i < r.to; i++ {
		if rec := d.Lines[i].Record; rec != nil {
			if rec.Seq > seq {
				return rec.Seq - seq
			}
			return 0
		}
	}
	return 0
}

// where returns the known ordinals of lines of the part, by id. It leaves out ids of several lines.
func (d *Damaged) where() map[string]uint64 {
	out, twice := map[string]uint64{}, map[string]bool{}
	for ord, id := range d.IDs {
		if ord < d.First || d.End > 0 && ord >= d.End {
			continue
		}
		if _, dup := out[id]; dup {
			twice[id] = true
		}
		out[id] = ord
	}
	for id := range twice {
		delete(out, id)
	}
	return out
}

// anchor finds the ordinal at which a run begins. It uses the first line whose ordinal another object contains, else
// the first commit whose head is an entry of the run, because a commit line has the id and the ordinal of its head.
func (d *Damaged) anchor(r *run, where map[string]uint64) (uint64, bool) {
	for i := r.from; i < r.to; i++ {
		if ord, ok := where[d.Lines[i].ID]; ok && ord >= uint64(i-r.from) {
			return ord - uint64(i-r.from), true
		}
	}
	at := map[string]int{}
	for i := r.from; i < r.to; i++ {
		l := &d.Lines[i]
		if l.Record == nil {
			at[l.ID] = i - r.from
			continue
		}
		if k, ok := at[l.Record.Head]; ok && l.Record.HeadOrd >= int64(k) {
			return uint64(l.Record.HeadOrd) - uint64(k), true
		}
	}
	return 0, false
}

// Commit is one commit of the part as far as it is known.
type Commit struct {
	Seq     uint64
	Record  *checkpoint.Record // nil = its line is lost
	Entries []Entry
	Reason  string // of a commit whose line is lost, if it is known; "" = repair

	next *checkpoint.Record // of the commit after it; nil = it is lost
}

// Entry is one entry of the part.
type Entry struct {
	Ord  uint64
	Raw  []byte // nil = lost
	ID   string // of a lost one: where something names it
	From string // id of its parent; "" = a root
	sure bool   // a checksum covers Raw
	lost bool   // Raw is a stand-in
}

// Commits puts the part together: every ordinal and every commit of it, known or lost. Where lines contradict
// the segments around the part, only those before the first damage are taken.
func (d *Damaged) Commits() []Commit {
	out := d.commits()
	if d.fits(out) {
		return out
	}
	sure := *d
	sure.Others = nil
	for i := range d.Lines {
		if l := &d.Lines[i]; !l.sure && (i > 0 || !l.gap) {
			sure.Lines = d.Lines[:i]
			break
		}
	}
	if out = sure.commits(); !d.fits(out) {
		sure.Lines = nil
		out = sure.commits()
	}
	return out
}

// fits reports whether the numbers of commits and of their lines agree with the bounds of the part.
func (d *Damaged) fits(list []Commit) bool {
	lines := uint64(len(list))
	for i := range list {
		lines += uint64(len(list[i].Entries))
		if rec := list[i].Record; rec != nil && rec.Seq != list[i].Seq {
			return false
		}
	}
	return (d.End == 0 || d.First+lines == d.End) && (d.EndSeq == 0 || d.Seq+uint64(len(list)) == d.EndSeq)
}

func (d *Damaged) commits() []Commit {
	slots := d.place()
	end := d.End
	for ord, l := range slots {
		if d.End == 0 && l.Record != nil {
			end = max(end, ord+1)
		}
	}
	marked := d.commitLines(slots, end)
	var out []Commit
	c := Commit{Seq: d.Seq}
	for ord := d.First; ord < end; ord++ {
		l := slots[ord]
		if l != nil && l.Record != nil || l == nil && marked[ord] {
			if l != nil {
				c.Record = l.Record
			}
			out = append(out, c)
			c = Commit{Seq: c.Seq + 1}
			continue
		}
		c.Entries = append(c.Entries, d.entry(ord, l))
	}
	if len(c.Entries) > 0 || d.EndSeq > c.Seq {
		out = append(out, c)
		c = Commit{Seq: c.Seq + 1}
	}
	for ; d.EndSeq > c.Seq; c = (Commit{Seq: c.Seq + 1}) {
		out = append(out, c) // more commits than lines: nothing else knows their places
	}
	for i := range out {
		if rec := d.late[out[i].Seq]; out[i].Record == nil && rec != nil && rec.Entries == len(out[i].Entries) {
			out[i].Record = rec
		}
	}
	return out
}

// loose returns the ids of entries that were read but belong to none of the commits. Entries after the last commit line
// do not count: they were not acknowledged.
func (d *Damaged) loose(list []Commit) (out []string) {
	have := map[string]bool{}
	for i := range list {
		for k := range list[i].Entries {
			have[list[i].Entries[k].ID] = true
		}
	}
	for _, form := range append([][]Line{d.Lines}, d.Others...) {
		end := len(form)
		for end > 0 && form[end-1].Record == nil {
			end--
		}
		for i := range form[:end] {
			if l := &form[i]; l.good() && l.Record == nil && !have[l.ID] {
				have[l.ID] = true
				out = append(out, l.ID)
			}
		}
	}
	return out
}

// entry returns the entry at an ordinal, from the line or from a checkpoint or a snapshot. If both have it, those win,
// unless a checksum covers the line and its id differs: a damaged line may parse, even with another id.
func (d *Damaged) entry(ord uint64, l *Line) Entry {
	body := d.Bodies[ord]
	if h, err := segment.Entry(ord, body); body != nil && err == nil && (l == nil || !l.sure || h.ID == l.ID) {
		return Entry{Ord: ord, Raw: body, ID: h.ID, From: h.ParentID, sure: true}
	}
	if l != nil {
		if h, err := segment.Entry(ord, l.Raw); err == nil {
			return Entry{Ord: ord, Raw: l.Raw, ID: h.ID, From: h.ParentID, sure: l.sure}
		}
	}
	return Entry{Ord: ord, ID: d.IDs[ord]}
}

// commitLines returns which of the lost lines were commits: before each known commit, and at the end, as many as their
// numbers leave out. The line right before a known commit's own entries was one.
func (d *Damaged) commitLines(slots map[uint64]*Line, end uint64) map[uint64]bool {
	marked := map[uint64]bool{}
	from, seq := d.First, d.Seq
	mark := func(to, lost uint64) {
		for ord := from; ord < end && lost > 0; ord++ {
			if l := slots[ord]; l != nil && l.Record != nil {
				break
			} else if l == nil && d.Marks[ord] {
				marked[ord] = true
				lost--
			}
		}
		for ord := to; ord > from && lost > 0; ord-- {
			_, said := d.Marks[ord-1]
			if slots[ord-1] == nil && d.Bodies[ord-1] == nil && d.IDs[ord-1] == "" && !said {
				marked[ord-1] = true
				lost--
			}
		}
	}
	for ord := d.First; ord < end; ord++ {
		l := slots[ord]
		if l == nil || l.Record == nil {
			continue
		}
		if l.Record.Seq > seq {
			mark(ord-min(ord-from, uint64(l.Record.Entries)), l.Record.Seq-seq)
		}
		from, seq = ord+1, l.Record.Seq+1
	}
	if d.EndSeq > seq {
		mark(end, d.EndSeq-seq)
	}
	return marked
}
