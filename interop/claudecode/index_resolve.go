package claudecode

import "github.com/coppice-go/coppice/transcript"

// Bounds of the pieces of one message: their distance in the file, and their total size.
const (
	maxPieceDistance = 32 << 20
	maxJoinedSize    = 3 << 20
)

// visiting in the field Child marks a row on the current path.
const visiting = int32(-3)

// resolve turns the file's links into those of a conversation.
//
// The tree of parentUuid is not the conversation: it forks at lines without content, a message is in pieces, the
// results of parallel calls are attached to different pieces, and a compaction starts a root. Therefore:
//
//   - a turn is one path, whatever its lines name;
//   - pieces of a message are joined;
//   - the results of a message's calls follow it one after the other, and rows that continue from any of them continue
//     from the last;
//   - a compaction continues from the last message before it.
//
// The remaining branches are those that the user made.
func (x *index) resolve() {
	x.link()
	x.sidechains()
	x.follow()
	x.join()
	x.answers()
	x.setPlaces()
	x.cutCircles()
	x.begin()
	x.place()
	x.arrange()
}

// sidechains assigns rows to the session and its children. A file with only sidechains is the transcript of an agent
// and has no children.
func (x *index) sidechains() {
	own, side := false, false
	for i := range x.Rows {
		r := &x.Rows[i]
		own = own || r.Kind.Speaks() && r.Flags&flagSide == 0
		side = side || r.Kind.Speaks() && r.Flags&flagSide != 0
	}
	x.agentFile(own || !side && x.AgentID == "") // without content the file counts as a session
	if !own {
		return
	}
	last := noRow
	var trail []int32
	for i := range x.Rows {
		if r := &x.Rows[i]; r.Flags&flagSide == 0 || r.Kind < kindOther || r.Child != 0 {
			continue
		}
		trail = trail[:0]
		j, child := int32(i), int32(0)
		for {
			x.Rows[j].Child = visiting
			trail = append(trail, j)
			p := x.Rows[j].parent
			ok := p != noRow
			if !ok && x.Rows[j].Flags&flagNamed != 0 && last != noRow {
				child = x.Rows[last].Child // its parent is missing: it belongs to the child of the row before
			}
			if !ok || x.Rows[p].Flags&flagSide == 0 || x.Rows[p].Child == visiting {
				break
			}
			if child = x.Rows[p].Child; child > 0 {
				break
			}
			j = p
		}
		if child <= 0 {
			x.Children++
			child = x.Children
		}
		for _, j := range trail {
			x.Rows[j].Child = child
		}
		last = int32(i)
	}
}

// agentFile clears the fields that only the other kind of file has.
func (x *index) agentFile(own bool) {
	if own {
		x.AgentID = ""
	} else if x.AgentID == "" {
		x.AgentID = "sidechain"
	}
	for i := range x.Rows {
		if own {
			return
		}
		x.Rows[i].Flags &^= flagSide
	}
}

func (x *index) perChild() []int32 {
	list := make([]int32, x.Children+1)
	for i := range list {
		list[i] = noRow
	}
	return list
}

// join joins the pieces of a message, and the boundary and summary of a compaction, into one entry.
func (x *index) join() {
	newest := make([]int32, len(x.msgs)+1) // by message: the last piece
	for i := range newest {
		newest[i] = noRow
	}
	for i := range x.Rows {
		r := &x.Rows[i]
		switch {
		case r.Kind == kindSummary && r.link != noRow:
			if b := &x.Rows[r.link]; b.Kind == kindBoundary && b.head == b.Unit && x.near(b, r) {
				b.Unit, r.head = int32(i), b.head
			}
		case r.Kind == kindAssistant && r.msg != 0:
			if j := newest[r.msg]; j != noRow && x.continues(r, j) {
				h := x.Rows[j].head
				x.Rows[h].tail += r.Size // temporarily the size of all pieces
				r.head, x.Rows[h].Unit = h, int32(i)
			} else {
				r.tail = r.Size
			}
			newest[r.msg] = int32(i)
		}
	}
	for i := range x.Rows {
		r := &x.Rows[i]
		r.tail, r.Unit = noRow, x.Rows[r.head].Unit
	}
}

func (x *index) near(a, b *lineRow) bool {
	return a.Child == b.Child && b.Offset-a.Offset <= maxPieceDistance && b.Line >= a.Line
}

// continues reports whether a piece continues from the message's last piece j, or from a result of its calls.
func (x *index) continues(r *lineRow, j int32) bool {
	last := &x.Rows[j]
	head := &x.Rows[last.head]
	if !x.near(head, r) || head.tail+r.Size > maxJoinedSize {
		return false
	}
	for at := r.link; at != noRow; {
		p := &x.Rows[at]
		switch {
		case p.Kind == kindAssistant:
			return p.head == last.head
		case p.Kind == kindUser && p.call != noRow:
			at = p.call
			continue
		}
		return false
	}
	return false
}

// answers places the results of a message's calls after it.
func (x *index) answers() {
	for i := range x.Rows {
		r := &x.Rows[i]
		if r.Held == 0 {
			continue
		}
		for _, k := range x.unmet[int32(i)] {
			if c, ok := x.Calls[k]; ok {
				r.call = max(r.call, c.Row)
			}
		}
		if r.call != noRow && (x.Rows[r.call].Child != r.Child || x.Rows[r.call].Kind != kindAssistant) {
			r.call = noRow
		}
		if r.call == noRow {
			x.Note(r.Line, transcript.DiagOrphanResult, "a result whose call is not in the file")
			if len(x.lost) <= maxMissing {
				x.lost = append(x.lost, x.unmet[int32(i)]...)
			}
			continue
		}
		m := &x.Rows[x.Rows[r.call].Unit]
		if r.Up = m.end; r.Up == noRow {
			r.Up = x.Rows[r.call].Unit
		}
		m.end = int32(i)
	}
	x.unmet = nil
}

// setPlaces sets the parent of every entry.
func (x *index) setPlaces() {
	x.listed = x.perChild()
	for i := range x.Rows {
		r := &x.Rows[i]
		switch at := x.Rows[r.head].link; {
		case r.call != noRow:
			x.between(r, at)
		case r.Unit == int32(i) && r.Kind.Speaks() && at != noRow:
			r.Up = x.placeOf(x.onward(at, r.head))
		}
		if r.Unit == int32(i) {
			x.passed(r)
		}
	}
}

// between handles messages between the results of one message's calls. The results must follow the message without a
// gap, so such messages follow the results, and later rows continue from them.
func (x *index) between(r *lineRow, at int32) {
	if at < 0 || x.Rows[at].Up == noRow || x.Rows[at].Kind == kindAssistant || x.Rows[at].call != noRow {
		return
	}
	m := x.message(r.call)
	if _, kept := x.goesOn[m]; kept {
		return // a compaction is between them
	}
	const most = 16 // lines between two results
	for up, n := at, 0; up >= 0 && n < most; up, n = x.Rows[up].link, n+1 {
		if k := &x.Rows[up]; k.call == noRow && (k.Kind == kindQueued || k.Kind == kindMeta ||
			k.Kind == kindUser && k.Held == 0) {
			continue
		}
		if x.message(up) == m {
			x.Rows[m].end = at
		}
		return
	}
}
