package repair

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-go/coppice/backend"
)

// scratchMost bounds what a scratch holds, in bytes: what a repair writes, and copies of the objects that it changes.
const scratchMost = 1 << 30

// scratch is a store whose changes stay in memory.
type scratch struct {
	base backend.Backend

	mu    sync.Mutex
	own   map[string]*object // objects that were changed; nil = removed
	bytes int                // of own, and of what it replaced
	n     int                // changes
}

type object struct {
	data    []byte
	version backend.Version
}

// Scratch returns a store on another one whose changes stay in memory.
func Scratch(base backend.Backend) backend.Backend { return newScratch(base) }

// newScratch returns a scratch on a store. It appends if the store does.
func newScratch(base backend.Backend) backend.Backend {
	s := &scratch{base: base, own: map[string]*object{}}
	if _, ok := base.(backend.Appender); ok {
		return appendScratch{s}
	}
	return s
}

// appendScratch is a scratch that appends.
type appendScratch struct{ *scratch }

func refused(op, key string, err error) error {
	return &backend.Error{Op: op, Key: key, Outcome: backend.NotApplied, Err: err}
}

func (o *object) info(key string) backend.Info {
	return backend.Info{Key: key, Size: int64(len(o.data)), Version: o.version}
}

// changed returns the object of a key that was changed; nil = it was removed.
func (s *scratch) changed(key string) (*object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.own[key]
	return o, ok
}

// Get reads an object or a part of it.
func (s *scratch) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	o, ok := s.changed(key)
	if !ok {
		return s.base.Get(ctx, key, r)
	}
	if o == nil {
		return nil, backend.Info{}, refused("get", key, backend.ErrNotExist)
	}
	off, n, err := r.Resolve(int64(len(o.data)))
	if err != nil {
		return nil, backend.Info{}, refused("get", key, err)
	}
	return bytes.Clone(o.data[off : off+n]), o.info(key), nil
}

// Stat returns the info of an object.
func (s *scratch) Stat(ctx context.Context, key string) (backend.Info, error) {
	o, ok := s.changed(key)
	if !ok {
		return s.base.Stat(ctx, key)
	}
	if o == nil {
		return backend.Info{}, refused("stat", key, backend.ErrNotExist)
	}
	return o.info(key), nil
}

// List yields the objects of the store and those in memory. What it lists of the store is in memory: the objects of
// one session.
func (s *scratch) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		whole := o
		whole.Limit = 0
		var all []backend.Info
		for info, err := range s.base.List(ctx, whole) {
			if err != nil {
				yield(backend.Info{}, err)
				return
			}
			if _, ok := s.changed(info.Key); !ok {
				all = append(all, info)
			}
		}
		s.mu.Lock()
		for key, own := range s.own {
			rest, below := strings.CutPrefix(key, o.Prefix)
			if own == nil || !below || key <= o.After {
				continue
			}
			info := own.info(key)
			if i := strings.Index(rest, "/"); o.Delimiter != "" && i >= 0 {
				info = backend.Info{Key: o.Prefix + rest[:i+1], Prefix: true}
			}
			all = append(all, info)
		}
		s.mu.Unlock()
		slices.SortFunc(all, func(x, y backend.Info) int { return strings.Compare(x.Key, y.Key) })
		all = slices.CompactFunc(all, func(x, y backend.Info) bool { return x.Key == y.Key })
		for i, info := range all {
			if o.Limit > 0 && i == o.Limit || !yield(info, nil) {
				return
			}
		}
	}
}

// change replaces an object by what plan makes of it; nil = there is none.
func (s *scratch) change(
	ctx context.Context, op, key string, plan func(now *object) (*object, error),
) (backend.Info, error) {
	now, ok := s.changed(key)
	if !ok {
		p, info, err := s.base.Get(ctx, key, backend.Range{})
		switch {
		case err == nil:
			now = &object{p, info.Version}
		case !errors.Is(err, fs.ErrNotExist):
			return backend.Info{}, err
		}
	}
	next, err := plan(now)
	if err != nil {
		return backend.Info{}, refused(op, key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if next != nil {
		s.bytes += len(next.data)
	}
	if s.bytes > scratchMost {
		err := fmt.Errorf("%w: over %d bytes in memory", backend.ErrTooLarge, scratchMost)
		return backend.Info{}, refused(op, key, err)
	}
	s.own[key] = next
	if next == nil {
		return backend.Info{}, nil
	}
	s.n++
	next.version = backend.Version(fmt.Sprintf("scratch-%d", s.n))
	return next.info(key), nil
}

// Put replaces or creates an object if c holds.
func (s *scratch) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	return s.change(ctx, "put", key, func(now *object) (*object, error) {
		v, match := c.Match()
		if c.Absent() && now != nil || match && (now == nil || now.version != v) {
			return nil, backend.ErrPrecondition
		}
		return &object{data: bytes.Clone(p)}, nil
	})
}

// Delete removes an object.
func (s *scratch) Delete(ctx context.Context, key string) error {
	_, err := s.change(ctx, "delete", key, func(*object) (*object, error) { return nil, nil })
	return err
}

// Close leaves the store open.
func (*scratch) Close() error { return nil }

// sized changes an object of a size.
func (s *scratch) sized(
	ctx context.Context, op, key string, size int64, next func(data []byte) ([]byte, error),
) (backend.Info, error) {
	return s.change(ctx, op, key, func(now *object) (*object, error) {
		if now == nil || int64(len(now.data)) != size {
			return nil, backend.ErrPrecondition
		}
		data, err := next(now.data)
		return &object{data: data}, err
	})
}

// Append writes p at the end of an object of size off.
func (s appendScratch) Append(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
	return s.sized(ctx, "append", key, off, func(data []byte) ([]byte, error) { return slices.Concat(data, p), nil })
}

// Cut removes torn from the end of an object of off bytes before it.
func (s appendScratch) Cut(ctx context.Context, key string, off int64, torn []byte) error {
	_, err := s.sized(ctx, "cut", key, off+int64(len(torn)), func(data []byte) ([]byte, error) {
		if off < 0 || !bytes.Equal(data[off:], torn) {
			return nil, backend.ErrPrecondition
		}
		return data[:off:off], nil
	})
	return err
}

// Resync has nothing to make durable.
func (s appendScratch) Resync(ctx context.Context, key string, _, size int64) (backend.Info, error) {
	return s.sized(ctx, "resync", key, size, func(data []byte) ([]byte, error) { return data, nil })
}
