package handle

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// fences: after a claim that was acknowledged nothing of an older writer is in the log, until it reloads or claims
// itself; but for turns that Rebase keeps, and the line back after them.
func (r *run) fences(t *truth) {
	for _, m := range r.records {
		if m.kind != opClaim || !m.ok() {
			continue
		}
		for _, h := range r.handles {
			if h == m.h || h.ready >= m.begin || r.any(func(o *record) bool { return o.h == h && in(o.kind, "DM") && o.over(m.begin, r.w.now) }) {
				continue
			}
			for i, o := range t.commits {
				if o.Seq > m.receipt.Seq && o.Writer == h.writer() && !t.kept(i) && o.Reason != "conflict" {
					r.violate("fence", "h%d committed seq %d after %s had committed seq %d", h.n, o.Seq, m, m.receipt.Seq)
				}
			}
		}
	}
}

// overwrites: a turn that was made on an older commit does not replace what another writer did since. What leaves the
// session as it was, a move and the way back say, is folded in.
func (r *run) overwrites(t *truth) {
	for _, c := range r.records {
		at := t.at(c.receipt.Commit)
		if !in(c.kind, turns) || !c.ok() || c.receipt.Kept != "" || c.receipt.Repeated || at < 0 {
			continue
		}
		if c.kind == opBased && at > 0 && t.session(at-1) != t.session(t.at(r.base.commit)) {
			r.violate("base not in force", "%s was applied at seq %d, after head or document had moved", c, c.receipt.Seq)
		}
		if r.any(func(o *record) bool { return o.h == c.h && in(o.kind, exclusive) && o.over(c.begin, c.end) }) {
			continue // the handle went on to a newer commit meanwhile
		}
		others := func(i int) bool { return t.commits[i].Writer != c.h.writer() }
		for i := t.at(c.commit) + 1; i > 0 && i < at; i++ {
			first := i
			for i < at && others(i) {
				i++
			}
			if i > first && t.session(i-1) != t.session(first-1) {
				r.violate("silent overwrite", "%s, made on seq %d, was applied over seq %d of %s", c, c.before, t.commits[i-1].Seq, t.commits[i-1].Writer)
			}
		}
	}
	for _, c := range r.records {
		if c.returned && errors.Is(c.err, coppice.ErrConflict) && !in(c.kind, entryTurns) && !r.otherMoved(c, t) {
			r.violate("conflict without a winner", "%s: no other writer moved the head or the document", c)
		}
	}
}

// moved reports whether a commit moved head or document of the session.
func moved(t *truth, i int) bool {
	return i == 0 || t.session(i) != t.session(i-1)
}

// otherMoved reports whether there is a winner: another writer, or a PUT of a turn that was dropped.
func (r *run) otherMoved(c *record, t *truth) bool {
	if r.w.landed {
		return true
	}
	for i, o := range t.commits {
		if o.Writer != c.h.writer() && o.Writer != "base" && moved(t, i) {
			return true
		}
	}
	return false
}

// lateAppends: a handle that knows that it lost appends nothing until Rebase, Claim or Reload begins, so that a caller
// does not work on a line that the session has left.
func (r *run) lateAppends() {
	for _, c := range r.records {
		if !in(c.kind, appends) || !c.ok() {
			continue
		}
		knew := func(o *record) bool {
			return o.h == c.h && in(o.kind, turns) && !in(o.kind, entryTurns) && o.lost() && o.end < c.begin &&
				!r.any(func(m *record) bool { return m.h == c.h && in(m.kind, "RDM") && m.over(o.begin, c.end) })
		}
		if r.any(knew) {
			r.violate("append on a lost line", "%s returned nil", c)
		}
	}
}

