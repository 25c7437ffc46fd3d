// Package race tells tests whether the race detector watches them. It makes everything some ten times slower
// and memory several times larger, so that a test of sizes shows nothing with it: such a test has a name that
// begins with TestSize, calls Sizes, and is run by `make test` once more, without the detector.
package race

import "testing"

// Sizes skips a test of sizes where the race detector watches.
func Sizes(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("a test of sizes, which `make test` runs without the race detector")
	}
}
