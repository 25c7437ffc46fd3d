//go:build race

package tree

// raceEnabled: large tests shrink under the race detector.
const raceEnabled = true
