// Package testutil has what tests of several packages share: the time at which they begin, whether long ones run, and
// session files that are kept outside the repository. For tests only.
package testutil

import "testing"

// SkipLong skips a test of a short run: one that takes seconds or much memory, and in which one caller does one thing
// after the other. The race detector runs with -short: it makes everything some ten times slower, and can find nothing
// in such a test.
func SkipLong(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long; left out by -short")
	}
}
