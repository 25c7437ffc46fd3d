package handle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
)

// judge compares the results of the calls, and the states of the handles, with a fresh handle: after a power loss, and
// after every handle has settled its doubt and stored its buffer. The rules are those of ADR 0036, of doc.go and of the
// doc comments of Session.
func (r *run) judge() {
	r.w.free = true
	defer r.closeAll()
	t, err := r.read(r.w.store())
	if err != nil {
		r.violate("unreadable", "a fresh handle: %v", err)
		return
	}
	r.idle(t)
	if r.p.crash && r.w.doubt {
		r.powerLoss()
	}
	for _, h := range r.alive() {
		r.mend(h)
	}
	t.close()
	if t, err = r.read(r.w.store()); err != nil {
		r.violate("unreadable", "a fresh handle, in the end: %v", err)
		return
	}
	defer t.close()
	r.structure(t)
	for _, c := range r.records {
		if c.h.v.dead || in(c.kind, visits) {
			continue
		}
		r.fate(c, t)
		r.ground(c, t)
		if c.returned && c.err != nil && !r.cause(c, t) {
			r.violate("error without a cause", "%s: nothing befell it", c)
		}
	}
	for _, h := range r.handles {
		r.views(h, t)
	}
	r.order()
	r.keys()
	r.drafts(t)
	r.quiet()
	if r.w.twice != "" {
		r.violate("two requests at once", "%s", r.w.twice)
	}
}

func (r *run) closeAll() {
	for _, h := range r.handles {
		_ = h.s.Close()
	}
}

func (r *run) any(is func(c *record) bool) bool { return slices.ContainsFunc(r.records, is) }

// mend is what a caller does in the end: Settle, and a turn that stores the buffer, whichever writer was first. Then
// Reload, and a usual turn. All have to succeed, since there are no more faults. Then the handle shows the same as a
// fresh one.
func (r *run) mend(h *handle) {
	h.v.cut = false
	for _, kind := range []byte{opSettle, opKeep, opReload, opAppend, opCommit} {
		c := r.begin(90+h.n, h, kind)
		c.settles = ""
		r.do(context.Background(), c)
		r.story = append(r.story, "in the end: "+string(kind))
		r.observe()
		if r.p.fresh && failed(c.err, fs.ErrExist) {
			return // another entry has the id
		}
		if c.err != nil && (kind != opSettle || c.unknown() || failed(c.err, coppice.ErrInDoubt)) {
			r.violate("fails in the end: "+string(kind), "h%d: %v", h.n, c.err)
			return
		}
	}
	s, err := fresh(r.w.store(), true, r.clock)
	if err != nil {
		r.violate("unreadable", "a fresh handle, in the end: %v", err)
		return
	}
	r.same(h, s, "in the end")
	_ = s.Close()
}

// idle compares each handle with an empty buffer that shows the newest commit with a fresh one.
func (r *run) idle(t *truth) {
	newest := len(t.commits) - 1
	for _, h := range r.alive() {
		head := h.s.Head()
		context := r.any(func(c *record) bool { return c.h == h && c.kind == opContext })
		if newest >= 0 && head.Commit == t.commits[newest].Commit && head.Entry == t.session(newest).entry && !context {
			r.same(h, t.s, "when the program has ended")
		}
	}
}

// same compares a handle with a fresh one (I16).
func (r *run) same(h *handle, fresh *coppice.Session, when string) {
	mine, err := look(h.s)
	theirs, ferr := look(fresh)
	if err = errors.Join(err, ferr); err != nil {
		r.violate("unreadable", "h%d, %s: %v", h.n, when, err)
	} else if d := differ(mine, theirs); d != "" {
		what, _, _ := strings.Cut(d, " ")
		r.violate("handle and fresh handle differ: "+what, "h%d, %s:\n\t   %s", h.n, when, d)
	}
}

