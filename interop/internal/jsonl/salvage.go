package jsonl

import (
	"bytes"
	"iter"
)

// Where something whole is looked for on a damaged line: so many places, so far from its end in bytes.
const (
	maxCandidates        = 64
	maxCandidateDistance = 1 << 20
)

// CandidatesAfterDamage returns the places on a damaged line where something that begins with mark may
// stand whole up to the line's end, appended after what is torn: the last one first. The line's own
// beginning is none of them.
func CandidatesAfterDamage(line []byte, mark string) iter.Seq[int] {
	return func(yield func(int) bool) {
		at := len(line)
		for range maxCandidates {
			if at = bytes.LastIndex(line[:at], []byte(mark)); at <= 0 || len(line)-at > maxCandidateDistance ||
				!yield(at) {
				return
			}
		}
	}
}
