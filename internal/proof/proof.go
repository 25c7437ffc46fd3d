// Package proof is the common part of the suites that try to break the promises: the size of a run, the counts, and
// their one line of output. A suite whose line shows no violation has tried as many states, seeds or histories as the
// line shows: the loop that does the work counts them.
//
// The suites are ordinary tests in the folders below this one. `go test` alone runs them at a size that takes seconds;
// `make proof` and `make prove` set COPPICE_PROOF=ci and COPPICE_PROOF=nightly.
package proof

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Size is the size of a run.
type Size int

// Quick is for every `go test`, CI for every change, Nightly for as long as it takes.
const (
	Quick Size = iota
	CI
	Nightly
)

// maxShown bounds the violations of a suite that are printed; all are counted.
const maxShown = 10

// Asked returns the size that the environment requests: COPPICE_PROOF is "ci", "nightly", or absent.
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

// Pick returns one of three numbers, by the requested size.
func Pick(t testing.TB, quick, ci, nightly int) int {
	return []int{quick, ci, nightly}[Asked(t)]
}

// Report counts the work of one suite. Its methods may be called from many goroutines.
type Report struct {
	t    testing.TB
	name string
	now  func() time.Time

	mu         sync.Mutex
	began      time.Time
	explored   int64
	violations int
	figures    []figure // in the order of their first count
}

// figure is a part of a suite's count, or another count.
type figure struct {
	name string
	n    int64
}

// Begin starts the report of a suite; its line is printed when the test ends. A suite that explored nothing fails: it
// proves nothing.
func Begin(t testing.TB, name string) *Report {
	t.Helper()
	return begin(t, name, time.Now) //nolint:forbidigo // how long a suite took is all that the clock is asked
}

func begin(t testing.TB, name string, now func() time.Time) *Report {
	r := &Report{t: t, name: name, now: now, began: now()}
	t.Cleanup(r.end)
	return r
}

// Explored adds to the number of states, seeds, histories or flips that were tried.
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

// Violation records a broken promise and fails the test. The text must contain the seed or the state, so that the
// violation can be repeated.
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

// Violations returns the number so far; a suite may stop after its first hundred.
func (r *Report) Violations() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.violations
}

// Full reports whether there are more violations than are shown.
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
		r.violations = 1 // a suite that failed for any other reason must not look clean
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
