package fault_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/backendtest"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContractWithoutFaults(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{
		Short: testing.Short(), // the full size runs on the inner backend
		New:   func(*testing.T) backend.Backend { return fault.New(memory.New(), 1) },
	})
}

func TestAppenderContractWithoutFaults(t *testing.T) {
	never := fault.Rule{When: func(fault.Call) bool { return false }, Count: -1}
	under := map[backend.Backend]*memory.Appender{}
	wrap := func(m *memory.Appender) backend.Backend {
		b := fault.New(m, 1, never)
		under[b] = m
		return b
	}
	backendtest.Run(t, backendtest.Harness{
		Short:  testing.Short(), // the full size runs on the inner backend
		New:    func(*testing.T) backend.Backend { return wrap(memory.NewAppender()) },
		Reopen: func(_ *testing.T, b backend.Backend) backend.Backend { return wrap(under[b].Share()) },
	})
}

func TestIsAppenderIffInnerIs(t *testing.T) {
	if _, ok := fault.New(memory.New(), 1).(backend.Appender); ok {
		t.Error("an Appender over a backend that is none")
	}
	if _, ok := fault.New(memory.NewAppender(), 1).(backend.Appender); !ok {
		t.Error("no Appender over one")
	}
}

// calls returns every write with its effect on a log that contains "bane". p begins with the bytes that Cut removes.
func calls(b backend.Backend, p []byte) map[string]struct {
	do   func(ctx context.Context) error
	want string
} {
	a := b.(backend.Appender)
	type call = struct {
		do   func(ctx context.Context) error
		want string
	}
	return map[string]call{
		"put":    {func(ctx context.Context) error { _, err := b.Put(ctx, "log", p, backend.Cond{}); return err }, "new"},
		"append": {func(ctx context.Context) error { _, err := a.Append(ctx, "log", 4, p); return err }, "banenew"},
		"cut":    {func(ctx context.Context) error { return a.Cut(ctx, "log", 2, p[:2]) }, "ba"},
		"resync": {func(ctx context.Context) error { _, err := a.Resync(ctx, "log", 2, 4); return err }, "bane"},
		"delete": {func(ctx context.Context) error { return b.Delete(ctx, "log") }, ""},
	}
}

func content(t *testing.T, b backend.Backend, key string) string {
	t.Helper()
	p, _, err := b.Get(t.Context(), key, backend.Range{})
	if err != nil && !errors.Is(err, backend.ErrNotExist) {
		t.Fatal(err)
	}
	return string(p)
}

func TestWrites(t *testing.T) {
	for op := range calls(memory.NewAppender(), nil) {
		for _, c := range []struct {
			rule    fault.Rule
			out     backend.Outcome
			applied bool
		}{
			{fault.Rule{Kind: fault.Before}, backend.Unknown, false},
			{fault.Rule{Kind: fault.Before, Outcome: backend.NotApplied}, backend.NotApplied, false},
			{fault.Rule{Kind: fault.Before, Outcome: backend.Applied}, backend.Unknown, false},
			{fault.Rule{Kind: fault.After}, backend.Unknown, true},
			{fault.Rule{Kind: fault.After, Outcome: backend.Applied}, backend.Applied, true},
			{fault.Rule{Kind: fault.After, Outcome: backend.NotApplied}, backend.Unknown, true},
			{fault.Rule{Kind: fault.Late, Outcome: backend.NotApplied}, backend.Unknown, false},
		} {
			t.Run(fmt.Sprint(op, "/", c.rule.Kind, "/", c.rule.Outcome), func(t *testing.T) {
				f := fault.New(memory.NewAppender(), 1)
				if _, err := f.Put(t.Context(), "log", []byte("bane"), backend.Cond{}); err != nil {
					t.Fatal(err)
				}
				p := []byte("new")
				call := calls(f, p)[op]
				c.rule.Err = io.ErrUnexpectedEOF
				f.Add(c.rule)
				err := call.do(t.Context())
				var be *backend.Error
				if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &be) || be.Op != op || be.Key != "log" {
					t.Fatalf("error %v", err)
				}
				if got := backend.OutcomeOf(err); got != c.out {
					t.Errorf("outcome %s, want %s", got, c.out)
				}
				want := "bane"
				if c.applied {
					want = call.want
				}
				if got := content(t, f, "log"); got != want {
					t.Errorf("the log holds %q, want %q", got, want)
				}
				copy(p, "###") // a delayed write has a copy of its bytes
				if errs := f.Deliver(t.Context()); c.rule.Kind == fault.Late && (len(errs) != 1 || errs[0] != nil) {
					t.Errorf("deliver: %v", errs)
				}
				if got := content(t, f, "log"); c.rule.Kind == fault.Late && got != call.want {
					t.Errorf("after delivery the log holds %q, want %q", got, call.want)
				}
			})
		}
	}
}

