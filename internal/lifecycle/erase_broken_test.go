package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
)

// An erasure that is to reach other sessions and dies at any of its changes is completed with the same reach, by
// whatever completes it: a collection, a repair, the next call. The entry may have been erased here before.
func TestEraseEverywhereIsCompleted(t *testing.T) {
	completions := []func(store *coppice.Store) error{ // in turn
		func(store *coppice.Store) error { _, err := store.GC(bg, "s", false); return err },
		func(store *coppice.Store) error { _, err := store.Repair(bg, "s", false); return err },
		func(store *coppice.Store) error { _, err := store.Erase(bg, "s", nil, nil); return err },
	}
	for kind, open := range map[string]func() backend.Backend{
		"append":  func() backend.Backend { return memory.NewAppender() },
		"replace": func() backend.Backend { return memory.New() },
	} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", kind, before), func(t *testing.T) {
				step := 1
				if testing.Short() {
					step = 4 // each completion has its turn
				}
				n := 1
				for eraseDies(t, open(), n, before, completions[n%len(completions)]) {
					n += step
				}
			})
		}
	}
}

var errDead = errors.New("dead")

// eraseDies makes an erasure die at its nth change and completes it; false = it has fewer changes.
func eraseDies(t *testing.T, b backend.Backend, n int, before bool, complete func(*coppice.Store) error) bool {
	t.Helper()
	f := fault.New(b, 1)
	store := newStore(t, f, nil)
	setSleep(store, func(ctx context.Context) error { return ctx.Err() })
	s := create(t, store, "s", nil)
	ids := must(s.Append(bg, entry.User(erasedWord)))(t)
	must(s.Commit(bg, coppice.Turn{State: plan(1, "unrelated")}))(t)
	must(s.Commit(bg, coppice.Turn{State: plan(1, erasedWord)}))(t)
	ok(t, must(s.Fork(bg, coppice.Target{}, "fork", nil))(t).Close())
	ok(t, must(store.Copy(bg, store, "s", "copy"))(t).Close())
	ok(t, s.Close())
	o := &coppice.EraseOptions{States: []string{"/plan/2/key"}}
	if before {
		must(store.Erase(bg, "s", ids, o))(t)
		o.States = nil // the entries alone are left elsewhere
		for _, id := range []string{"fork", "copy"} {
			must(store.Erase(bg, id, nil, &coppice.EraseOptions{States: []string{"/plan/2/key"}}))(t)
		}
	}
	changes := 0
	f.Add(fault.Rule{Count: -1, Err: errDead, When: func(c fault.Call) bool {
		if c.Op != "get" && c.Op != "stat" && c.Op != "list" {
			changes++
		}
		return changes >= n
	}})
	o.Everywhere = true
	_, err := store.Erase(bg, "s", ids, o)
	if changes < n {
		ok(t, err)
		unproven(t, store)
		return false
	}
	if !errors.Is(err, errDead) {
		t.Fatalf("dead at change %d: %v", n, err)
	}
	next := newStore(t, b, nil) // the first one stays dead: it may have had an object on its way
	begun := false
	for key := range objects(t, b) {
		begun = begun || strings.HasPrefix(key, "sessions/s/erasures/")
	}
	if !begun {
		if n > 1 && must(next.Prove(bg, erasedWord))(t).Found != nil {
			t.Errorf("dead at change %d: nothing records the erasure", n)
		}
		return true
	}
	if err := complete(next); err != nil {
		t.Errorf("dead at change %d: %v", n, err)
	}
	if p := must(next.Prove(bg, erasedWord))(t); len(p.Found) > 0 {
		t.Errorf("dead at change %d, then completed: the text is in %v", n, p.Found)
	}
	for key := range objects(t, b) {
		if strings.Contains(key, "/erasures/") {
			t.Errorf("dead at change %d, then completed: %s is left", n, key)
		}
	}
	return true
}
