// Package testutil has what tests of several packages share: the time at which they begin, whether the race detector is
// on, and session files that are kept outside the repository. For tests only.
package testutil

import "testing"

// SkipSizes skips a test if the race detector is on: one of sizes, for the detector makes everything some ten times
// slower and memory several times larger, or a long one in which one caller does one thing after the other. `make test`
// runs the tests that call it once more, without the detector.
func SkipSizes(t testing.TB) {
	t.Helper()
	if RaceEnabled {
		t.Skip("`make test` runs this without the race detector")
	}
}