// powerLoss: everything acknowledged survives, and the session can be written again.
func (r *run) powerLoss() {
	for seed := range uint64(2) {
		s, err := fresh(r.w.log.Crash(seed+1), false, r.clock)
		acked := func(c *record) bool { return c.ok() && in(c.kind, commits) }
		if errors.Is(err, fs.ErrNotExist) && r.p.fresh && !r.any(acked) {
			return
		}
		var t *truth
		if err == nil {
			defer s.Close()
			_, err = s.Append(context.Background(), entry.User("after the power came back"))
		}
		if err == nil {
			_, err = s.Commit(context.Background(), coppice.Turn{})
		}
		if err == nil {
			t, err = r.readFrom(s)
		}
		if err != nil {
			r.violate("power loss", "seed %d: %v", seed, err)
			return
		}
		for _, c := range r.records {
			if lost := r.lost(c, t); c.ok() && lost != "" {
				r.violate("power loss", "seed %d: %s: %s", seed, c, lost)
				return
			}
		}
	}
}

// lost returns what a call that returned nil promised and is not in the history; "" = nothing.
func (r *run) lost(c *record, t *truth) string {
	if in(c.kind, turns) && !c.based() {
		for _, a := range r.records { // everything appended before is stored
			gone := func(o *record) bool {
				return o.h == c.h && in(o.kind, forgets) && !o.refused() && o.over(a.begin, c.end)
			}
			before := a.h == c.h && in(a.kind, appends) && a.ok() && a.end < c.begin
			if before && !t.has(a.texts[0], a.ids[0]) && !r.any(gone) {
				return fmt.Sprintf("%q, appended before it, is not stored", a.texts[0])
			}
		}
	}
	if !in(c.kind, commits) && c.kind != opSettle || c.receipt.Commit == "" {
		return ""
	}
	at := t.at(c.receipt.Commit)
	if at < 0 || t.commits[at].Seq != c.receipt.Seq {
		return fmt.Sprintf("its receipt names %+v, which is not in the log", c.receipt.Head)
	}
	if in(c.kind, turns+annotations) {
		for i, text := range c.texts {
			if !t.has(text, "") || i < len(c.ids) && !t.has(text, c.ids[i]) {
				return fmt.Sprintf("its entry %q is not stored", text)
			}
		}
	}
	if !in(c.kind, turns) {
		return ""
	}
	switch of := t.of(c); {
	case len(of) != 1 || of[0] != at:
		return fmt.Sprintf("it is stored at %d, its receipt names %d", of, at)
	case t.doc(at) != c.doc:
		return "the state at its commit is " + t.doc(at)
	case c.receipt.Repeated && c.key == "" || (c.receipt.Kept != "") != t.kept(at):
		return fmt.Sprintf("its receipt has Repeated %v and Kept %q", c.receipt.Repeated, c.receipt.Kept)
	}
	return ""
}

// fate judges the answer of a call by the final history.
func (r *run) fate(c *record, t *truth) {
	if c.ok() {
		if lost := r.lost(c, t); lost != "" {
			r.violate("acknowledged and lost", "%s: %s", c, lost)
		}
	}
	if c.kind == opSettle && c.settles != "" && c.returned && !c.unknown() {
		there := t.at(c.settles) >= 0
		told := failed(c.err, coppice.ErrConflict, coppice.ErrFenced, backend.ErrBusy)
		if told && there || c.err == nil && (!there || c.receipt.Commit != c.settles) {
			r.violate("settled wrongly", "%s: it is in the history: %v, receipt %s", c, there, c.receipt.Commit)
		}
	}
	if !in(c.kind, turns) {
		return
	}
	of := t.of(c)
	if len(of) > 1 {
		r.violate("turn twice", "%s: it is stored at %d", c, of)
	}
	if c.refused() && len(of) > 0 && !r.any(func(o *record) bool { return c.same(o) && !o.refused() }) {
		r.violate("refused turn stored", "%s", c)
	}
	for _, text := range c.texts {
		if (len(t.byText[text]) > 0) != (len(of) > 0) {
			r.violate("a turn without its entries", "%s: %q is stored %d times", c, text, len(t.byText[text]))
		}
	}
	e, _ := errors.AsType[*coppice.Error](c.err)
	if c.unknown() && c.key == "" && len(of) > 0 && e.Commit != t.commits[of[0]].Commit {
		r.violate("unknown commit", "%s: its error names %s, it is %s", c, e.Commit, t.commits[of[0]].Commit)
	}
}

