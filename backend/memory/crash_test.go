package memory_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
)

var errPower = errors.New("power is out")

func put(t *testing.T, b backend.Backend, key, body string) {
	t.Helper()
	if _, err := b.Put(t.Context(), key, []byte(body), backend.Cond{}); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, b backend.Backend, key string) (body string, exists bool) {
	t.Helper()
	p, _, err := b.Get(t.Context(), key, backend.Range{})
	if err != nil && !errors.Is(err, backend.ErrNotExist) {
		t.Fatal(err)
	}
	return string(p), err == nil
}

// crashes returns the states of one object after many power losses; "-" = nothing.
func crashes(t *testing.T, key string, crash func(seed uint64) backend.Backend) map[string]int {
	t.Helper()
	left := map[string]int{}
	for seed := range uint64(300) {
		after := crash(seed)
		body, ok := content(t, after, key)
		if !ok {
			body = "-"
		}
		left[body]++
		if again, _ := content(t, crash(seed), key); ok && again != body {
			t.Fatalf("seed %d leaves %q, then %q", seed, body, again)
		}
		info, err := after.Stat(t.Context(), key)
		if ok && (err != nil || info.Size != int64(len(body)) || info.Version == "") {
			t.Fatalf("seed %d: %+v, %v", seed, info, err)
		}
	}
	return left
}

func TestAcknowledgedWritesSurvive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := memory.NewAppender()
		want := map[string]string{}
		ctx := context.Background()
		must := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		for i := range rapid.IntRange(1, 40).Draw(rt, "writes") {
			key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
			body, exists := want[key]
			size := int64(len(body))
			switch rapid.IntRange(0, 4).Draw(rt, "write") {
			case 0:
				want[key] = fmt.Sprint("body ", i)
				_, err := a.Put(ctx, key, []byte(want[key]), backend.Cond{})
				must(err)
			case 1:
				delete(want, key)
				must(a.Delete(ctx, key))
			case 2, 3:
				if exists {
					want[key] += fmt.Sprint("+", i)
					_, err := a.Append(ctx, key, size, []byte(want[key][size:]))
					must(err)
				}
			case 4:
				if exists {
					want[key] = body[:size/2]
					must(a.Cut(ctx, key, size/2, []byte(body[size/2:])))
				}
			}
		}
		after := a.Crash(rapid.Uint64().Draw(rt, "seed"))
		for _, key := range []string{"a", "b", "c"} {
			p, _, err := after.Get(ctx, key, backend.Range{})
			body, exists := want[key]
			if exists != (err == nil) || string(p) != body {
				rt.Fatalf("%s: %q, %v; want %q", key, p, err, body)
			}
		}
	})
}

func TestReplacedObjectIsOldOrNew(t *testing.T) {
	b := memory.New()
	crash := func(seed uint64) backend.Backend { return b.Crash(seed) }
	put(t, b, "k", "old")
	fail := func(stage memory.Stage) {
		b.SetHook(func(s memory.Step) error {
			if s.Stage == stage {
				return errPower
			}
			return nil
		})
		t.Cleanup(func() { b.SetHook(nil) })
	}
	fail(memory.Begun)
	_, err := b.Put(t.Context(), "k", []byte("new"), backend.Cond{})
	if !errors.Is(err, errPower) || backend.OutcomeOf(err) != backend.Unknown {
		t.Fatal(err)
	}
	if left := crashes(t, "k", crash); left["old"] != 300 {
		t.Errorf("after a put that never began: %v", left)
	}
	fail(memory.Visible)
	_, err = b.Put(t.Context(), "k", []byte("new"), backend.Cond{})
	if !errors.Is(err, errPower) || backend.OutcomeOf(err) != backend.Unknown {
		t.Fatal(err)
	}
	if body, _ := content(t, b, "k"); body != "new" {
		t.Errorf("readers see %q", body)
	}
	if left := crashes(t, "k", crash); left["old"] == 0 || left["new"] == 0 || left["old"]+left["new"] != 300 {
		t.Errorf("after a put in doubt: %v", left)
	}
	if err := b.Delete(t.Context(), "k"); backend.OutcomeOf(err) != backend.Unknown {
		t.Fatal(err)
	}
	if left := crashes(t, "k", crash); left["old"] == 0 || left["new"] == 0 || left["-"] == 0 {
		t.Errorf("after a delete in doubt too: %v", left)
	}
	b.SetHook(nil)
	put(t, b, "k", "settled")
	if left := crashes(t, "k", crash); left["settled"] != 300 {
		t.Errorf("after a put that returned nil: %v", left)
	}
}

