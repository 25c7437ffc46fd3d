//go:build race

package handle

// quick is how many schedules every `go test` plays: the race detector makes each ten times slower.
const quick = 200
