package transcript

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
)

// NewID makes a UUIDv7 from the caller's clock and randomness: 48 bits of milliseconds, 12 bits of the
// fraction below them, 62 random bits. So ids sort by time, down to a quarter of a microsecond, and equal
// clocks and equal randomness produce equal ids. It reads 8 bytes from r.
func NewID(now time.Time, r io.Reader) (string, error) {
	var u uuid.UUID
	if _, err := io.ReadFull(r, u[8:]); err != nil {
		return "", fmt.Errorf("make an id: read randomness: %w", err)
	}
	const nsPerMs = int64(time.Millisecond)
	fraction := uint64(int64(now.Nanosecond())%nsPerMs) << 12 / uint64(nsPerMs)
	binary.BigEndian.PutUint64(u[:8], uint64(now.UnixMilli())<<16|0x7000|fraction)
	u[8] = u[8]&0x3f | 0x80 // the variant of RFC 9562
	return u.String(), nil
}
