package handle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
)

// The error of an injected failure.
var (
	errRefused = errors.New("injected: refused")
	errLost    = errors.New("injected: the answer is lost")
	errDead    = errors.New("injected: this process has died")
)

// world is one store and all requests to it. Every write waits until the scheduler decides its outcome, and so does
// every read if reads is set.
type world struct {
	replace *memory.Backend  // one of the two is nil
	log     *memory.Appender // a store that appends
	reads   bool

	mu     sync.Mutex
	free   bool // nothing waits: the judge reads
	calls  int
	parked []*call
	late   []latePut
	now    int    // moments: one for each event
	doubt  bool   // visible bytes were not confirmed by a sync
	twice  string // a request of a handle that was sent while another one was under way
	lie    int    // how the store breaks its contract; 0 = it does not
}

// latePut is a PUT that was reported as unknown and is still under way.
type latePut struct {
	v    *view
	key  string
	body []byte
	cond backend.Cond
}

// call is a request that waits for the scheduler.
type call struct {
	id      int
	v       *view
	ctx     context.Context // the scheduler asks whether its caller was cancelled
	op, key string
	write   bool
	body    []byte
	cond    backend.Cond
	run     func(ctx context.Context) error
	answer  chan verdict
}

// The ways in which a store may break its contract.
const (
	lieDone      = 1 + iota // a write reported as done is not
	lieRefused              // a write reported as refused is done
	lieCondition            // it ignores the condition of a PUT
	lieSync                 // a write reported as done is lost with the power
)

// verdict is the outcome of a request.
type verdict struct {
	kind  verdictKind
	bytes int // torn: the number written
	cut   bool
	dies  bool // the process dies with it
}

type verdictKind uint8

const (
	done         verdictKind = iota
	refused                  // certainly not applied
	lostAnswer               // applied, and reported as unknown; if the store appends, not synced
	lostRequest              // not applied, and reported as unknown
	lateRequest              // reported as unknown, and it may be applied later
	tornRequest              // a part of the bytes is written, and it is reported as unknown
	failedRead               // the error of a read
	cancelledNot             // the caller's context is done: not applied, reported as unknown
	cancelledYet             // the caller's context is done: applied, reported as unknown
)

var verdictNames = [...]string{
	"done", "refused", "answer lost", "request lost", "late", "torn", "read fails", "cancelled, not applied",
	"cancelled, applied",
}

// view is the store as seen by one process.
type view struct {
	w      *world
	name   string
	dead   bool
	cut    bool // the network is down: every call fails at once with an unknown outcome
	sent   []sent
	faults []fault
	wrote  []int // moments at which its writes took effect
}

// fault is an injected failure.
type fault struct {
	at   int // the moment of the decision
	kind verdictKind
}

// sent is a requested write, whatever its outcome.
type sent struct {
	at      int
	op, key string
}

// newWorld returns a world that begins as a copy of base.
func newWorld(base backend.Backend, reads bool) *world {
	w := &world{reads: reads}
	switch b := base.(type) {
	case *memory.Backend:
		w.replace = b.Crash(0)
	case *memory.Appender:
		w.log = b.Crash(0)
	}
	return w
}

func (w *world) store() backend.Backend {
	if w.log != nil {
		return w.log
	}
	return w.replace
}

// backend returns the view for a program: it appends if the store does.
func (v *view) backend() backend.Backend {
	if v.w.log != nil {
		return appender{v}
	}
	return v
}

// tick begins a new moment.
func (w *world) tick() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now++
	return w.now
}

// ask waits for the outcome of a request, and applies it.
func (v *view) ask(c *call) error {
	w := v.w
	if err := c.ctx.Err(); err != nil {
		return &backend.Error{Op: c.op, Key: c.key, Outcome: backend.NotApplied, Err: err}
	}
	w.mu.Lock()
	c.v = v
	if c.write {
		v.sent = append(v.sent, sent{w.now, c.op, c.key})
	}
	if c.commits() && slices.ContainsFunc(w.parked, func(o *call) bool { return o.v == v && o.commits() }) {
		w.twice = fmt.Sprintf("%s %s of %s", v.name, c.op, c.key)
	}
	switch {
	case v.dead:
		w.mu.Unlock()
		return &backend.Error{Op: c.op, Key: c.key, Outcome: backend.NotApplied, Err: errDead}
	case w.free:
		w.mu.Unlock()
		return c.run(context.Background())
	case v.cut:
		v.faults = append(v.faults, fault{w.now, lostRequest})
		w.mu.Unlock()
		return &backend.Error{Op: c.op, Key: c.key, Err: errLost}
	case !c.write && !w.reads:
		w.mu.Unlock()
		return c.run(context.Background())
	}
	w.calls++
	c.id, c.answer = w.calls, make(chan verdict, 1)
	w.parked = append(w.parked, c)
	w.mu.Unlock()
	return c.finish(<-c.answer)
}

