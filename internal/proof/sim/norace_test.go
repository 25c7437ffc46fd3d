//go:build !race

package sim

// quick is how many seeds every `go test` plays.
const quick = 400
