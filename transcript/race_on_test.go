//go:build race

package transcript

// raceEnabled: large tests shrink under the race detector.
const raceEnabled = true
