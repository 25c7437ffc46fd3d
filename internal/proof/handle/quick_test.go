//go:build !race

package handle

// quick is how many schedules every `go test` plays.
const quick = 2000
