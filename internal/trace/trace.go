// Package trace counts what is asked of a backend and can keep a log of it: what tests and the
// command line count requests with.
//
// New wraps any backend and changes nothing that its callers see; the wrapper is a backend.Appender
// iff the wrapped one is. Counting is always on and costs an atomic add; the log is off until Record.
//
//	t := trace.New(memory.New())
//	... use t ...
//	if got := t.IO(); got.Get != 1 { ... }
package trace

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
)

// Backend is a backend that counts. It is a backend.Appender too iff the one it wraps is.
type Backend interface {
	backend.Backend
	// IO says what was asked since New or the last Reset.
	IO() backend.IO
	// Reset sets the counts to zero and empties the log.
	Reset()
	// Record keeps the last n operations in the log from now on; 0 stops it and keeps what is there.
	Record(n int)
	// Log returns the operations recorded, in the order in which they ended, and how many older ones
	// were dropped since.
	Log() (ops []Op, dropped int)
}

// New wraps b. Close closes b.
func New(b backend.Backend) Backend {
	t := &tracer{inner: b}
	if a, ok := b.(backend.Appender); ok {
		return &appender{tracer: t, inner: a}
	}
	return t
}

type tracer struct {
	inner backend.Backend

	get, put, appends, stat, list, del atomic.Int64
	read, written                      atomic.Int64

	mu      sync.Mutex
	limit   int
	log     []Op // a ring of limit operations once it is full
	oldest  int
	dropped int
}

type appender struct {
	*tracer
	inner backend.Appender
}

func (t *tracer) IO() backend.IO {
	return backend.IO{
		Get: int(t.get.Load()), Put: int(t.put.Load()), Append: int(t.appends.Load()),
		Stat: int(t.stat.Load()), List: int(t.list.Load()), Delete: int(t.del.Load()),
		BytesRead: t.read.Load(), BytesWritten: t.written.Load(),
	}
}

func (t *tracer) Reset() {
	for _, n := range []*atomic.Int64{&t.get, &t.put, &t.appends, &t.stat, &t.list, &t.del, &t.read, &t.written} {
		n.Store(0)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log, t.oldest, t.dropped = nil, 0, 0
}

func (t *tracer) Record(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ops := t.ordered()
	if n > 0 && len(ops) > n {
		t.dropped += len(ops) - n
		ops = ops[len(ops)-n:]
	}
	t.log, t.oldest, t.limit = ops, 0, n
}

func (t *tracer) Log() (ops []Op, dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ordered(), t.dropped
}

// ordered copies the log, oldest first; the lock is held.
func (t *tracer) ordered() []Op {
	return append(append(make([]Op, 0, len(t.log)), t.log[t.oldest:]...), t.log[:t.oldest]...)
}

func (t *tracer) record(op Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.limit <= 0:
	case len(t.log) < t.limit:
		t.log = append(t.log, op)
	default:
		t.log[t.oldest] = op
		t.oldest = (t.oldest + 1) % t.limit
		t.dropped++
	}
}

// counter is the key of Count.
type counter struct{}

// Count returns a context, and how many requests were made with it so far through traced backends. A listing of
// several pages counts as one.
func Count(ctx context.Context) (context.Context, func() int) {
	n := new(atomic.Int64)
	return context.WithValue(ctx, counter{}, n), func() int { return int(n.Load()) }
}

// counted counts a request, once however many traced backends it passes.
func counted(ctx context.Context) context.Context {
	n, _ := ctx.Value(counter{}).(*atomic.Int64)
	if n == nil {
		return ctx
	}
	n.Add(1)
	return context.WithValue(ctx, counter{}, nil)
}

func (t *tracer) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	ctx = counted(ctx)
	t.get.Add(1)
	p, info, err := t.inner.Get(ctx, key, r)
	t.read.Add(int64(len(p)))
	op := Op{Op: "get", Key: key, Bytes: int64(len(p)), Err: err}
	if !r.Whole() {
		op.Detail = r.String()
	}
	t.record(op)
	return p, info, err
}

func (t *tracer) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	ctx = counted(ctx)
	t.put.Add(1)
	t.written.Add(int64(len(p)))
	info, err := t.inner.Put(ctx, key, p, c)
	t.record(Op{Op: "put", Key: key, Detail: condition(c), Bytes: int64(len(p)), Err: err})
	return info, err
}

func (t *tracer) Stat(ctx context.Context, key string) (backend.Info, error) {
	ctx = counted(ctx)
	t.stat.Add(1)
	info, err := t.inner.Stat(ctx, key)
	t.record(Op{Op: "stat", Key: key, Bytes: info.Size, Err: err})
	return info, err
}

func (t *tracer) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		ctx := counted(ctx)
		t.list.Add(1)
		op := Op{Op: "list", Key: o.Prefix, Detail: listing(o)}
		defer func() { t.record(op) }()
		for info, err := range t.inner.List(ctx, o) {
			if err != nil {
				op.Err = err
			} else {
				op.Bytes++
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

func (t *tracer) Delete(ctx context.Context, key string) error {
	ctx = counted(ctx)
	t.del.Add(1)
	err := t.inner.Delete(ctx, key)
	t.record(Op{Op: "delete", Key: key, Err: err})
	return err
}

func (t *tracer) Close() error { return t.inner.Close() }

func (a *appender) Append(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
	ctx = counted(ctx)
	a.appends.Add(1)
	a.written.Add(int64(len(p)))
	info, err := a.inner.Append(ctx, key, off, p)
	a.record(Op{Op: "append", Key: key, Detail: at(off), Bytes: int64(len(p)), Err: err})
	return info, err
}

func (a *appender) Cut(ctx context.Context, key string, off int64, torn []byte) error {
	ctx = counted(ctx)
	a.appends.Add(1)
	err := a.inner.Cut(ctx, key, off, torn)
	a.record(Op{Op: "cut", Key: key, Detail: at(off), Bytes: int64(len(torn)), Err: err})
	return err
}

func (a *appender) Resync(ctx context.Context, key string, off, size int64) (backend.Info, error) {
	ctx = counted(ctx)
	a.appends.Add(1)
	info, err := a.inner.Resync(ctx, key, off, size)
	a.record(Op{Op: "resync", Key: key, Detail: at(off), Bytes: size - off, Err: err})
	return info, err
}