// bases returns the places in the log of the commits on which a call may be based: Turn.Base, or those that the handle
// showed while the call was under way.
func (r *run) bases(c *record, t *truth) []int {
	list := []int{t.at(c.base)}
	if c.based() {
		return list
	}
	for _, s := range c.h.sights {
		if s.step >= c.from && (c.upto == 0 || s.step <= c.upto) {
			list = append(list, t.at(s.commit))
		}
	}
	return list
}

// fenced reports whether another writer has claimed the session between two places in the log. Of several claims the
// newest counts.
func fenced(t *truth, h *handle, base, at int) bool {
	i := t.claim(base, at-1)
	return i >= 0 && t.commits[i].Writer != h.writer()
}

// ground: a commit follows a line whose head, branch and document its caller saw, without a claim in between. Otherwise
// it is kept as a branch, if its caller requested that, and past a claim only if the turn did.
func (r *run) ground(c *record, t *truth) {
	var at []int
	switch {
	case in(c.kind, turns):
		at = t.of(c)
	case in(c.kind, navigates+annotations) && c.ok() && c.receipt.Bytes > 0:
		at = []int{t.at(c.receipt.Commit)}
	}
	for _, i := range at {
		good := func(base int) bool {
			switch {
			case t.kept(i):
				return in(c.kind, keeps) || r.p.both && !fenced(t, c.h, base, i)
			case base < 0:
				return i == 0 || t.commits[i-1].Reason == "create"
			}
			same := in(c.kind, annotations) || t.session(i-1) == t.session(base)
			return base < i && same && !fenced(t, c.h, base, i)
		}
		again := r.any(func(o *record) bool { return o != c && c.same(o) })
		if i >= 0 && !again && !slices.ContainsFunc(r.bases(c, t), good) {
			r.violate("base not in force", "%s: stored at %d, kept %v, made on %d", c, i, t.kept(i), r.bases(c, t))
		}
	}
}

// cause reports whether an event may be the reason for a call's error.
func (r *run) cause(c *record, t *truth) bool {
	h := c.h
	is := func(kinds string, when func(o *record) bool) bool {
		return r.any(func(o *record) bool {
			return o.h == h && in(o.kind, kinds) && o.begin <= c.end && when(o)
		})
	}
	any := func(*record) bool { return true }
	met := func(f fault) bool { return c.begin <= f.at && f.at <= c.end }
	if since := 0; c.unknown() || c.failed(coppice.ErrInDoubt) { // a doubt before a Reload or Discard is forgotten
		is(forgets, func(o *record) bool {
			if o.ok() && o.end <= c.begin {
				since = max(since, o.begin)
			}
			return false
		})
		if !c.unknown() {
			return is(allOps, func(o *record) bool { return o.unknown() && o.end >= since })
		}
		sent := slices.ContainsFunc(h.v.sent, func(s sent) bool { return c.begin <= s.at && s.at < c.end })
		return sent && c.cancelled > 0 || c.kind == opClose || c.kind == opSettle && t.at(c.settles) < 0 ||
			slices.ContainsFunc(h.v.faults, func(f fault) bool {
				return f.at <= c.end && f.at >= since && f.kind > refused && f.kind != failedRead ||
					(sent || c.key+c.settles != "") && met(f)
			})
	}
	bases := r.bases(c, t)
	switch {
	case c.failed(context.Canceled):
		return c.cancelled > 0 || is("X", any)
	case slices.ContainsFunc(h.v.faults, met), c.kind == opClose:
		return true
	case c.failed(fs.ErrClosed):
		return is("X", any)
	case c.failed(coppice.ErrConflict):
		return slices.ContainsFunc(bases, func(b int) bool {
			for i := b + 1; i < len(t.commits); i++ {
				if t.session(i) != t.session(b) {
					return true
				}
			}
			return false
		})
	case c.failed(coppice.ErrFenced):
		own := is("M", (*record).unknown)
		return slices.ContainsFunc(bases, func(b int) bool {
			return own || slices.ContainsFunc(t.commits[b+1:], func(o checkpoint.Commit) bool {
				return o.Reason == "claim" && o.Writer != h.writer()
			})
		})
	case c.failed(coppice.ErrKeyReused):
		doubts := func(o *record) bool { // the drafts of a doubt belong to its retry
			return is("K", func(k *record) bool {
				forgotten := is(forgets, func(f *record) bool { return f.over(k.begin, c.end) })
				return c.same(k) && k.unknown() && o.end < k.begin && k.end < c.begin && !forgotten
			})
		}
		return r.any(func(o *record) bool {
			drafts := in(o.kind, appends) && o.ok() && !doubts(o) || c.same(o) && o.h != h
			return o.begin <= c.end && (o.key != "" && !c.same(o) || in(c.kind, "KJ") && drafts)
		})
	case c.failed(coppice.ErrUncommitted):
		return in(c.kind, navigates) && is(appends+"Z", (*record).ok)
	case c.failed(backend.ErrBusy):
		return c.kind == opSettle
	}
	return r.p.fresh && c.failed(fs.ErrExist, fs.ErrNotExist)
}

