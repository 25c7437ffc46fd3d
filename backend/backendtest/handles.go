package backendtest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
)

var handleCases = []testCase{
	{name: "Handles/SeeEachOther", needs: twoHandles, run: testSeeEachOther},
	{name: "Handles/Persist", needs: twoHandles, run: testPersist},
	{name: "Handles/IfAbsent", needs: twoHandles, run: func(e *env) { raceIfAbsent(e, e.b, e.second()) }},
	{name: "Handles/IfMatch", needs: twoHandles, run: func(e *env) { raceIfMatch(e, e.b, e.second()) }},
	{name: "Handles/Overwrite", needs: twoHandles, run: func(e *env) { raceOverwrite(e, e.b, e.second()) }},
	{name: "Handles/Fencing", needs: twoAppenders, run: testFencing},
	{name: "Handles/Append", needs: twoAppenders, run: func(e *env) { raceAppend(e, e.a, e.secondAppender()) }},
	{name: "Handles/Cut", needs: twoAppenders, run: func(e *env) { raceCut(e, e.a, e.secondAppender()) }},
	{name: "Handles/AppendAgainstPut", needs: twoAppenders, run: testAppendAgainstPut},
}

// second opens another handle on the same objects, closed when the case ends.
func (e *env) second() backend.Backend {
	e.Helper()
	b := e.h.Reopen(e.T, e.b)
	e.Cleanup(func() {
		if err := b.Close(); err != nil {
			e.Errorf("close of a second handle: %v", err)
		}
	})
	return b
}

func (e *env) secondAppender() backend.Appender {
	e.Helper()
	a, ok := e.second().(backend.Appender)
	if !ok {
		e.Fatal("New gave an Appender and Reopen did not")
	}
	return a
}

func testSeeEachOther(e *env) {
	first, other := e, &env{T: e.T, b: e.second(), h: e.h, rng: e.rng}
	v := first.put("object", []byte("one"), backend.IfAbsent()).Version
	other.holds("object", []byte("one"))
	_, err := other.b.Put(e.ctx(), "object", []byte("two"), backend.IfAbsent())
	other.refused(err, "put", "object", backend.ErrPrecondition)
	w := other.put("object", []byte("two"), backend.IfMatch(v)).Version
	first.holds("object", []byte("two"))
	_, err = first.b.Put(e.ctx(), "object", []byte("three"), backend.IfMatch(v))
	first.refused(err, "put", "object", backend.ErrPrecondition)
	first.put("object", []byte("three"), backend.IfMatch(w))
	other.lists([]string{"object"}, backend.ListOptions{})
	other.delete("object")
	first.absent("object")
	first.lists(nil, backend.ListOptions{})

	if err := other.b.Close(); err != nil { // closing one handle leaves the other
		e.Fatal(err)
	}
	first.put("object", []byte("four"), backend.IfAbsent())
	first.holds("object", []byte("four"))
}

func testPersist(e *env) {
	e.putAll(listKeys)
	e.put("replaced", []byte("old"), backend.Cond{})
	e.put("replaced", []byte("new"), backend.Cond{})
	e.put("deleted", []byte("x"), backend.Cond{})
	e.delete("deleted")
	if a, ok := e.b.(backend.Appender); ok {
		if _, err := a.Append(e.ctx(), "replaced", 3, []byte("er")); err != nil {
			e.Fatal(err)
		}
		if err := a.Cut(e.ctx(), "replaced", 4, []byte("r")); err != nil {
			e.Fatal(err)
		}
	} else {
		e.put("replaced", []byte("newe"), backend.Cond{})
	}
	v := e.stat("replaced").Version
	if err := e.b.Close(); err != nil {
		e.Fatal(err)
	}
	again := &env{T: e.T, b: e.second(), h: e.h, rng: e.rng}
	for _, key := range listKeys {
		again.holds(key, []byte(key))
	}
	again.holds("replaced", []byte("newe"))
	again.lists(append([]string{"replaced"}, listKeys...), backend.ListOptions{})
	if w := again.stat("replaced").Version; w != v {
		e.Errorf("version %q through a new handle, was %q", w, v)
	}
}

// Two writers assume the same end of the log: one appends, the other gets ErrPrecondition.
func testFencing(e *env) {
	handles := []backend.Appender{e.a, e.secondAppender()}
	e.put("log", nil, backend.IfAbsent())
	var want []byte
	for round := range e.size(60, 10) {
		var winner atomic.Int64
		winner.Store(-1)
		e.together(len(handles), func(i int) error {
			_, err := handles[i].Append(e.ctx(), "log", int64(len(want)), record(fmt.Sprint("handle ", i), 50+round))
			switch {
			case err == nil:
				if !winner.CompareAndSwap(-1, int64(i)) {
					return fmt.Errorf("round %d: both appended at %d", round, len(want))
				}
			case !errors.Is(err, backend.ErrPrecondition) || backend.OutcomeOf(err) != backend.NotApplied:
				return err
			}
			return nil
		})
		if winner.Load() < 0 {
			e.Fatalf("round %d: nobody appended", round)
		}
		want = append(want, record(fmt.Sprint("handle ", winner.Load()), 50+round)...)
		e.holds("log", want)
	}
	size := int64(len(want))
	if err := handles[1].Cut(e.ctx(), "log", size-1, want[size-1:]); err != nil {
		e.Fatal(err)
	}
	for op, call := range map[string]func() error{
		"append": func() error { _, err := handles[0].Append(e.ctx(), "log", size, []byte("stale")); return err },
		"cut":    func() error { return handles[0].Cut(e.ctx(), "log", 0, want) },
		"resync": func() error { _, err := handles[0].Resync(e.ctx(), "log", 0, size); return err },
	} {
		e.refused(call(), op, "log", backend.ErrPrecondition)
	}
	e.holds("log", want[:size-1])
}

// A Put that replaces a log and an Append to it are each applied whole, in one order or the other.
func testAppendAgainstPut(e *env) {
	other := e.secondAppender()
	for round := range e.size(40, 5) {
		key := fmt.Sprintf("log/%03d", round)
		v := e.put(key, []byte("base"), backend.IfAbsent()).Version
		var errs [2]error
		e.together(2, func(i int) error {
			if i == 0 {
				_, errs[0] = e.a.Append(e.ctx(), key, 4, []byte("+appended"))
			} else {
				_, errs[1] = other.Put(e.ctx(), key, []byte("replacement"), backend.IfMatch(v))
			}
			return nil
		})
		switch {
		case errs[0] == nil:
			e.refused(errs[1], "put", key, backend.ErrPrecondition)
			e.holds(key, []byte("base+appended"))
		case errs[1] == nil:
			e.refused(errs[0], "append", key, backend.ErrPrecondition)
			e.holds(key, []byte("replacement"))
		default:
			e.Fatalf("round %d: %v", round, errors.Join(errs[0], errs[1]))
		}
	}
}
