package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/transcript"
)

// word is an entry of an agent: its text is unique.
type word struct {
	n    int
	fate fate
}

func (o *word) text() string { return fmt.Sprintf("w%d.", o.n) }

var wordText = regexp.MustCompile(`w\d+\.`)

// sight is the state that a reader saw at a commit.
type sight struct {
	seq   uint64
	state string
}

// agent is a seat that uses package coppice, as a program would.
type agent struct {
	*seat
	c       *client
	store   *coppice.Store
	s       *coppice.Session
	shoots  bool    // takes snapshots
	pending []*word // in the buffer
	kept    []*word // taken from the buffer by a commit in doubt
	own     []*word // of that commit only: they never return to a buffer
	commit  string  // in doubt; "" = none is
	lost    bool    // another writer committed first
}

// speak records a new word.
func (a *agent) speak() *word {
	l := a.w.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &word{n: len(l.words)}
	l.words = append(l.words, o)
	return o
}

func (l *ledger) heard(list []*word, f fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range list {
		if f == refused && o.fate == doubtful {
			o.fate = doubt
		} else {
			o.fate = f
		}
	}
}

// run is a life of an agent.
func (a *agent) run() {
	a.think()
	for range a.w.plan.ops {
		if a.s == nil {
			a.enter()
		} else {
			a.act()
		}
		a.think()
	}
	if a.s != nil {
		a.leave(a.d.one(2))
	}
}

// enter opens or creates the session, in a process of its own.
func (a *agent) enter() {
	a.c = a.w.client(false)
	own, err := coppice.New(a.c, &coppice.Options{
		Now: a.c.Now, Rand: a.c, Writer: fmt.Sprintf("h%d", a.c.id), SingleWriter: a.d.one(2),
	})
	if err != nil {
		a.w.violation("new: %v", err)
		return
	}
	o := &coppice.SessionOptions{KeepBoth: a.w.plan.keepBoth && a.d.one(2)}
	if a.shoots = a.d.one(2); a.shoots {
		o.Snapshots.Every = 2
	}
	floor, born, buried := a.w.ledger.floor()
	s, err := own.Open(a.ctx, session, o)
	a.say(a.ctx, a.d, "open", err)
	var st *state.State
	if err == nil {
		st = &state.State{Summary: s.Info()}
	}
	a.w.ledger.opened(a.name(a.ctx), floor, born, buried, st, err)
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrDeleted) {
		s, err = own.Create(session, o)
	}
	if err == nil {
		a.store, a.s = own, s
	}
}

// leave ends the handle.
func (a *agent) leave(kill bool) {
	if kill {
		a.c.dead.Store(true)
		a.w.event(a.name(a.ctx), "dies", "", "")
	}
	err := a.store.Close() // the operating system would do so for a dead process
	if !kill {
		a.say(a.ctx, a.d, "close", err)
	}
	a.drop()
	a.s = nil
}

// drop records the words that will never be committed.
func (a *agent) drop() {
	a.w.ledger.heard(slices.Concat(a.own, a.kept, a.pending), refused)
	a.own, a.kept, a.pending, a.commit, a.lost = nil, nil, nil, "", false
}

// done records the answer of a call that commits the buffer (all), or words of its own.
func (a *agent) done(what string, r coppice.Receipt, err error, all bool, own ...*word) {
	a.say(a.ctx, a.d, what, err)
	l := a.w.ledger
	switch {
	case err == nil:
		if all { // the doubt is stored, or its words are in the buffer again
			own = slices.Concat(own, a.kept, a.pending)
			a.kept, a.pending = nil, nil
		}
		a.hears(r, own)
		a.lost = r.Kept != ""
		return
	case errors.Is(err, coppice.ErrCommitUnknown):
		l.heard(a.own, doubt) // of a doubt that was ended before this one
		l.heard(own, doubtful)
		a.own, a.commit = own, doubted(err)
		if all {
			l.heard(a.pending, doubtful)
			a.kept, a.pending = append(a.kept, a.pending...), nil
		}
		return
	case errors.Is(err, coppice.ErrConflict), errors.Is(err, coppice.ErrFenced):
		a.lost = true
	}
	l.heard(own, refused)
}

// doubted returns the commit that an error names as in doubt.
func doubted(err error) string {
	if e, ok := errors.AsType[*coppice.Error](err); ok {
		return e.Commit
	}
	return ""
}

