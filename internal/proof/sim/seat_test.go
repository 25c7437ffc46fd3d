package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/segment"
)

// hand is a handle on the session, and what is kept in it.
type hand struct {
	c     *client
	j     *journal.Journal
	mu    sync.Mutex
	kept  []*turn // turns that failed and are in the handle
	mixed bool    // their order in the handle is not known
}

// seat is one writer: an agent that runs now on this host and then on another.
type seat struct {
	w   *world
	id  int
	d   *chance
	ctx context.Context
	h   *hand
}

func (w *world) seat(id int) *seat {
	return &seat{w: w, id: id, d: seeded(w.Seed, uint64(id), 4), ctx: as(id * 8)}
}

func (c *client) config() journal.Config {
	cfg := journal.Config{
		Backend: c, Session: session, Writer: fmt.Sprintf("h%d", c.id), Now: c.Now, Rand: c, Sleep: c.Sleep,
		Limits: c.w.plan.limits,
		// Background work begins at a moment of its own: who started it goes on meanwhile.
		Go: func(job func()) {
			d := c.draw(context.Background(), "go", "")
			go func() {
				_ = c.w.rest(context.Background(), time.Duration(d.n(30))*time.Millisecond, d.next())
				job()
			}()
		},
	}
	if c.clean {
		cfg.Go = func(job func()) { job() } // who is never kept waiting must do one thing after the other
	}
	return cfg
}

