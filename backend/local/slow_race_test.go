//go:build race

package local_test

// slow: the race detector takes ten times the time.
const slow = true
