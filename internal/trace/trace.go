// Package trace counts the requests to a backend.
//
// New wraps any backend and changes nothing that its callers see; the wrapper is a backend.Appender
// iff the wrapped one is. Counting costs an atomic add for each request.
//
//	t := trace.New(memory.New())
//	... use t ...
//	if got := t.IO(); got.Get != 1 { ... }
package trace

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
)

// Backend is a backend that counts requests. It is a backend.Appender too iff the one it wraps is.
type Backend interface {
	backend.Backend
	// IO returns the requests since New or the last Reset.
	IO() backend.IO
	// Reset sets the counts to zero.
	Reset()
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
	t.get.Add(1)
	p, info, err := t.inner.Get(counted(ctx), key, r)
	t.read.Add(int64(len(p)))
	return p, info, err
}

func (t *tracer) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	t.put.Add(1)
	t.written.Add(int64(len(p)))
	return t.inner.Put(counted(ctx), key, p, c)
}

func (t *tracer) Stat(ctx context.Context, key string) (backend.Info, error) {
	t.stat.Add(1)
	return t.inner.Stat(counted(ctx), key)
}

func (t *tracer) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		t.list.Add(1)
		t.inner.List(counted(ctx), o)(yield)
	}
}

func (t *tracer) Delete(ctx context.Context, key string) error {
	t.del.Add(1)
	return t.inner.Delete(counted(ctx), key)
}

func (t *tracer) Close() error { return t.inner.Close() }

func (a *appender) Append(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
	a.appends.Add(1)
	a.written.Add(int64(len(p)))
	return a.inner.Append(counted(ctx), key, off, p)
}

func (a *appender) Cut(ctx context.Context, key string, off int64, torn []byte) error {
	a.appends.Add(1)
	return a.inner.Cut(counted(ctx), key, off, torn)
}

func (a *appender) Resync(ctx context.Context, key string, off, size int64) (backend.Info, error) {
	a.appends.Add(1)
	return a.inner.Resync(counted(ctx), key, off, size)
}
