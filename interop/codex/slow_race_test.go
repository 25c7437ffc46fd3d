//go:build race

package codex

// slow: the race detector takes ten times the time.
const slow = true