// views: the view of a handle moves to its own commits, past no claim, and with Base not under a buffer; a refused call
// leaves view and buffer unchanged.
func (r *run) views(h *handle, t *truth) {
	for k := 1; k < len(h.sights); k++ {
		p, q := h.sights[k-1], h.sights[k]
		var done, busy []*record
		for _, c := range r.records {
			switch {
			case c.h != h || c.from > q.step || c.upto != 0 && c.upto < q.step:
			case c.upto == q.step:
				done = append(done, c)
			default:
				busy = append(busy, c)
			}
		}
		if r.p.reads { // a call may read after its work
			done = append(done, busy...)
		}
		some := func(kinds string) bool {
			return slices.ContainsFunc(done, func(c *record) bool { return in(c.kind, kinds) && !c.refused() })
		}
		from, to := t.at(p.commit), t.at(q.commit)
		if from > to {
			r.violate("view", "h%d showed seq %d, and then seq %d", h.n, p.seq, q.seq)
		}
		if some("D") {
			continue
		}
		if i := t.claim(from, to); i >= 0 && t.commits[i].Writer != h.writer() {
			r.violate("view past a claim", "h%d went from seq %d to %d", h.n, p.seq, q.seq)
		}
		buffer := p.commit != "" && p.entry != t.session(from).entry
		last := t.session(from)
		for i := from + 1; i <= to; i++ {
			if i == 0 || t.session(i) == t.session(i-1) || t.commits[i].Writer != h.writer() {
				continue
			}
			last = t.session(i)
			if buffer && !r.any(func(c *record) bool {
				return c.h == h && !c.based() && (in(c.kind, navigates) || slices.Contains(t.of(c), i))
			}) {
				r.violate("view under a buffer", "h%d went from seq %d to %d", h.n, p.seq, q.seq)
			}
		}
		if from >= 0 && t.session(to) != last {
			r.violate("view", "h%d went from seq %d to %d, which another writer made", h.n, p.seq, q.seq)
		}
		p.step, p.seq, p.commit = q.step, q.seq, q.commit
		if t.session(from) == t.session(to) && !some(appends+turns+"ZRU") && p != q {
			r.violate("refused call moved the handle", "h%d, %v: %+v, then %+v", h.n, done, p, q)
		}
	}
	for _, c := range r.records {
		if c.h != h || !c.ok() {
			continue
		}
		i := slices.IndexFunc(h.sights, func(s sight) bool { return s.step == c.upto })
		moves := in(c.kind, turns+navigates) && !c.based() && c.receipt.Kept == "" && !c.receipt.Repeated
		if i >= 0 && moves && h.sights[i].seq < c.receipt.Seq {
			r.violate("view", "%s is stored as seq %d, and the handle shows seq %d", c, c.receipt.Seq, h.sights[i].seq)
		}
		if in(c.kind, appends) && !r.p.both && r.knows(c, t) {
			r.violate("append on a line that was left", "%s returned nil", c)
		}
	}
}

// knows reports whether a handle knew, when a call began, that the session had left its view.
func (r *run) knows(c *record, t *truth) bool {
	known := -1
	for _, o := range r.records {
		if o.h != c.h || !o.returned || o.end >= c.begin {
			continue
		}
		if e, ok := errors.AsType[*coppice.Error](o.err); ok && e.Winner != nil {
			known = max(known, t.at(e.Winner.Commit))
		} else if o.ok() && in(o.kind, commits) {
			known = max(known, t.at(o.receipt.Commit))
		}
	}
	for i := max(known, 0); known >= 0 && i < len(t.commits); i++ {
		if slices.ContainsFunc(r.bases(c, t), func(b int) bool {
			return b < 0 || b >= known || t.session(b) == t.session(i)
		}) {
			return false
		}
	}
	return known >= 0
}

