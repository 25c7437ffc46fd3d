//go:build !race

package claudecode

const underRace = false
