package jsonl

import (
	"bytes"
	"iter"
)

// Bounds of the search for an intact object on a damaged line: number of candidates, and their distance from the end in
// bytes.
const (
	maxCandidates        = 64
	maxCandidateDistance = 1 << 20
)

// CandidatesAfterDamage yields the offsets on a damaged line at which an object that begins with mark may be intact up
// to the line's end, because it was appended to an incomplete line. The last offset comes first; the line's own start
// is not one.
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
