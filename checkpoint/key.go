package checkpoint

import (
	"encoding/hex"
	"math/bits"
)

// KeyOf returns a key under which a commit line verifies; ok is false if the line does not end like one. Such keys
// exist for every line: they prove only that two lines which verify under one key belong to one segment.
func KeyOf(line []byte) (key uint64, ok bool) {
	at := len(line) - selfBytes
	if at < 0 || string(line[at:at+len(selfField)]) != selfField {
		return 0, false
	}
	var self [4]byte
	if _, err := hex.Decode(self[:], line[at+len(selfField):at+len(selfField)+8]); err != nil {
		return 0, false
	}
	want := uint32(self[0])<<24 | uint32(self[1])<<16 | uint32(self[2])<<8 | uint32(self[3])
	zero := keyed(0, line[:at])
	want ^= zero
	// A CRC is linear: the effect of each bit of the key, reduced to one row for each bit of the result.
	var rows [32]struct {
		change uint32
		bits   uint64
	}
	for i := range 64 {
		change, from := keyed(1<<i, line[:at])^zero, uint64(1)<<i
		for change != 0 {
			top := 31 - bits.LeadingZeros32(change)
			if rows[top].change == 0 {
				rows[top].change, rows[top].bits = change, from
				break
			}
			change, from = change^rows[top].change, from^rows[top].bits
		}
	}
	for want != 0 {
		top := 31 - bits.LeadingZeros32(want)
		if rows[top].change == 0 {
			return 0, false
		}
		want, key = want^rows[top].change, key^rows[top].bits
	}
	return key, true
}
