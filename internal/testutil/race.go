// Package testutil has what tests of several packages share: whether the race detector is on, and session files
// that are kept outside the repository. For tests only.
package testutil

import "testing"

// SkipSizes skips a test of sizes if the race detector is on: it makes everything some ten times slower and memory
// several times larger. Such a test has a name that begins with TestSize, and `make test` runs it once more, without
// the detector.
func SkipSizes(t testing.TB) {
	t.Helper()
	if RaceEnabled {
		t.Skip("a test of sizes, which `make test` runs without the race detector")
	}
}