var header = []byte(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`)

func idOf(raw []byte) string {
	e, err := segment.Entry(0, raw)
	if err != nil {
		return err.Error()
	}
	return e.ID
}

// run is a life: some operations, and an end.
func (s *seat) run() {
	s.think()
	for range s.w.plan.ops {
		s.act()
		if s.h == nil || s.h.j.Broken() == nil || s.d.one(2) { // else what has failed is mended at once
			s.think()
		}
	}
	s.leave(s.d.one(2))
}

// think waits, so that what follows begins at a moment of its own.
func (s *seat) think() { _ = s.w.rest(s.ctx, s.d.pause(), s.d.next()) }

// say notes in the trace how a call ended. It waits first: the call may have woken up others.
func (s *seat) say(ctx context.Context, d *chance, what string, err error) {
	_ = s.w.rest(context.WithoutCancel(ctx), 0, d.next())
	text := "ok"
	if err != nil {
		text = err.Error()
	}
	s.w.event(s.name(ctx), what, "", text)
	s.w.ledger.sound(s.name(ctx)+" "+what, err)
}

func (s *seat) name(ctx context.Context) string {
	if s.h == nil {
		return fmt.Sprintf("seat%d", s.id)
	}
	return fmt.Sprintf("seat%d/%d", s.id, whose(ctx))
}

// patient is the context of one call: now and then the caller does not wait for its end.
func (s *seat) patient(ctx context.Context, d *chance) (context.Context, context.CancelFunc) {
	if d.one(14) {
		at := time.Duration(d.n(8000))*time.Millisecond + time.Duration(d.n(1_000_000))
		return context.WithTimeout(ctx, at)
	}
	return ctx, func() {}
}

// leave ends a handle: closed, or the process is killed.
func (s *seat) leave(kill bool) {
	h := s.h
	if h == nil {
		return
	}
	if kill {
		h.c.dead.Store(true)
		s.w.event(s.name(s.ctx), "dies", "", "")
	} else {
		err := h.j.Close(s.ctx)
		s.say(s.ctx, s.d, "close", err)
	}
	for _, t := range h.kept {
		s.drop(t)
	}
	s.h = nil
}

// drop books a turn of which the handle knows no more.
func (s *seat) drop(t *turn) {
	switch {
	case t.entriesDone():
		s.w.ledger.told(t, acked, nil)
	case t.fate == limbo:
		s.w.ledger.told(t, refused, nil)
	default:
		s.w.ledger.told(t, doubt, nil)
	}
}

// enter opens the session on a host of its own, or makes it.
func (s *seat) enter() {
	c := s.w.client(false)
	floor, born, buried := s.w.ledger.floor()
	j, err := journal.Open(s.ctx, c.config())
	var st *state.State
	if err == nil {
		st = j.State()
	}
	s.say(s.ctx, s.d, "open", err)
	s.w.ledger.opened(s.name(s.ctx), floor, born, buried, st, err)
	switch {
	case err == nil:
		s.h = &hand{c: c, j: j}
	case errors.Is(err, store.ErrDeleted) && s.d.one(2), errors.Is(err, backend.ErrNotExist) && s.d.p(0.8):
		s.h = &hand{c: c, j: journal.Create(c.config(), state.Genesis{Header: header, Title: "t", Cwd: "/w"})}
	}
}

// act is one operation.
func (s *seat) act() {
	switch {
	case s.h == nil:
		s.enter()
		return
	case len(s.h.kept) > 0 || s.h.j.Broken() != nil:
		s.mend()
		return
	}
	d := s.d
	if s.w.plan.settling && d.one(3) {
		s.settle(d)
		return
	}
	if s.w.plan.deletes && d.one(12) {
		s.bury(func() error { return journal.Delete(s.ctx, s.w.client(false).config()) })
		return
	}
	switch k := d.n(100); {
	case k < 50 || s.w.plan.burst > 1 && k < 70:
		if s.w.plan.burst > 1 && k >= 35 {
			s.burst(d.in(2, s.w.plan.burst))
		} else {
			s.commit(s.ctx, d, s.aTurn(d))
		}
	case k < 58:
		s.move(d)
	case k < 63:
		t := s.w.ledger.newTurn(s.h.j.State(), d, 0)
		t.step.Claim, t.step.Reason = true, "claim"
		s.commit(s.ctx, d, t)
	case k < 68:
		s.blob(d)
	case k < 73:
		s.snapshot(d)
	case k < 82:
		s.look(d)
	case k < 84:
		s.settle(d)
	case k < 87:
		s.mend()
	case k < 95:
		s.leave(d.one(2))
	default:
		s.commit(s.ctx, d, s.aTurn(d))
	}
}

// aTurn is what an agent commits, perhaps under a key, perhaps one that another host had begun.
func (s *seat) aTurn(d *chance) *turn {
	l := s.w.ledger
	t := l.newTurn(s.h.j.State(), d, d.in(0, 3)) // without entries only the document shows that it was there
	t.step.KeepBoth = s.w.plan.keepBoth && d.one(2)
	if s.w.plan.keys && d.one(2) {
		t.step.Key = fmt.Sprintf("k%d", t.n)
		l.mu.Lock()
		if n := len(l.again); n > 0 && d.one(2) {
			t.step.Key, l.again = l.again[0], l.again[1:]
		}
		l.mu.Unlock()
	}
	return t
}

// commit commits a turn and books what is said of it.
func (s *seat) commit(ctx context.Context, d *chance, t *turn) {
	h := s.h
	call, cancel := s.patient(ctx, d)
	defer cancel()
	res, err := h.j.Commit(call, t.step)
	s.say(ctx, d, fmt.Sprintf("turn %d", t.n), err)
	s.book(h, t, res, err)
}

func (s *seat) book(h *hand, t *turn, res journal.Result, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := s.w.ledger
	kept := errors.Is(err, journal.ErrConflict) || errors.Is(err, journal.ErrFenced) || errors.Is(err, journal.ErrUnknown)
	switch {
	case err == nil && res.Repeated:
		l.told(t, repeated, &res)
	case err == nil:
		l.told(t, acked, &res)
	case kept && (errors.Is(err, journal.ErrConflict) || errors.Is(err, journal.ErrFenced)):
		l.told(t, limbo, nil)
		h.kept = append(h.kept, t)
	case kept && t.entriesDone():
		l.told(t, acked, nil)
	case kept:
		l.told(t, doubtful, nil)
		h.kept = append(h.kept, t)
	case backend.OutcomeOf(err) == backend.NotApplied:
		l.told(t, refused, nil)
	default:
		l.told(t, doubt, nil)
	}
}

func (t *turn) entriesDone() bool {
	if len(t.entries) == 0 {
		return false
	}
	_, done := t.entries[0].Ordinal()
	return done
}

// burst is several goroutines that commit on one handle at the same time.
func (s *seat) burst(n int) {
	var all sync.WaitGroup
	h := s.h
	h.mixed = true
	for i := range n {
		d, ctx := &chance{s: s.d.next()}, as(s.id*8+1+i)
		all.Go(func() {
			_ = s.w.rest(ctx, time.Duration(d.n(60))*time.Millisecond, d.next())
			if i > 0 && d.one(10) {
				err := h.j.Reload(ctx)
				s.say(ctx, d, "reload in a burst", err)
				return
			}
			t := s.aTurn(d)
			t.base = "" // what the others commit meanwhile is no surprise
			s.commit(ctx, d, t)
		})
	}
	all.Wait()
	_ = s.w.rest(s.ctx, 0, s.d.next())
	if len(h.kept) > 0 && h.j.Broken() == nil {
		s.forgetKept() // a Reload dropped them
	}
}

// forgetKept books the turns that the handle has dropped.
func (s *seat) forgetKept() {
	for _, t := range s.h.kept {
		s.drop(t)
	}
	s.h.kept, s.h.mixed = nil, false
}

// mend brings a handle that has failed back, or gives it up.
func (s *seat) mend() {
	d := s.d
	switch k := d.n(20); {
	case k < 11:
		s.rebase()
	case k < 15:
		err := s.h.j.Reload(s.ctx)
		s.say(s.ctx, d, "reload", err)
		if err == nil {
			s.forgetKept()
		}
	case k < 19:
		s.leave(d.one(2))
	default:
		s.commit(s.ctx, d, s.aTurn(d)) // refused, and kept
	}
}

// rebase keeps the turns that failed.
func (s *seat) rebase() {
	h, d := s.h, s.d
	var extra *turn
	var step *journal.Step
	if d.one(3) {
		extra = s.aTurn(d)
		step = extra.step
	}
	call, cancel := s.patient(s.ctx, d)
	defer cancel()
	res, err := h.j.Rebase(call, step)
	s.say(s.ctx, d, fmt.Sprintf("rebase of %d", len(h.kept)), err)
	if err != nil {
		s.rebaseFailed(extra, err)
		return
	}
	kept := h.kept
	for _, t := range kept {
		t.base = "" // Rebase looked at what is newer
	}
	if extra != nil {
		extra.base = ""
		s.book(h, extra, res[len(res)-1], nil)
		res = res[:len(res)-1]
	}
	if !h.mixed && len(res) != len(kept) {
		s.w.violation("rebase gave %d results for %d turns", len(res), len(kept))
	}
	for i, t := range kept {
		switch {
		case !h.mixed && i < len(res):
			s.book(h, t, res[i], nil)
		case t.entriesDone():
			s.w.ledger.told(t, acked, nil)
		default:
			s.w.ledger.told(t, doubt, nil) // it may have been repeated by its key
		}
	}
	h.kept, h.mixed = nil, false
}

// rebaseFailed: the turns stay. Those in doubt that were found are no longer counted by the next one.
func (s *seat) rebaseFailed(extra *turn, err error) {
	h := s.h
	if errors.Is(err, journal.ErrUnknown) {
		h.mixed = true
		for _, t := range h.kept {
			s.w.ledger.told(t, doubtful, nil)
		}
	}
	switch {
	case extra == nil:
	case errors.Is(err, journal.ErrUnknown):
		s.w.ledger.told(extra, doubtful, nil)
		h.kept = append(h.kept, extra)
	default:
		s.w.ledger.told(extra, refused, nil)
	}
}

// collect is a garbage collector that runs beside everybody.
func (w *world) collect(done <-chan struct{}) {
	s := w.seat(99)
	for range w.plan.ops {
		s.think()
		select {
		case <-done:
			return
		default:
		}
		c := w.client(false)
		_, err := gc.Run(s.ctx, c.config(), s.d.one(6))
		if errors.Is(err, backend.ErrNotExist) {
			err = nil
		}
		s.say(s.ctx, s.d, "gc", err)
	}
}