// quiet: a handle that commits nothing writes nothing.
func (r *run) quiet() {
	for _, h := range r.handles {
		if len(h.v.sent) > 0 && !r.any(func(c *record) bool { return c.h == h && r.durable(c) }) {
			r.violate("a handle that commits nothing writes", "h%d: %s of %s", h.n, h.v.sent[0].op, h.v.sent[0].key)
		}
		for _, s := range h.v.sent {
			if c := r.closed(h); c != nil && c.returned && c.end < s.at {
				r.violate("a closed handle writes", "h%d: %s of %s", h.n, s.op, s.key)
			}
		}
	}
}

// closed is the call that closed a handle: the first. Later ones have nothing to do, and return at once.
func (r *run) closed(h *handle) (first *record) {
	for _, c := range r.records {
		if c.h == h && c.kind == opClose && (first == nil || c.begin < first.begin) {
			first = c
		}
	}
	return first
}

// idle compares each handle that has nothing pending, has not failed and stands at the newest commit.
func (r *run) idle(t *truth) {
	if len(t.commits) == 0 {
		return
	}
	newest := t.commits[len(t.commits)-1].Commit
	for _, h := range r.alive() {
		if h.s.Head().Commit != newest || r.broken(h, r.w.now) || r.pending(h, t) {
			continue
		}
		r.same(h, t.s, "when the program has ended")
	}
}

// pending reports whether anything that was appended to a handle may not be stored yet.
func (r *run) pending(h *handle, t *truth) bool {
	return r.any(func(c *record) bool {
		if c.h != h || !in(c.kind, appends+"L"+entryTurns) {
			return false
		}
		for _, text := range c.texts {
			// Nothing was appended; or the entries were the turn's, and went with it.
			gone := c.returned && c.err != nil && in(c.kind, appends) || in(c.kind, entryTurns) && c.refused()
			if len(t.byText[text]) == 0 && !gone {
				return true
			}
		}
		return false
	})
}

// powerLoss: what was acknowledged survives, and the session can be written again.
func (r *run) powerLoss() {
	for seed := range uint64(2) {
		on := r.w.log.Crash(seed + 1)
		s, err := fresh(on, false, r.clock)
		acked := func(c *record) bool {
			return c.ok() && r.durable(c) && c.receipt.Commit != ""
		}
		if errors.Is(err, fs.ErrNotExist) && r.p.fresh && !r.any(acked) {
			return
		}
		if err != nil {
			r.violate("power loss", "seed %d: open: %v", seed, err)
			return
		}
		_, err = s.Append(context.Background(), entry.User("after the power came back"))
		if err == nil {
			_, err = s.Commit(context.Background(), coppice.Turn{})
		}
		if err != nil {
			r.violate("power loss", "seed %d: the session refuses a commit: %v", seed, err)
			_ = s.Close()
			return
		}
		t, err := r.readFrom(s)
		if err != nil {
			_ = s.Close()
			r.violate("power loss", "seed %d: read: %v", seed, err)
			return
		}
		found := r.bad
		r.bad = nil
		for _, c := range r.records {
			if c.ok() && r.durable(c) {
				r.acknowledged(c, t)
			}
		}
		t.close()
		lost := r.bad
		if r.bad = found; len(lost) > 0 {
			r.violate("power loss", "seed %d: %s: %s", seed, lost[0].Rule, lost[0].Text)
			return
		}
	}
}

// chains: what one goroutine appends to a handle hangs on what it appended before, unless something moved the
// head in between; and so does the head in the end.
func (r *run) chains(t *truth, heads map[*handle]string) {
	last := map[int]*record{}
	for _, c := range r.records {
		if !in(c.kind, appends) || !c.ok() || c.kind != opAppend {
			continue
		}
		if p := last[c.lane]; p != nil && p.h == c.h && t.has(p.texts[0], p.ids[0]) && t.has(c.texts[0], c.ids[0]) &&
			!r.navigated(c.h, p, p.begin, c.end) && !t.descends(c.ids[0], p.ids[0]) {
			r.violate("chain", "%s does not hang on %s", c, p)
		}
		last[c.lane] = c
	}
	for _, c := range last {
		head, ok := heads[c.h]
		if ok && t.has(c.texts[0], c.ids[0]) && !r.navigated(c.h, c, c.begin, r.w.now) && !t.descends(head, c.ids[0]) {
			r.violate("chain", "%s is not on the path of the head when the program has ended", c)
		}
	}
}

