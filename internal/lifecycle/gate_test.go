package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// Causes of what a gate makes fail.
var (
	errRefused = errors.New("the gate refused the request")
	errDown    = errors.New("the gate answers nothing")
)

// gate is a store that holds the requests of commits until the test decides the outcome of each: a PUT of
// checkpoint_latest where the store only replaces objects, an append to the log where it appends. All other
// requests pass. What a gate says of an outcome is true of the store below it.
type gate struct {
	below backend.Backend

	mu   sync.Mutex
	shut bool // requests of commits are held
	down bool // no request is answered
	held []*request
	sent int // requests of commits so far
	all  int // requests that write anything, so far
}

// loggedGate is a gate on a store that appends.
type loggedGate struct {
	*gate
	appendingStore
}

// appendingStore is the appending store below a gate. It is embedded one level deeper than the gate, so that the gate's
// methods come first.
type appendingStore struct{ backend.Appender }

// writing makes a write of p in the store below.
type writing func(p []byte) (backend.Info, error)

// verdict makes a write, or not, and returns what the store answers.
type verdict func(write writing) (backend.Info, error)

// request is a request of a commit that the gate holds.
type request struct {
	g       *gate
	body    []byte
	verdict chan verdict
	late    func() error // makes the request after its caller has gone
}

func failure(op, key string, outcome backend.Outcome, cause error) error {
	return &backend.Error{Op: op, Key: key, Outcome: outcome, Err: cause}
}

// write makes one write, when the test has decided on it.
func (g *gate) write(
	ctx context.Context, op, key string, p []byte, write func(ctx context.Context, p []byte) (backend.Info, error),
) (backend.Info, error) {
	_, appends := g.below.(backend.Appender)
	commits := op == "append" || !appends && op == "put" && strings.HasPrefix(key, "checkpoint_latest/")
	g.mu.Lock()
	g.all++
	if commits {
		g.sent++
	}
	switch {
	case g.down:
		g.mu.Unlock()
		return backend.Info{}, failure(op, key, backend.Unknown, errDown)
	case !commits || !g.shut:
		g.mu.Unlock()
		return write(ctx, p)
	}
	// Once decided, the request is made whether its caller still waits or not.
	made := func(p []byte) (backend.Info, error) { return write(context.WithoutCancel(ctx), p) }
	r := &request{g: g, body: bytes.Clone(p), verdict: make(chan verdict, 1)}
	r.late = func() error {
		_, err := made(r.body)
		return err
	}
	g.held = append(g.held, r)
	g.mu.Unlock()
	select {
	case decide := <-r.verdict:
		return decide(made)
	case <-ctx.Done():
		r.leave()
		return backend.Info{}, failure(op, key, backend.Unknown, ctx.Err())
	}
}

// answers reports whether the store answers reads.
func (g *gate) answers(op, key string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return failure(op, key, backend.NotApplied, errDown)
	}
	return nil
}

func (g *gate) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	if err := g.answers("get", key); err != nil {
		return nil, backend.Info{}, err
	}
	return g.below.Get(ctx, key, r)
}

func (g *gate) Stat(ctx context.Context, key string) (backend.Info, error) {
	if err := g.answers("stat", key); err != nil {
		return backend.Info{}, err
	}
	return g.below.Stat(ctx, key)
}

func (g *gate) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	if err := g.answers("list", o.Prefix); err != nil {
		return func(yield func(backend.Info, error) bool) { yield(backend.Info{}, err) }
	}
	return g.below.List(ctx, o)
}

func (g *gate) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	return g.write(ctx, "put", key, p, func(ctx context.Context, p []byte) (backend.Info, error) {
		return g.below.Put(ctx, key, p, c)
	})
}

func (g *gate) Delete(ctx context.Context, key string) error {
	_, err := g.write(ctx, "delete", key, nil, func(ctx context.Context, _ []byte) (backend.Info, error) {
		return backend.Info{}, g.below.Delete(ctx, key)
	})
	return err
}

func (g *gate) Close() error { return g.below.Close() }

func (l loggedGate) Append(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
	return l.write(ctx, "append", key, p, func(ctx context.Context, p []byte) (backend.Info, error) {
		return l.appendingStore.Append(ctx, key, off, p)
	})
}

// close holds the requests of commits from now on.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

// open lets every request pass, those that are held included.
func (g *gate) open() {
	g.mu.Lock()
	g.shut, g.down = false, false
	held := g.held
	g.mu.Unlock()
	for _, r := range held {
		r.pass()
	}
}

