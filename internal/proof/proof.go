// Package proof is what the suites that try to break the promises have in common: how large a run is,
// what it explored, and the one line that says so. A suite whose line shows no violation has tried as
// many states, seeds or histories as the line says: the count is kept by the loop that does the work.
//
// The suites are ordinary tests in the folders below this one. `go test` alone runs them at a size
// that takes seconds; COPPICE_PROOF=ci and COPPICE_PROOF=nightly are what `make proof` and `make
// prove` set.
package proof

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Size is how far a suite goes.
type Size int

// Quick is for every `go test`, CI for every change, Nightly for as long as it takes.
const (
	Quick Size = iota
	CI
	Nightly
)

// maxShown bounds the violations of a suite that are printed; all are counted.
const maxShown = 10

// Asked is the size that the environment asks for: COPPICE_PROOF is "ci", "nightly", or absent.
func Asked(t testing.TB) Size {
	switch v := os.Getenv("COPPICE_PROOF"); v {
	case "":
		return Quick
	case "ci":
		return CI
	case "nightly":
		return Nightly
	default:
		t.Fatalf("COPPICE_PROOF is %q: ci, nightly or nothing", v)
		return Quick
	}
}

// Pick returns one of three numbers, by the size that was asked for.
func Pick(t testing.TB, quick, ci, nightly int) int {
	return []int{quick, ci, nightly}[Asked(t)]
}

// Report counts what one suite did. Its methods may be called from many goroutines.
type Report struct {
	t    testing.TB
	name string
	now  func() time.Time

	mu         sync.Mutex
	began      time.Time
	explored   int64
	violations int
	figures    []figure // in the order in which they were first counted
}

// figure is a part of what a suite explored, or another count of it.
type figure struct {
	name string
	n    int64
}

// Begin starts the report of a suite; its line is printed when the test ends. A suite that explored
// nothing fails: it proves nothing.
func Begin(t testing.TB, name string) *Report {
	t.Helper()
	return begin(t, name, time.Now) //nolint:forbidigo // how long a suite took is all that the clock is asked
}

func begin(t testing.TB, name string, now func() time.Time) *Report {
	r := &Report{t: t, name: name, now: now, began: now()}
	t.Cleanup(r.end)
	return r
}

// Explored adds to what the suite has tried: states, seeds, histories, flips.
func (r *Report) Explored(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.explored += int64(n)
}

// Figure adds to a named count, which the suite's line shows after the seconds.
func (r *Report) Figure(name string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.figures {
		if r.figures[i].name == name {
			r.figures[i].n += int64(n)
			return
		}
	}
	r.figures = append(r.figures, figure{name, int64(n)})
}

// Violation records that a promise was broken, fails the test, and says how to see it again: the text
// must hold the seed or the state.
func (r *Report) Violation(format string, args ...any) {
	r.t.Helper()
	r.mu.Lock()
	r.violations++
	n := r.violations
	r.mu.Unlock()
	if n <= maxShown {
		r.t.Errorf("%s: "+format, append([]any{r.name}, args...)...)
	}
}

// Violations is how many there were so far; a suite may stop at its first hundred.
func (r *Report) Violations() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.violations
}

// Full reports whether the suite has seen enough: more violations than are shown.
func (r *Report) Full() bool { return r.Violations() > maxShown }

func (r *Report) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.explored == 0 && !r.t.Skipped() && !r.t.Failed() {
		r.t.Errorf("%s: explored nothing", r.name)
	}
	if r.violations > maxShown {
		r.t.Errorf("%s: %d violations in all", r.name, r.violations)
	}
	if r.t.Failed() && r.violations == 0 {
		r.violations = 1 // a suite that failed for any other reason must not read as clean
	}
	if r.t.Skipped() {
		return
	}
	fmt.Fprintln(os.Stdout, r.line())
}

func (r *Report) line() string {
	var line strings.Builder
	fmt.Fprintf(&line, "proof %s explored=%d violations=%d seconds=%.1f",
		r.name, r.explored, r.violations, r.now().Sub(r.began).Seconds())
	for _, f := range r.figures {
		fmt.Fprintf(&line, " %s=%d", f.name, f.n)
	}
	return line.String()
}
