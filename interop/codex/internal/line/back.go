package line

import (
	"slices"
	"time"

	"github.com/coppice-go/coppice/interop"
)

// Kinds of losses.
const (
	LostBranch = "entries on other branches: Codex keeps one line of conversation"
	LostOrphan = "entries whose parent is not before them in the session: what comes before is not in the file"
	LostTurn   = "the place where the session goes on, inside of a turn: the turn is taken back, and what counts of it said again"
	LostAgain  = "the place where the session goes on, to which Codex cannot go back: the context there is said again as a whole"
)

// Way is how a file gets from where it ends to where the session goes on.
type Way struct {
	Said  int       // the last place on the line that the file has said, -1 = none
	Turns int       // of the user that are taken back
	Again bool      // they are not: all of the context at that place is said again
	Last  time.Time // of the file
	undo  map[uint64]bool
}

// Undone tells whether a result of a call is taken back with the turns.
func (w Way) Undone(id string) bool { return w.undo[Hash(id)] }

// Back finds the way from the end of the original to the line of the head. Codex goes back to where a user spoke: what
// of the turn is on the line is said again. It goes back neither behind a compaction nor to before the first turn: the
// context is said again then, as the history of another compaction.
func (p *Plan) Back(losses interop.Losses) Way {
	tip := p.wayTo(p.known - 1)
	shared := 0
	for shared < len(tip) && shared < len(p.Path) && tip[shared] == p.Path[shared] {
		shared++
	}
	w := Way{Said: shared - 1, undo: map[uint64]bool{}}
	if p.known > 0 {
		w.Last = p.Lines[p.known-1].Time
	}
	before, folded := false, false
	for _, i := range tip[shared:] {
		switch p.class[i] {
		case asks:
			w.Turns++
		case summary:
			folded = true
		case speaks, ran:
			before = before || w.Turns == 0
		}
	}
	if !before && !folded && (w.Turns == 0 || p.stays(tip[:shared]) && p.holds(tip, shared, w.Turns)) {
		return p.undoing(w, tip[shared:])
	}
	turns := w.Turns
	for at := shared - 1; at >= 0 && p.class[tip[at]] != summary && !folded; at-- {
		if p.class[tip[at]] != asks {
			continue
		}
		if turns++; p.stays(tip[:at]) && p.holds(tip, at, turns) {
			losses[LostTurn]++
			w.Said, w.Turns = at-1, turns
			return p.undoing(w, tip[at:])
		}
	}
	losses[LostAgain]++
	p.want(w.Said)
	w.Again = true
	return w
}

// undoing notes the results of calls in what is taken back.
func (p *Plan) undoing(w Way, rest []int) Way {
	for _, i := range rest {
		for _, h := range p.Results[i] {
			w.undo[h] = true
		}
	}
	return w
}

// holds tells whether the compaction before a place of a file's line stays in force where so many messages behind the
// place are taken back. It goes with the turn in which it was made, and Codex takes back as many turns in which
// somebody asks, however many messages each has.
func (p *Plan) holds(tip []int, place, messages int) bool {
	last := -1
	for at, i := range tip[:place] {
		if p.class[i] == summary {
			last = at
		}
	}
	named, open, asking := false, false, 0
	for at, i := range tip {
		switch {
		case p.begun[i]:
			named, open = true, at > last
		case p.class[i] == asks && open:
			asking, open = asking+1, false
		}
	}
	return last < 0 || !named || asking >= messages
}

// stays tells whether all that was said on a line stays where the turn behind it is taken back: commands that the user
// ran right before a turn go with it, unless it is the first one; the summary of a compaction may count as one.
func (p *Plan) stays(line []int) bool {
	for i := len(line) - 1; i >= 0; i-- {
		switch p.class[line[i]] {
		case ran:
			return !slices.ContainsFunc(line[:i], func(i int) bool { return p.class[i] == asks || p.class[i] == summary })
		case silent, told:
		default:
			return true
		}
	}
	return true
}

// want adds the context at a place to what has to be said there.
func (p *Plan) want(place int) {
	from := 0
	for at := place; at >= 0; at-- {
		if p.class[p.Path[at]] == summary {
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
		p.needs = slices.Insert(p.needs, i, need{from, place})
	}
	p.begin(p.needs)
}

func (p *Plan) keeps(at int) bool {
	_, ok := p.Keeps(at)
	return ok
}
