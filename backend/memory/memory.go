// Package memory stores objects in memory, by the contract of package backend, and can simulate power loss.
//
// New returns a backend that can only replace objects, like S3; NewAppender returns one that can extend them too, like
// a disk. Both have versions like those of S3: equal bodies have equal ones.
//
// Crash returns the state that a power loss at this moment would leave. A write that had returned nil always stays
// (contract, line 1). A write that was under way, or that had ended with the outcome Unknown after it became visible,
// is in doubt: an object may be the new or an older one, an appended piece may be whole, cut short anywhere, or of the
// right length with sectors of zeros. It stays in doubt until a later write to the object returns nil; appended bytes
// become durable only by Resync or a new Put, because the disk may have dropped their pages after the failed sync.
//
// A Hook sees every write at its stages, may call Crash there, and may end the write by an error.
//
// The package registers the scheme "mem" with backend.Open: each Open of "mem:" is a fresh store. All of "mem:NAME" are
// handles on one store, which exists as long as the process.
package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
)

func init() {
	backend.Register("mem", func(_ context.Context, u *url.URL) (backend.Backend, error) {
		switch {
		case u.Host != "" || u.Path != "" || u.RawQuery != "" || !validName(u.Opaque):
			return nil, errors.New(`the address of a memory store is "mem:", or "mem:NAME": [A-Za-z0-9._-]{1,128}`)
		case u.Opaque == "":
			return New(), nil
		}
		return named(u.Opaque)
	})
}

// maxNamed bounds the number of named stores.
const maxNamed = 1024

const (
	nameMost  = 128 // bytes of a name
	nameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
)

// validName reports whether a name of a store is valid; "" is. A regular expression would slow the start of every
// program.
func validName(name string) bool { return len(name) <= nameMost && strings.Trim(name, nameChars) == "" }

var shared = struct {
	mu     sync.Mutex
	stores map[string]*Backend
}{stores: map[string]*Backend{}}

// named returns a handle on the store with a name.
func named(name string) (*Backend, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	b := shared.stores[name]
	if b == nil {
		if len(shared.stores) == maxNamed {
			return nil, fmt.Errorf("mem:%s: this process has %d named memory stores, the limit", name, maxNamed)
		}
		b = New()
		shared.stores[name] = b
	}
	return b.Share(), nil
}

// Backend is a handle on a store in memory. It is no backend.Appender.
type Backend struct {
	store  *store
	closed atomic.Bool
}

// Appender is a Backend that can extend objects: a backend.Appender.
type Appender struct{ *Backend }

// New returns a fresh and empty store that can only replace objects.
func New() *Backend { return &Backend{store: newStore(false)} }

// NewAppender returns a fresh and empty store that can extend objects. Its writes are serialised, as by the lock of a
// disk.
func NewAppender() *Appender { return &Appender{&Backend{store: newStore(true)}} }

// Share returns another handle on the same objects, as a second process would have. It is open, even if this one is
// closed.
func (b *Backend) Share() *Backend { return &Backend{store: b.store} }

// Share returns another handle on the same objects.
func (a *Appender) Share() *Appender { return &Appender{a.Backend.Share()} }

// Crash returns a new store with the state that a power loss at this moment would leave; equal seeds select equal
// states. The old store is not affected: a caller that simulates a crash stops using it. The new one has no hook.
func (b *Backend) Crash(seed uint64) *Backend { return &Backend{store: b.store.crash(seed)} }

// Crash returns a new store with the state that a power loss at this moment would leave.
func (a *Appender) Crash(seed uint64) *Appender { return &Appender{a.Backend.Crash(seed)} }

// SetHook sets the function that is called for all writes of all handles on this store; nil = none.
func (b *Backend) SetHook(h Hook) {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	b.store.hook = h
}

// enter is the first step of every call: a closed handle, a bad key or a done context has no effect.
func (b *Backend) enter(ctx context.Context, op, key string) error {
	if op != "list" {
		if err := backend.ValidKey(key); err != nil {
			return err
		}
	}
	if b.closed.Load() {
		return refused(op, key, backend.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return refused(op, key, err)
	}
	return nil
}

func refused(op, key string, err error) error {
	return &backend.Error{Op: op, Key: key, Outcome: backend.NotApplied, Err: err}
}

// Get reads an object or a part of it.
func (b *Backend) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	if err := b.enter(ctx, "get", key); err != nil {
		return nil, backend.Info{}, err
	}
	st := b.store.look(key)
	if st == nil {
		return nil, backend.Info{}, refused("get", key, backend.ErrNotExist)
	}
	off, n, err := r.Resolve(int64(len(st.data)))
	if err != nil {
		return nil, backend.Info{}, refused("get", key, fmt.Errorf("%s of %d: %w", r, len(st.data), err))
	}
	return append(make([]byte, 0, n), st.data[off:off+n]...), st.info(key), nil
}

// Stat returns the Info that Get would return.
func (b *Backend) Stat(ctx context.Context, key string) (backend.Info, error) {
	if err := b.enter(ctx, "stat", key); err != nil {
		return backend.Info{}, err
	}
	st := b.store.look(key)
	if st == nil {
		return backend.Info{}, refused("stat", key, backend.ErrNotExist)
	}
	return st.info(key), nil
}

// List yields the objects as they were when the loop began.
func (b *Backend) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		err := b.enter(ctx, "list", o.Prefix)
		if err == nil && o.Delimiter != "" && o.Delimiter != "/" {
			err = refused("list", o.Prefix, fmt.Errorf("delimiter %q is neither empty nor \"/\"", o.Delimiter))
		}
		if err != nil {
			yield(backend.Info{}, err)
			return
		}
		for _, info := range rollUp(b.store.all(o.Prefix), o) {
			if err := ctx.Err(); err != nil {
				yield(backend.Info{}, refused("list", o.Prefix, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

// rollUp sorts infos below o.Prefix and applies the other fields of o.
func rollUp(infos []backend.Info, o backend.ListOptions) []backend.Info {
	slices.SortFunc(infos, func(x, y backend.Info) int { return strings.Compare(x.Key, y.Key) })
	kept := infos[:0]
	last := o.After
	for _, info := range infos {
		if o.Limit > 0 && len(kept) == o.Limit {
			break
		}
		if o.Delimiter != "" {
			if i := strings.Index(info.Key[len(o.Prefix):], o.Delimiter); i >= 0 {
				info = backend.Info{Key: info.Key[:len(o.Prefix)+i+len(o.Delimiter)], Prefix: true}
			}
		}
		if info.Key > last {
			kept = append(kept, info)
			last = info.Key
		}
	}
	return kept
}

// Close closes this handle; the objects stay for the handles that Share returned.
func (b *Backend) Close() error {
	b.closed.Store(true)
	return nil
}