// order: callers of a handle get the lock in order of arrival. A turn whose base has to be read arrives after that
// read.
func (r *run) order() {
	for _, a := range r.records {
		for _, b := range r.records {
			overtakes := a.h == b.h && !a.h.v.dead && a.from < b.from && b.upto > 0 && (a.upto == 0 || b.upto < a.upto)
			if overtakes && a.cancelled+b.cancelled == 0 && !in(a.kind, "XOW") && !in(b.kind, "XOW") &&
				!a.receipt.Repeated && !b.failed(fs.ErrClosed, fs.ErrNotExist) && !(in(a.kind, old) && r.p.reads) {
				r.violate("order of arrival", "%s overtakes %s", b, a)
			}
		}
	}
}

// keys: a key is applied once, and all its receipts are equal.
func (r *run) keys() {
	var first *record
	for _, c := range r.records {
		if c.key == "" || !c.ok() {
			continue
		}
		if first == nil {
			first = c
			continue
		}
		a, b := first.receipt, c.receipt
		if a.Commit != b.Commit || a.Kept != b.Kept || !a.Repeated && !b.Repeated || !slices.Equal(a.IDs, b.IDs) {
			r.violate("receipts of a key", "%s: %+v\n\t   %s: %+v", first, a, c, b)
		}
		if !b.Repeated {
			first = c
		}
	}
}

// drafts: the entries of one commit are in the order in which they were appended, each below the one before it.
func (r *run) drafts(t *truth) {
	kinds, ordinal := map[string]*record{}, map[uint64]string{}
	for _, c := range r.records {
		for _, text := range c.texts {
			kinds[text] = c
		}
	}
	for text, c := range kinds {
		if list := t.byText[text]; len(list) > 0 && !in(c.kind, annotations) {
			ordinal[list[0].Ordinal] = text
		}
	}
	for text, c := range kinds {
		list := t.byText[text]
		if len(list) == 0 || in(c.kind, annotations) {
			continue
		}
		e, parent := list[0], ""
		if before, ok := ordinal[e.Ordinal-1]; ok {
			parent = t.byText[before][0].ID
		} else if of := t.of(c); in(c.kind, entryTurns) && len(of) > 0 {
			if parent = t.session(of[0] - 1).entry; t.kept(of[0]) {
				parent = t.session(t.at(c.base)).entry
			}
		}
		kept := slices.ContainsFunc(t.of(c), t.kept) && !c.based()
		if parent != "" && !in(c.kind, "PN") && e.ParentID != parent && !kept {
			r.violate("drafts", "%s: %q does not grow from the entry before it", c, text)
		}
		for other, o := range kinds {
			if in(c.kind, appends) && in(o.kind, appends) && o.h == c.h && o.ok() && o.end < c.begin &&
				len(t.byText[other]) > 0 && t.byText[other][0].Ordinal > e.Ordinal {
				r.violate("drafts", "%q is stored before %q, which was appended first", text, other)
			}
		}
	}
}

// quiet: a handle that commits nothing writes nothing, nor does a closed one.
func (r *run) quiet() {
	for _, h := range r.handles {
		if len(h.v.sent) > 0 && !r.any(func(c *record) bool { return c.h == h && in(c.kind, commits+"R") }) {
			r.violate("a handle that commits nothing writes", "h%d: %+v", h.n, h.v.sent[0])
		}
		for _, c := range r.records {
			for _, s := range h.v.sent {
				if c.h == h && c.kind == opClose && c.returned && c.end < s.at && r.first(c) {
					r.violate("a closed handle writes", "h%d: %+v", h.n, s)
				}
			}
		}
	}
}

// first reports whether a call of Close is the first of its handle: later ones have nothing to do.
func (r *run) first(c *record) bool {
	return !r.any(func(o *record) bool { return o.h == c.h && o.kind == opClose && o.begin < c.begin })
}
