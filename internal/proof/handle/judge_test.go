package handle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// judge holds what the calls said against what a fresh handle finds: when the program has ended, after power
// was lost, and after every handle has been mended by Rebase. The rules are those of doc.go and of the doc
// comments of Session, and not of the code.
func (r *run) judge() {
	r.w.free = true
	defer r.closeAll()
	t, err := r.read(r.w.store())
	if err != nil {
		r.violate("unreadable", "a fresh handle: %v", err)
		return
	}
	defer t.close()
	r.structure(t)
	for _, c := range r.records {
		if c.ok() {
			r.none(c, t)
		}
		r.answer(c, t)
	}
	r.fences(t)
	r.overwrites(t)
	r.lateAppends()
	r.quiet()
	r.moves()
	if r.p.crash && r.w.doubt {
		r.powerLoss()
	}
	r.idle(t)
	heads := map[*handle]string{}
	for _, h := range r.alive() {
		heads[h] = h.s.Head().Entry
	}
	var mended *handle
	for _, h := range r.alive() {
		if mended != nil {
			r.sameAsFresh(mended)
		}
		mended = nil
		if r.mend(h, t) {
			mended = h
		}
	}
	after, err := r.read(r.w.store())
	if err != nil {
		r.violate("unreadable", "a fresh handle, after Rebase: %v", err)
		return
	}
	defer after.close()
	if mended != nil {
		r.same(mended, after.s, "in the end")
	}
	r.structure(after)
	for _, c := range r.records {
		r.fate(c, after)
	}
	r.chains(after, heads)
	r.grounds(after)
}

func (r *run) closeAll() {
	for _, h := range r.handles {
		_ = h.s.Close()
	}
}

// alive are the handles that are still used, in order.
func (r *run) alive() (list []*handle) {
	for n := 1; n < 10; n++ {
		h := r.handles[n]
		if h == nil || h.closed || h.v.dead || r.any(func(c *record) bool { return c.h == h && c.kind == opClose }) {
			continue
		}
		list = append(list, h)
	}
	return list
}

func (r *run) any(is func(c *record) bool) bool {
	return slices.ContainsFunc(r.records, is)
}

// over reports whether a call was under way at any moment between two.
func (c *record) over(from, to int) bool {
	return c.begin <= to && (!c.returned || c.end >= from)
}

func (c *record) ok() bool { return c.returned && c.err == nil }

func (c *record) unknown() bool { return c.returned && errors.Is(c.err, coppice.ErrCommitUnknown) }

func (c *record) lost() bool {
	return c.returned && !c.unknown() && failed(c.err, coppice.ErrConflict, coppice.ErrFenced)
}

// withdrawn: it lost, and its caller still has all of it, so the handle keeps nothing and works on. That is so for a
// turn that carries its entries or names its base, and for a navigation.
func (c *record) withdrawn() bool { return c.lost() && in(c.kind, entryTurns+navigates) }

// refused: nothing was applied, and nothing of it is kept.
func (c *record) refused() bool {
	return c.returned && c.err != nil && !c.unknown() && (!c.lost() || c.withdrawn())
}

// needle is a text that only what this call writes holds, where it has no key.
func (c *record) needle() string { return fmt.Sprintf("t%d-%d.", c.lane, c.n) }

// another reports whether a call was made with the key of c and other content.
func (c *record) another(o *record) bool { return c.key != "" && o.key == c.key && o.doc != c.doc }

// same reports whether a call is the same turn as c: one key, one content, one turn.
func (c *record) same(o *record) bool { return c.key != "" && o.key == c.key && o.doc == c.doc }

// dropped reports whether Reload may have dropped what was appended from a moment on, up to another one.
func (r *run) dropped(h *handle, from, to int) bool {
	return r.any(func(c *record) bool { return c.h == h && c.kind == opReload && c.over(from, to) })
}

// missing are the texts that were appended to a handle before a call and are not stored.
func (r *run) missing(c *record, t *truth) (list []string) {
	for _, a := range r.records {
		if a.h != c.h || !in(a.kind, appends) || !a.ok() || a.end >= c.begin || r.dropped(c.h, a.begin, c.end) {
			continue
		}
		if !t.has(a.texts[0], a.ids[0]) {
			list = append(list, a.texts[0])
		}
	}
	return list
}

