//go:build race

package lockstep

// quick is how many lives every `go test` lives: the race detector makes each ten times slower.
const quick = 8
