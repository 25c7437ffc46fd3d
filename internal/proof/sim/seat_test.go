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

// hand is a handle on the session, with its user's knowledge of failed turns.
type hand struct {
	c      *client
	j      *journal.Journal
	mu     sync.Mutex
	doubts []*turn // of unknown outcome, the newest last: at most that one is the handle's doubt
	lost   []*turn // not applied: they may be sent again, and kept as branches
}

// failed reports whether there is something to recover.
func (h *hand) failed() bool { return len(h.doubts)+len(h.lost) > 0 || h.j.InDoubt() }

// seat is one writer: an agent that runs on one host after another.
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
		// Background work begins at a moment of its own: its starter continues meanwhile.
		Go: func(job func()) {
			d := c.draw(context.Background(), "go", "")
			go func() {
				_ = c.w.rest(context.Background(), time.Duration(d.n(30))*time.Millisecond, d.next())
				job()
			}()
		},
	}
	if c.clean {
		cfg.Go = func(job func()) { job() } // a caller that never waits must work sequentially
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

// run is the life of a seat: some operations, and an end.
func (s *seat) run() {
	s.think()
	for range s.w.plan.ops {
		s.act()
		if s.h == nil || !s.h.failed() || s.d.one(2) { // otherwise failures are handled at once
			s.think()
		}
	}
	s.leave(s.d.one(2))
}

// think waits, so that the next operation begins at a moment of its own.
func (s *seat) think() { _ = s.w.rest(s.ctx, s.d.pause(), s.d.next()) }

// say records the result of a call in the trace. It waits first: the call may have woken others.
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

// patient returns the context of one call: sometimes it is cancelled before the call ends.
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
	s.forget()
	s.h = nil
}

// forget records the turns that will not be settled any more.
func (s *seat) forget() {
	for _, t := range s.h.doubts {
		s.w.ledger.told(t, doubt, nil)
	}
	for _, t := range s.h.lost {
		s.w.ledger.told(t, refused, nil)
	}
	s.h.doubts, s.h.lost = nil, nil
}

// enter opens or creates the session on a host of its own.
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
	case s.h.failed(), s.h.j.Behind() && s.d.one(2):
		s.mend()
		return
	}
	d := s.d
	if s.w.plan.settling && d.one(3) {
		s.tidy(d)
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
		s.commit(s.ctx, d, s.aClaim(d))
	case k < 68:
		s.blob(d)
	case k < 73:
		s.snapshot(d)
	case k < 82:
		s.look(d)
	case k < 84:
		s.tidy(d)
	case k < 87:
		s.mend()
	case k < 95:
		s.leave(d.one(2))
	default:
		s.commit(s.ctx, d, s.aTurn(d))
	}
}

// aTurn returns a turn to commit, possibly with a key, possibly one that another host began.
func (s *seat) aTurn(d *chance) *turn {
	l := s.w.ledger
	t := l.newTurn(s.h.j.State(), d, d.in(0, 3)) // without entries only the document shows that it was stored
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

// aClaim is made on the newest state, whatever that is, and changes nothing.
func (s *seat) aClaim(d *chance) *turn {
	t := s.w.ledger.newTurn(s.h.j.State(), d, 0)
	t.step, t.base, t.state = &journal.Step{Reason: "claim", Claim: true}, "", ""
	return t
}

// commit commits a turn and records the answer.
func (s *seat) commit(ctx context.Context, d *chance, t *turn) {
	h := s.h
	call, cancel := s.patient(ctx, d)
	defer cancel()
	if h.j.InDoubt() { // a turn with a key is made on the outcome of the doubt
		t.base = ""
	}
	res, err := h.j.Commit(call, t.step)
	s.say(ctx, d, fmt.Sprintf("turn %d", t.n), err)
	s.book(h, t, res, err)
}

func (s *seat) book(h *hand, t *turn, res journal.Outcome, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := s.w.ledger
	switch f, _ := errors.AsType[*store.Failure](err); {
	case err == nil && res.Repeated && res.Commit.Commit != t.tried:
		l.told(t, repeated, &res)
	case err == nil:
		l.told(t, acked, &res)
	case errors.Is(err, journal.ErrUnknown):
		t.tried = f.Commit
		l.told(t, doubtful, nil)
		h.doubts = append(h.doubts, t)
	case errors.Is(err, journal.ErrConflict), errors.Is(err, journal.ErrFenced):
		l.told(t, limbo, nil)
		h.lost = append(h.lost, t)
	case backend.OutcomeOf(err) == backend.NotApplied:
		l.told(t, refused, nil)
	default:
		l.told(t, doubt, nil)
	}
}

// burst runs several goroutines that commit on one handle at the same time.
func (s *seat) burst(n int) {
	var all sync.WaitGroup
	h := s.h
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
			t.base = "" // other goroutines' commits meanwhile are no conflict
			s.commit(ctx, d, t)
		})
	}
	all.Wait()
	_ = s.w.rest(s.ctx, 0, s.d.next())
}

