package fault

import (
	"bytes"
	"context"
	"iter"

	"github.com/coppice-go/coppice/backend"
)

func failed(op, key string, out backend.Outcome, err error) error {
	return &backend.Error{Op: op, Key: key, Outcome: out, Err: err}
}

// read runs one read; f.fate has chosen r.
func (r *Rule) read(op, key string, call func() error) error {
	if r == nil || r.Kind == Damage {
		return call()
	}
	if r.Kind == After {
		_ = call() // its answer is lost, whatever it is
	}
	return failed(op, key, backend.NotApplied, r.Err)
}

func (f *faulty) Get(ctx context.Context, key string, rg backend.Range) (p []byte, info backend.Info, err error) {
	r := f.fate(ctx, "get", key)
	err = r.read("get", key, func() (err error) {
		p, info, err = f.inner.Get(ctx, key, rg)
		return err
	})
	if err != nil {
		return nil, backend.Info{}, err
	}
	if r != nil && r.Kind == Damage && len(p) > 0 {
		f.mu.Lock()
		p[f.rng.IntN(len(p))] ^= 1 << f.rng.IntN(8)
		f.mu.Unlock()
	}
	return p, info, nil
}

func (f *faulty) Stat(ctx context.Context, key string) (info backend.Info, err error) {
	err = f.fate(ctx, "stat", key).read("stat", key, func() (err error) {
		info, err = f.inner.Stat(ctx, key)
		return err
	})
	if err != nil {
		return backend.Info{}, err
	}
	return info, nil
}

func (f *faulty) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		r := f.fate(ctx, "list", o.Prefix)
		if r == nil || r.Kind == After {
			for info, err := range f.inner.List(ctx, o) {
				if !yield(info, err) || err != nil {
					return
				}
			}
		}
		if r != nil {
			yield(backend.Info{}, failed("list", o.Prefix, backend.NotApplied, r.Err))
		}
	}
}

// writing is one write with its bytes, if it has any.
type writing func(ctx context.Context, p []byte) (backend.Info, error)

// write runs one write according to its fate.
func (f *faulty) write(ctx context.Context, op, key string, p []byte, call writing) (backend.Info, error) {
	r := f.fate(ctx, op, key)
	if r == nil {
		return call(ctx, p)
	}
	out := backend.Unknown
	switch r.Kind {
	case Before:
		if r.Outcome == backend.NotApplied {
			out = backend.NotApplied
		}
	case After:
		if _, err := call(ctx, p); err == nil && r.Outcome == backend.Applied {
			out = backend.Applied
		}
	case Late:
		f.hold(call, bytes.Clone(p)) // after this call p belongs to the caller again
	case Damage: // of reads only
	}
	return backend.Info{}, failed(op, key, out, r.Err)
}

func (f *faulty) hold(call writing, p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.held) < heldMax {
		f.held = append(f.held, func(ctx context.Context) error {
			_, err := call(ctx, p)
			return err
		})
	}
}

func (f *faulty) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	return f.write(ctx, "put", key, p, func(ctx context.Context, p []byte) (backend.Info, error) {
		return f.inner.Put(ctx, key, p, c)
	})
}

func (f *faulty) Delete(ctx context.Context, key string) error {
	_, err := f.write(ctx, "delete", key, nil, func(ctx context.Context, _ []byte) (backend.Info, error) {
		return backend.Info{}, f.inner.Delete(ctx, key)
	})
	return err
}

func (f *faulty) Close() error {
	f.mu.Lock()
	f.held = nil
	f.mu.Unlock()
	return f.inner.Close()
}

type appender struct {
	*faulty
	inner backend.Appender
}

func (a *appender) Append(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
	return a.write(ctx, "append", key, p, func(ctx context.Context, p []byte) (backend.Info, error) {
		return a.inner.Append(ctx, key, off, p)
	})
}

func (a *appender) Cut(ctx context.Context, key string, off int64, torn []byte) error {
	_, err := a.write(ctx, "cut", key, torn, func(ctx context.Context, torn []byte) (backend.Info, error) {
		return backend.Info{}, a.inner.Cut(ctx, key, off, torn)
	})
	return err
}

func (a *appender) Resync(ctx context.Context, key string, off, size int64) (backend.Info, error) {
	return a.write(ctx, "resync", key, nil, func(ctx context.Context, _ []byte) (backend.Info, error) {
		return a.inner.Resync(ctx, key, off, size)
	})
}
