package handle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

const session = "s"

// bases are the stores that schedules begin with a copy of: one session with two branches.
type bases map[kind]*base

// base is a session at the start of every schedule.
type base struct {
	store  backend.Backend
	root   string // id of its first entry
	head   string // of the entry at the head of "main"
	commit string // id of the last commit
}

// kind is a kind of store.
type kind struct{ appends, big bool }

// options returns a store's options with unique ids, and times that only grow.
func options(writer string, seed byte, clock func() time.Time) *coppice.Options {
	return &coppice.Options{Writer: writer, Now: clock, Rand: &source{r: rand.NewChaCha8([32]byte{seed})}}
}

// source is a random source for one goroutine at a time.
type source struct {
	mu sync.Mutex
	r  io.Reader
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Read(p)
}

func ticking(from int64) func() time.Time {
	var mu sync.Mutex
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		from++
		return time.UnixMilli(1_800_000_000_000 + from).UTC()
	}
}

func newBases() (bases, error) {
	all := bases{}
	for _, k := range []kind{{}, {appends: true}, {big: true}, {appends: true, big: true}} {
		b := &base{store: memory.New()}
		if k.appends {
			b.store = memory.NewAppender()
		}
		if err := b.fill(k.big); err != nil {
			return nil, err
		}
		all[k] = b
	}
	return all, nil
}

// fill makes the session.
func (b *base) fill(big bool) error {
	ctx := context.Background()
	store, err := coppice.New(b.store, options("base", 1, ticking(0)))
	if err != nil {
		return err
	}
	s, err := store.Create(session, nil)
	if err != nil {
		return err
	}
	say := func(text string, state string) (string, error) {
		ids, err := s.Append(ctx, entry.User(text))
		if err != nil {
			return "", err
		}
		_, err = s.Commit(ctx, coppice.Turn{State: json.RawMessage(state)})
		return ids[0], err
	}
	if b.root, err = say("root", `{"turn":"root"}`); err != nil {
		return err
	}
	if b.head, err = say("reply", `{"turn":"reply"}`); err != nil {
		return err
	}
	if big {
		filler := json.RawMessage(fmt.Sprintf("%q", strings.Repeat("x", 300<<10)))
		r, err := s.Commit(ctx, coppice.Turn{Entries: []transcript.Draft{entry.Custom("filler", filler)}})
		if err != nil {
			return err
		}
		b.head = r.IDs[0]
	}
	if _, err = s.Branch(ctx, b.root, &coppice.BranchOptions{Name: "side"}); err != nil {
		return err
	}
	if _, err = say("side", `{"turn":"side"}`); err != nil {
		return err
	}
	r, err := s.Switch(ctx, "main")
	if err != nil {
		return err
	}
	b.commit = r.Commit
	if big {
		return nil // its process was killed: the work of Close is still to be done
	}
	return s.Close()
}

// handle is a session that a process has open.
type handle struct {
	n      int
	v      *view
	store  *coppice.Store
	s      *coppice.Session
	opened int // the moment at which its opening began
	ready  int // the moment at which it was open
	sights []sight
}

// sight is the visible state of a handle while nothing moves.
type sight struct {
	step           int
	seq            uint64
	commit, branch string // of the view
	doc            string
	entry, context string // with the buffer
}

// observe records the states of the program's handles, and the calls that have returned.
func (r *run) observe() {
	step := len(r.story)
	for _, c := range r.records {
		if c.returned && c.upto == 0 {
			c.upto = step
		}
	}
	for _, h := range r.alive() {
		head := h.s.Head()
		at := sight{step: step, seq: head.Seq, commit: head.Commit, branch: head.Branch, entry: head.Entry}
		var doc json.RawMessage
		if err := h.s.State(&doc); err != nil {
			r.violate("unreadable", "h%d: %v", h.n, err)
		}
		if at.doc = string(doc); !r.w.reads {
			c, err := h.s.Context(context.Background())
			if err != nil {
				r.violate("unreadable", "h%d: %v", h.n, err)
			}
			for _, m := range c.Messages {
				at.context += m.Entry + " "
			}
		}
		h.sights = append(h.sights, at)
	}
}

// alive returns the handles in use, in order.
func (r *run) alive() (list []*handle) {
	for _, n := range slices.Sorted(maps.Keys(r.handles)) {
		h := r.handles[n]
		if !h.v.dead && h.n < 100 && !r.any(func(c *record) bool { return c.h == h && c.kind == opClose }) {
			list = append(list, h)
		}
	}
	return list
}

