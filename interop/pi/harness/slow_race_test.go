//go:build race

package harness

// slow: the race detector takes ten times the time.
const slow = true
