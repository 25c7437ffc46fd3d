package codex

import (
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// costs finds the answer that each count is of. It comes right after the answer's last item; before its first one in
// versions of 2025; after the outputs of its calls where they were quick.
type costs struct {
	total  tokenUsage // of the session, as the last count says
	begun  bool       // there was one
	before bool       // the file may not have all that it continues from: the first one counts the rest too
	turn   string     // id of the turn; "" = not said
	owed   spent      // has no answer yet
	due    dueCount
}

// spent is what was counted and where.
type spent struct {
	tokenUsage
	known bool
	at    position
	of    []byte // fields that name the response; nil = its count has no total
}

func (s *spent) add(u tokenUsage, at position, of []byte) {
	s.tokenUsage, s.known, s.at, s.of = s.Plus(u), true, at, of
}

// responseFields returns the fields by which copies of an answer are recognised, for entries of a count: "origin", and
// "inherited" where another thread received the answer. Codex does not store the provider's id. The turn's id and the
// thread's total are the same in the file of a fork or of an agent, to which Codex copies the history of the parent;
// times and lines differ there.
func (r *Reader) responseFields(c *tokenCount, part string) []byte {
	if !c.HasTotal || c.Total == (tokenUsage{}) {
		return nil
	}
	id := append([]byte("codex:"), r.costs.turn...)
	for _, n := range []int64{c.Total.In, c.Total.Cached, c.Total.Out, c.Total.Thought} {
		id = strconv.AppendInt(append(id, ':'), n, 10)
	}
	out := rawjson.AppendString([]byte(`,"origin":`), append(id, part...))
	if r.from.depth > 0 || isEarlier(r.costs.turn, r.header.ID) {
		out = append(out, `,"inherited":true`...)
	}
	return out
}

// isEarlier reports whether a turn began before a thread, by their ids: UUIDs of version 7 contain the time.
func isEarlier(turn, thread string) bool {
	a, errA := uuid.Parse(turn)
	b, errB := uuid.Parse(thread)
	return errA == nil && errB == nil && a.Version() == 7 && b.Version() == 7 && a.Time() < b.Time()
}

// dueCount is the answer before, where its count may still come: until then no entry from it on is given out.
type dueCount struct {
	open     bool
	done     bool // it ended: it failed, cost nothing, or a call of it was answered
	late     bool // it is given out, for too much followed it
	at       int  // among the entries that are made
	from, to int  // where its usage is in it
	size     int  // bytes of the entries from it on: with over maxHeld of them nothing is waited for
}

// counted takes a count. One that repeats the sum of the one before is none.
func (r *Reader) counted(p *rolloutPiece) {
	c, at := &p.Count, p.At
	if !c.HasLast && !c.HasTotal {
		return
	}
	u, more := c.Last, tokenUsage{}
	if c.HasTotal {
		grown, up := c.Total.Minus(r.costs.total)
		if up && grown == (tokenUsage{}) && (r.costs.begun || u == grown) {
			if u == grown { // of an answer that cost nothing
				r.flush("")
				r.costs.due.done = true
			}
			return
		}
		switch rest, fits := grown.Minus(u); {
		case !up, !r.costs.begun && r.costs.before && c.HasLast:
		case c.HasLast && fits:
			more = rest
		default:
			u = grown
		}
		r.costs.total, r.costs.begun = c.Total, true
	}
	of := r.responseFields(c, "")
	switch {
	case r.answer.open && r.costs.owed.known: // the one before was the answer's
		r.flush("")
		r.costs.owed.add(u, at.Kept(), of)
	case r.answer.open:
		r.answer.cost.add(u, at, of)
		r.flush("")
	case r.costs.due.open:
		r.countedAnswer(u, of)
	case r.costs.due.late:
		r.costs.due = dueCount{}
		more = more.Plus(u)
	default:
		r.closeCounts() // each count is of another response
		r.costs.owed.add(u, at.Kept(), of)
	}
	if more != (tokenUsage{}) {
		at.N++
		r.spend(at, more, r.responseFields(c, ":rest"))
	}
}

// spend says what was counted and is no answer's.
func (r *Reader) spend(a position, u tokenUsage, of []byte) {
	out := rawjson.AppendString(append(r.open(a, "usage", len(r.model)), `,"kind":"codex","provider":`...),
		r.provider)
	out = rawjson.AppendString(append(out, `,"model":`...), r.model)
	r.put(a, append(append(u.Append(append(out, `,"usage":`...)), of...), '}'))
}

// closeCounts says that no count comes any more for what was said so far, and none that came has an answer.
func (r *Reader) closeCounts() {
	r.costs.due = dueCount{}
	if o := r.costs.owed; o.known {
		r.costs.owed = spent{}
		if o.tokenUsage != (tokenUsage{}) {
			o.at.N += 2
			r.spend(o.at, o.tokenUsage, o.of)
		}
	}
}

// countedAnswer returns the answer that is due its count.
func (r *Reader) countedAnswer(u tokenUsage, of []byte) {
	d := r.costs.due
	raw := r.out[d.at].Raw
	r.out[d.at].Raw = slices.Concat(raw[:d.from], u.Append(nil), of, raw[d.to:])
	r.costs.due = dueCount{}
}

// ready returns how many of the entries that were made may be given out.
func (r *Reader) ready() int {
	if r.costs.due.open {
		return r.costs.due.at
	}
	return len(r.out)
}

// given drops the entries that were given out.
func (r *Reader) given() {
	n := copy(r.out, r.out[r.at:])
	clear(r.out[n:])
	r.out = r.out[:n]
	r.costs.due.at -= r.at
	r.at = 0
}
