//go:build race

package sim

// quick is how many seeds every `go test` plays: the race detector makes each ten times slower.
const quick = 32
