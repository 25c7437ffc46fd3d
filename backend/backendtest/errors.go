package backendtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
)

var errorCases = []testCase{
	{name: "Errors/Keys", run: testWeirdKeys},
	{name: "Errors/DoneContext", run: testDoneContext},
	{name: "Errors/CancelledMidway", run: testCancelled},
	{name: "Errors/CancelledList", run: testCancelledList},
	{name: "Errors/Closed", run: testClosed},
	{name: "Errors/CloseInUse", run: testCloseInUse},
}

// ops returns every method that takes a key, as a call that returns its error.
func ops(b backend.Backend) map[string]func(ctx context.Context, key string) error {
	m := map[string]func(ctx context.Context, key string) error{
		"get": func(ctx context.Context, key string) error {
			_, _, err := b.Get(ctx, key, backend.Range{})
			return err
		},
		"put": func(ctx context.Context, key string) error {
			_, err := b.Put(ctx, key, []byte("new bytes"), backend.Cond{})
			return err
		},
		"stat":   func(ctx context.Context, key string) error { _, err := b.Stat(ctx, key); return err },
		"delete": func(ctx context.Context, key string) error { return b.Delete(ctx, key) },
	}
	a, ok := b.(backend.Appender)
	if !ok {
		return m
	}
	m["append"] = func(ctx context.Context, key string) error {
		_, err := a.Append(ctx, key, 6, []byte(" and more"))
		return err
	}
	m["cut"] = func(ctx context.Context, key string) error { return a.Cut(ctx, key, 2, []byte("fore")) }
	m["resync"] = func(ctx context.Context, key string) error { _, err := a.Resync(ctx, key, 0, 6); return err }
	return m
}

func testWeirdKeys(e *env) {
	e.put("object", []byte("before"), backend.Cond{})
	long := strings.Repeat("x", 256)
	for _, key := range []string{
		"", ".", "..", "/", "/object", "object/", "a//b", "./object", "../object", "a/../object", "a/./b", ".hidden",
		"a/.hidden", "dot.", "a/dot./b", "back\\slash", "a b", "nul\x00", "line\n", "tab\t", "a:b", "a*b", "a?b",
		"a%2fb", "a+b", "~", "é", "\xff\xfe", "object\x00suffix", long, "a/" + long, strings.Repeat("ab/", 300) + "a",
	} {
		for op, call := range ops(e.b) {
			e.refused(call(e.ctx(), key), op, key, backend.ErrKey)
		}
	}
	if infos := e.list(backend.ListOptions{}); len(infos) != 1 {
		e.Errorf("list after refused keys: %+v", infos)
	}
	e.holds("object", []byte("before"))
}

func testDoneContext(e *env) {
	e.put("object", []byte("before"), backend.Cond{})
	done, cancel := context.WithCancel(e.ctx())
	cancel()
	for op, call := range ops(e.b) {
		e.refused(call(done, "object"), op, "object", context.Canceled)
		e.refused(call(done, "absent"), op, "absent", context.Canceled)
	}
	infos, err := collect(e.b.List(done, backend.ListOptions{}))
	if !errors.Is(err, context.Canceled) || backend.OutcomeOf(err) != backend.NotApplied || len(infos) != 0 {
		e.Errorf("list with a done context: %v, %v (%s); want context.Canceled, not applied", infos, err,
			backend.OutcomeOf(err))
	}
	e.holds("object", []byte("before"))
	e.absent("absent")
}

// The outcome that a cancelled call reports is true, and no object is ever half written. Each round has its own key,
// since a write with an unknown outcome may still be applied later.
func testCancelled(e *env) {
	rounds := e.size(150, 10)
	for i := range rounds {
		key := fmt.Sprintf("cancelled/%04d", i)
		old, p := fill("old", 6), fill(fmt.Sprint("new", i), 20000)
		if i%2 == 0 {
			e.put(key, old, backend.Cond{})
		}
		ctx, cancel := context.WithCancel(e.ctx())
		yields := e.rng.IntN(30)
		var wg sync.WaitGroup
		wg.Go(func() {
			for range yields {
				runtime.Gosched()
			}
			cancel()
		})
		_, err := e.b.Put(ctx, key, p, backend.Cond{})
		wg.Wait()
		got, _, geterr := e.b.Get(e.ctx(), key, backend.Range{})
		isOld := i%2 == 0 && bytes.Equal(got, old) || i%2 == 1 && errors.Is(geterr, backend.ErrNotExist)
		isNew := geterr == nil && bytes.Equal(got, p)
		if err != nil && !errors.Is(err, context.Canceled) {
			e.Fatalf("cancelled put: %v, want context.Canceled", err)
		}
		switch out := backend.OutcomeOf(err); {
		case out == backend.Applied && !isNew, out == backend.NotApplied && !isOld, !isOld && !isNew:
			e.Fatalf("round %d: %v (%s), and then %s, %v", i, err, out, show(got), geterr)
		}
	}
}

func testCancelledList(e *env) {
	e.putAll(listKeys)
	ctx, cancel := context.WithCancel(e.ctx())
	defer cancel()
	seen, failures := 0, 0
	for _, err := range e.b.List(ctx, backend.ListOptions{}) {
		if failures > 0 {
			e.Fatal("the listing went on after its error")
		}
		if err != nil {
			failures++
			if !errors.Is(err, context.Canceled) {
				e.Errorf("cancelled list: %v, want context.Canceled", err)
			}
			continue
		}
		seen++
		cancel()
	}
	if failures == 0 && seen != len(listKeys) {
		e.Errorf("a cancelled listing ended after %d of %d without an error", seen, len(listKeys))
	}
}

func testClosed(e *env) {
	e.put("object", []byte("before"), backend.Cond{})
	for range 2 { // idempotent
		if err := e.b.Close(); err != nil {
			e.Fatalf("close: %v", err)
		}
	}
	for op, call := range ops(e.b) {
		e.refused(call(e.ctx(), "object"), op, "object", backend.ErrClosed)
	}
	infos, err := collect(e.b.List(e.ctx(), backend.ListOptions{}))
	if !errors.Is(err, backend.ErrClosed) || len(infos) != 0 {
		e.Errorf("list after close: %v, %v; want ErrClosed", infos, err)
	}
}

// Close concurrent with calls: each of them ends with its effect or an error; calls that begin after it has returned
// are refused.
func testCloseInUse(e *env) {
	e.put("object", []byte("before"), backend.Cond{})
	const writers = 4
	var closed atomic.Bool
	var beside [writers]atomic.Int64
	e.together(writers+1, func(w int) error {
		if w == writers {
			for i := range beside {
				for beside[i].Load() == 0 {
					runtime.Gosched()
				}
			}
			defer closed.Store(true)
			return e.b.Close()
		}
		defer beside[w].Add(1) // also if the first put fails
		for i := 0; !closed.Load(); i++ {
			_, err := e.b.Put(e.ctx(), fmt.Sprintf("use/%d-%d", w, i%10), []byte("x"), backend.Cond{})
			if err != nil && backend.OutcomeOf(err) == backend.Applied {
				return fmt.Errorf("put beside close: %w says applied", err)
			}
			beside[w].Add(1)
		}
		_, err := e.b.Put(e.ctx(), "late", []byte("x"), backend.Cond{})
		if !errors.Is(err, backend.ErrClosed) {
			return errors.Join(errors.New("put after close: no ErrClosed"), err)
		}
		return nil
	})
}
