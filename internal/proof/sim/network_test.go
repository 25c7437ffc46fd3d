package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/layout"
)

// client is one process on one host, with its backend: an S3 driver on a simulated network. kill ends it; its messages
// under way still arrive.
type client struct {
	w     *world
	id    int
	clean bool          // no faults, and no time passes
	skew  time.Duration // error of its clock (I12)
	dead  atomic.Bool

	writes atomic.Int64 // requested writes

	mu    sync.Mutex
	calls map[call]uint64
	rands [32]uint64
}

type call struct {
	who     int
	op, key string
}

func (w *world) client(clean bool) *client {
	w.mu.Lock()
	w.hosts++
	c := &client{w: w, id: w.hosts, clean: clean, calls: map[call]uint64{}}
	w.mu.Unlock()
	if d := seeded(w.Seed, uint64(c.id), 2); d.one(3) {
		c.skew = time.Duration(d.in(-48, 48)) * time.Hour
	}
	return c
}

// draw starts the generator for one call.
func (c *client) draw(ctx context.Context, op, key string) *chance {
	k := call{whose(ctx), op, key}
	c.mu.Lock()
	n := c.calls[k]
	c.calls[k]++
	c.mu.Unlock()
	return seeded(c.w.Seed, uint64(c.id), uint64(k.who), hashOf(op, key), n)
}

// Read is the host's source of randomness. Each length has its own stream, so that the order of the host's goroutines
// does not matter.
func (c *client) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := &c.rands[len(p)%len(c.rands)]
	*at++
	r := seeded(c.w.Seed, uint64(c.id), uint64(len(p)), *at, 3)
	for i := range p {
		p[i] = byte(r.next() >> 32)
	}
	return len(p), nil
}

// Now is the host's clock.
func (c *client) Now() time.Time {
	return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC).Add(c.skew + c.w.now())
}

// Sleep is the host's way to pause.
func (c *client) Sleep(ctx context.Context, d time.Duration) error {
	switch {
	case c.dead.Load():
		return errGone
	case c.clean:
		return ctx.Err()
	}
	return c.w.rest(ctx, d, c.draw(ctx, "sleep", "").next())
}

var (
	errLost   = errors.New("no answer")
	errServer = errors.New("answer 500")
	errGone   = errors.New("the process is dead")
)

func failed(op, key string, out backend.Outcome, err error) error {
	return &backend.Error{Op: op, Key: key, Outcome: out, Err: err}
}

func (c *client) enter(ctx context.Context, op, key string) error {
	switch {
	case c.dead.Load():
		return failed(op, key, backend.NotApplied, errGone)
	case ctx.Err() != nil:
		return failed(op, key, backend.NotApplied, ctx.Err())
	}
	return nil
}

func (c *client) name(ctx context.Context) string {
	if who := whose(ctx); who != 0 {
		return fmt.Sprintf("h%d/%d", c.id, who)
	}
	return fmt.Sprintf("h%d/bg", c.id)
}

// latency returns the one-way latency of a message.
func (c *chance) latency() time.Duration { return time.Duration(c.in(1, 40)) * time.Millisecond }

// write sends a write and waits for its answer. send applies it to the store, and may be called again later.
func (c *client) write(ctx context.Context, op, key string, conditional bool, send func() (backend.Info, int)) (backend.Info, error) {
	if err := c.enter(ctx, op, key); err != nil {
		return backend.Info{}, err
	}
	c.writes.Add(1)
	w, d, name := c.w, c.draw(ctx, op, key), c.name(ctx)
	deliver := func(note string) (backend.Info, int) {
		info, code := send()
		w.event(name, op, short(key), status(code)+" "+string(info.Version)+note)
		return info, code
	}
	if c.clean {
		info, code := deliver("")
		return answered(op, key, info, code)
	}
	f := w.strike(c, d, writeFaults)
	up, down, slot := d.latency(), d.latency(), d.next()
	late := func() { w.later(d.delay(), d.next(), key, func() { deliver(" (late)") }) }
	lost := func(wait time.Duration, out backend.Outcome, err error) (backend.Info, error) {
		err = errors.Join(w.rest(ctx, wait, d.next()), fmt.Errorf("%s: %w", f, err))
		w.event(name, op, short(key), f.String())
		return backend.Info{}, failed(op, key, out, err)
	}
	switch {
	case f == dropRequest:
		return lost(patience, backend.Unknown, errLost)
	case f == lateRequest:
		late()
		return lost(patience, backend.Unknown, errLost)
	case f == fail500:
		return lost(up+down, backend.Unknown, errServer)
	case f&(busy409|busy429|busy503) != 0:
		return lost(up+down, backend.NotApplied, backend.ErrBusy)
	case f == wrong412 && conditional:
		return lost(up+down, backend.NotApplied, backend.ErrPrecondition)
	}
	if err := w.rest(ctx, up, slot); err != nil {
		if d.one(2) {
			late()
		}
		return backend.Info{}, failed(op, key, backend.Unknown, err)
	}
	w.overtaken(key)
	info, code := deliver("")
	switch f {
	case duplicate:
		late()
	case dropAnswer:
		return lost(patience, backend.Unknown, errLost)
	case done500:
		return lost(down, backend.Unknown, errServer)
	case hiddenRetry:
		if err := w.rest(ctx, time.Duration(d.n(2000))*time.Millisecond, d.next()); err == nil {
			info, code = deliver(" (sent again)")
		}
	default:
	}
	if err := w.rest(ctx, down, d.next()); err != nil {
		return backend.Info{}, failed(op, key, backend.Unknown, err)
	}
	return answered(op, key, info, code)
}