// settle asks for the outcome of the commit in doubt.
func (a *agent) settle() {
	r, err := a.s.Settle(a.ctx, a.commit)
	a.say(a.ctx, a.d, "settle", err)
	switch {
	case err == nil:
		a.hears(r, append(a.own, a.kept...))
		a.own, a.kept, a.commit = nil, nil, ""
	case errors.Is(err, coppice.ErrConflict), errors.Is(err, coppice.ErrFenced), errors.Is(err, backend.ErrBusy):
		a.w.ledger.heard(a.own, limbo)
		a.w.ledger.heard(a.own, refused)
		a.own, a.pending, a.kept, a.commit = nil, append(a.kept, a.pending...), nil, ""
		a.lost = !errors.Is(err, backend.ErrBusy)
	}
}

// mend recovers the handle after a commit that failed.
func (a *agent) mend() {
	switch {
	case a.commit != "":
		a.settle()
	case a.d.one(2):
		r, err := a.s.Commit(a.ctx, coppice.Turn{KeepBoth: true})
		a.done("keep both", r, err, true)
	default:
		a.reload()
	}
}

func (a *agent) reload() {
	err := a.s.Reload(a.ctx)
	a.say(a.ctx, a.d, "reload", err)
	if err == nil {
		a.drop()
	}
}

// appendWords appends words.
func (a *agent) appendWords(n int) {
	var drafts []transcript.Draft
	var list []*word
	for range n {
		o := a.speak()
		list, drafts = append(list, o), append(drafts, entry.User(o.text()))
	}
	_, err := a.s.Append(a.ctx, drafts...)
	a.say(a.ctx, a.d, "append", err)
	if err != nil {
		a.w.ledger.heard(list, refused)
		return
	}
	a.pending = append(a.pending, list...)
}

// act is one operation.
func (a *agent) act() {
	d, ctx := a.d, a.ctx
	if (a.commit != "" || a.lost) && d.one(2) {
		a.mend()
		return
	}
	switch k := d.n(100); {
	case k < 55:
		a.turn()
	case k < 63:
		a.travel()
	case k < 66:
		r, err := a.s.Claim(ctx)
		a.done("claim", r, err, false)
	case k < 70:
		a.settle()
	case k < 73:
		a.reload()
	case k < 77:
		_, err := a.s.Snapshot(ctx, "tag")
		a.say(ctx, d, "snapshot", err)
	case k < 82:
		a.look()
	case k < 85:
		a.peek()
	case k < 88:
		_, err := a.store.GC(ctx, session, false)
		a.say(ctx, d, "gc", ignore(err, fs.ErrNotExist))
	case k < 95:
		a.leave(d.one(2))
	case a.w.plan.deletes:
		a.bury(func() error { return a.store.Delete(ctx, session) })
	default:
		a.turn()
	}
}

// turn is the most frequent operation: words committed with the state.
func (a *agent) turn() {
	n := a.d.in(1, 3)
	if !a.shoots && a.d.one(60) {
		n = 260 // enough to be sealed, which would draw names at the same time as a snapshot
	}
	if a.w.plan.shares && !a.shoots && a.d.one(3) {
		a.together(a.d.in(2, a.w.plan.burst))
		return
	}
	if base := a.s.Head().Commit; base != "" && a.d.one(4) { // it does not commit the buffer
		o := a.speak()
		r, err := a.s.Commit(a.ctx, coppice.Turn{Base: base, Entries: []transcript.Draft{entry.User(o.text())}})
		a.done("commit on a base", r, err, false, o)
		return
	}
	a.appendWords(n)
	call, cancel := a.ctx, func() {}
	if a.w.plan.shares {
		call, cancel = a.patient(a.ctx, a.d)
	}
	defer cancel()
	r, err := a.s.Commit(call, coppice.Turn{State: map[string]uint64{"x": a.d.next()}})
	a.done("commit", r, err, true)
}

// together runs several goroutines that commit turns with their own words on one handle at the same time; some cancel.
func (a *agent) together(n int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	var doubts []*word
	commit, stored := "", false
	for i := range n {
		o, d, ctx := a.speak(), &chance{s: a.d.next()}, as(a.id*8+1+i)
		all.Go(func() {
			_ = a.w.rest(ctx, time.Duration(d.n(60))*time.Millisecond, d.next())
			call, cancel := a.patient(ctx, d)
			defer cancel()
			r, err := a.s.Commit(call, coppice.Turn{Entries: []transcript.Draft{entry.User(o.text())}})
			a.say(ctx, d, "commit together", err)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				stored = true
				a.hears(r, []*word{o})
			case errors.Is(err, coppice.ErrCommitUnknown):
				a.w.ledger.heard([]*word{o}, doubtful)
				doubts, commit = append(doubts, o), doubted(err)
			default:
				a.w.ledger.heard([]*word{o}, refused)
			}
		})
	}
	all.Wait()
	_ = a.w.rest(a.ctx, 0, a.d.next())
	if stored { // with earlier words of the buffer and of a doubt
		a.w.ledger.heard(append(a.kept, a.pending...), acked)
		a.kept, a.pending = nil, nil
	}
	switch {
	case len(doubts) > 1:
		a.w.violation("I11: %d commits of a handle are in doubt", len(doubts))
	case len(doubts) == 1:
		a.w.ledger.heard(a.own, doubt)
		a.own, a.commit = doubts, commit
		a.w.ledger.heard(a.pending, doubtful)
		a.kept, a.pending = append(a.kept, a.pending...), nil
	}
}

