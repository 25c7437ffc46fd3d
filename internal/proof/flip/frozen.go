// Package flip damages stored objects in every way that a disk, a network or a careless hand does, a bit at a
// time at the finest, and holds what is read afterwards against what was stored: the damage must be told, or
// make no difference, and never be passed on as content.
//
// Frozen is the store that it reads: objects in memory that nothing can change. So a suite damages one object,
// and every other stays as it was, without a copy; and what writes although it was only to read is caught.
package flip

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coppice-go/coppice/backend"
)

// ErrFrozen is what every write to a frozen store gets.
var ErrFrozen = errors.New("the store is frozen")

// ErrTooMany is what a store answers that was asked more often than any reader needs to: it runs in circles.
var ErrTooMany = errors.New("too many calls")

// Frozen is a backend whose objects never change. Its methods are safe for concurrent use.
type Frozen struct {
	Objects map[string][]byte // what is stored
	Key     string            // the object that is damaged
	Bytes   []byte            // what it holds instead; nil = it is gone
	Limit   int64             // calls that are answered; 0 = all

	Writes atomic.Int64 // calls that would have changed something
	Calls  atomic.Int64

	keys []string // of Objects, in order
}

// Freeze makes a store of objects.
func Freeze(objects map[string][]byte) *Frozen {
	return &Frozen{Objects: objects, keys: slices.Sorted(maps.Keys(objects))}
}

// With is the store with one object damaged. The objects are shared.
func (f *Frozen) With(key string, p []byte) *Frozen {
	return &Frozen{Objects: f.Objects, Key: key, Bytes: p, Limit: f.Limit, keys: f.keys}
}

// Appends is the store as one that appends: its log is the truth.
func (f *Frozen) Appends() backend.Appender { return frozenAppender{f} }

func (f *Frozen) object(key string) ([]byte, bool) {
	if key == f.Key && key != "" {
		return f.Bytes, f.Bytes != nil
	}
	p, ok := f.Objects[key]
	return p, ok
}

func failure(op, key string, err error) error {
	return &backend.Error{Op: op, Key: key, Outcome: backend.NotApplied, Err: err}
}

// Get reads an object or a part of it; what it returns is a copy.
func (f *Frozen) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	info, p, err := f.look(ctx, "get", key)
	if err != nil {
		return nil, backend.Info{}, err
	}
	off, n, err := r.Resolve(int64(len(p)))
	if err != nil {
		return nil, backend.Info{}, failure("get", key, err)
	}
	return slices.Clone(p[off : off+n]), info, nil
}

// Stat says what Get would return.
func (f *Frozen) Stat(ctx context.Context, key string) (backend.Info, error) {
	info, _, err := f.look(ctx, "stat", key)
	return info, err
}

func (f *Frozen) look(ctx context.Context, op, key string) (backend.Info, []byte, error) {
	if err := f.call(ctx); err != nil {
		return backend.Info{}, nil, failure(op, key, err)
	}
	p, ok := f.object(key)
	if !ok {
		return backend.Info{}, nil, failure(op, key, fs.ErrNotExist)
	}
	return f.info(key, p), p, nil
}

func (f *Frozen) call(ctx context.Context) error {
	if n := f.Calls.Add(1); f.Limit > 0 && n > f.Limit {
		return ErrTooMany
	}
	return ctx.Err()
}

// info tells a version only by length and ends: nothing is written here that would have to be told apart.
func (f *Frozen) info(key string, p []byte) backend.Info {
	sum := sha256.Sum256(p[:min(len(p), 64)])
	return backend.Info{
		Key: key, Size: int64(len(p)), Version: backend.Version(hex.EncodeToString(sum[:8])),
		ModTime: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// List yields the objects below a prefix.
func (f *Frozen) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		if err := f.call(ctx); err != nil {
			yield(backend.Info{}, failure("list", o.Prefix, err))
			return
		}
		last, n := "", 0
		for _, key := range f.keys {
			p, ok := f.object(key)
			if !ok || !strings.HasPrefix(key, o.Prefix) {
				continue
			}
			info := f.info(key, p)
			if i := strings.Index(key[len(o.Prefix):], "/"); i >= 0 && o.Delimiter != "" {
				info = backend.Info{Key: key[:len(o.Prefix)+i+1], Prefix: true}
			}
			if info.Key <= o.After || info.Key == last {
				continue
			}
			last = info.Key
			if n++; !yield(info, nil) || n == o.Limit {
				return
			}
		}
	}
}

func (f *Frozen) write(op, key string) error {
	f.Writes.Add(1)
	return failure(op, key, ErrFrozen)
}

// Put is refused, and counted.
func (f *Frozen) Put(_ context.Context, key string, _ []byte, _ backend.Cond) (backend.Info, error) {
	return backend.Info{}, f.write("put", key)
}

// Delete is refused, and counted.
func (f *Frozen) Delete(_ context.Context, key string) error { return f.write("delete", key) }

// Close does nothing: the store can be read for ever.
func (f *Frozen) Close() error { return nil }

type frozenAppender struct{ *Frozen }

func (f frozenAppender) Append(_ context.Context, key string, _ int64, _ []byte) (backend.Info, error) {
	return backend.Info{}, f.write("append", key)
}

func (f frozenAppender) Cut(_ context.Context, key string, _ int64, _ []byte) error {
	return f.write("cut", key)
}

func (f frozenAppender) Resync(_ context.Context, key string, _, _ int64) (backend.Info, error) {
	return backend.Info{}, f.write("resync", key)
}
