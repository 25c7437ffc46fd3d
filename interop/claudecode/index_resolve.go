package claudecode

import "github.com/coppice-go/coppice/transcript"

// How far apart in the file the pieces of one message may lie, and how much they may hold together.
const (
	maxPieceDistance = 32 << 20
	maxJoinedSize    = 3 << 20
)

// visiting marks in the field Child of a row that a way leads through it.
const visiting = int32(-3)

// resolve turns the file's links into those of a conversation.
//
// The tree of parentUuid is not the conversation: it forks at lines without content, a message is in pieces, the
// results of parallel calls hang on different pieces, and a compaction starts a root. So: a turn is one line,
// whatever its lines name; pieces are joined; the results of a message's calls follow it, one after
// the other, and what continued from any of them continues from the last; a compaction hangs on what was last
// before it. What is left are branches that the user made.
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

// sidechains sorts rows into the session and its children. A file of nothing but sidechains is itself the
// transcript of an agent that a session started, and has none.
func (x *index) sidechains() {
	own, side := false, false
	for i := range x.Rows {
		r := &x.Rows[i]
		own = own || r.Kind.Speaks() && r.Flags&flagSide == 0
		side = side || r.Kind.Speaks() && r.Flags&flagSide != 0
	}
	x.agentFile(own || !side && x.AgentID == "") // nothing is said yet: it is a session's until the file says else
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
				child = x.Rows[last].Child // its parent is not there: it continues with what came before
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

// agentFile forgets what only a file of the one kind or the other has.
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

// join makes one entry of the pieces of a message, and of a compaction's boundary and summary.
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
				x.Rows[h].tail += r.Size // the size of all pieces, for now
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

// continues reports whether a piece continues where the message's last piece j, or a result of its calls, was.
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

// answers puts the results of a message's calls after it.
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

// setPlaces sets the place of every entry in the conversation.
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

// between keeps on the way what was said between the results of one message's calls: those follow the message
// without a gap, so it follows them, and what continues from them continues from it.
func (x *index) between(r *lineRow, at int32) {
	if at < 0 || x.Rows[at].Up == noRow || x.Rows[at].Kind == kindAssistant || x.Rows[at].call != noRow {
		return
	}
	m := x.message(r.call)
	if _, kept := x.goesOn[m]; kept {
		return // a compaction came between
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
