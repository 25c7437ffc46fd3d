//go:build !race

package journal

// slow says that the race detector is on: everything takes ten times as long.
const slow = false
