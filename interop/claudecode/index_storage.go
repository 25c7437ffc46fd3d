package claudecode

import (
	"github.com/coppice-go/coppice/internal/rawjson"
)

// keptSegment is what a compaction keeps of the rows before it; noRow = that is not there.
type keptSegment struct {
	first, last int32
	listed      bool // row by row
}

// preserved notes what the boundary in row i says that its compaction keeps: a list of rows, or, as of
// old and besides, the first and the last. Of a list those count that speak: what it keeps and writes
// after the boundary hangs there by itself.
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

// earlier returns the row before i that has an id, while rows are entered.
func (x *index) earlier(id []byte, i int32) int32 {
	if k, ok := x.byKey[keyOf(id)]; ok && k < i && len(stringBytes(id)) > 0 {
		return k
	}
	return noRow
}

// follows returns the row that speaks after which a boundary belongs by what its compaction keeps,
// whatever it names as its parent: often a row that was never written. noRow = it keeps nothing, or i is
// none.
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
		next := x.Rows[at].link // at is written again after the boundary, and hangs there by itself
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

// message returns the last row of the message that a row belongs to: of a result, the one with its call.
func (x *index) message(at int32) int32 {
	if c := x.Rows[at].call; c != noRow {
		at = c
	}
	return x.Rows[at].Unit
}

// passed notes, at the last row of a compaction that keeps something, what continues from it from then on.
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

// onward returns the row from which continues what names a row that speaks. What names the end of what
// a compaction keeps continues from the compaction. With a list of what is kept so does all after it
// that names a row before it: Claude Code drops the rows that are not in the list, and hangs what is
// left without a parent on the last that is.
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

// begin finds where begins what each compaction keeps, on the way that leads to it: at the first row
// that it names, or, where that says nothing or is elsewhere, at the first that came after it. A result
// does not begin it, but its call. After so many steps the first row that it names is taken as it is.
func (x *index) begin() {
	steps := 4 * len(x.Rows) // of all such ways together
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

// Kept returns the row with which begins what the compaction of a boundary's row keeps.
func (x *index) Kept(boundary int32) (row int32, ok bool) {
	s, ok := x.kept[boundary]
	return s.first, ok && s.first != noRow
}
