// Package fault injects failures into a backend. The outcome that a fault reports is always true of the backend below,
// so that a caller which relies on the contract of package backend must work.
//
// New wraps a backend with rules. Each call is checked against the rules in order, and the first that applies decides
// its fate: it fails before it reaches the backend, its answer is lost on the way back, it is delayed, or the bytes
// that it read are damaged. All randomness is derived from one seed: equal calls in equal order have equal faults. The
// wrapper is a backend.Appender iff the wrapped one is. No rule applies to a call whose context is done.
package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/coppice-go/coppice/backend"
)

// ErrInjected is the default cause of a fault.
var ErrInjected = errors.New("injected fault")

// Kind is the effect of a fault on a call.
type Kind uint8

// The kinds of faults.
const (
	Before Kind = iota // the call fails and never reaches the backend
	// the call reaches the backend, and its answer is lost, also a refusal; a listing breaks off at its end.
	After
	Late   // a write fails, outcome Unknown, and reaches the backend at Deliver; a read fails as by Before
	Damage // one bit of the result of a Get is flipped; other calls and empty objects are not affected
)

func (k Kind) String() string {
	switch k {
	case Before:
		return "before"
	case After:
		return "after"
	case Late:
		return "late"
	case Damage:
		return "damage"
	}
	return fmt.Sprintf("kind %d", k)
}

// Call is a call that is about to be made.
type Call struct {
	Op  string // get, put, append, cut, resync, stat, list or delete
	Key string // of a listing: its prefix
	N   int    // its number among the calls of this Op, from 1
}

// Fault is a fault that happened.
type Fault struct {
	Call
	Kind Kind
}

// Rule selects calls that fail, and the kind of failure.
type Rule struct {
	When   func(Call) bool // nil = every call
	Skip   int             // number of matching calls that succeed first
	Count  int             // number of faults: 0 = one, below 0 = unlimited
	Chance float64         // of a fault, for each matching call after Skip; 0 = certain

	Kind Kind
	// Outcome is the outcome in the error of a failed write. It is used if it is true: NotApplied for Before, Applied
	// for After if the backend applied it. Otherwise, and by default, it is Unknown.
	Outcome backend.Outcome
	Err     error // the cause; nil = ErrInjected
}

// On matches calls of one operation, or of any for "", on keys that start with prefix.
func On(op, prefix string) func(Call) bool {
	return func(c Call) bool {
		return (op == "" || op == c.Op) && len(c.Key) >= len(prefix) && c.Key[:len(prefix)] == prefix
	}
}

// Chaos returns rules under which each call fails with about the given chance, in each way that does not damage bytes:
// refused, lost before, lost after, and, for writes, late.
func Chaos(chance float64) []Rule {
	part := chance / 4
	return []Rule{
		{Count: -1, Chance: part, Kind: Before, Outcome: backend.NotApplied},
		{Count: -1, Chance: part, Kind: Before},
		{Count: -1, Chance: part, Kind: After},
		{Count: -1, Chance: part, Kind: Late},
	}
}

// Backend is a backend with rules. It is a backend.Appender too iff the one it wraps is.
type Backend interface {
	backend.Backend
	// Add appends rules to those in force.
	Add(rules ...Rule)
	// Clear drops all rules. Delayed writes stay delayed.
	Clear()
	// Faults returns the injected faults, at most the last 4,096.
	Faults() []Fault
	// Deliver passes the delayed writes to the backend in the order in which they were made, and returns the backend's
	// answer to each.
	Deliver(ctx context.Context) []error
}

// Bounds of the recorded faults and delayed writes. A write beyond them is lost.
const (
	faultsMax = 4096
	heldMax   = 1024
)

// New wraps b. Close closes b and drops delayed writes.
func New(b backend.Backend, seed uint64, rules ...Rule) Backend {
	f := &faulty{inner: b, rng: rand.New(rand.NewPCG(seed, 2)), calls: map[string]int{}}
	f.Add(rules...)
	if a, ok := b.(backend.Appender); ok {
		return &appender{faulty: f, inner: a}
	}
	return f
}

type faulty struct {
	inner backend.Backend

	mu     sync.Mutex
	rng    *rand.Rand
	rules  []*Rule // own copies; Skip and Count are counted down
	calls  map[string]int
	faults []Fault
	held   []func(ctx context.Context) error
}

func (f *faulty) Add(rules ...Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range rules {
		if r.Count == 0 {
			r.Count = 1
		}
		if r.Err == nil {
			r.Err = ErrInjected
		}
		f.rules = append(f.rules, &r)
	}
}

func (f *faulty) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

func (f *faulty) Faults() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Fault(nil), f.faults...)
}

func (f *faulty) Deliver(ctx context.Context) []error {
	f.mu.Lock()
	held := f.held
	f.held = nil
	f.mu.Unlock()
	errs := make([]error, len(held))
	for i, send := range held {
		errs[i] = send(ctx)
	}
	return errs
}

// fate returns the rule that applies to a call; nil = none.
func (f *faulty) fate(ctx context.Context, op, key string) *Rule {
	if ctx.Err() != nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[op]++
	call := Call{Op: op, Key: key, N: f.calls[op]}
	for i, r := range f.rules {
		if !f.applies(r, call) {
			continue
		}
		if r.Count--; r.Count == 0 {
			f.rules = append(f.rules[:i:i], f.rules[i+1:]...)
		}
		if len(f.faults) == faultsMax {
			f.faults = f.faults[1:]
		}
		f.faults = append(f.faults, Fault{Call: call, Kind: r.Kind})
		return r
	}
	return nil
}

func (f *faulty) applies(r *Rule, call Call) bool {
	if r.When != nil && !r.When(call) || r.Kind == Damage && call.Op != "get" {
		return false
	}
	if r.Skip > 0 {
		r.Skip--
		return false
	}
	return r.Chance <= 0 || f.rng.Float64() < r.Chance
}
