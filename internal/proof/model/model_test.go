package model

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-go/coppice/internal/proof"
)

// row is a model within its bounds, and the expected result of the search.
type row struct {
	name  string
	from  proof.Size // the smallest size of a run that searches it
	kind  string     // the kind of its events
	find  func(workers int) result
	wrong string // the violation without the rule; "" = none within all bounds
}

// statesMax bounds any search, at about 7 GB: a run that reaches it fails.
const statesMax = 100_000_000

var kinds = map[string]map[uint8]string{
	"turn": turnEvents, "replace": replaceEvents, "torn": tornEvents, "chain": chainEvents,
}

func replacing(name string, from proof.Size, rules replaceRules, b replaceBounds, wrong string) row {
	m := &replaceModel{rules, b}
	return row{name, from, "replace", func(workers int) result { return search(m.space(), workers, statesMax) }, wrong}
}

func tearing(name string, from proof.Size, m tornModel, wrong string) row {
	return row{name, from, "torn", func(workers int) result { return search(m.space(), workers, statesMax) }, wrong}
}

func chaining(name string, from proof.Size, m chainModel, wrong string) row {
	return row{name, from, "chain", func(workers int) result { return search(m.space(), workers, statesMax) }, wrong}
}

// TestProofModel searches every row of its size. The protocol must hold in every state within the bounds; without one
// of its rules it must not, or that rule is not checked.
func TestProofModel(t *testing.T) {
	size := proof.Asked(t)
	rep := proof.Begin(t, "model")
	seen := map[string]uint64{}
	for _, r := range append(holds(), turnRows()...) {
		if r.from > size || !wanted(r.name) {
			continue
		}
		got := r.find(0)
		rep.Explored(int(got.states))
		t.Logf("%-62s %10d states %11d edges, depth %d", r.name, got.states, got.edges, got.depth)
		seen[r.kind] |= got.events
		switch {
		case got.wrong != "":
			rep.Violation("%s: %s\n%s", r.name, got.wrong, story(&r, &got))
		case !got.whole:
			rep.Violation("%s: the search was not exhaustive", r.name)
		}
	}
	withoutRules(t, rep, size, seen)
	if wanted("walk") {
		walks(t, rep, proof.Pick(t, 300, 10_000, 300_000))
	}
	if size == proof.Quick || os.Getenv(onlyEnv) != "" {
		return // the run is too small for all events
	}
	for kind, names := range kinds {
		for e, name := range names {
			if seen[kind]>>e&1 == 0 {
				rep.Violation("%s: it never happened that %q: nothing is proven of it", kind, name)
			}
		}
	}
}

// withoutRules searches the variants that must fail, each with one worker, so that the number of states until the
// violation is always the same.
func withoutRules(t *testing.T, rep *proof.Report, size proof.Size, seen map[string]uint64) {
	rows := append(fails(), turnMutants()...)
	results := make([]result, len(rows))
	var wg sync.WaitGroup
	room := make(chan struct{}, 2)
	for i, r := range rows {
		if r.from > size || !wanted(r.name) {
			continue
		}
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			results[i] = r.find(1)
		})
	}
	wg.Wait()
	for i, r := range rows {
		got := &results[i]
		if got.states == 0 {
			continue
		}
		rep.Explored(int(got.states))
		seen[r.kind] |= got.events
		t.Logf("%-62s %10d states: %s\n%s", r.name, got.states, got.wrong, story(&r, got))
		if !strings.HasPrefix(got.wrong, r.wrong) || got.wrong == "" {
			rep.Violation("%s: found %q, not %q: nothing checks this rule", r.name, got.wrong, r.wrong)
		}
	}
}

// story returns the path to a violation, an event on each line.
func story(r *row, got *result) string {
	var b strings.Builder
	for i, e := range got.trace {
		text := kinds[r.kind][e.what]
		args := []any{e.a, e.b}
		fmt.Fprintf(&b, "  %2d. "+text+"\n", append([]any{i + 1}, args[:strings.Count(text, "%")]...)...)
	}
	return b.String()
}

// onlyEnv is the variable that selects rows by name.
const onlyEnv = "COPPICE_MODEL"

func wanted(name string) bool {
	only := os.Getenv(onlyEnv)
	return only == "" || strings.Contains(name, only)
}