func (h *handle) writer() string { return fmt.Sprintf("h%d", h.n) }

// laneRun is the state of a lane.
type laneRun struct {
	lane
	n      int
	next   int // its next call
	busy   bool
	may    bool // the call may be cancelled
	cancel context.CancelFunc
	rec    *record
}

// run is one schedule: a program, and the choice at each point.
type run struct {
	p      program
	left   program // the remaining budgets
	base   *base
	choose func(n int) int
	w      *world
	clock  func() time.Time
	docs   map[string]string // states after commits, by their ids

	mu      sync.Mutex
	handles map[int]*handle
	records []*record

	lanes  []*laneRun
	widths []int
	trace  []int    // the choices, if there was more than one
	story  []string // the log of events
	stuck  bool
	told   sync.Mutex
	bad    []violation
}

// play runs a program. It has to be called in a bubble.
func play(p program, all bases, choose func(n int) int) *run {
	r := &run{
		p: p, left: p, base: all[kind{p.appends, p.big}], choose: choose, clock: ticking(1000),
		docs: map[string]string{}, handles: map[int]*handle{},
	}
	r.w = newWorld(r.base.store, p.reads)
	r.w.lie = p.lie
	if p.fresh {
		r.w = newWorld(r.emptied(), p.reads)
	}
	r.w.free = true
	for i, l := range p.lanes {
		if r.handles[l.handle] == nil {
			if _, err := r.open(l.handle, p.fresh); err != nil {
				r.violate("start", "open: %v", err)
				return r
			}
		}
		r.lanes = append(r.lanes, &laneRun{lane: l, n: i + 1})
	}
	r.w.free = false
	r.steps()
	if !r.stuck {
		r.judge()
	}
	return r
}

// emptied returns the base without its session, but with the proof that the store honours conditions.
func (r *run) emptied() backend.Backend {
	ctx := context.Background()
	if r.p.appends {
		return memory.NewAppender()
	}
	from, to := r.base.store, memory.New()
	for info := range from.List(ctx, backend.ListOptions{Prefix: "cas/"}) {
		if p, _, err := from.Get(ctx, info.Key, backend.Range{}); err == nil {
			_, _ = to.Put(ctx, info.Key, p, backend.Cond{})
		}
	}
	return to
}

// open is a process that opens the session, or, if it is new, makes a handle that will create it.
func (r *run) open(n int, create bool) (*handle, error) {
	h := &handle{n: n, v: &view{w: r.w, name: fmt.Sprintf("h%d", n)}, opened: r.w.tick()}
	o := options(h.writer(), byte(10+n), r.clock)
	so := &coppice.SessionOptions{KeepBoth: r.p.both}
	if r.p.snaps {
		so.Snapshots = snapshot.Policy{Every: 2}
	}
	var err error
	if h.store, err = coppice.New(h.v.backend(), o); err != nil {
		return nil, err
	}
	if create {
		h.s, err = h.store.Create(session, so)
	} else {
		h.s, err = h.store.Open(context.Background(), session, so)
	}
	h.ready = r.w.tick()
	if err == nil {
		r.mu.Lock()
		r.handles[n] = h
		r.mu.Unlock()
	}
	return h, err
}

// action is a possible next step of the scheduler.
type action struct {
	name string
	do   func()
}

// steps runs the program until every lane has ended.
func (r *run) steps() {
	for {
		synctest.Wait()
		r.observe()
		acts := r.actions()
		if len(acts) == 0 {
			return
		}
		i := 0
		if len(acts) > 1 {
			if i = r.choose(len(acts)); i >= len(acts) {
				i = len(acts) - 1
			}
			r.trace, r.widths = append(r.trace, i), append(r.widths, len(acts))
		}
		r.story = append(r.story, acts[i].name)
		if acts[i].do(); acts[i].name == "end" || r.stuck {
			return
		}
	}
}

