package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-go/coppice/backend"
)

// Stage is the progress of a write when a Hook is called.
type Stage uint8

// The stages of a write. Conditions, offsets and sizes are checked between the two.
const (
	Begun   Stage = iota // no effect yet
	Visible              // readers see the effect, no sync has confirmed it yet
)

// Step is one stage of one write.
type Step struct {
	Op    string // put, append, cut, resync or delete
	Key   string
	Stage Stage
	Bytes int // length of the body or the appended bytes
}

// Hook is called at the stages of every write, by the writing goroutine and under no lock of reads: it may read, write
// to other stores, wait, cancel the write's context and call Crash. On an Appender it must not write to the same store,
// whose writes are serialised.
//
// An error ends the write with the outcome Unknown and that error: at Begun before it has any effect, at Visible with
// its effect in doubt. A context that is done by then has the same effect. A Short at Begun ends an append with that
// number of its bytes visible.
type Hook func(Step) error

// Short is the error of a Hook that stops an append after that number of bytes.
type Short int

func (n Short) Error() string { return fmt.Sprintf("short write of %d bytes", int(n)) }

// write is one write in progress: plan checks it against the visible state (never nil) and returns the next one; a plan
// that returns its argument changes nothing visible.
type write struct {
	b       *Backend
	op, key string
	bytes   int
	plan    func(now *state) (*state, error)
	durable func(st *state) // additional effect of a sync, under the lock
}

