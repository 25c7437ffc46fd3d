package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// chance is a small random generator, splitmix64: its start determines its numbers.
type chance struct{ s uint64 }

func (c *chance) next() uint64 {
	c.s += 0x9e3779b97f4a7c15
	z := c.s
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// n is below n.
func (c *chance) n(n int) int { return int(c.next() % uint64(n)) }

// in is from lo to hi, both included.
func (c *chance) in(lo, hi int) int { return lo + c.n(hi-lo+1) }

// p is true with probability p.
func (c *chance) p(p float64) bool { return float64(c.next()>>11)/(1<<53) < p }

// one in n.
func (c *chance) one(n int) bool { return c.n(n) == 0 }

// seeded starts a generator from its purpose.
func seeded(parts ...uint64) *chance {
	c := &chance{s: 1}
	for _, p := range parts {
		c.s = c.next() ^ p
	}
	return c
}

func hashOf(texts ...string) uint64 {
	h := fnv.New64a()
	for _, t := range texts {
		_, _ = io.WriteString(h, t)
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// world is the run of one seed: the bucket, the messages under way, and all answers.
type world struct {
	Knobs
	plan   plan
	began  time.Time
	bucket *bucket
	ledger *ledger

	late  sync.WaitGroup // messages that arrive after their sender gave up
	hosts int            // clients made so far
	way   int            // the number of these messages still under way

	mu     sync.Mutex
	held   []func()            // messages that arrive after all others
	ambush map[string][]func() // messages that arrive just before another one about the same object
	hash   uint64              // over all events
	events int
	bad    []string // violations
	trace  io.Writer
}

const session = "s"

func newWorld(k Knobs, trace io.Writer) *world {
	w := &world{Knobs: k, plan: planOf(k), began: time.Now(), trace: trace, hash: 14695981039346656037}
	w.ambush = map[string][]func(){}
	w.bucket = &bucket{w: w, objects: map[string]*object{}, names: map[string]string{}, tags: map[string]bool{}}
	w.bucket.objects["cas/proof"] = &object{body: []byte("{}")} // the store has passed the probe for conditional writes
	w.ledger = &ledger{w: w, blobs: map[string][]byte{}, keys: map[string]*turn{}}
	return w
}

// now is the virtual time since the seed began.
func (w *world) now() time.Duration { return time.Since(w.began) }

// event adds an event to the seed's hash, and prints it if requested. Only a goroutine that has just woken up calls it,
// so the order of events is fixed.
func (w *world) event(who, what, key, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	w.hash = (w.hash ^ hashOf(who, what, key, detail) ^ uint64(w.now())) * 1099511628211
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%14s %-8s %-12s %s %s\n", w.now().Round(time.Microsecond), who, what, key, detail)
	}
}

// violation records a broken promise.
func (w *world) violation(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%14s VIOLATION %s\n", w.now().Round(time.Microsecond), text)
	}
	if len(w.bad) < 10 {
		w.bad = append(w.bad, strings.ReplaceAll(text, "\n", " "))
	}
}

// later delivers a message about an object after d.
func (w *world) later(d time.Duration, slot uint64, key string, deliver func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d == whenOver {
		w.held = append(w.held, deliver)
		return
	}
	if d == overtaking {
		w.ambush[key] = append(w.ambush[key], deliver)
		return
	}
	w.way++
	w.late.Go(func() {
		_ = w.rest(context.Background(), d, slot)
		w.mu.Lock()
		w.way--
		w.mu.Unlock()
		deliver()
	})
}

// overtaken delivers the messages that arrive just before one about an object.
func (w *world) overtaken(key string) {
	w.mu.Lock()
	list := w.ambush[key]
	delete(w.ambush, key)
	w.mu.Unlock()
	for _, deliver := range list {
		deliver()
	}
}

// leftover returns the messages that arrive after all writers have ended.
func (w *world) leftover() []func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.held
	for _, key := range slices.Sorted(maps.Keys(w.ambush)) {
		list = append(list, w.ambush[key]...)
	}
	return list
}

// awaited reports whether some message has not arrived yet.
func (w *world) awaited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.way+len(w.held)+len(w.ambush) > 0
}

// rest sleeps for about d. The last six digits of the wake-up time are unique to slot.
func (w *world) rest(ctx context.Context, d time.Duration, slot uint64) error {
	now := w.now()
	at := (now + d).Truncate(time.Millisecond) + time.Millisecond + time.Duration(slot%1_000_000)
	if ctx.Done() == nil {
		time.Sleep(at - now)
		return nil
	}
	t := time.NewTimer(at - now)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type whoKey struct{}

// as returns a context for the actor with a number; 0 = background work of a handle.
func as(who int) context.Context { return context.WithValue(context.Background(), whoKey{}, who) }

func whose(ctx context.Context) int {
	n, _ := ctx.Value(whoKey{}).(int)
	return n
}