// finish applies the outcome of a request.
func (c *call) finish(a verdict) error {
	switch a.kind {
	case done:
		if c.v.w.lie == lieDone && c.commits() {
			return nil
		}
		if c.v.w.lie == lieSync && c.commits() {
			c.unsynced(visible)
			return nil
		}
		err := c.run(context.Background())
		if err == nil && c.write {
			c.v.took()
		}
		return err
	case refused, failedRead:
		if c.v.w.lie == lieRefused && c.write {
			_ = c.run(context.Background())
		}
		return &backend.Error{Op: c.op, Key: c.key, Outcome: backend.NotApplied, Err: errRefused}
	case lostAnswer, cancelledYet:
		c.unsynced(visible)
	case tornRequest:
		c.unsynced(func(memory.Step) error { return memory.Short(a.bytes) })
	case lostRequest, lateRequest, cancelledNot:
	}
	err := errLost // whatever the store answered, the caller does not get the answer
	if ctxErr := c.ctx.Err(); ctxErr != nil {
		err = fmt.Errorf("%w: %w", ctxErr, err)
	}
	return &backend.Error{Op: c.op, Key: c.key, Err: err}
}

// visible stops a write before it is durable.
func visible(s memory.Step) error {
	if s.Stage == memory.Visible {
		return errLost
	}
	return nil
}

// unsynced runs a write that becomes visible; on a store that appends it may not be durable.
func (c *call) unsynced(hook memory.Hook) {
	w := c.v.w
	if w.log == nil { // visible objects of an object store are durable
		if c.run(context.Background()) == nil {
			c.v.took()
		}
		return
	}
	w.log.SetHook(hook)
	err := c.run(context.Background())
	w.log.SetHook(nil)
	if errors.Is(err, errLost) || errors.As(err, new(memory.Short)) {
		c.v.took()
		w.mu.Lock()
		w.doubt = true
		w.mu.Unlock()
	}
}

func (v *view) took() {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	v.wrote = append(v.wrote, v.w.now)
}

// decide releases a waiting request.
func (w *world) decide(c *call, a verdict) {
	w.mu.Lock()
	w.now++
	w.parked = slices.DeleteFunc(w.parked, func(p *call) bool { return p == c })
	if a.kind != done {
		c.v.faults = append(c.v.faults, fault{w.now, a.kind})
	}
	if a.kind == lateRequest {
		w.late = append(w.late, latePut{c.v, c.key, c.body, c.cond})
	}
	c.v.cut = a.cut
	var others []*call
	if a.dies {
		c.v.dead = true
		for _, p := range w.parked {
			if p.v == c.v {
				others = append(others, p)
			}
		}
		w.parked = slices.DeleteFunc(w.parked, func(p *call) bool { return p.v == c.v })
	}
	w.mu.Unlock()
	c.answer <- a
	for _, p := range others {
		p.answer <- verdict{kind: refused}
	}
}

// land applies a late PUT, if its condition still holds.
func (w *world) land(l latePut) {
	w.tick()
	_, err := w.store().Put(context.Background(), l.key, l.body, l.cond)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = slices.DeleteFunc(w.late, func(o latePut) bool { return &o.body[0] == &l.body[0] })
	if err == nil {
		l.v.wrote = append(l.v.wrote, w.now)
		l.v.faults = append(l.v.faults, fault{w.now, lateRequest})
	}
}

// commits reports whether a request makes commits durable, and is not background work.
func (c *call) commits() bool {
	return c.op == "append" || c.v.w.log == nil && strings.HasPrefix(c.key, "checkpoint_latest/")
}