// navigated reports whether a call may have moved the head of a handle to another line between two moments.
// Rebase does if it kept something, or failed. What is in doubt may land later, and Rebase repeats it.
func (r *run) navigated(h *handle, not *record, from, to int) bool {
	return r.any(func(c *record) bool {
		if c.h == h && c.unknown() && in(c.kind, exclusive) && c.begin <= to {
			return true
		}
		if c.h != h || c == not || !c.over(from, to) || c.n >= 90 {
			return false
		}
		switch {
		case in(c.kind, navigates+"PN"+entryTurns) || c.kind == opReload:
			return true
		case c.kind == opRebase || c.kind == opClaim:
			return c.err != nil || !c.returned || c.receipt.Kept != "" || r.othersNavigate(h)
		}
		// With KeepBoth what was appended may be kept although the turn was refused for its key.
		return c.receipt.Kept != "" || r.p.both && (r.othersNavigate(h) || errors.Is(c.err, coppice.ErrKeyReused))
	})
}

// othersNavigate reports whether another handle moves its head to another line.
func (r *run) othersNavigate(h *handle) bool {
	return r.any(func(c *record) bool { return c.h != h && in(c.kind, navigates+"PN"+entryTurns+"RM") })
}

// grounds: where the entries of a turn hang. Turns that meet on a handle never become each other's parents.
func (r *run) grounds(t *truth) {
	for _, c := range r.records {
		if !in(c.kind, entryTurns) || c.key != "" || len(t.of(c)) != 1 {
			continue
		}
		var parent string
		for i, text := range c.texts {
			if len(t.byText[text]) != 1 {
				return // another rule says so
			}
			e := t.byText[text][0]
			if i > 0 && e.ParentID != parent {
				r.violate("entries of a turn", "%s: %q does not hang on the entry before it", c, text)
			}
			if i == 0 && c.kind == opBased && e.ParentID != r.base.head {
				r.violate("entries of a turn", "%s: %q does not hang on the head of its base", c, text)
			}
			if i == 0 && r.any(func(o *record) bool {
				return o != c && o.h == c.h && in(o.kind, entryTurns) && o.over(c.begin, c.end) && !r.storedBefore(o, c.begin) && slices.ContainsFunc(o.texts, func(text string) bool {
					return len(t.byText[text]) == 1 && t.byText[text][0].ID == e.ParentID
				})
			}) {
				r.violate("entries of a turn", "%s: %q hangs on an entry of a turn that was under way", c, text)
			}
			parent = e.ID
		}
	}
}

// storedBefore reports whether a turn had been acknowledged before a moment: another call of it may still be under way.
func (r *run) storedBefore(c *record, at int) bool {
	return r.any(func(o *record) bool { return (o == c || c.same(o)) && o.ok() && o.end <= at })
}

// moves: what a handle says of its own commit only grows, and holds what was acknowledged. The receipt of a turn that
// is repeated may be of a commit that the handle has not seen yet.
func (r *run) moves() {
	for _, c := range r.records {
		if !c.returned || c.h.v.dead || c.n >= 90 || in(c.kind, "OW") {
			continue
		}
		if c.ok() && r.durable(c) && c.after.Seq < c.receipt.Seq && !c.receipt.Repeated {
			r.violate("seq", "%s returned nil with seq %d, and the handle says seq %d", c, c.receipt.Seq, c.after.Seq)
		}
		for _, o := range r.records {
			if o.h == c.h && o.returned && o.end > c.end && o.after.Seq < c.after.Seq && o.n < 90 && !in(o.kind, "OW") {
				r.violate("seq", "the handle says seq %d after %s, and seq %d after %s", c.after.Seq, c, o.after.Seq, o)
			}
		}
	}
}