// mend recovers a handle after a failure, or drops it.
func (s *seat) mend() {
	d := s.d
	switch k := d.n(20); {
	case k < 11:
		s.again()
	case k < 15:
		err := s.h.j.Reload(s.ctx)
		s.say(s.ctx, d, "reload", err)
		if err == nil {
			s.forget()
		}
	case k < 17:
		s.leave(d.one(2))
	case k < 18: // a write that ends the doubt first
		s.commit(s.ctx, d, s.aClaim(d))
	default:
		s.commit(s.ctx, d, s.aTurn(d))
	}
}

// again retries a failed turn: by its key, by its commit, or as a branch.
func (s *seat) again() {
	h, d := s.h, s.d
	if len(h.doubts) > 0 {
		last := len(h.doubts) - 1
		t := h.doubts[last]
		h.doubts = h.doubts[:last]
		if t.step.Key != "" && d.one(2) {
			s.resend(t)
		} else {
			s.settleTurn(t)
		}
		return
	}
	if len(h.lost) > 0 {
		t := h.lost[0]
		h.lost = h.lost[1:]
		if t.step.Move || t.step.Claim || d.one(4) {
			s.w.ledger.told(t, refused, nil)
			return
		}
		t.step.KeepBoth, t.step.KeepFenced = true, true
		s.commit(s.ctx, d, t)
		return
	}
	call, cancel := s.patient(s.ctx, d)
	defer cancel()
	_, err := h.j.Settle(call, "")
	s.say(s.ctx, d, "settle", err)
}

// resend sends a turn in doubt again, under its key.
func (s *seat) resend(t *turn) {
	call, cancel := s.patient(s.ctx, s.d)
	defer cancel()
	res, err := s.h.j.Commit(call, t.step)
	s.say(s.ctx, s.d, fmt.Sprintf("turn %d again", t.n), err)
	s.judged(t, res, err, s.h.j.InDoubt())
}

// settleTurn asks for the outcome of a turn in doubt.
func (s *seat) settleTurn(t *turn) {
	call, cancel := s.patient(s.ctx, s.d)
	defer cancel()
	res, err := s.h.j.Settle(call, t.tried)
	s.say(s.ctx, s.d, fmt.Sprintf("settle turn %d", t.n), err)
	s.judged(t, res, err, errors.Is(err, context.DeadlineExceeded))
}

// judged records the answer for a turn in doubt. open: an answer that nothing was applied does not end the doubt.
func (s *seat) judged(t *turn, res journal.Outcome, err error, open bool) {
	lost := errors.Is(err, journal.ErrConflict) || errors.Is(err, journal.ErrFenced)
	if err != nil && !lost && !errors.Is(err, journal.ErrUnknown) && open {
		s.h.doubts = append(s.h.doubts, t)
		return
	}
	if err == nil && res.Commit.Commit == t.tried {
		res.Repeated = false
	}
	s.book(s.h, t, res, err)
}

// collect runs a garbage collector concurrently with everything else.
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
