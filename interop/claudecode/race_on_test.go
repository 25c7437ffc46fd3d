//go:build race

package claudecode

const underRace = true
