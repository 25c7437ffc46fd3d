//go:build race

package gc_test

// slow: the race detector takes ten times the time.
const slow = true
