//go:build race

package formats

// slow: the race detector takes ten times the time.
const slow = true