func TestReads(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Before, fault.After, fault.Late} {
		f := fault.New(memory.New(), 1)
		if _, err := f.Put(t.Context(), "k", []byte("v"), backend.Cond{}); err != nil {
			t.Fatal(err)
		}
		f.Add(fault.Rule{Kind: kind, Count: 3})
		if p, _, err := f.Get(t.Context(), "k", backend.Range{}); !errors.Is(err, fault.ErrInjected) || p != nil {
			t.Errorf("%s: get gave %q, %v", kind, p, err)
		}
		if _, err := f.Stat(t.Context(), "k"); !errors.Is(err, fault.ErrInjected) {
			t.Errorf("%s: stat gave %v", kind, err)
		}
		var seen int
		var last error
		for _, err := range f.List(t.Context(), backend.ListOptions{}) {
			if last = err; err == nil {
				seen++
			}
		}
		want := 0
		if kind == fault.After {
			want = 1
		}
		if seen != want || !errors.Is(last, fault.ErrInjected) {
			t.Errorf("%s: list gave %d results, then %v", kind, seen, last)
		}
		if got := content(t, f, "k"); got != "v" {
			t.Errorf("%s: %q after the faults", kind, got)
		}
	}
}

func TestDamageFlipsOneBitOfAnAnswer(t *testing.T) {
	f := fault.New(memory.New(), 7)
	want := bytes.Repeat([]byte("abcdefgh"), 100)
	for key, p := range map[string][]byte{"k": want, "empty": nil} {
		if _, err := f.Put(t.Context(), key, p, backend.Cond{}); err != nil {
			t.Fatal(err)
		}
	}
	f.Add(fault.Rule{Kind: fault.Damage, When: fault.On("", "k"), Count: 20})
	if _, err := f.Stat(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		flipped := 0
		for i, b := range []byte(content(t, f, "k")) {
			flipped += bits.OnesCount8(b ^ want[i])
		}
		if flipped != 1 {
			t.Fatalf("%d bits flipped", flipped)
		}
	}
	if got := content(t, f, "k"); got != string(want) {
		t.Error("damage stayed behind")
	}
	f.Add(fault.Rule{Kind: fault.Damage})
	if got := content(t, f, "empty"); got != "" {
		t.Errorf("damage to nothing: %q", got)
	}
}

func TestRulesCountCallsInOrder(t *testing.T) {
	f := fault.New(memory.New(), 1,
		fault.Rule{When: fault.On("put", "a/"), Skip: 2, Count: 2},
		fault.Rule{When: func(c fault.Call) bool { return c.Op == "put" && c.N == 7 }, Kind: fault.After},
	)
	var failed []int
	put := func(ctx context.Context, i int, key string) {
		if _, err := f.Put(ctx, key, nil, backend.Cond{}); errors.Is(err, fault.ErrInjected) {
			failed = append(failed, i)
		}
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	put(done, 0, "a/0") // no rule applies to it
	for i, key := range []string{"a/1", "b/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7"} {
		put(t.Context(), i+1, key)
	}
	if diff := cmp.Diff([]int{4, 5, 7}, failed); diff != "" {
		t.Errorf("failed puts (-want +got):\n%s", diff)
	}
	want := []fault.Fault{
		{Call: fault.Call{Op: "put", Key: "a/3", N: 4}},
		{Call: fault.Call{Op: "put", Key: "a/4", N: 5}},
		{Call: fault.Call{Op: "put", Key: "a/6", N: 7}, Kind: fault.After},
	}
	if diff := cmp.Diff(want, f.Faults()); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	f.Add(fault.Rule{Count: -1})
	f.Clear()
	put(t.Context(), 9, "a/9")
	if len(failed) != 3 {
		t.Error("a cleared rule still fails calls")
	}
}

// A delayed PUT is applied iff its condition still holds when it arrives (I5).
func TestLateWriteMeetsItsCondition(t *testing.T) {
	ctx := t.Context()
	f := fault.New(memory.New(), 1)
	info, err := f.Put(ctx, "k", []byte("base"), backend.Cond{})
	if err != nil {
		t.Fatal(err)
	}
	f.Add(fault.Rule{Kind: fault.Late, Count: 2})
	for _, p := range []string{"late 1", "late 2"} {
		if _, err := f.Put(ctx, "k", []byte(p), backend.IfMatch(info.Version)); backend.OutcomeOf(err) != backend.Unknown {
			t.Fatal(err)
		}
	}
	errs := f.Deliver(ctx)
	if len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], backend.ErrPrecondition) {
		t.Errorf("deliver: %v", errs)
	}
	if got := content(t, f, "k"); got != "late 1" {
		t.Errorf("%q", got)
	}
	if errs := f.Deliver(ctx); len(errs) != 0 {
		t.Errorf("delivered twice: %v", errs)
	}
}

// Under chaos every answer is true: nil = applied, NotApplied = not applied, and equal seeds have equal faults.
func TestChaosNeverLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		seed := rapid.Uint64().Draw(t, "seed")
		walk := func() (trail []string) {
			under := memory.New()
			f := fault.New(under, seed, fault.Chaos(0.6)...)
			for i := range 60 {
				key := fmt.Sprint("k", i)
				_, err := f.Put(ctx, key, []byte("v"), backend.IfAbsent())
				_, statErr := under.Stat(ctx, key)
				switch out := backend.OutcomeOf(err); {
				case out == backend.Applied && statErr != nil, out == backend.NotApplied && statErr == nil:
					t.Fatalf("put: %v (%s), stat: %v", err, out, statErr)
				}
				trail = append(trail, fmt.Sprint(err, statErr == nil))
			}
			if n := len(f.Faults()); n == 0 || n == 60 {
				t.Fatalf("%d faults in 60 calls", n)
			}
			return trail
		}
		if diff := cmp.Diff(walk(), walk()); diff != "" {
			t.Fatalf("equal seeds differ:\n%s", diff)
		}
	})
}
