package backend

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
)

// WithPrefix returns a view of the part of b below a folder: the key "x" of the view is the key prefix + "/" + x of b,
// and the view has no access to anything else. A slash at the end of prefix changes nothing; an empty prefix is all of
// b. Views nest. The view is an Appender iff b is one.
//
// Errors and infos contain the view's keys. The prefix counts towards the 900 bytes of a key; if it is not a valid key
// itself every call of the view fails with ErrKey.
//
// Close closes the view and leaves b open: it belongs to its maker, and may have many views.
func WithPrefix(b Backend, prefix string) Backend {
	v := &view{inner: b}
	if folder := strings.TrimSuffix(prefix, "/"); folder != "" {
		v.prefix, v.fault = folder+"/", ValidKey(folder)
	} else if prefix != "" {
		v.fault = ValidKey(prefix)
	}
	if a, ok := b.(Appender); ok {
		return &appenderView{view: v, appender: a}
	}
	return v
}

type view struct {
	inner  Backend
	prefix string // "" or ends in "/"
	fault  error  // the error of an invalid prefix
	closed atomic.Bool
}

type appenderView struct {
	*view
	appender Appender
}

// enter checks what the inner backend cannot: the view's own state, and the key as passed by the caller.
func (v *view) enter(op, key string) error {
	if v.closed.Load() {
		return &Error{Op: op, Key: key, Outcome: NotApplied, Err: ErrClosed}
	}
	if v.fault != nil {
		return &Error{Op: op, Key: key, Outcome: NotApplied, Err: v.fault}
	}
	return nil
}

// outside replaces the key in an error by the view's key.
func outside(err error, key string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	return &Error{Op: e.Op, Key: key, Outcome: e.Outcome, Err: e.Err}
}

func (v *view) info(i Info) Info {
	i.Key = strings.TrimPrefix(i.Key, v.prefix)
	return i
}

func (v *view) Get(ctx context.Context, key string, r Range) ([]byte, Info, error) {
	if err := v.enter("get", key); err != nil {
		return nil, Info{}, err
	}
	p, info, err := v.inner.Get(ctx, v.prefix+key, r)
	if err != nil {
		return nil, Info{}, outside(err, key)
	}
	return p, v.info(info), nil
}

// change runs one call that returns an Info.
func (v *view) change(op, key string, call func(key string) (Info, error)) (Info, error) {
	if err := v.enter(op, key); err != nil {
		return Info{}, err
	}
	info, err := call(v.prefix + key)
	if err != nil {
		return Info{}, outside(err, key)
	}
	return v.info(info), nil
}

func (v *view) Put(ctx context.Context, key string, p []byte, c Cond) (Info, error) {
	return v.change("put", key, func(key string) (Info, error) { return v.inner.Put(ctx, key, p, c) })
}

func (v *view) Stat(ctx context.Context, key string) (Info, error) {
	return v.change("stat", key, func(key string) (Info, error) { return v.inner.Stat(ctx, key) })
}

func (v *view) Delete(ctx context.Context, key string) error {
	_, err := v.change("delete", key, func(key string) (Info, error) { return Info{}, v.inner.Delete(ctx, key) })
	return err
}

func (v *view) List(ctx context.Context, o ListOptions) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := v.enter("list", o.Prefix); err != nil {
			yield(Info{}, err)
			return
		}
		inner := o
		inner.Prefix = v.prefix + o.Prefix
		if o.After != "" {
			inner.After = v.prefix + o.After
		}
		for info, err := range v.inner.List(ctx, inner) {
			if err != nil {
				yield(Info{}, outside(err, o.Prefix))
				return
			}
			if !yield(v.info(info), nil) {
				return
			}
		}
	}
}

// Close closes the view only.
func (v *view) Close() error {
	v.closed.Store(true)
	return nil
}

func (v *appenderView) Append(ctx context.Context, key string, off int64, p []byte) (Info, error) {
	return v.change("append", key, func(key string) (Info, error) { return v.appender.Append(ctx, key, off, p) })
}

func (v *appenderView) Cut(ctx context.Context, key string, off int64, torn []byte) error {
	_, err := v.change("cut", key, func(key string) (Info, error) {
		return Info{}, v.appender.Cut(ctx, key, off, torn)
	})
	return err
}

func (v *appenderView) Resync(ctx context.Context, key string, off, size int64) (Info, error) {
	return v.change("resync", key, func(key string) (Info, error) { return v.appender.Resync(ctx, key, off, size) })
}
