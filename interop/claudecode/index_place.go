package claudecode

import "github.com/coppice-go/coppice/transcript"

// cutCircles breaks cycles and sets the model in force at each row.
func (x *index) cutCircles() {
	done := make([]uint8, len(x.Rows)) // 1 = on the current path, 2 = done
	var trail []int32
	for i := range x.Rows {
		at := int32(i)
		if !x.Rows[i].Kind.Speaks() || x.Rows[i].Unit != at {
			continue
		}
		for at != noRow && done[at] == 0 {
			done[at] = 1
			trail = append(trail, at)
			at = x.Rows[at].Up
		}
		from := len(trail) - 1
		if at != noRow && done[at] == 1 {
			from = x.cut(trail, at)
		}
		for n := from; n >= 0; n-- {
			x.inherit(trail[n])
		}
		for n := len(trail) - 1; n > from; n-- {
			x.inherit(trail[n])
		}
		for _, i := range trail {
			done[i] = 2
		}
		trail = trail[:0]
	}
}

// cut breaks the cycle at the end of a trail: its first line in the file becomes a root.
func (x *index) cut(trail []int32, at int32) (place int) {
	place = len(trail) - 1
	for n := place; ; n-- {
		if trail[n] < trail[place] {
			place = n
		}
		if trail[n] == at {
			break
		}
	}
	r := &x.Rows[trail[place]]
	x.Note(r.Line, transcript.DiagCycle, "its parents lead back to it: it starts a root")
	r.Up = noRow
	return place
}

// inherit sets the model in force at an entry whose parent has one.
func (x *index) inherit(i int32) {
	r, force := &x.Rows[i], int32(0)
	if r.Up != noRow {
		force = x.Rows[r.Up].Model
	}
	if own := x.Rows[r.head].Model; r.Kind == kindAssistant && own != 0 && own != force {
		force = own
		r.Flags |= flagModel
	}
	r.Model = force
}

// place attaches rows without content to the last message before them in file order, so that the path from the root to
// a later message contains them.
func (x *index) place() {
	x.Tips = x.perChild()
	open := x.perChild()       // the last line before the first message
	early := map[int32]int32{} // by parent: a child that precedes it in the file
	steps := 4 * len(x.Rows)
	for i := range x.Rows {
		r, at := &x.Rows[i], int32(i)
		c := r.Child
		switch {
		case !r.Kind.Speaks():
			r.Unit = at
			if tip := x.Tips[c]; tip == noRow {
				r.Up, open[c] = open[c], at
			} else {
				t := &x.Rows[tip]
				if r.Up = t.tail; r.Up == noRow {
					r.Up = tip
				}
				t.tail = at
			}
		case r.Unit == at:
			if r.Up == noRow {
				r.Up = open[c]
			} else if up := &x.Rows[r.Up]; up.tail != noRow {
				r.Up = up.tail
			} else if r.Up > at {
				early[r.Up] = at // the conversation continued before this row
			}
			if e, late := early[at]; !late {
				x.Tips[c] = at
			} else if !x.below(x.Tips[c], at, &steps) {
				x.Tips[c] = e
			}
		}
	}
	x.pointed()
	for c := range x.Tips {
		if x.Tips[c] == noRow {
			x.Tips[c] = open[c]
		} else if tail := x.Rows[x.Tips[c]].tail; tail != noRow {
			x.Tips[c] = tail
		}
	}
}

// pointed moves the end of the conversation if the last line requires it: a system line on another branch, or a line by
// which Claude Code records that the user went back.
func (x *index) pointed() {
	seen := make([]bool, x.Children+1)
	if i, ok := x.byKey[x.explicit]; ok && x.Rows[i].Child == 0 {
		if at := x.speaker(i); at != noRow {
			x.Tips[0], seen[0] = x.placeOf(at), true
		}
	}
	for i := len(x.Rows) - 1; i >= 0; i-- {
		r := &x.Rows[i]
		if r.Kind < kindOther || seen[r.Child] {
			continue
		}
		seen[r.Child] = true
		if r.Flags&flagSystem == 0 {
			continue
		}
		at := x.speaker(int32(i))
		if at != noRow && r.names != x.explicit {
			at = x.onward(at, int32(i))
		}
		if at != noRow && x.placeOf(at) != x.Tips[r.Child] {
			x.Tips[r.Child] = x.placeOf(at)
		}
	}
}

// placeOf returns the row whose children continue from a row with content.
func (x *index) placeOf(at int32) int32 {
	at = x.Rows[at].Unit
	if c := x.Rows[at].call; c != noRow {
		at = x.Rows[c].Unit
	}
	if end := x.Rows[at].end; end != noRow {
		at = end
	}
	return at
}

// below reports whether top is an ancestor of i. steps bounds all such walks together.
func (x *index) below(i, top int32, steps *int) bool {
	for ; i != noRow && *steps > 0; *steps-- {
		if i == top {
			return true
		}
		i = x.Rows[i].Up
	}
	return false
}

// arrange lists the rows of each child.
func (x *index) arrange() {
	x.from = make([]int32, x.Children+2)
	for i := range x.Rows {
		x.from[x.Rows[i].Child+1]++
	}
	for c := range x.Children + 1 {
		x.from[c+1] += x.from[c]
	}
	x.order = make([]int32, len(x.Rows))
	at := append([]int32(nil), x.from...)
	for i := range x.Rows {
		c := x.Rows[i].Child
		x.order[at[c]] = int32(i)
		at[c]++
	}
	x.Done = make([]bool, len(x.Rows))
	if t := x.best(); t.rank == 1 {
		x.names = append(x.names, t.row)
	}
	for _, i := range x.names {
		x.Rows[i].Kind = kindTitle
	}
}

// List returns the rows of a child.
func (x *index) List(child int32) []int32 { return x.order[x.from[child]:x.from[child+1]] }

// Title returns the session's name; "" = none.
func (x *index) Title() string { return x.best().text }

func (x *index) best() foundTitle {
	best := x.named
	for _, t := range x.titles {
		if _, here := x.byKey[t.leaf]; here && best.rank < 2 && (best.rank == 0 || t.row > best.row) {
			best = t // a summary of another session
		}
	}
	return best
}