// outcomes returns the outcomes of a request other than done, without those of a cancelled caller.
func (c *call) outcomes() []verdict {
	switch {
	case !c.write:
		return []verdict{{kind: failedRead}}
	case c.v.w.log == nil && c.op == "put":
		return []verdict{
			{kind: refused},
			{kind: lostAnswer},
			{kind: lateRequest},
			{kind: lostAnswer, cut: true},
			{kind: lateRequest, cut: true},
		}
	case c.op == "append":
		list := []verdict{{kind: refused}, {kind: lostAnswer}, {kind: lostRequest}}
		return append(list, c.torn()...)
	}
	return []verdict{{kind: refused}, {kind: lostAnswer}, {kind: lostRequest}}
}

// torn returns the places where an append may stop: after each line except the last, and within the first and the last.
func (c *call) torn() (list []verdict) {
	first := bytes.IndexByte(c.body, '\n') + 1
	list = append(list, verdict{kind: tornRequest, bytes: first / 2})
	at := 0
	for at < len(c.body) {
		n := bytes.IndexByte(c.body[at:], '\n') + 1
		if n == 0 || at+n == len(c.body) {
			break
		}
		at += n
		list = append(list, verdict{kind: tornRequest, bytes: at})
	}
	if at > 0 {
		list = append(list, verdict{kind: tornRequest, bytes: at + (len(c.body)-at)/2})
	}
	return list
}

// deaths returns what a write may leave when its process dies.
func (c *call) deaths() []verdict {
	list := []verdict{{kind: lostRequest, dies: true}, {kind: lostAnswer, dies: true}}
	if c.op == "append" {
		for _, t := range c.torn() {
			t.dies = true
			list = append(list, t)
		}
	}
	return list
}

func (v *view) Get(ctx context.Context, key string, r backend.Range) (p []byte, info backend.Info, err error) {
	err = v.ask(&call{ctx: ctx, op: "get", key: key, run: func(ctx context.Context) (err error) {
		p, info, err = v.w.store().Get(ctx, key, r)
		return err
	}})
	return p, info, err
}

func (v *view) Put(ctx context.Context, key string, p []byte, c backend.Cond) (info backend.Info, err error) {
	err = v.ask(&call{ctx: ctx, op: "put", key: key, write: true, body: slices.Clone(p), cond: c, run: func(ctx context.Context) (err error) {
		if v.w.lie == lieCondition {
			c = backend.Cond{}
		}
		info, err = v.w.store().Put(ctx, key, p, c)
		return err
	}})
	return info, err
}

func (v *view) Stat(ctx context.Context, key string) (info backend.Info, err error) {
	err = v.ask(&call{ctx: ctx, op: "stat", key: key, run: func(ctx context.Context) (err error) {
		info, err = v.w.store().Stat(ctx, key)
		return err
	}})
	return info, err
}

func (v *view) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return v.w.store().List(ctx, o)
}

func (v *view) Delete(ctx context.Context, key string) error {
	return v.ask(&call{ctx: ctx, op: "delete", key: key, write: true, run: func(ctx context.Context) error {
		return v.w.store().Delete(ctx, key)
	}})
}

func (v *view) Close() error { return nil }

// appender is a view of a store that appends.
type appender struct{ *view }

func (a appender) Append(ctx context.Context, key string, off int64, p []byte) (info backend.Info, err error) {
	err = a.ask(&call{ctx: ctx, op: "append", key: key, write: true, body: p, run: func(ctx context.Context) (err error) {
		info, err = a.w.log.Append(ctx, key, off, p)
		return err
	}})
	return info, err
}

func (a appender) Cut(ctx context.Context, key string, off int64, torn []byte) error {
	return a.ask(&call{ctx: ctx, op: "cut", key: key, write: true, run: func(ctx context.Context) error {
		return a.w.log.Cut(ctx, key, off, torn)
	}})
}

func (a appender) Resync(ctx context.Context, key string, off, size int64) (info backend.Info, err error) {
	err = a.ask(&call{ctx: ctx, op: "resync", key: key, write: true, run: func(ctx context.Context) (err error) {
		info, err = a.w.log.Resync(ctx, key, off, size)
		return err
	}})
	return info, err
}