// count returns how many requests of commits are held, how many were made, and how many writes of any kind were.
func (g *gate) count() (held, sent, all int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.held), g.sent, g.all
}

// next waits until nothing more happens by itself and returns the oldest request that the gate holds.
func (g *gate) next(t testing.TB) *request {
	t.Helper()
	quiet(t)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.held) == 0 {
		t.Fatal("no commit sends a request")
	}
	return g.held[0]
}

// leave removes a request from those that are held. It reports whether it was one of them.
func (r *request) leave() bool {
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	for i, q := range r.g.held {
		if q == r {
			r.g.held = append(r.g.held[:i:i], r.g.held[i+1:]...)
			return true
		}
	}
	return false
}

// decide ends the wait of a request.
func (r *request) decide(v verdict) {
	if r.leave() {
		r.verdict <- v
	}
}

// pass makes the request.
func (r *request) pass() {
	r.decide(func(write writing) (backend.Info, error) { return write(r.body) })
}

// refuse fails the request without an effect.
func (r *request) refuse() {
	r.decide(func(writing) (backend.Info, error) {
		return backend.Info{}, failure("write", "", backend.NotApplied, errRefused)
	})
}

// lose loses the answer to the request, of which the store has taken the first n bytes; an object that is replaced
// is taken as a whole or not at all. The store answers nothing from then on, until open.
func (r *request) lose(n int) {
	r.decide(func(write writing) (backend.Info, error) {
		if n > 0 {
			_, _ = write(r.body[:n])
		}
		r.g.mu.Lock()
		r.g.down = true
		r.g.mu.Unlock()
		return backend.Info{}, failure("write", "", backend.Unknown, errDown)
	})
}

