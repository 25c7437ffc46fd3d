//go:build race

package coppice_test

// slow: the race detector takes ten times the time.
const slow = true