func (w *write) run(ctx context.Context) (backend.Info, error) {
	s := w.b.store
	if s.turn != nil {
		select {
		case s.turn <- struct{}{}:
			defer func() { <-s.turn }()
		case <-ctx.Done():
			return backend.Info{}, refused(w.op, w.key, ctx.Err())
		}
	}
	if err := w.stage(ctx, Begun); err != nil {
		return backend.Info{}, w.stopped(err)
	}
	st, err := w.apply(w.plan)
	if err != nil {
		return backend.Info{}, refused(w.op, w.key, err)
	}
	if err := w.stage(ctx, Visible); err != nil {
		return backend.Info{}, w.unknown(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.durable != nil {
		w.durable(st)
	}
	s.harden(w.key, st)
	return st.info(w.key), nil
}

// stage calls the hook and then checks the context.
func (w *write) stage(ctx context.Context, at Stage) error {
	w.b.store.mu.Lock()
	hook := w.b.store.hook
	w.b.store.mu.Unlock()
	if hook != nil {
		if err := hook(Step{Op: w.op, Key: w.key, Stage: at, Bytes: w.bytes}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// apply makes the effect visible.
func (w *write) apply(plan func(now *state) (*state, error)) (*state, error) {
	s := w.b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	now := &state{gone: true}
	o := s.objects[w.key]
	if o != nil {
		now = o.now
	}
	st, err := plan(now)
	switch {
	case err != nil || st == now:
	case w.op == "append":
		o.now = st // the same object, longer: a crash may tear it, but restores no older one
	default:
		s.install(w.key, st)
	}
	return st, err
}

func (w *write) unknown(err error) error {
	return &backend.Error{Op: w.op, Key: w.key, Outcome: backend.Unknown, Err: err}
}

// stopped ends a write at Begun; a part of an append may have been written.
func (w *write) stopped(err error) error {
	var n Short
	if w.op == "append" && errors.As(err, &n) {
		_, refusal := w.apply(func(now *state) (*state, error) {
			full, err := w.plan(now)
			if err != nil {
				return nil, err
			}
			size := int64(len(now.data)) + min(max(int64(n), 0), int64(w.bytes))
			full.data = full.data[:size:size]
			full.version = changeVersion(now.version, size, full.data[len(now.data):])
			full.doubt = without(full.doubt, size, math.MaxInt64)
			return full, nil
		})
		if refusal != nil {
			return refused(w.op, w.key, refusal)
		}
	}
	return w.unknown(err)
}

// Put replaces or creates an object if c holds.
func (b *Backend) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	if err := b.enter(ctx, "put", key); err != nil {
		return backend.Info{}, err
	}
	if len(p) > backend.MaxObjectSize {
		return backend.Info{}, refused("put", key, tooLarge(int64(len(p))))
	}
	w := write{b: b, op: "put", key: key, bytes: len(p)}
	body, version := slices.Clip(slices.Clone(p)), bodyVersion(p)
	w.plan = func(now *state) (*state, error) {
		match, set := c.Match()
		if c.Absent() && !now.gone || set && (now.gone || match == "" || now.version != match) {
			return nil, fmt.Errorf("%w: %s", backend.ErrPrecondition, c)
		}
		return b.store.next(body, version, nil), nil
	}
	return w.run(ctx)
}

// Delete removes an object; a missing one is no error.
func (b *Backend) Delete(ctx context.Context, key string) error {
	if err := b.enter(ctx, "delete", key); err != nil {
		return err
	}
	w := write{b: b, op: "delete", key: key}
	w.plan = func(*state) (*state, error) { return &state{gone: true}, nil }
	_, err := w.run(ctx)
	return err
}

func tooLarge(n int64) error {
	return fmt.Errorf("%w: %d bytes, the limit is %d", backend.ErrTooLarge, n, backend.MaxObjectSize)
}

// sized refuses a write to an object that is missing or has another size.
func sized(now *state, want int64) error {
	if now.gone {
		return fmt.Errorf("%w: no such object", backend.ErrPrecondition)
	}
	if size := int64(len(now.data)); size != want {
		return fmt.Errorf("%w: size %d, not %d", backend.ErrPrecondition, size, want)
	}
	return nil
}

// Append writes p at the end of an existing object iff its size equals off.
func (a *Appender) Append(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
	if err := a.enter(ctx, "append", key); err != nil {
		return backend.Info{}, err
	}
	w := write{b: a.Backend, op: "append", key: key, bytes: len(p)}
	w.plan = func(now *state) (*state, error) {
		if err := sized(now, off); err != nil {
			return nil, err
		}
		if off+int64(len(p)) > backend.MaxObjectSize {
			return nil, tooLarge(off + int64(len(p)))
		}
		if len(p) == 0 {
			return now, nil
		}
		doubt := append(slices.Clone(now.doubt), span{off, off + int64(len(p))})
		return a.store.next(append(now.data, p...), changeVersion(now.version, off, p), doubt), nil
	}
	w.durable = func(st *state) { st.doubt = without(st.doubt, off, off+int64(len(p))) }
	return w.run(ctx)
}

// Cut removes torn from the end of an object iff the object is off bytes followed by exactly torn.
func (a *Appender) Cut(ctx context.Context, key string, off int64, torn []byte) error {
	if err := a.enter(ctx, "cut", key); err != nil {
		return err
	}
	w := write{b: a.Backend, op: "cut", key: key}
	w.plan = func(now *state) (*state, error) {
		if err := endsWith(now, off, torn); err != nil || len(torn) == 0 {
			return now, err
		}
		doubt := without(now.doubt, off, math.MaxInt64)
		return a.store.next(now.data[:off:off], changeVersion(now.version, off, nil), doubt), nil
	}
	_, err := w.run(ctx)
	return err
}

// endsWith refuses a write to an object that is missing or is not off bytes followed by exactly torn.
func endsWith(now *state, off int64, torn []byte) error {
	size := int64(len(now.data))
	switch {
	case now.gone:
		return fmt.Errorf("%w: no such object", backend.ErrPrecondition)
	case off < 0 || off > size || size-off != int64(len(torn)):
		return fmt.Errorf("%w: size %d, not %d and %d", backend.ErrPrecondition, size, off, len(torn))
	case !bytes.Equal(now.data[off:], torn):
		return fmt.Errorf("%w: other bytes after %d", backend.ErrPrecondition, off)
	}
	return nil
}

// Resync makes the bytes from off to size durable.
func (a *Appender) Resync(ctx context.Context, key string, off, size int64) (backend.Info, error) {
	if err := a.enter(ctx, "resync", key); err != nil {
		return backend.Info{}, err
	}
	w := write{b: a.Backend, op: "resync", key: key}
	w.plan = func(now *state) (*state, error) { return now, spanned(now, off, size) }
	w.durable = func(st *state) { st.doubt = without(st.doubt, off, size) }
	return w.run(ctx)
}

func spanned(now *state, off, size int64) error {
	if err := sized(now, size); err != nil {
		return err
	}
	if off < 0 || off > size {
		return fmt.Errorf("%w: %d of %d bytes", backend.ErrRange, off, size)
	}
	return nil
}
