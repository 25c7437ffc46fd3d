// Package flip damages stored objects in every way that a disk, a network or an operator can, down to single bits, and
// compares the results of reading with the stored content. Damage must be reported or have no effect, and must never be
// returned as content.
//
// Frozen is the store under test: immutable objects in memory. A suite damages one object while all others stay as they
// are, without a copy, and a write by a reader is detected.
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

// ErrFrozen is returned for every write to a frozen store.
var ErrFrozen = errors.New("the store is frozen")

// ErrTooMany is returned after more calls than any reader needs: the reader is in a loop.
var ErrTooMany = errors.New("too many calls")

// Frozen is a backend whose objects never change. Its methods are safe for concurrent use.
type Frozen struct {
	Objects map[string][]byte // the stored objects
	Key     string            // the damaged object
	Bytes   []byte            // its content; nil = it is missing
	Limit   int64             // maximum number of calls; 0 = no limit

	Writes atomic.Int64 // refused writes
	Calls  atomic.Int64

	keys []string // of Objects, in order
}

// Freeze returns a store of objects.
func Freeze(objects map[string][]byte) *Frozen {
	return &Frozen{Objects: objects, keys: slices.Sorted(maps.Keys(objects))}
}

// With returns the store with one object damaged. The objects are shared.
func (f *Frozen) With(key string, p []byte) *Frozen {
	return &Frozen{Objects: f.Objects, Key: key, Bytes: p, Limit: f.Limit, keys: f.keys}
}

// Appends returns the store as one that appends: its log is authoritative.
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

// Get reads an object or a part of it, and returns a copy.
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

// Stat returns the Info that Get would return.
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

// info derives the version from length and first and last bytes: without writes that is unique enough.
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

// Put is refused and counted.
func (f *Frozen) Put(_ context.Context, key string, _ []byte, _ backend.Cond) (backend.Info, error) {
	return backend.Info{}, f.write("put", key)
}

// Delete is refused and counted.
func (f *Frozen) Delete(_ context.Context, key string) error { return f.write("delete", key) }

// Close does nothing: the store stays readable.
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
