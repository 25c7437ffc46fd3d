package repair

import "github.com/coppice-go/coppice/checkpoint"

// order restores the order of the lines of a part. A commit line has its number, the number of its entries and the head
// after it. So a missing line leaves a hole, a repeated line is used once, and a line at a wrong place is moved back.
// If a line between two commits cannot be read, the lines between them stay as they are, because the damage hides how
// many lines there were.
type order struct {
	out   []Line
	own   []Line                        // entries since the commit line before
	late  map[uint64]*checkpoint.Record // commit lines that were found after later ones, by seq
	spare map[string]*Line              // entries that do not belong to the commit line after them, by id
	holes map[int]string                // known ids of missing entries, by index in out
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

// entries adds the entries of a commit. lost is the number of commit lines that are missing before it.
func (o *order) entries(rec *checkpoint.Record, lost int) {
	before, own, after := o.split(rec, lost)
	if lost > 0 { // lines before belong to the missing commits
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

// split divides the lines before a commit line into its own entries and those before and after them. Its own entries
// are a chain that begins at the previous head, if it has as many entries as the commit line, else the last entries up
// to the commit's head.
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
