package claudecode

import (
	"github.com/coppice-go/coppice/internal/rawjson"
)

// keptSegment is the part of the earlier rows that a compaction keeps; noRow = none.
type keptSegment struct {
	first, last int32
	listed      bool // each row is listed
}

// preserved records the rows that the compaction of boundary i keeps: a list of rows, or (in older versions) the first
// and the last one. Only rows with content count: kept rows that are written again after the boundary have their own
// place.
func (x *index) preserved(meta []byte, i int32) {
	s := keptSegment{noRow, noRow, true}
	uuids := rawjson.Field(rawjson.Field(meta, "preservedMessages"), "uuids")
	for m := rawjson.Walk(uuids); m.Closing == ']' && m.Next(); {
		k := x.earlier(m.Val, i)
		if k == noRow || !x.early(k).Kind.Speaks() {
			continue
		}
		if s.last = k; s.first == noRow {
			s.first = k
		}
	}
	if s.last == noRow {
		ends := rawjson.Field(meta, "preservedSegment")
		s = keptSegment{
			x.earlier(rawjson.Field(ends, "headUuid"), i), x.earlier(rawjson.Field(ends, "tailUuid"), i),
			false,
		}
	}
	if s.first != noRow || s.last != noRow {
		x.kept[i] = s
	}
}

// earlier returns the row before i with an ID, while rows are added.
func (x *index) earlier(id []byte, i int32) int32 {
	if k, ok := x.byKey[keyOf(id)]; ok && k < i && len(stringBytes(id)) > 0 {
		return k
	}
	return noRow
}

// follows returns the row with content after which a boundary belongs, determined by the rows that its compaction
// keeps. The parent that the boundary names often does not exist. noRow = the compaction keeps nothing, or i is not a
// boundary.
func (x *index) follows(i int32) int32 {
	r := &x.Rows[i]
	if r.Kind != kindBoundary {
		return noRow
	}
	s, ok := x.kept[i]
	if !ok || s.last == noRow || x.Rows[s.last].Child != r.Child {
		return noRow
	}
	at := x.speaker(s.last)
	for at >= 0 && x.Rows[at].Flags&flagPast != 0 && x.byKey[x.Rows[at].Key] > i {
		next := x.Rows[at].link // at is written again after the boundary
		if next >= at {
			return noRow
		}
		at = next
	}
	if at >= 0 {
		s.last = at
		x.kept[i] = s
	}
	return max(at, noRow)
}

// message returns the last row of the message to which a row belongs; for a result, of the message with its call.
func (x *index) message(at int32) int32 {
	if c := x.Rows[at].call; c != noRow {
		at = c
	}
	return x.Rows[at].Unit
}

// passed records, at the last row of a compaction that keeps rows, which later rows continue from it.
func (x *index) passed(r *lineRow) {
	if x.Rows[r.head].Kind != kindBoundary {
		return
	}
	s, ok := x.kept[r.head]
	if !ok || s.last == noRow || x.Rows[s.last].Child != r.Child {
		return
	}
	if x.goesOn[x.message(s.last)] = r.head; s.listed {
		x.listed[r.Child] = r.head
	}
}

// onward returns the row from which row i continues if it names row at. If at is the end of the rows that a compaction
// keeps, i continues from the compaction. After a compaction with a list of rows, every row that names an earlier one
// does: Claude Code drops rows that are not in the list, and attaches rows without a parent to the last one that is.
func (x *index) onward(at, i int32) int32 {
	m := x.message(at)
	last := x.listed[x.Rows[i].Child]
	if b, ok := x.goesOn[m]; ok && b > last && b < i {
		return b
	}
	if last != noRow && last < i && x.Rows[m].head < last {
		return last
	}
	return at
}

// begin finds the first row that each compaction keeps, on the path that leads to the compaction: the row that it
// names, or, if there is none or it is elsewhere, the first later row on the path. A result is replaced by its call.
// When the steps are used up, the row that it names is taken.
func (x *index) begin() {
	steps := 4 * len(x.Rows) // of all such walks together
	for i := range x.Rows {
		s, ok := keptSegment{}, false
		if x.Rows[i].Kind == kindBoundary {
			s, ok = x.kept[int32(i)]
		}
		if !ok {
			continue
		}
		first := s.first
		if s.first = noRow; first != noRow {
			end := first
			if x.Rows[first].Kind.Speaks() {
				end = x.message(first)
			}
			for at := x.Rows[x.Rows[i].Unit].Up; at != noRow && steps > 0; at = x.Rows[at].Up {
				steps--
				m := x.message(at)
				if m != end && x.Rows[m].head < first {
					break
				}
				if s.first = m; m == end {
					break
				}
			}
			if steps == 0 && x.Rows[first].Kind.Speaks() {
				s.first = end
			}
		}
		x.kept[int32(i)] = s
	}
}

// Kept returns the first row that the compaction of a boundary keeps.
func (x *index) Kept(boundary int32) (row int32, ok bool) {
	s, ok := x.kept[boundary]
	return s.first, ok && s.first != noRow
}
