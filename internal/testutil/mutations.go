package testutil

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Mutations calls check with 200 files that are made of the lines in testdata/*.jsonl as fuzzing makes them, but always
// the same: lines are cut, doubled and moved, their parts exchanged, bytes changed.
func Mutations(t *testing.T, check func(t *testing.T, text string)) {
	t.Helper()
	SkipLong(t)
	var lines, tokens []string
	between := func(r rune) bool { return strings.ContainsRune("{}[],:\n", r) }
	for _, p := range Samples(t) {
		text := string(p)
		lines = append(lines, strings.SplitAfter(text, "\n")...)
		tokens = append(tokens, strings.FieldsFunc(text, between)...)
	}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var text []string
		for range 1 + rnd.IntN(25) {
			line := lines[rnd.IntN(len(lines))]
			for rnd.IntN(3) == 0 && len(line) > 0 {
				at := rnd.IntN(len(line))
				switch rnd.IntN(5) {
				case 0:
					line = line[:at]
				case 1:
					line = line[:at] + string(rune(rnd.IntN(256))) + line[at+1:]
				case 2:
					line = line[:at] + line[at/2:]
				default:
					line = strings.Replace(line, tokens[rnd.IntN(len(tokens))], tokens[rnd.IntN(len(tokens))], 1)
				}
			}
			text = append(text, line)
		}
		check(t, strings.Join(text, ""))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
