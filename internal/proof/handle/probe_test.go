package handle

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// probe finds out which calls the engine supports, and for which pairs of calls the second waits for a mutex
// while the first waits for the store. Such a call cannot be cancelled, and it is not durably blocked in the
// sense of testing/synctest, so the scheduler does not begin it.
func probe(t *testing.T) engine {
	t.Helper()
	e := engine{Supported: "APNCKLSTRDMXOW"}
	b, err := newBases()
	if err != nil {
		t.Fatal(err)
	}
	open := func(appends bool) (*run, *handle) {
		r := &run{base: b[kind{appends: appends}], clock: ticking(1000), handles: map[int]*handle{}}
		r.w = newWorld(r.base.store, true)
		r.w.free = true
		h, err := r.open(1, false)
		if err != nil {
			t.Fatal(err)
		}
		return r, h
	}
	_, h := open(false)
	ctx := context.Background()
	if _, err = h.s.Commit(ctx, coppice.Turn{Entries: []transcript.Draft{entry.User("probe")}}); !errors.Is(err, errors.ErrUnsupported) {
		e.Supported += "E"
	}
	if _, err = h.s.Commit(ctx, coppice.Turn{Base: b[kind{}].commit}); !errors.Is(err, errors.ErrUnsupported) {
		e.Supported += "B"
	}
	if in(opEntries, e.Supported) {
		e.Supported += "Q"
	}
	_, err = h.s.Commit(ctx, coppice.Turn{Key: "probe", State: 1})
	if err == nil {
		_, err = h.s.Commit(ctx, coppice.Turn{Key: "probe", State: 2})
	}
	if errors.Is(err, coppice.ErrKeyReused) {
		e.Supported += "J"
	}
	if err := h.s.Close(); err != nil {
		t.Logf("close: %v", err)
	}
	for _, first := range e.Supported {
		for _, second := range e.Supported {
			pair := string(first) + string(second)
			if in(pair[0], "XOW") || in(pair[1], "XOW") {
				continue
			}
			for _, appends := range []bool{false, true} {
				for n := 1; ; n++ {
					r, h := open(appends)
					if !waitsForMutex(r, h, pair, n, &e) {
						break
					}
				}
			}
		}
	}
	// Where a root has to be looked for in the tree, any entry may have to be, in another state of the handle.
	for _, pair := range slices.Clone(e.Blocks) {
		for _, first := range finders(pair[0]) {
			for _, second := range finders(pair[1]) {
				if other := string(first) + string(second); !slices.Contains(e.Blocks, other) {
					e.Blocks = append(e.Blocks, other)
				}
			}
		}
	}
	return e
}

// finders are the calls that may look in the tree as a call does.
func finders(kind byte) string {
	if kind == opRoot {
		return "NPL"
	}
	return string(kind)
}

// probed is a function of its own, so that it has a name in a stack.
//
//go:noinline
func probed(r *run, c *record) { r.do(context.Background(), c.h, c) }

// waitsForMutex lets the n-th request of the first call of a pair wait for the store, and adds the pair to the
// engine's if the second call then waits for a mutex. It reports whether there was such a request.
func waitsForMutex(r *run, h *handle, pair string, n int, e *engine) bool {
	r.w.free = false
	ended := make(chan *record, 2)
	begin := func(number int, call func(r *run, c *record)) {
		l := &laneRun{lane: lane{handle: 1}, n: number}
		c := r.begin(l, h, pair[number-1])
		go func() { call(r, c); ended <- c }()
	}
	begin(1, func(r *run, c *record) { r.do(context.Background(), h, c) })
	var held *call
	over := 0
	answer := func() {
		r.w.mu.Lock()
		parked := slices.Clone(r.w.parked)
		r.w.mu.Unlock()
		for _, c := range parked {
			if c == held {
				continue
			}
			if held == nil && c.id == n && over == 0 {
				held = c
				continue
			}
			r.w.decide(c, verdict{})
		}
		select {
		case <-ended:
			over++
		default:
			runtime.Gosched()
		}
	}
	for held == nil && over == 0 {
		answer()
	}
	if held != nil {
		begin(2, probed)
		for mutex := false; !mutex && over == 0; {
			answer()
			state := stateOf("handle.probed")
			mutex = strings.Contains(state, "Mutex") || strings.Contains(state, "semacquire")
			if mutex && !slices.Contains(e.Blocks, pair) {
				e.Blocks = append(e.Blocks, pair)
			}
			if strings.Contains(state, "select") || strings.Contains(state, "Cond") || strings.Contains(state, "chan") && !r.waiting(held) {
				break
			}
		}
		r.w.decide(held, verdict{})
		for over < 2 {
			answer()
		}
	}
	r.w.free = true
	_ = h.s.Close()
	return held != nil
}

// waiting reports whether a request other than one waits for the store.
func (r *run) waiting(but *call) bool {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return slices.ContainsFunc(r.w.parked, func(c *call) bool { return c != but })
}

// stateOf is what the goroutine that runs a function waits for, as a stack trace says it; "" = it does not
// wait, or there is none.
func stateOf(function string) string {
	buf := make([]byte, 256<<10)
	buf = buf[:runtime.Stack(buf, true)]
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		if !strings.Contains(g, function) {
			continue
		}
		head, _, _ := strings.Cut(g, "\n")
		_, state, _ := strings.Cut(head, "[")
		if strings.HasPrefix(state, "runn") || strings.HasPrefix(state, "syscall") {
			return ""
		}
		return state
	}
	return ""
}