// An append whose sync failed is visible and in doubt: it may be torn in every way of a disk, but earlier bytes stay.
func TestAppendInDoubtIsTorn(t *testing.T) {
	a := memory.NewAppender()
	crash := func(seed uint64) backend.Backend { return a.Crash(seed) }
	base := string(bytes.Repeat([]byte("b"), 700))
	tail := string(bytes.Repeat([]byte("t"), 1500))
	put(t, a, "log", base)
	a.SetHook(func(s memory.Step) error {
		if s.Stage == memory.Visible {
			return errPower
		}
		return nil
	})
	_, err := a.Append(t.Context(), "log", 700, []byte(tail))
	if !errors.Is(err, errPower) || backend.OutcomeOf(err) != backend.Unknown {
		t.Fatal(err)
	}
	a.SetHook(nil)
	if body, _ := content(t, a, "log"); body != base+tail {
		t.Error("readers do not see the append")
	}
	var whole, short, zeroed int
	for body, n := range crashes(t, "log", crash) {
		if body[:700] != base {
			t.Fatal("durable bytes were lost")
		}
		switch {
		case body == base+tail:
			whole += n
		case len(body) < 2200:
			short += n
		default:
			zeroed += n
		}
	}
	if whole == 0 || short == 0 || zeroed == 0 {
		t.Errorf("%d whole, %d cut short, %d with zeros; want each", whole, short, zeroed)
	}

	// A later append is durable itself and confirms nothing before it: those pages are clean already.
	if _, err := a.Append(t.Context(), "log", 2200, []byte("later")); err != nil {
		t.Fatal(err)
	}
	torn := 0
	for body, n := range crashes(t, "log", crash) {
		if len(body) != 2205 || body[:700] != base || body[2200:] != "later" {
			t.Fatalf("%d bytes, durable ones lost", len(body))
		}
		if body[700:2200] != tail {
			torn += n
		}
	}
	if torn == 0 {
		t.Error("an append in doubt was never torn below a later one")
	}
	if _, err := a.Resync(t.Context(), "log", 1000, 2205); err != nil {
		t.Fatal(err)
	}
	for body := range crashes(t, "log", crash) {
		if body[1000:] != (base + tail + "later")[1000:] {
			t.Fatal("resynced bytes were lost")
		}
	}
	if _, err := a.Resync(t.Context(), "log", 700, 2205); err != nil {
		t.Fatal(err)
	}
	if left := crashes(t, "log", crash); left[base+tail+"later"] != 300 {
		t.Errorf("%d versions after the whole was resynced", len(left))
	}
}

