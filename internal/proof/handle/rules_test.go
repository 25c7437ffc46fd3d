package handle

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// fences: after a claim that was acknowledged no older writer commits, until it reloads or claims itself.
func (r *run) fences() {
	for _, m := range r.records {
		if m.kind != opClaim || !m.ok() {
			continue
		}
		for _, c := range r.records {
			if c.h == m.h || !c.ok() || !in(c.kind, commits+navigates) || c.begin <= m.end || c.h.opened >= m.begin {
				continue
			}
			if c.key != "" || in(c.kind, navigates) && c.receipt.Seq <= c.before {
				continue // the receipt of another turn; a move to where the head is
			}
			if !r.any(func(o *record) bool { return o.h == c.h && in(o.kind, "DM") && o.over(m.begin, c.end) }) {
				r.violate("fence", "%s returned nil after %s", c, m)
			}
		}
	}
}

// overwrites: a turn that was made on an older commit does not replace what another writer did since.
func (r *run) overwrites(t *truth) {
	for _, c := range r.records {
		if !in(c.kind, turns) || c.key != "" || !c.ok() || c.receipt.Kept != "" || c.receipt.Commit == "" {
			continue
		}
		if r.any(func(o *record) bool { return o.h == c.h && in(o.kind, exclusive) && o.over(c.begin, c.end) }) {
			continue // the handle went on to a newer commit meanwhile
		}
		for i, o := range t.commits {
			if o.Seq <= c.before || o.Seq >= c.receipt.Seq || o.Writer == c.h.writer() || r.p.fresh && c.before == 0 {
				continue
			}
			if moved(t, i) {
				r.violate("silent overwrite", "%s, made on seq %d, was applied over seq %d of %s", c, c.before, o.Seq, o.Writer)
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
	c := t.commits[i]
	if i == 0 {
		return true
	}
	if strings.HasPrefix(c.Branch, "conflict-") {
		return false
	}
	before := t.commits[i-1]
	doc := t.doc(i - 1)
	for k := i - 1; k > 0 && strings.HasPrefix(before.Branch, "conflict-"); k-- {
		before, doc = t.commits[k-1], t.doc(k-1)
	}
	return c.Entry != before.Entry || c.Branch != before.Branch || t.doc(i) != doc
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

// quiet: a handle that commits nothing writes nothing.
func (r *run) quiet() {
	for _, h := range r.handles {
		if len(h.v.sent) > 0 && !r.any(func(c *record) bool { return c.h == h && r.durable(c) }) {
			r.violate("a handle that commits nothing writes", "h%d: %s of %s", h.n, h.v.sent[0].op, h.v.sent[0].key)
		}
		for _, s := range h.v.sent {
			if r.any(func(c *record) bool { return c.h == h && c.kind == opClose && c.returned && c.end < s.at }) {
				r.violate("a closed handle writes", "h%d: %s of %s", h.n, s.op, s.key)
			}
		}
	}
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
			gone := c.returned && c.err != nil && in(c.kind, appends) && !r.p.each // nothing was appended
			if len(t.byText[text]) == 0 && !gone {
				return true
			}
		}
		return false
	})
}

// powerLoss: what was acknowledged survives, and the session can be written again.
func (r *run) powerLoss() {
	for seed := range uint64(3) {
		on := r.w.log.Crash(seed + 1)
		s, err := fresh(on, false, r.clock)
		acked := func(c *record) bool { return c.ok() && r.durable(c) && (c.receipt.Commit != "" || r.p.each) }
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
		t, err := readFrom(s)
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
// Rebase does if it kept something, or failed.
func (r *run) navigated(h *handle, not *record, from, to int) bool {
	return r.any(func(c *record) bool {
		if c.h != h || c == not || !c.over(from, to) || c.n >= 90 {
			return false
		}
		switch {
		case in(c.kind, navigates+"PN"+entryTurns) || c.kind == opReload:
			return true
		case c.kind == opRebase || c.kind == opClaim:
			return c.err != nil || !c.returned || c.receipt.Kept != "" || r.othersNavigate(h)
		}
		return c.receipt.Kept != "" || r.p.both && r.othersNavigate(h)
	})
}

// othersNavigate reports whether another handle moves its head to another line.
func (r *run) othersNavigate(h *handle) bool {
	return r.any(func(c *record) bool { return c.h != h && in(c.kind, navigates+"PN"+entryTurns+"RM") })
}

// grounds: where the entries of a turn hang. Turns that meet never become each other's parents.
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
			if i == 0 && c.kind == opBased && e.ParentID != r.base.reply {
				r.violate("entries of a turn", "%s: %q does not hang on the head of its base", c, text)
			}
			if i == 0 && r.any(func(o *record) bool {
				return o != c && in(o.kind, entryTurns) && o.over(c.begin, c.end) && slices.ContainsFunc(o.texts, func(text string) bool {
					return len(t.byText[text]) == 1 && t.byText[text][0].ID == e.ParentID
				})
			}) {
				r.violate("entries of a turn", "%s: %q hangs on an entry of a turn that was under way", c, text)
			}
			parent = e.ID
		}
	}
}

// moves: what a handle says of its own commit only grows, and holds what was acknowledged.
func (r *run) moves() {
	for _, c := range r.records {
		if !c.returned || c.h.v.dead || c.n >= 90 || in(c.kind, "OW") {
			continue
		}
		if c.ok() && r.durable(c) && c.after.Seq < c.receipt.Seq {
			r.violate("seq", "%s returned nil with seq %d, and the handle says seq %d", c, c.receipt.Seq, c.after.Seq)
		}
		for _, o := range r.records {
			if o.h == c.h && o.returned && o.end > c.end && o.after.Seq < c.after.Seq && o.n < 90 && !in(o.kind, "OW") {
				r.violate("seq", "the handle says seq %d after %s, and seq %d after %s", c.after.Seq, c, o.after.Seq, o)
			}
		}
	}
}
