package codex

import (
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// costs assigns each token count to its answer. The count follows the answer's last item. In versions of 2025 it
// precedes the first one. It follows the outputs of the answer's calls if they were quick.
type costs struct {
	total  tokenUsage // of the session, from the last count
	begun  bool       // total is set
	before bool       // the file may lack earlier history: its first count includes those answers
	turn   string     // turn ID; "" = unknown
	owed   spent      // not assigned to an answer yet
	due    dueCount
}

// spent is a token count and its position in the file.
type spent struct {
	tokenUsage
	known bool
	at    position
	of    []byte // fields that name the response; nil = the count has no total
}

func (s *spent) add(u tokenUsage, at position, of []byte) {
	s.tokenUsage, s.known, s.at, s.of = s.Plus(u), true, at, of
}

// responseFields returns the fields by which copies of an answer are recognised: "origin", and "inherited" if another
// thread received the answer. Codex does not store the provider's response ID. The turn's ID and the thread's total are
// the same in the file of a fork or a subagent, to which Codex copies the parent's history; times and line numbers
// differ there.
func (r *Reader) responseFields(c *tokenCount, part string) []byte {
	if !c.HasTotal || c.Total == (tokenUsage{}) {
		return nil
	}
	id := append([]byte("codex:"), r.costs.turn...)
	for _, n := range []int64{c.Total.Input, c.Total.CacheRead, c.Total.Output, c.Total.Reasoning} {
		id = strconv.AppendInt(append(id, ':'), n, 10)
	}
	out := rawjson.AppendString([]byte(`,"origin":`), append(id, part...))
	if r.from.depth > 0 || isEarlier(r.costs.turn, r.header.ID) {
		out = append(out, `,"inherited":true`...)
	}
	return out
}

// isEarlier reports whether a turn began before a thread. Both IDs must be UUIDs of version 7, which contain the time.
func isEarlier(turn, thread string) bool {
	a, errA := uuid.Parse(turn)
	b, errB := uuid.Parse(thread)
	return errA == nil && errB == nil && a.Version() == 7 && b.Version() == 7 && a.Time() < b.Time()
}

// dueCount is the last answer while its count may still come. Next returns neither the answer nor a later entry before
// that.
type dueCount struct {
	open     bool
	done     bool // the answer ended: it failed, cost nothing, or one of its calls has an output
	late     bool // the answer was returned without a count because too much followed it
	at       int  // index in Reader.out
	from, to int  // byte range of the usage in the entry
	size     int  // bytes of the entries from the answer on; over maxHeld the reader stops waiting
}

// counted assigns a count. A count with the same total as the last one is ignored.
func (r *Reader) counted(p *rolloutPiece) {
	c, at := &p.Count, p.At
	if !c.HasLast && !c.HasTotal {
		return
	}
	u, more := c.Last, tokenUsage{}
	if c.HasTotal {
		grown, up := c.Total.Minus(r.costs.total)
		if up && grown == (tokenUsage{}) && (r.costs.begun || u == grown) {
			if u == grown { // the answer cost nothing
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
	case r.answer.open && r.costs.owed.known: // the count before belongs to the answer
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
		r.closeCounts() // each count belongs to another response
		r.costs.owed.add(u, at.Kept(), of)
	}
	if more != (tokenUsage{}) {
		at.N++
		r.spend(at, more, r.responseFields(c, ":rest"))
	}
}

// spend appends an entry for a count that belongs to no answer.
func (r *Reader) spend(a position, u tokenUsage, of []byte) {
	out := rawjson.AppendString(append(r.open(a, "usage", len(r.model)), `,"kind":"codex","provider":`...),
		r.provider)
	out = rawjson.AppendString(append(out, `,"model":`...), r.model)
	r.put(a, append(append(u.Append(append(out, `,"usage":`...)), of...), '}'))
}

// closeCounts ends the wait for a count of the last answer, and appends an entry for a count without an answer.
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

// countedAnswer writes a count into the answer that waits for it.
func (r *Reader) countedAnswer(u tokenUsage, of []byte) {
	d := r.costs.due
	raw := r.out[d.at].Raw
	r.out[d.at].Raw = slices.Concat(raw[:d.from], u.Append(nil), of, raw[d.to:])
	r.costs.due = dueCount{}
}

// ready returns the number of entries that Next may return.
func (r *Reader) ready() int {
	if r.costs.due.open {
		return r.costs.due.at
	}
	return len(r.out)
}

// given drops the entries that Next has returned.
func (r *Reader) given() {
	n := copy(r.out, r.out[r.at:])
	clear(r.out[n:])
	r.out = r.out[:n]
	r.costs.due.at -= r.at
	r.at = 0
}
