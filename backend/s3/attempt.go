package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/coppice-go/coppice/backend"
)

// Pauses between the attempts of one call.
const (
	pauseFirst = 50 * time.Millisecond
	pauseMost  = 2 * time.Second
)

var errTimeout = errors.New("no answer in time")

// attempt is one request, with its own deadline.
type attempt struct {
	ctx   context.Context //nolint:containedctx // the attempt is a call under way
	stop  context.CancelCauseFunc
	timer *time.Timer
	limit time.Duration // in addition to that for the bytes
	sent  atomic.Bool   // the request was passed to the HTTP client

	signed signature // of the newest request
}

type attemptKey struct{}

// begin starts the deadline of a request with a body of size bytes.
func (b *Backend) begin(ctx context.Context, size int) *attempt {
	a := &attempt{limit: b.o.Timeout}
	a.ctx, a.stop = context.WithCancelCause(context.WithValue(ctx, attemptKey{}, a))
	a.timer = time.AfterFunc(a.within(size), func() { a.stop(errTimeout) })
	return a
}

// within returns the time limit of an attempt with size bytes: a second more for each MiB.
func (a *attempt) within(size int) time.Duration {
	return a.limit + time.Duration(float64(size)/(1<<20)*float64(time.Second))
}

// extend restarts the deadline when the answer has begun and its length is known.
func (a *attempt) extend(size int) {
	if a.timer.Stop() {
		a.timer.Reset(a.within(size))
	}
}

func (a *attempt) done() {
	a.timer.Stop()
	a.stop(nil)
}

// sender records in an attempt that its request was sent: a request that did not reach it was never sent.
type sender struct{ next s3.HTTPClient }

func (s sender) Do(r *http.Request) (*http.Response, error) {
	if a, ok := r.Context().Value(attemptKey{}).(*attempt); ok {
		a.sent.Store(true)
	}
	return s.next.Do(r)
}

// read runs the attempts of a read until one succeeds, a retry would not help, or there were
// Options.Attempts. Refused credentials are
// replaced once, with one more attempt.
func (b *Backend) read(ctx context.Context, op, key string, call func(a *attempt) error) error {
	renewed := false
	for try := 1; ; try++ {
		a := b.begin(ctx, 0)
		err := call(a)
		if err == nil {
			a.done()
			b.known.Store(true)
			return nil
		}
		v := b.classify(ctx, a, err)
		a.done()
		if v.renew && b.renew(ctx, a, &v, &renewed) {
			continue
		}
		if v.again && try < b.o.Attempts {
			err = b.rest(ctx, try)
			if err == nil {
				continue
			}
			v.cause = err
		}
		return fail(op, key, backend.NotApplied, v.cause)
	}
}

// write runs one attempt of a write, and further ones only while it certainly had no effect. A busy answer is returned
// to the caller, which may have newer data by then; unless patient.
func (b *Backend) write(
	ctx context.Context, op, key string, size int, patient bool, call func(a *attempt) error,
) error {
	renewed := false
	for try := 1; ; try++ {
		if err := b.wait(ctx, b.pace.next(key)); err != nil {
			return fail(op, key, backend.NotApplied, err)
		}
		a := b.begin(ctx, size)
		err := call(a)
		if err == nil {
			a.done()
			b.known.Store(true)
			return nil
		}
		v := b.classify(ctx, a, err)
		a.done()
		if v.renew && b.renew(ctx, a, &v, &renewed) {
			continue
		}
		if v.slow {
			b.pace.slow(key)
		}
		certain := v.again && v.outcome == backend.NotApplied && (patient || !errors.Is(v.cause, backend.ErrBusy))
		if certain && try < b.o.Attempts {
			err = b.rest(ctx, try)
			if err == nil {
				continue
			}
			v.cause = err
		}
		return fail(op, key, v.outcome, v.cause)
	}
}

// rest pauses after the n-th attempt: of 50 ms, doubled after each attempt up to 2 s, and of that a random time between
// half and all.
func (b *Backend) rest(ctx context.Context, n int) error {
	d := min(pauseFirst<<min(n-1, 10), pauseMost)
	b.randMu.Lock()
	d = d/2 + time.Duration(b.rand.Int64N(int64(d/2)))
	b.randMu.Unlock()
	return b.wait(ctx, d)
}

// wait sleeps for d, or until the context is done or the backend is closed.
func (b *Backend) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.life, cancel)()
	err := b.o.Sleep(waiting, d)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case b.life.Err() != nil:
		return backend.ErrClosed
	case err != nil:
		return fmt.Errorf("pause: %w", err)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// paceKeys bounds the keys whose pace is remembered; above it, some are forgotten early.
const paceKeys = 4096

// pace spaces the writes to one key. Correctness does not depend on its clock (I12).
type pace struct {
	now func() time.Time
	gap time.Duration // between writes to any key; 0 = none

	mu   sync.Mutex
	keys map[string]*turn
}

// turn is the earliest time of the next write to a key.
type turn struct {
	at  time.Time
	gap time.Duration
}

// The gap between writes to a throttled key, and how long it is kept after the last of them.
const (
	slowGap    = time.Second
	slowMemory = time.Minute
)

func (p *pace) start(o *Options) {
	p.now, p.keys = o.Now, map[string]*turn{}
	if o.Rate > 0 {
		p.gap = time.Duration(float64(time.Second) / o.Rate)
	}
}

// next reserves the key's next turn and returns the time until then.
func (p *pace) next(key string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gap == 0 && len(p.keys) == 0 {
		return 0
	}
	now := p.now()
	t := p.keys[key]
	if t != nil && now.Sub(t.at) > slowMemory {
		delete(p.keys, key)
		t = nil
	}
	if t == nil {
		if p.gap > 0 {
			p.remember(key, &turn{at: now.Add(p.gap), gap: p.gap}, now)
		}
		return 0
	}
	d := max(t.at.Sub(now), 0)
	t.at = now.Add(d + t.gap)
	return d
}

// slow records that the store throttled the key.
func (p *pace) slow(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, gap := p.now(), max(p.gap, slowGap)
	if t := p.keys[key]; t != nil {
		t.gap = gap
		if next := now.Add(gap); next.After(t.at) {
			t.at = next
		}
		return
	}
	p.remember(key, &turn{at: now.Add(gap), gap: gap}, now)
}

func (p *pace) remember(key string, t *turn, now time.Time) {
	if len(p.keys) >= paceKeys {
		for k, old := range p.keys {
			if now.After(old.at) || len(p.keys) > paceKeys/2 {
				delete(p.keys, k)
			}
		}
	}
	p.keys[key] = t
}