// answer judges what one call said, when the program has ended.
func (r *run) answer(c *record, t *truth) {
	if c.h.v.dead || !c.returned {
		return
	}
	switch {
	case c.err == nil && r.durable(c):
		r.acknowledged(c, t)
	case c.err != nil && !r.cause(c):
		r.violate("error without a cause", "%s: nothing befell it", c)
	}
	if r.givenUp(c) {
		r.violate("given up for another", "%s: a request that carried it was given up, and its own caller had not been cancelled", c)
	}
	if c.unknown() && !r.wasSent(c) {
		r.violate("unknown, never sent", "%s: nothing of it was ever sent", c)
	}
	if c.lost() && in(c.kind, turns) && c.key == "" && len(t.of(c)) > 0 &&
		!r.any(func(o *record) bool { return o.h == c.h && in(o.kind, "RM") && (!o.returned || o.end > c.begin) }) {
		r.violate("lost turn stored", "%s: its document is stored, and nobody called Rebase", c)
	}
}

// givenUp reports whether a request that carried a turn was given up, while the turn's caller waited and had not been
// cancelled: a cancelled context decides for its own caller only.
func (r *run) givenUp(c *record) bool {
	if !in(c.kind, turns) || c.cancelled > 0 {
		return false
	}
	return slices.ContainsFunc(c.h.v.faults, func(f fault) bool {
		cancelled := f.kind == cancelledNot || f.kind == cancelledYet
		return cancelled && f.commit && c.begin <= f.sent && f.at <= c.end &&
			r.held(f.request.record, c)
	})
}

// durable reports whether nil from a call says that something is durable.
func (r *run) durable(c *record) bool { return in(c.kind, writers) }

// none reports whether a call that returned nil committed nothing: a navigation where the head is there already, Rebase
// without a session. What its receipt names is durable all the same.
func (r *run) none(c *record, t *truth) bool {
	at := t.at(c.receipt.Commit)
	c.idle = c.idle || in(c.kind, navigates) && at >= 0 && t.commits[at].Reason != "branch" || c.kind == opRebase && c.receipt.Commit == ""
	return c.idle
}

// acknowledged judges a call that returned nil: what was appended before it is stored, and its receipt is true.
func (r *run) acknowledged(c *record, t *truth) {
	at := t.at(c.receipt.Commit)
	// Where the head is there already, a navigation commits nothing; nor does Rebase without a session.
	none := r.none(c, t)
	if lost := r.missing(c, t); len(lost) > 0 && !none && (!c.receipt.Repeated || len(lost) > c.receipt.Pending) {
		r.violate("acknowledged entry missing", "%s returned nil, and %q, appended before it, is not stored", c, lost)
	}
	if in(c.kind, appends+"L"+entryTurns) { // also of a turn that is repeated: the first time stored them
		for i, text := range c.texts {
			id := ""
			if i < len(c.ids) {
				id = c.ids[i]
			}
			if !t.has(text, id) {
				r.violate("acknowledged entry missing", "%s returned nil, and its own entry %q is not stored", c, text)
			}
		}
	}
	if c.receipt.Commit == "" {
		return
	}
	switch {
	case at < 0 || t.commits[at].Seq != c.receipt.Seq:
		r.violate("receipt", "%s: its receipt names seq %d, commit %s, which is not in the log", c, c.receipt.Seq, c.receipt.Commit)
	case t.commits[at].Key != c.key && in(c.kind, turns):
		r.violate("receipt", "%s: its receipt names seq %d, which does not have its key", c, c.receipt.Seq)
	case in(c.kind, turns) && (c.receipt.Repeated && c.key == "" || !c.receipt.Repeated && c.receipt.Seq <= c.before):
		r.violate("receipt", "%s: its receipt is of seq %d, when the handle was at %d, Repeated %v", c, c.receipt.Seq, c.before, c.receipt.Repeated)
	case in(c.kind, turns) && c.receipt.Kept == "" && t.doc(at) != c.doc:
		r.violate("acknowledged document missing", "%s: the state at its commit is %s", c, t.doc(at))
	}
	if n := len(t.of(c)); in(c.kind, turns) && n != 1 {
		r.violate("acknowledged document missing", "%s: it is stored %d times", c, n)
	}
}