func TestShortWriteStaysVisible(t *testing.T) {
	a := memory.NewAppender()
	put(t, a, "log", "base")
	a.SetHook(func(s memory.Step) error { return memory.Short(3) })
	_, err := a.Append(t.Context(), "log", 4, []byte("append"))
	if backend.OutcomeOf(err) != backend.Unknown {
		t.Fatal(err)
	}
	_, err = a.Append(t.Context(), "log", 4, []byte("append"))
	if !errors.Is(err, backend.ErrPrecondition) || backend.OutcomeOf(err) != backend.NotApplied {
		t.Fatal(err)
	}
	a.SetHook(nil)
	if body, _ := content(t, a, "log"); body != "baseapp" {
		t.Errorf("the log holds %q", body)
	}
	left := crashes(t, "log", func(seed uint64) backend.Backend { return a.Crash(seed) })
	for _, want := range []string{"base", "basea", "baseap", "baseapp", "base\x00\x00\x00", "baseap\x00"} {
		if left[want] == 0 {
			t.Errorf("never left: %q in %v", want, left)
		}
	}
	if err := a.Cut(t.Context(), "log", 4, []byte("app")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Append(t.Context(), "log", 4, []byte("append")); err != nil {
		t.Fatal(err)
	}
	left = crashes(t, "log", func(seed uint64) backend.Backend { return a.Crash(seed) })
	if left["baseappend"] != 300 {
		t.Errorf("after cut and append: %v", left)
	}
}

// A crash during a call leaves its effect in doubt.
func TestCrashFromTheHook(t *testing.T) {
	for _, stage := range []memory.Stage{memory.Begun, memory.Visible} {
		a := memory.NewAppender()
		put(t, a, "log", "base")
		left := map[string]int{}
		a.SetHook(func(s memory.Step) error {
			if s.Op != "append" || s.Key != "log" || s.Bytes != 4 {
				t.Errorf("step %+v", s)
			}
			if s.Stage == stage {
				for seed := range uint64(100) {
					body, _ := content(t, a.Crash(seed), "log")
					left[body]++
				}
			}
			return nil
		})
		if _, err := a.Append(t.Context(), "log", 4, []byte("+new")); err != nil {
			t.Fatal(err)
		}
		if stage == memory.Begun && left["base"] != 100 {
			t.Errorf("before it began: %v", left)
		}
		if stage == memory.Visible && (left["base"] == 0 || left["base+new"] == 0 || left["base+n"] == 0) {
			t.Errorf("under way: %v", left)
		}
		if body, _ := content(t, a.Crash(1), "log"); body != "base+new" {
			t.Errorf("after nil: %q", body)
		}
	}
}

func TestCancelledMidwayIsInDoubt(t *testing.T) {
	for _, stage := range []memory.Stage{memory.Begun, memory.Visible} {
		b := memory.New()
		put(t, b, "k", "old")
		ctx, cancel := context.WithCancel(t.Context())
		b.SetHook(func(s memory.Step) error {
			if s.Stage == stage {
				cancel()
			}
			return nil
		})
		_, err := b.Put(ctx, "k", []byte("new"), backend.Cond{})
		cancel()
		if !errors.Is(err, context.Canceled) || backend.OutcomeOf(err) != backend.Unknown {
			t.Errorf("cancelled midway: %v (%s)", err, backend.OutcomeOf(err))
		}
		want := map[memory.Stage]string{memory.Begun: "old", memory.Visible: "new"}[stage]
		if body, _ := content(t, b, "k"); body != want {
			t.Errorf("readers see %q, want %q", body, want)
		}
	}
}

// The old store and the one after the crash share nothing.
func TestCrashMakesAStoreOfItsOwn(t *testing.T) {
	a := memory.NewAppender()
	put(t, a, "log", "base")
	if _, err := a.Append(t.Context(), "log", 4, []byte("+1")); err != nil {
		t.Fatal(err)
	}
	after := a.Crash(1)
	for i, h := range []*memory.Appender{a, after} {
		if _, err := h.Append(t.Context(), "log", 6, fmt.Appendf(nil, "+own%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, h := range []*memory.Appender{a, after} {
		if body, _ := content(t, h, "log"); body != fmt.Sprintf("base+1+own%d", i) {
			t.Errorf("store %d holds %q", i, body)
		}
	}
}

// The number of states in doubt of one object is bounded, and the durable state is never forgotten.
func TestManyDoubtfulStates(t *testing.T) {
	b := memory.New()
	put(t, b, "k", "durable")
	b.SetHook(func(s memory.Step) error {
		if s.Stage == memory.Visible {
			return errPower
		}
		return nil
	})
	for i := range 100 {
		_, _ = b.Put(t.Context(), "k", fmt.Appendf(nil, "doubt %d", i), backend.Cond{})
	}
	left := crashes(t, "k", func(seed uint64) backend.Backend { return b.Crash(seed) })
	if left["durable"] == 0 || left["doubt 99"] == 0 || len(left) > 17 {
		t.Errorf("left: %v", left)
	}
}