// call is a call of a handle that runs beside the test.
type call[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// pair is two commits that run beside the test.
type pair [2]*call[coppice.Receipt]

// begin starts a call.
func begin[T any](f func() (T, error)) *call[T] {
	c := &call[T]{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.value, c.err = f()
	}()
	return c
}

// ended reports whether the call has returned by the time that nothing more happens by itself.
func (c *call[T]) ended(t testing.TB) bool {
	t.Helper()
	quiet(t)
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// wait returns what the call returned.
func (c *call[T]) wait(t testing.TB) (T, error) {
	t.Helper()
	if !c.ended(t) {
		t.Fatal("the call does not return")
	}
	return c.value, c.err
}

// goroutine is the first line of a goroutine in a stack trace: its number and what it does.
var goroutine = regexp.MustCompile(`^goroutine (\d+) \[([^],]+)`)

// parked matches what a goroutine does that waits for another one, and not for a lock.
var parked = regexp.MustCompile(`^(chan |select|sleep|coroutine|sync\.Cond|sync\.WaitGroup)`)

// goroutines returns the stack of each goroutine but the caller's, by number.
func goroutines() map[string]string {
	trace := make([]byte, 1<<20)
	all := strings.Split(string(trace[:runtime.Stack(trace, true)]), "\n\n")
	stacks := make(map[string]string, len(all))
	for _, stack := range all[1:] {
		if g := goroutine.FindStringSubmatch(stack); g != nil {
			stacks[g[1]] = stack
		}
	}
	return stacks
}

// older are the goroutines that ran before the gate of the present test was made.
var older map[string]string

// settled waits until nothing more happens by itself: every goroutine of the test waits for something. It returns
// the stack of one that waits for a lock; "" = none does.
func settled() (locked string) {
	for ; ; runtime.Gosched() {
		busy := false
		locked = ""
		for number, stack := range goroutines() {
			switch doing := goroutine.FindStringSubmatch(stack)[2]; {
			case older[number] != "" || parked.MatchString(doing):
			case strings.HasPrefix(doing, "sync."):
				locked = stack
			default:
				busy = true
			}
		}
		if !busy {
			return locked
		}
	}
}

// quiet waits until nothing more happens by itself. Where a goroutine waits for a lock then, the test fails, because
// no answer of the store and no context ends that wait.
func quiet(t testing.TB) {
	t.Helper()
	if locked := settled(); locked != "" {
		t.Fatalf("a call waits for a lock, and not for its context or for an answer:\n%s", locked)
	}
}

// rig is a store with a gate, and the same objects without it, as another process has them.
type rig struct {
	gate    *gate
	objects backend.Backend // without the gate
	store   *coppice.Store  // through the gate
	others  *coppice.Store  // past it
}

// gated is an appending or a replacing store with a gate in front of it.
func gated(t *testing.T, objects backend.Backend) *rig {
	t.Helper()
	return gatedAt(t, objects, clock())
}

// gatedAt is gated with a clock.
func gatedAt(t *testing.T, objects backend.Backend, now func() time.Time) *rig {
	t.Helper()
	options := func(seed byte, name string) *coppice.Options {
		return &coppice.Options{Now: now, Rand: rand.NewChaCha8([32]byte{seed}), Writer: name}
	}
	r := &rig{gate: &gate{below: objects}, objects: objects}
	var b backend.Backend = r.gate
	if a, appends := objects.(backend.Appender); appends {
		b = loggedGate{r.gate, appendingStore{a}}
	}
	r.store, r.others = newStore(t, b, options(1, "gated")), newStore(t, objects, options(2, "other"))
	setSleep(r.store, func(ctx context.Context) error { return ctx.Err() })
	return r
}

// gates are the kinds of stores.
var gates = map[string]func() backend.Backend{
	"replace": func() backend.Backend { return memory.New() },
	"append":  func() backend.Backend { return memory.NewAppender() },
}

// onGate runs a test on a store with a gate. At its end the gate is open.
func onGate(t *testing.T, objects backend.Backend, f func(t *testing.T, r *rig)) {
	t.Helper()
	older = goroutines()
	r := gated(t, objects)
	defer settled()
	defer r.gate.open()
	f(t, r)
}

// onGates runs a test on each kind of store.
func onGates(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	for kind, objects := range gates {
		t.Run(kind, func(t *testing.T) { onGate(t, objects(), f) })
	}
}

// start returns a handle on the session "s", to which one turn was committed, and closes the gate.
func (r *rig) start(t testing.TB, o *coppice.SessionOptions) *coppice.Session {
	t.Helper()
	s := create(t, r.store, "s", o)
	say(t, s, "u1", "a1")
	commit(t, s, state{Turns: 1})
	r.gate.close()
	return s
}

// fresh returns a new handle on the session, of another process.
func (r *rig) fresh(t testing.TB) *coppice.Session {
	t.Helper()
	return open(t, r.others, "s")
}

// wins commits a turn of another writer that says text.
func (r *rig) wins(t testing.TB, text string) (*coppice.Session, coppice.Receipt) {
	t.Helper()
	w := r.fresh(t)
	say(t, w, text)
	return w, commit(t, w, state{Turns: 100})
}

// committing starts a commit.
func committing(ctx context.Context, s *coppice.Session, turn coppice.Turn) *call[coppice.Receipt] {
	return begin(func() (coppice.Receipt, error) { return s.Commit(ctx, turn) })
}

// following starts a commit and waits until nothing more happens: its request is in flight, or it is in line.
func following(
	ctx context.Context, t testing.TB, s *coppice.Session, turn coppice.Turn,
) *call[coppice.Receipt] {
	t.Helper()
	c := committing(ctx, s, turn)
	quiet(t)
	return c
}

// turnsTo is a turn that sets the state.
func turnsTo(n int) coppice.Turn { return coppice.Turn{State: state{Turns: n}} }

// agrees checks that a handle on which nothing is pending reports what a fresh one does.
func (r *rig) agrees(t testing.TB, s *coppice.Session) {
	t.Helper()
	fresh := r.fresh(t)
	same(t, "head", s.Head(), fresh.Head())
	same(t, "context", texts(t, s), texts(t, fresh))
	same(t, "state", stateOf(t, s), stateOf(t, fresh))
	same(t, "entries", everything(t, s), everything(t, fresh))
	same(t, "status and preview", s.Info().Status+" "+s.Info().Preview, fresh.Info().Status+" "+fresh.Info().Preview)
}

// isAny reports whether an error is one of several.
func isAny(err error, list ...error) bool {
	return slices.ContainsFunc(list, func(e error) bool { return errors.Is(err, e) })
}

// hint returns the way on that an error names.
func hint(err error) string {
	if e, is := errors.AsType[*coppice.Error](err); is {
		return e.Hint
	}
	return ""
}

// under is a draft of a user's message below an entry.
func under(parent, text string) transcript.Draft {
	d := entry.User(text)
	d.Parent = parent
	return d
}
