//go:build race

package salvage_test

// slow: the race detector takes ten times the time.
const slow = true
