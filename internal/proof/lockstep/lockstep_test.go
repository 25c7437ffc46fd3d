// Package lockstep lives the same random life of a session on stores of every kind at once: one that only
// replaces objects, one that appends, and a local disk. After every step the handle, a fresh handle and the
// other stores have to agree on everything that the API shows (I16).
//
// Ids differ between stores, so an entry is named by its place among the entries, and a commit by its seq. A
// life is a list of steps; a violation prints it, and it can be lived again:
//
//	COPPICE_LOCKSTEP='append 3 1; commit 2 0; reopen 0 0' go test ./internal/proof/lockstep -run TestProofLockstep -v
package lockstep

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/coppice-go/coppice/internal/proof"
)

// replayEnv is a life to live alone.
const replayEnv = "COPPICE_LOCKSTEP"

// TestProofLockstep lives lives. Explored are their steps, each compared on all stores.
func TestProofLockstep(t *testing.T) {
	if text := os.Getenv(replayEnv); text != "" {
		steps, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			t.Log(s)
		}
		l := live(steps, true)
		for _, b := range l.bad {
			t.Errorf("%s: %s", b.rule, b.text)
		}
		return
	}
	rep := proof.Begin(t, "lockstep")
	lives := proof.Pick(t, 60, 400, 20_000)
	found := map[string]finding{}
	counts := map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	seeds := make(chan uint64)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for seed := range seeds {
				steps := draw(seed)
				l := live(steps, seed%2 == 0)
				rep.Explored(l.done)
				for _, b := range l.bad {
					mu.Lock()
					_, known := found[b.rule]
					if counts[b.rule]++; !known {
						found[b.rule] = b
					}
					mu.Unlock()
					if !known {
						b = shrink(steps, b)
						mu.Lock()
						found[b.rule] = b
						mu.Unlock()
					}
				}
			}
		})
	}
	for seed := range uint64(lives) {
		seeds <- seed
	}
	close(seeds)
	all.Wait()
	var rules []string
	for rule := range found {
		rules = append(rules, rule)
	}
	slices.Sort(rules)
	for i, rule := range rules {
		b := found[rule]
		text := fmt.Sprintf("%s (%d of %d lives)\n\t%s\n\treplay: %s='%s'", rule, counts[rule], lives, b.text, replayEnv, format(b.steps))
		if i >= 10 { // a report prints ten itself
			t.Log(text)
		}
		rep.Violation("%s", text)
	}
}