// answered converts the store's answer as a driver does.
func answered(op, key string, info backend.Info, code int) (backend.Info, error) {
	if code != 200 {
		return backend.Info{}, failed(op, key, backend.NotApplied, fmt.Errorf("answer %d: %w", code, backend.ErrPrecondition))
	}
	return info, nil
}

// Put is one request.
func (c *client) Put(ctx context.Context, key string, p []byte, cond backend.Cond) (backend.Info, error) {
	body := bytes.Clone(p)
	return c.write(ctx, "put", key, cond != backend.Cond{}, func() (backend.Info, int) { return c.w.bucket.put(key, body, cond) })
}

// Delete is one request.
func (c *client) Delete(ctx context.Context, key string) error {
	_, err := c.write(ctx, "delete", key, false, func() (backend.Info, int) {
		c.w.bucket.remove(key)
		return backend.Info{}, 200
	})
	return err
}

// read requests an object and waits for the answer; nil = there is none.
func (c *client) read(ctx context.Context, op, key string) (*object, error) {
	if err := c.enter(ctx, op, key); err != nil {
		return nil, err
	}
	if c.clean {
		return c.w.bucket.get(key), nil
	}
	w, d := c.w, c.draw(ctx, op, key)
	f := w.strike(c, d, readFaults)
	wait := d.latency()
	if f&(dropRequest|dropAnswer) != 0 {
		wait = patience
	}
	err := w.rest(ctx, wait, d.next())
	if err == nil && f&^(cutBody|oldTag) != 0 {
		w.event(c.name(ctx), op, short(key), f.String())
		err = fmt.Errorf("%s: %w", f, errLost)
	}
	if err != nil {
		return nil, failed(op, key, backend.NotApplied, err)
	}
	o := w.bucket.get(key)
	if o == nil {
		f = 0
	}
	switch {
	case f == cutBody && op == "get" && len(o.body) > 0:
		o = &object{body: o.body[:d.n(len(o.body))], tag: o.tag}
	case f == oldTag && o.was != "" && strings.HasPrefix(key, layout.Checkpoints):
		o = &object{body: o.body, tag: o.was}
	}
	if err := w.rest(ctx, d.latency(), d.next()); err != nil {
		return nil, failed(op, key, backend.NotApplied, err)
	}
	found := "404"
	if o != nil {
		found = o.tag
	}
	w.event(c.name(ctx), op, short(key), found+" "+f.String())
	return o, nil
}

// Get is one request.
func (c *client) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	o, err := c.read(ctx, "get", key)
	if err != nil {
		return nil, backend.Info{}, err
	}
	if o == nil {
		return nil, backend.Info{}, failed("get", key, backend.NotApplied, backend.ErrNotExist)
	}
	off, n, err := r.Resolve(int64(len(o.body)))
	if err != nil {
		return nil, backend.Info{}, failed("get", key, backend.NotApplied, err)
	}
	return bytes.Clone(o.body[off : off+n]), c.w.bucket.info(key, o), nil
}

// Stat is one request.
func (c *client) Stat(ctx context.Context, key string) (backend.Info, error) {
	o, err := c.read(ctx, "stat", key)
	if err != nil {
		return backend.Info{}, err
	}
	if o == nil {
		return backend.Info{}, failed("stat", key, backend.NotApplied, backend.ErrNotExist)
	}
	return c.w.bucket.info(key, o), nil
}

// List requests page by page; a change between two pages is visible in the second.
func (c *client) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		if err := c.list(ctx, o, yield); err != nil {
			yield(backend.Info{}, failed("list", o.Prefix, backend.NotApplied, err))
		}
	}
}

func (c *client) list(ctx context.Context, o backend.ListOptions, yield func(backend.Info, error) bool) error {
	if err := c.enter(ctx, "list", o.Prefix); err != nil {
		return err
	}
	if c.clean {
		for _, info := range rolledUp(c.w.bucket.list(o.Prefix, "", 1<<30), o) {
			if !yield(info, nil) {
				return nil
			}
		}
		return nil
	}
	d := c.draw(ctx, "list", o.Prefix)
	f := c.w.strike(c, d, listFaults)
	stale := c.w.bucket.list(o.Prefix, o.After, 1<<30)
	pages := d.in(1, 3)
	for after := o.After; ; {
		if err := c.w.rest(ctx, d.latency(), d.next()); err != nil {
			return err
		}
		page := c.w.bucket.list(o.Prefix, after, d.in(1, 4))
		if f == staleList || o.Delimiter != "" {
			page = rolledUp(stale, o)
		}
		c.w.event(c.name(ctx), "list", short(o.Prefix), fmt.Sprint(len(page), " ", f))
		if f&(dropRequest|busy503) != 0 || f == cutList && pages == 0 {
			return errLost
		}
		for _, info := range page {
			after = info.Key
			if !yield(info, nil) {
				return nil
			}
		}
		if pages--; len(page) == 0 || f == staleList || o.Delimiter != "" {
			return nil
		}
	}
}

// rolledUp applies a delimiter.
func rolledUp(infos []backend.Info, o backend.ListOptions) []backend.Info {
	if o.Delimiter == "" {
		return infos
	}
	var out []backend.Info
	for _, info := range infos {
		if i := strings.Index(info.Key[len(o.Prefix):], o.Delimiter); i >= 0 {
			info = backend.Info{Key: info.Key[:len(o.Prefix)+i+1], Prefix: true}
		}
		if len(out) == 0 || out[len(out)-1].Key != info.Key {
			out = append(out, info)
		}
	}
	return out
}

// Close is called by the owner of a backend.
func (c *client) Close() error { return nil }
