package codex

import (
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/codex/internal/rollout"
)

// costs finds the answer that each count is of. It comes right behind the answer's last item; before its first one in
// versions of 2025; behind the outputs of its calls where they were quick.
type costs struct {
	total  rollout.Usage // of the session, as the last count says
	begun  bool          // there was one
	before bool          // what the session goes on from is not read: the first one counts it too
	owed   spent         // has no answer yet
	due    due
}

// spent is what was counted and where.
type spent struct {
	rollout.Usage
	known bool
	at    rollout.At
}

func (s *spent) add(u rollout.Usage, at rollout.At) {
	s.Usage, s.known, s.at = s.Plus(u), true, at
}

// due is the answer before, where its count may still come: until then no entry from it on is given out.
type due struct {
	open     bool
	late     bool // it is given out, for too much came behind it
	at       int  // among the entries that are made
	from, to int  // where its usage stands in it
	size     int  // bytes of the entries from it on: with over maxHeld of them nothing is waited for
}

// counted takes a count. One that repeats the sum of the one before is none.
func (r *Reader) counted(p *rollout.Piece) {
	c, at := &p.Count, p.At
	if !c.HasLast && !c.HasTotal {
		return
	}
	u, more := c.Last, rollout.Usage{}
	if c.HasTotal {
		grown, up := c.Total.Minus(r.costs.total)
		if up && grown == (rollout.Usage{}) && (r.costs.begun || u == grown) {
			if u == grown { // of an answer that cost nothing
				r.flush("")
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
	switch {
	case r.answer.open && r.costs.owed.known: // the one before was the answer's
		r.flush("")
		r.costs.owed.add(u, at.Kept())
	case r.answer.open:
		r.answer.cost.add(u, at)
		r.flush("")
	case r.costs.due.open:
		r.pay(u)
	case r.costs.due.late:
		r.costs.due = due{}
		more = more.Plus(u)
	default:
		r.costs.owed.add(u, at.Kept())
	}
	if more != (rollout.Usage{}) {
		at.N++
		r.spend(at, more)
	}
}

// spend says what was counted and is no answer's.
func (r *Reader) spend(a rollout.At, u rollout.Usage) {
	out := rawjson.AppendString(append(r.open(a, "usage", len(r.model)), `,"kind":"codex","provider":`...), r.provider)
	out = rawjson.AppendString(append(out, `,"model":`...), r.model)
	r.put(a, append(u.Append(append(out, `,"usage":`...)), '}'))
}

// settle says that no count comes any more for what was said so far, and none that came has an answer.
func (r *Reader) settle() {
	r.costs.due = due{}
	if o := r.costs.owed; o.known {
		r.costs.owed = spent{}
		if o.Usage != (rollout.Usage{}) {
			o.at.N += 2
			r.spend(o.at, o.Usage)
		}
	}
}

// pay gives the answer that is due its count.
func (r *Reader) pay(u rollout.Usage) {
	d := r.costs.due
	raw := r.out[d.at].Raw
	r.out[d.at].Raw = slices.Concat(raw[:d.from], u.Append(nil), raw[d.to:])
	r.costs.due = due{}
}

// ready gives how many of the entries that were made may be given out.
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
