package jsonl

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/coppice-go/coppice/transcript"
)

// MadeID returns an ID for an entry without one: a UUIDv7 of its time; the rest is a hash of its content and its number
// in the file. So a second import of the same bytes makes the same IDs. A time that is missing, or outside of the range
// of a UUIDv7, counts as 1970.
func MadeID(at time.Time, content []byte, number int) string {
	if y := at.Year(); y < 1970 || y > 9999 {
		at = time.Unix(0, 0)
	}
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(number)))
	h.Write(content)
	id, err := transcript.NewID(at, bytes.NewReader(h.Sum(nil)))
	if err != nil {
		panic(err) // a hash is longer than NewID needs
	}
	return id
}