// cause reports whether anything befell a call that may be the reason for its error.
func (r *run) cause(c *record) bool {
	h := c.h
	if c.cancelled > 0 || c.kind == opClose || slices.ContainsFunc(h.v.faults, func(f fault) bool { return r.met(c, f) }) {
		return true
	}
	for _, o := range r.handles {
		if o != h && slices.ContainsFunc(o.v.wrote, func(at int) bool { return at >= h.opened && at <= c.end }) {
			return true
		}
	}
	if r.p.fresh && in(c.kind, "PLSTBOW") && errors.Is(c.err, fs.ErrNotExist) {
		return true
	}
	if errors.Is(c.err, coppice.ErrKeyReused) {
		return r.any(func(o *record) bool { return c.another(o) && o.begin <= c.end })
	}
	return r.any(func(o *record) bool {
		switch {
		case o == c || o.h != h || o.begin > c.end:
			return false
		case errors.Is(c.err, coppice.ErrInDoubt) && o.unknown(), c.unknown() && c.same(o) && o.unknown():
			return true
		case o.kind == opClose || o.kind == opReload && o.over(c.begin, c.end):
			return true
		}
		// What this handle moved after the base of the turn, or while it was called, is a conflict as another's move
		// is.
		moves := in(o.kind, appends+turns+exclusive)
		return errors.Is(c.err, coppice.ErrConflict) && moves && (c.kind == opBased || in(c.kind, entryTurns) && o.over(c.begin, c.end))
	})
}

// met reports whether a failure of a request may be why a call failed: of its own, or of the one that carried the same
// turn, whose answer is for all who call it.
func (r *run) met(c *record, f fault) bool {
	return c.metBy(f) || f.at <= c.end && r.any(func(o *record) bool {
		return c.same(o) && o.h == c.h && o.over(c.begin, f.at) && o.metBy(f)
	})
}

// metBy reports whether a failure of a request may be why a call failed. One that is certain is for those who
// shared the request; after one that is not, the handle refuses turns.
func (c *record) metBy(f fault) bool {
	if f.at > c.end {
		return false
	}
	if f.kind != refused && f.kind != failedRead {
		return true
	}
	return c.begin <= f.at && (!f.commit || c.begin <= f.sent || in(c.kind, exclusive))
}

// wasSent reports whether anything of a call reached a request while it was under way.
func (r *run) wasSent(c *record) bool {
	own := in(c.kind, commits)
	for _, s := range c.h.v.sent {
		if s.at > c.end || s.at < c.begin && c.key == "" {
			continue
		}
		if !own || r.held(s, c) {
			return true
		}
	}
	return !own && r.any(func(o *record) bool { return o.h == c.h && o.unknown() && o.end <= c.begin })
}

// broken reports whether a handle had failed, and was not mended, when a call began. What an operation that
// leads met on its way may be more than its error says.
func (r *run) broken(h *handle, at int) bool {
	return r.any(func(c *record) bool {
		return c.h == h && (c.unknown() || c.lost() && !c.withdrawn() || c.returned && c.err != nil && in(c.kind, exclusive)) && c.end <= at && !r.any(func(o *record) bool {
			return o.h == h && in(o.kind, "RDM") && o.ok() && o.begin > c.end && o.end <= at
		})
	})
}

// fate judges what became of a turn in the end.
func (r *run) fate(c *record, t *truth) {
	if !in(c.kind, turns) {
		return
	}
	list := t.of(c)
	n := len(list)
	for _, i := range list {
		if t.doc(i) != c.doc {
			r.violate("another document", "%s: seq %d has its reason and the state %s", c, t.commits[i].Seq, t.doc(i))
		}
	}
	if n > 1 {
		r.violate("turn twice", "%s: it is stored %d times", c, n)
	}
	if c.refused() && n > 0 && !r.any(func(o *record) bool { return c.same(o) && !o.refused() }) {
		r.violate("refused document stored", "%s, and its document is stored", c)
	}
	if in(c.kind, entryTurns) && c.key == "" && !c.unknown() {
		for _, text := range c.texts {
			if (len(t.byText[text]) > 0) != (n > 0) {
				r.violate("a turn without its entries", "%s: it is stored %d times, its entry %q %d times", c, n, text, len(t.byText[text]))
			}
		}
	}
	if (c.lost() && !c.withdrawn() || c.unknown()) && n == 0 && !r.broken(c.h, c.begin) && r.keptBy(c) &&
		!r.forsaken(c, t) {
		r.violate("kept turn missing", "%s, then Rebase or Claim returned nil, and its document is not stored", c)
	}
	if c.ok() && n == 0 {
		r.violate("acknowledged document missing", "%s: after Rebase its document is no longer stored", c)
	}
}

