package jsonl

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/coppice-go/coppice/transcript"
)

// MadeID returns an id for what a file names none for: a UUIDv7 of its time, of which the rest is a hash of its
// content and of its number in the file. So a second import of the same bytes makes the same ids. What has no time of
// its own, or none that a UUIDv7 holds, counts as of 1970.
func MadeID(at time.Time, content []byte, number int) string {
	if y := at.Year(); y < 1970 || y > 9999 {
		at = time.Unix(0, 0)
	}
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(number)))
	h.Write(content)
	id, err := transcript.NewID(at, bytes.NewReader(h.Sum(nil)))
	if err != nil {
		panic(err) // a hash is longer than what NewID reads
	}
	return id
}
