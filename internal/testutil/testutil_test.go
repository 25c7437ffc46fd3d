package testutil_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/testutil"
)

func TestClock(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{"": at, "8760h": at.AddDate(1, 0, 0), "-1m": at.Add(-time.Minute)} {
		t.Setenv(testutil.ShiftVariable, text)
		now := testutil.Clock(at, time.Second)
		if first, second := now(), now(); !first.Equal(want.Add(time.Second)) || !second.Equal(want.Add(2*time.Second)) {
			t.Errorf("moved by %q: %v, %v", text, first, second)
		}
		if got := testutil.Shifted(at); !got.Equal(want) {
			t.Errorf("moved by %q: %v", text, got)
		}
	}
}

// failing takes note of a failure.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper()               {}
func (f *failing) Errorf(string, ...any) { f.failed = true }

func TestLinear(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing says what a thread used")
	}
	steps := 0
	for what, walk := range map[string]func(n int) int{
		"linear":    func(n int) int { return 1000 * n },
		"quadratic": func(n int) int { return n * n },
	} {
		f := &failing{TB: t}
		testutil.Linear(f, what, 300, func(n int) func() {
			return func() {
				for range walk(n) {
					steps ^= n // what the compiler must do
				}
			}
		})
		if f.failed != (what == "quadratic") {
			t.Errorf("%s: failed is %v, %d", what, f.failed, steps)
		}
	}
}
