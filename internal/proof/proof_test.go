package proof

import (
	"testing"
	"time"
)

// double replaces a test, so that a suite can fail without failing this one.
type double struct {
	testing.TB
	failed  int
	cleanup []func()
}

func (d *double) Helper()               {}
func (d *double) Cleanup(f func())      { d.cleanup = append(d.cleanup, f) }
func (d *double) Errorf(string, ...any) { d.failed++ }
func (d *double) Failed() bool          { return d.failed > 0 }
func (d *double) Skipped() bool         { return false }
func (d *double) end() {
	for _, f := range d.cleanup {
		f()
	}
}

func TestReport(t *testing.T) {
	clock := time.Unix(0, 0)
	now := func() time.Time { return clock }

	d := &double{TB: t}
	begin(d, "nothing", now)
	d.end()
	if d.failed == 0 {
		t.Error("a suite that explored nothing passed")
	}

	d = &double{TB: t}
	r := begin(d, "states", now)
	r.Explored(3)
	r.Explored(4)
	r.Figure("first", 2)
	r.Figure("recovery", 4)
	r.Figure("first", 1)
	clock = clock.Add(1500 * time.Millisecond)
	if got, want := r.line(), "proof states explored=7 violations=0 seconds=1.5 first=3 recovery=4"; got != want {
		t.Errorf("line is %q, want %q", got, want)
	}
	d.end()
	if d.failed != 0 {
		t.Error("a clean suite failed")
	}

	d = &double{TB: t}
	r = begin(d, "broken", now)
	r.Explored(1)
	for range 3 * maxShown {
		r.Violation("seed %d", 1)
	}
	if d.failed != maxShown || r.Violations() != 3*maxShown || !r.Full() {
		t.Errorf("%d failures shown, %d violations, full %v", d.failed, r.Violations(), r.Full())
	}
}
