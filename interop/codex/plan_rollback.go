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

// continuation is how a file gets from where it ends to where the session continues.
type continuation struct {
	Said  int       // the last place on the line that the file has said, -1 = none
	Turns int       // of the user that are taken back
	Again bool      // they are not: all of the context at that place is said again
	Last  time.Time // of the file
	undo  map[uint64]bool
}

// Undone reports whether a result of a call is taken back with the turns.
func (w continuation) Undone(id string) bool { return w.undo[callHash(id)] }

// Back finds the way from the end of the original to the line of the head. Codex goes back to where a
// user spoke: what of the turn is on the line is said again. It goes back neither past a compaction nor
// to before the first turn: the context is said again then, as the history of another compaction.
func (p *linePlan) Back(losses interop.Losses) continuation {
	tip := p.pathTo(p.known - 1)
	shared := 0
	for shared < len(tip) && shared < len(p.Path) && tip[shared] == p.Path[shared] {
		shared++
	}
	w := continuation{Said: shared - 1, undo: map[uint64]bool{}}
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
			w.Said, w.Turns = at-1, turns
			return p.undoing(w, tip[at:])
		}
	}
	losses[lostAgain]++
	p.want(w.Said)
	w.Again = true
	return w
}

// undoing notes the results of calls in what is taken back.
func (p *linePlan) undoing(w continuation, rest []int) continuation {
	for _, i := range rest {
		for _, h := range p.Results[i] {
			w.undo[h] = true
		}
	}
	return w
}

// holds reports whether the compaction before a place of a file's line stays in force where so many
// messages after the place are taken back. It goes with the turn in which it was made, and Codex takes
// back as many turns in which a user asks, however many messages each has.
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

// stays reports whether all that was said on a line stays where the turn after it is taken back:
// commands that the user ran right before a turn go with it, unless it is the first one; the summary of
// a compaction may count as one.
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

// want adds the context at a place to what has to be said there.
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