// actions returns the possible steps, the default ones first: requests are done, lanes continue.
func (r *run) actions() (acts []action) {
	w := r.w
	add := func(do func(), format string, args ...any) {
		acts = append(acts, action{fmt.Sprintf(format, args...), do})
	}
	w.mu.Lock()
	parked, late := slices.Clone(w.parked), slices.Clone(w.late)
	w.mu.Unlock()
	answer := func() {
		for _, c := range parked {
			add(func() { w.decide(c, verdict{}) }, "%s %s %d: done", c.v.name, c.op, c.id)
		}
	}
	if !r.p.eager {
		answer()
	}
	busy := false
	for _, l := range r.lanes {
		if busy = busy || l.busy; !l.busy && l.next < len(l.ops) {
			add(func() { r.start(l) }, "lane %d: %c", l.n, l.ops[l.next].kind)
		}
	}
	if r.p.eager {
		answer()
	}
	if busy && len(parked) == 0 {
		add(r.sleep, "time passes")
	}
	if len(acts) == 0 {
		add(func() {}, "end")
	}
	for _, c := range parked {
		r.faults(c, add)
	}
	for _, l := range r.lanes {
		if l.busy && l.may && r.left.cancels > 0 {
			add(func() { r.left.cancels--; r.cancelLane(l) }, "cancel lane %d", l.n)
		}
	}
	for _, l := range late {
		add(func() { w.land(l) }, "a late put of %s lands", l.v.name)
	}
	return acts
}

// faults adds the outcomes of a request other than done.
func (r *run) faults(c *call, add func(do func(), format string, args ...any)) {
	w := r.w
	one := func(a verdict, budget *int) {
		name := verdictNames[a.kind]
		if a.kind == tornRequest {
			name = fmt.Sprintf("torn after %d", a.bytes)
		}
		if a.cut {
			name += ", network down"
		}
		if a.dies {
			name += ", the process dies"
		}
		add(func() {
			if budget != nil {
				*budget--
			}
			w.decide(c, a)
		}, "%s %s %d: %s", c.v.name, c.op, c.id, name)
	}
	if c.ctx.Err() != nil {
		if !c.write {
			one(verdict{kind: failedRead}, nil)
		} else {
			one(verdict{kind: cancelledNot}, nil)
			one(verdict{kind: cancelledYet}, nil)
		}
	}
	if r.left.faults > 0 {
		for _, a := range c.outcomes() {
			one(a, &r.left.faults)
		}
	}
	if r.left.deaths > 0 && c.write {
		for _, a := range c.deaths() {
			one(a, &r.left.deaths)
		}
	}
}

// sleep lets time pass until something happens. A program in which nothing happens is stuck.
func (r *run) sleep() {
	const enough = 5 * time.Minute
	for d := 20 * time.Millisecond; d < enough; d *= 2 {
		before := r.returned()
		time.Sleep(d)
		synctest.Wait()
		r.w.mu.Lock()
		woke := len(r.w.parked) > 0
		r.w.mu.Unlock()
		if woke || r.returned() != before {
			return
		}
	}
	r.stuck = true
	for _, l := range r.lanes {
		if l.busy {
			r.violate("stuck", "%s never returns", l.rec)
		}
	}
}

func (r *run) returned() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.records {
		if c.returned {
			n++
		}
	}
	return n
}

func (r *run) cancelLane(l *laneRun) {
	at := r.w.tick()
	r.mu.Lock()
	l.rec.cancelled = at
	r.mu.Unlock()
	l.may = false
	l.cancel()
}

// start begins the next call of a lane, in a goroutine of its own.
func (r *run) start(l *laneRun) {
	o := l.ops[l.next]
	ctx, cancel := context.WithCancel(context.Background())
	l.next++
	l.busy, l.may, l.cancel = true, o.cancel, cancel
	h := r.handles[l.handle]
	l.rec = r.begin(l.n, h, o.kind)
	go func() {
		defer cancel()
		r.do(ctx, l.rec)
		r.w.mu.Lock()
		h.v.cut = false
		r.w.mu.Unlock()
		r.mu.Lock()
		defer r.mu.Unlock()
		l.busy = false
	}()
}

// violate records a broken promise. Only the first of each rule counts.
func (r *run) violate(rule, format string, args ...any) {
	r.told.Lock()
	defer r.told.Unlock()
	if !slices.ContainsFunc(r.bad, func(v violation) bool { return v.Rule == rule }) {
		r.bad = append(r.bad, violation{Rule: rule, Text: fmt.Sprintf(format, args...)})
	}
}

// violation is a broken promise, and the schedule that shows it.
type violation struct {
	Rule, Text string
	Program    string
	Choices    []int
	Story      []string
}

// failed reports whether an error is any of these.
func failed(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(e error) bool { return errors.Is(err, e) })
}
