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

// Causes of failures that a gate makes.
var (
	errRefused = errors.New("the gate refused the request")
	errDown    = errors.New("the gate answers nothing")
)

// gate is a store that holds the requests of commits until the test decides the outcome of each: a PUT of
// checkpoint_latest if the store only replaces objects, an append to the log if it appends. All other requests pass.
// The outcome that a gate reports is always that of the store below.
type gate struct {
	below backend.Backend

	mu   sync.Mutex
	shut bool // requests of commits are held
	down bool // no request is answered
	held []*request
	sent int // number of requests of commits
	all  int // number of requests that write anything
}

// loggedGate is a gate on a store that appends.
type loggedGate struct {
	*gate
	appendingStore
}

// appendingStore is the appending store below a gate. It is embedded one level deeper than the gate, so that the gate's
// methods come first.
type appendingStore struct{ backend.Appender }

// writing writes p to the store below.
type writing func(p []byte) (backend.Info, error)

// verdict writes or does not write, and returns the store's answer.
type verdict func(write writing) (backend.Info, error)

// request is a request of a commit that the gate holds.
type request struct {
	g       *gate
	body    []byte
	verdict chan verdict
	late    func() error // sends the request after its caller has gone
}

func failure(op, key string, outcome backend.Outcome, cause error) error {
	return &backend.Error{Op: op, Key: key, Outcome: outcome, Err: cause}
}

// write sends one write, after the test has decided.
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
	// Once decided, the request is sent whether its caller still waits or not.
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

// count returns the number of held requests of commits, of sent ones, and of sent writes of any kind.
func (g *gate) count() (held, sent, all int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.held), g.sent, g.all
}

// next waits until all goroutines are blocked and returns the oldest held request.
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

// leave removes a request from the held ones. It reports whether it was one of them.
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

// pass sends the request.
func (r *request) pass() {
	r.decide(func(write writing) (backend.Info, error) { return write(r.body) })
}

// refuse fails the request without an effect.
func (r *request) refuse() {
	r.decide(func(writing) (backend.Info, error) {
		return backend.Info{}, failure("write", "", backend.NotApplied, errRefused)
	})
}

// lose loses the answer to the request, of which the store has applied the first n bytes; an object that is replaced is
// written as a whole or not at all. From then on the store answers nothing, until open.
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

// call is a method call that runs concurrently with the test.
type call[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// pair is two concurrent commits.
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

// ended reports whether the call has returned when all goroutines are blocked.
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

// wait returns the results of the call.
func (c *call[T]) wait(t testing.TB) (T, error) {
	t.Helper()
	if !c.ended(t) {
		t.Fatal("the call does not return")
	}
	return c.value, c.err
}

// goroutine matches the first line of a goroutine in a stack trace: its number and its state.
var goroutine = regexp.MustCompile(`^goroutine (\d+) \[([^],]+)`)

// parked matches the state of a goroutine that waits for another one, and not for a lock.
var parked = regexp.MustCompile(`^(chan |select|sleep|coroutine|sync\.Cond|sync\.WaitGroup)`)

// goroutines returns the stack of each goroutine except the caller's, by number.
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

// older are the goroutines that existed before the gate of the present test was made.
var older map[string]string

// settled waits until every goroutine of the test is blocked. It returns the stack of one that waits for a lock; "" =
// none does.
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

// quiet waits until every goroutine of the test is blocked. If one of them waits for a lock the test fails, because no
// answer of the store and no context ends that wait.
func quiet(t testing.TB) {
	t.Helper()
	if locked := settled(); locked != "" {
		t.Fatalf("a call waits for a lock, and not for its context or for an answer:\n%s", locked)
	}
}

// rig is a store with a gate, and the same objects without it, as another process sees them.
type rig struct {
	gate    *gate
	objects backend.Backend // without the gate
	store   *coppice.Store  // through the gate
	others  *coppice.Store  // without the gate
}

// gated returns a rig on an appending or a replacing store.
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

// onGate runs a test on a store with a gate. At its end the gate is opened.
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

// start returns a handle on the session "s" with one committed turn, and closes the gate.
func (r *rig) start(t testing.TB, o *coppice.SessionOptions) *coppice.Session {
	t.Helper()
	s := create(t, r.store, "s", o)
	say(t, s, "u1", "a1")
	commit(t, s, state{Turns: 1})
	r.gate.close()
	return s
}

// fresh returns a new handle of another process on the session.
func (r *rig) fresh(t testing.TB) *coppice.Session {
	t.Helper()
	return open(t, r.others, "s")
}

// wins commits a turn of another writer with the text.
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

// following starts a commit and waits until all goroutines are blocked: its request is held, or it waits for the lock.
func following(
	ctx context.Context, t testing.TB, s *coppice.Session, turn coppice.Turn,
) *call[coppice.Receipt] {
	t.Helper()
	c := committing(ctx, s, turn)
	quiet(t)
	return c
}

// turnsTo returns a turn that sets the state.
func turnsTo(n int) coppice.Turn { return coppice.Turn{State: state{Turns: n}} }

// agrees checks that a handle without pending entries reports the same as a fresh one.
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

// hint returns the hint of an error.
func hint(err error) string {
	if e, is := errors.AsType[*coppice.Error](err); is {
		return e.Hint
	}
	return ""
}

// under returns a draft of a user message with a parent.
func under(parent, text string) transcript.Draft {
	d := entry.User(text)
	d.Parent = parent
	return d
}
