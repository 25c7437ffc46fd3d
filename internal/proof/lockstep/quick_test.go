//go:build !race

package lockstep

// quick is how many lives every `go test` lives.
const quick = 60