// hears records an acknowledgement.
func (a *agent) hears(r coppice.Receipt, list []*word) {
	l := a.w.ledger
	l.heard(list, acked)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.top, l.born = max(l.top, r.Seq), l.born || r.Commit != ""
}

// travel moves the head.
func (a *agent) travel() {
	head := a.s.Head()
	switch {
	case head.Commit == "" || head.Seq == 0:
		a.turn()
	case a.d.one(3):
		o := a.speak()
		r, err := a.s.Edit(a.ctx, head.Entry, entry.User(o.text()))
		a.done("edit", r, err, false, o)
	case a.d.one(2):
		r, err := a.s.Label(a.ctx, head.Entry, "here")
		a.done("label", r, err, false)
	default:
		r, err := a.s.Rollback(a.ctx, coppice.Target{Seq: uint64(a.d.in(1, int(head.Seq)))})
		a.done("rollback", r, err, false)
	}
}

// look reads everything durable, and the state.
func (a *agent) look() {
	head := a.s.Head()
	var state json.RawMessage
	err := a.s.State(&state)
	a.say(a.ctx, a.d, "state", err)
	if err == nil && head.Commit != "" {
		l := a.w.ledger
		l.mu.Lock()
		l.sights = append(l.sights, sight{head.Seq, string(state)})
		l.mu.Unlock()
	}
	_, err = a.s.Context(a.ctx)
	a.say(a.ctx, a.d, "context", err)
}

// peek is a process that opens the session, reads it and closes it without a commit: it must not write.
func (a *agent) peek() {
	c := a.w.client(false)
	own, err := coppice.New(c, &coppice.Options{Now: c.Now, Rand: c, Writer: fmt.Sprintf("h%d", c.id)})
	if err != nil {
		a.w.violation("new: %v", err)
		return
	}
	floor, born, buried := a.w.ledger.floor()
	s, err := own.Open(a.ctx, session, &coppice.SessionOptions{ReadOnly: a.d.one(2)})
	a.say(a.ctx, a.d, "open to look", err)
	var st *state.State
	if err == nil {
		st = &state.State{Summary: s.Info()}
	}
	a.w.ledger.opened(a.name(a.ctx), floor, born, buried, st, err)
	if err == nil {
		_, err = s.Context(a.ctx)
		a.say(a.ctx, a.d, "context of a reader", err)
	}
	err = own.Close()
	a.say(a.ctx, a.d, "close of a reader", err)
	if n := c.writes.Load(); n > 0 {
		a.w.violation("I14: %s committed nothing, and asked for %d writes", a.name(a.ctx), n)
	}
}

// judgeWords is judgeTurn for the words of agents.
func (w *world) judgeWords(h *history) {
	times := map[string]int{}
	for _, line := range h.lines {
		if !line.Commit {
			times[wordText.FindString(string(line.Raw))]++
		}
	}
	for _, o := range w.ledger.words {
		n := times[o.text()]
		switch {
		case n > 1:
			w.violation("%s stands %d times in the history", o.text(), n)
		case o.fate == acked && n == 0:
			w.violation("I1: %s was acknowledged, and is not in the history", o.text())
		case o.fate == refused && n > 0:
			w.violation("I2: %s was not applied, it was said, and is in the history", o.text())
		case o.fate == sent || o.fate == limbo || o.fate == doubtful:
			w.violation("%s: nobody was told what became of it (%d)", o.text(), o.fate)
		}
	}
	for _, s := range w.ledger.sights {
		m, err := h.j.At(as(0), h.st, s.seq)
		if err != nil || string(m.Doc.State) != s.state {
			w.violation("the state of commit %d was read as %s, and is %s: %v", s.seq, s.state, m.Doc.State, err)
		}
	}
}
