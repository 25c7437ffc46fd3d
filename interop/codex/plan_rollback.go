package codex

import (
	"slices"
	"time"

	"github.com/coppice-go/coppice/interop"
)

// Kinds of losses.
const (
	lostBranch = "entries on other branches: Codex keeps one line of conversation"
	lostOrphan = "entries whose parent is not before them in the session: what comes before is not in the file"
	lostTurn   = "the place where the session goes on, inside of a turn: the turn is taken back, and what counts " +
		"of it said again"
	lostAgain = "the place where the session goes on, to which Codex cannot go back: the context there is said " +
		"again as a whole"
)

// continuation describes how the end of the original is connected to the path of the head.
type continuation struct {
	LastKnown int       // last place on the path that the file contains, -1 = none
	Turns     int       // turns of the user to roll back
	Again     bool      // no rollback is possible: write the context at that place again
	Last      time.Time // time of the original's last entry
	undo      map[uint64]bool
}

// Undone reports whether the rollback removes a call's result.
func (w continuation) Undone(id string) bool { return w.undo[callHash(id)] }

// Back computes the connection from the end of the original to the path of the head. Codex rolls back to a user
// message, so entries of that turn on the path are written again. Codex rolls back neither past a compaction nor before
// the first turn: then the whole context is written again, as the history of another compaction.
func (p *linePlan) Back(losses interop.Losses) continuation {
	tip := p.pathTo(p.known - 1)
	shared := 0
	for shared < len(tip) && shared < len(p.Path) && tip[shared] == p.Path[shared] {
		shared++
	}
	w := continuation{LastKnown: shared - 1, undo: map[uint64]bool{}}
	if p.known > 0 {
		w.Last = p.Lines[p.known-1].Time
	}
	before, folded := false, false
	for _, i := range tip[shared:] {
		switch p.class[i] {
		case classAsks:
			w.Turns++
		case classSummary:
			folded = true
		case classSpeaks, classRan:
			before = before || w.Turns == 0
		}
	}
	if !before && !folded && (w.Turns == 0 || p.stays(tip[:shared]) && p.holds(tip, shared, w.Turns)) {
		return p.undoing(w, tip[shared:])
	}
	turns := w.Turns
	for at := shared - 1; at >= 0 && p.class[tip[at]] != classSummary && !folded; at-- {
		if p.class[tip[at]] != classAsks {
			continue
		}
		if turns++; p.stays(tip[:at]) && p.holds(tip, at, turns) {
			losses[lostTurn]++
			w.LastKnown, w.Turns = at-1, turns
			return p.undoing(w, tip[at:])
		}
	}
	losses[lostAgain]++
	p.want(w.LastKnown)
	w.Again = true
	return w
}

// undoing records the call results that the rollback removes.
func (p *linePlan) undoing(w continuation, rest []int) continuation {
	for _, i := range rest {
		for _, h := range p.Results[i] {
			w.undo[h] = true
		}
	}
	return w
}

// holds reports whether the compaction before a place stays in force if a rollback removes this number of messages
// after it. A rollback removes a compaction with the turn in which it was made. Codex counts turns with a user message,
// and not the messages.
func (p *linePlan) holds(tip []int, place, messages int) bool {
	last := -1
	for at, i := range tip[:place] {
		if p.class[i] == classSummary {
			last = at
		}
	}
	named, open, asking := false, false, 0
	for at, i := range tip {
		switch {
		case p.begun[i]:
			named, open = true, at > last
		case p.class[i] == classAsks && open:
			asking, open = asking+1, false
		}
	}
	return last < 0 || !named || asking >= messages
}

// stays reports whether a rollback of the next turn keeps all messages of the given line. It removes commands that the
// user ran right before that turn, unless that turn is the first one. The summary of a compaction may count as a turn.
func (p *linePlan) stays(line []int) bool {
	for i := len(line) - 1; i >= 0; i-- {
		switch p.class[line[i]] {
		case classRan:
			return !slices.ContainsFunc(line[:i], func(i int) bool {
				return p.class[i] == classAsks ||
					p.class[i] == classSummary
			})
		case classSilent, classTold:
		default:
			return true
		}
	}
	return true
}

// want adds the context at a place to the ranges needed there.
func (p *linePlan) want(place int) {
	from := 0
	for at := place; at >= 0; at-- {
		if p.class[p.Path[at]] == classSummary {
			if from = at; p.keeps(at) {
				from, _ = p.Keeps(at)
			}
			break
		}
	}
	i := 0
	for i < len(p.needs) && p.needs[i].at < place {
		i++
	}
	if i < len(p.needs) && p.needs[i].at == place {
		p.needs[i].from = min(p.needs[i].from, from)
	} else {
		p.needs = slices.Insert(p.needs, i, neededRange{from, place})
	}
	p.begin(p.needs)
}

func (p *linePlan) keeps(at int) bool {
	_, ok := p.Keeps(at)
	return ok
}