// keptBy reports whether Rebase or Claim succeeded after a call had failed, without a Reload in between.
func (r *run) keptBy(c *record) bool {
	return r.any(func(o *record) bool {
		return o.h == c.h && in(o.kind, "RM") && o.ok() && o.begin > c.end && !r.dropped(c.h, c.begin, o.end)
	})
}

// mend is what a caller does in the end: Rebase, and then a turn. Both have to succeed, for nothing fails any
// more. It reports whether they did; then the handle shows what a fresh one shows.
func (r *run) mend(h *handle, t *truth) bool {
	ctx := context.Background()
	if r.p.fresh && h.s.Head().Commit == "" && len(t.commits) > 0 && t.commits[0].Writer != h.writer() {
		return false // another one has the id
	}
	h.v.cut = false
	err := r.rebase(h)
	if errors.Is(err, coppice.ErrKeyReused) && r.misused(h) {
		err = r.rebase(h)
	}
	if err != nil {
		r.violate("Rebase fails in the end", "h%d: %v", h.n, err)
		return false
	}
	for try := 0; ; try++ {
		text := fmt.Sprintf("end%d-%d", h.n, try)
		_, err := h.s.Append(ctx, entry.User(text))
		if err == nil {
			_, err = h.s.Commit(ctx, coppice.Turn{State: json.RawMessage(fmt.Sprintf(`{"turn":%q}`, text))})
		}
		if errors.Is(err, coppice.ErrFenced) && try == 0 {
			if _, err = h.s.Claim(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			r.violate("Commit fails in the end", "h%d, after Rebase: %v", h.n, err)
		}
		return err == nil
	}
}

// rebase calls Rebase in the end, and records the call.
func (r *run) rebase(h *handle) error {
	c := &record{lane: h.n, n: 90, kind: opRebase, h: h, begin: r.w.tick()}
	c.receipt, c.err = h.s.Rebase(context.Background())
	c.returned, c.end = true, r.w.tick()
	r.records = append(r.records, c)
	return c.err
}

// misused reports whether a handle keeps a turn whose key another writer used for something else. Nobody but the caller
// can choose another key, so Rebase drops the turn and says ErrKeyReused; the next one stores the others.
func (r *run) misused(h *handle) bool {
	t, err := r.read(r.w.store())
	if err != nil {
		return false
	}
	defer t.close()
	return r.any(func(c *record) bool {
		return c.h == h && c.key != "" && c.returned && c.err != nil && !c.refused() && r.usedByAnother(c, t)
	})
}

// usedByAnother reports whether a turn of other content is stored with the key of a turn.
func (r *run) usedByAnother(c *record, t *truth) bool {
	return r.any(func(o *record) bool { return c.another(o) && len(t.of(o)) > 0 })
}

// forsaken reports whether Rebase or Claim said that it drops a kept turn, because its key belongs to another one.
func (r *run) forsaken(c *record, t *truth) bool {
	return c.key != "" && r.usedByAnother(c, t) && r.any(func(o *record) bool {
		return o.h == c.h && in(o.kind, "RM") && o.returned && o.end > c.begin && errors.Is(o.err, coppice.ErrKeyReused)
	})
}

// sameAsFresh compares what a handle shows with what a fresh one does, before another handle goes on.
func (r *run) sameAsFresh(h *handle) {
	s, err := fresh(r.w.store(), true, r.clock)
	if err != nil {
		r.violate("unreadable", "a fresh handle, in the end: %v", err)
		return
	}
	defer s.Close()
	r.same(h, s, "in the end")
}

// same compares what a handle shows with what a fresh one does (I16).
func (r *run) same(h *handle, fresh *coppice.Session, when string) {
	mine, err := look(h.s)
	if err != nil {
		r.violate("unreadable", "h%d, %s: %v", h.n, when, err)
		return
	}
	theirs, err := look(fresh)
	if err != nil {
		r.violate("unreadable", "a fresh handle, %s: %v", when, err)
		return
	}
	if d := differ(mine, theirs); d != "" {
		what, _, _ := strings.Cut(d, " ")
		r.violate("handle and fresh handle differ: "+what, "h%d, %s:\n\t   %s", h.n, when, d)
	}
}
