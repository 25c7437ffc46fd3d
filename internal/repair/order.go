package repair

import "github.com/coppice-go/coppice/checkpoint"

// order puts the lines of a part where their commit lines say that they were: a commit line has its number, how many
// entries it has, and which entry is the head after it. So a line that is missing leaves a hole, one that is there
// twice is taken once, and one that changed places comes back. Where a line between two commits cannot be read, what
// is there stays as it is: the damage has hidden how many lines there were.
type order struct {
	out   []Line
	own   []Line                        // entries since the commit line before
	late  map[uint64]*checkpoint.Record // commit lines that come after later ones, by seq
	spare map[string]*Line              // entries that are one too many before a commit line, by id
	holes map[int]string                // ids of what is missing in out, where they are known
	head  string                        // of the commit before
	next  uint64                        // seq of the commit that comes next
	known bool                          // next is known
}

// holesMost bounds the commits that are missing between two others: more than that are placed by their numbers alone.
const holesMost = 1 << 12

// inOrder returns the lines of a part in order. seq is the number of its first commit.
func inOrder(list []Line, seq uint64) ([]Line, map[uint64]*checkpoint.Record) {
	o := order{
		late: map[uint64]*checkpoint.Record{}, spare: map[string]*Line{}, holes: map[int]string{},
		next: seq, known: true,
	}
	var first *Line
	begun := 0 // where in out the segment begins
	begins := func() {
		o.out, o.own = append(o.out, o.own...), nil
		if first != nil && begun < len(o.out) {
			l := &o.out[begun]
			l.First, l.At, l.loose = true, first.At, first.loose
		}
		first = nil
	}
	for i := range list {
		l := list[i]
		if l.First || l.gap {
			begins()
		}
		if l.First {
			if len(o.out) > 1 { // what is before it is the gap, and then another segment
				o.next, o.known = l.seq, !l.loose
			}
			first, begun = &list[i], len(o.out)
			l.First = false
		}
		switch {
		case l.gap:
			o.out = append(o.out, l)
		case l.Record == nil:
			o.own = append(o.own, l)
		default:
			o.commit(l)
		}
	}
	begins()
	for at, id := range o.holes {
		if l := o.spare[id]; l != nil {
			was := &o.out[at]
			l.First, l.At, l.loose, l.sure = was.First, was.At, was.loose, false
			*was = *l
		}
	}
	return o.out, o.late
}

// commit takes the entries of a commit line, and the line.
func (o *order) commit(l Line) {
	rec := l.Record
	if o.known && rec.Seq < o.next {
		if o.late[rec.Seq] == nil {
			o.late[rec.Seq] = rec
		}
		return
	}
	lost := uint64(0)
	if o.known {
		lost = rec.Seq - o.next
	}
	for i := range o.own {
		if !o.own[i].good() {
			lost = holesMost + 1
		}
	}
	if lost > holesMost || rec.Entries > len(o.own)+holesMost {
		o.out, o.own = append(o.out, o.own...), nil
	} else {
		o.entries(rec, int(lost))
	}
	o.out = append(o.out, l)
	o.head, o.next, o.known = rec.Head, rec.Seq+1, true
}

// entries takes the entries of a commit, before which so many commit lines are missing.
func (o *order) entries(rec *checkpoint.Record, lost int) {
	before, own, after := o.split(rec, lost)
	if lost > 0 { // they are those of the commits that are missing
		o.out = append(append(o.out, before...), make([]Line, lost)...)
		before = nil
	}
	for i := range before {
		o.spare[before[i].ID] = &before[i]
	}
	at := o.broken(own, rec)
	o.out = append(o.out, own[:at]...)
	if holes := rec.Entries - len(own); holes > 0 {
		o.out = append(o.out, make([]Line, holes)...)
		id := rec.Head
		if at < len(own) {
			id = own[at].from
		}
		o.holes[len(o.out)-1] = id
	}
	o.out = append(o.out, own[at:]...)
	o.own = after
}

// split divides the lines before a commit line: its own entries, and what is before and after them. Its own are those
// that grow from each other out of the head before, where that is what the commit line has of them, else the last ones
// up to the head.
func (o *order) split(rec *checkpoint.Record, lost int) (before, own, after []Line) {
	n, end := rec.Entries, len(o.own)
	if lost == 0 && len(rec.Parents) == 0 && n > 0 {
		used, last := map[int]bool{}, 0
		for head, more := o.head, true; more && len(own) < n; {
			more = false
			for i := range o.own {
				if l := &o.own[i]; !used[i] && l.from == head {
					own, head, more, used[i], last = append(own, *l), l.ID, true, true, max(last, i)
					break
				}
			}
		}
		if len(own) == n {
			for i := range o.own[:last] {
				if !used[i] {
					before = append(before, o.own[i])
				}
			}
			return before, own, o.own[last+1:]
		}
	}
	for k := end; k >= n && k > 0; k-- {
		if o.own[k-1].ID == rec.Head {
			end = k
			break
		}
	}
	from := max(0, end-n)
	return o.own[:from], o.own[from:end], o.own[end:]
}

// broken finds where entries are missing among those of a commit: before the one whose parent is not there.
func (o *order) broken(own []Line, rec *checkpoint.Record) int {
	if len(own) == rec.Entries {
		return len(own)
	}
	there := map[string]bool{}
	for i := range own {
		there[own[i].ID] = true
	}
	for i := len(own) - 1; i > 0; i-- {
		if !there[own[i].from] {
			return i
		}
	}
	if n := len(own); n > 0 && own[0].from == o.head && own[n-1].ID != rec.Head {
		return n
	}
	return 0
}
