package codec

import (
	"encoding/binary"
	"encoding/hex"
)

// The stored form of an id: one code byte, in a column of its own, and a payload of at least one byte. The shortest
// applicable form is used.
const (
	UUID     = 0    // a lower-case UUID: 16 bytes
	Timed    = 1    // a UUID whose first six bytes are the row's time: its last 10 bytes
	Long     = 2    // text of over 127 bytes: its length as a uvarint, and the text
	Empty    = 3    // no id: one byte, zero
	Hex      = 0x10 // + n, n of 1 to 63: 2n lower-case hex digits in n bytes
	Text     = 0x80 // + n, n of 1 to 127: text of n bytes
	hexMax   = 63
	textMax  = 127
	uuidText = 36
	uuidSize = 16
	timeSize = 6 // leading bytes of a UUIDv7 that are its time
	MaxLen   = 1 << 20
)

// packID appends the payload of id to dst and returns its code. timed reports whether the form that leaves out ms, the
// row's time, may be used.
func packID(dst []byte, id string, ms int64, timed bool) ([]byte, byte) {
	var u [uuidSize]byte
	switch {
	case id == "":
		return append(dst, 0), Empty
	case parseUUID(&u, id):
		if timed && uint64(ms) == uuidTime(u[:]) {
			return append(dst, u[timeSize:]...), Timed
		}
		return append(dst, u[:]...), UUID
	case len(id)%2 == 0 && len(id) <= 2*hexMax && isLowerHex(id):
		dst, _ = hex.AppendDecode(dst, []byte(id)) // cannot fail: all digits are hex
		return dst, Hex + byte(len(id)/2)
	}
	if len(id) > textMax {
		return append(binary.AppendUvarint(dst, uint64(len(id))), id...), Long
	}
	return append(dst, id...), Text + byte(len(id))
}

// idSize returns the number of bytes at the start of p that are the payload of an id of this code, and how many of them
// precede its text. p may be longer; ok is false if it is too short or the code is unknown.
func idSize(code byte, p []byte) (size, skip int, ok bool) {
	switch {
	case code == UUID:
		size = uuidSize
	case code == Timed:
		size = uuidSize - timeSize
	case code == Empty:
		size = 1
	case code == Long:
		n, used := binary.Uvarint(p)
		if used <= 0 || n > uint64(len(p)) || used > 1 && p[used-1] == 0 { // the last: not the shortest form
			return 0, 0, false
		}
		size, skip = used+int(n), used
	case code > Hex && code <= Hex+hexMax:
		size = int(code - Hex)
	case code > Text:
		size = int(code - Text)
	default:
		return 0, 0, false
	}
	return size, skip, size <= len(p)
}

// appendID appends the text of an id to dst, given its code, its payload without the length of a
// long one, and its row's time.
func appendID(dst []byte, code byte, payload []byte, ms int64) []byte {
	switch {
	case code == UUID:
		return appendUUID(dst, payload)
	case code == Timed:
		var u [uuidSize]byte
		var t [8]byte
		binary.BigEndian.PutUint64(t[:], uint64(ms))
		copy(u[:timeSize], t[2:])
		copy(u[timeSize:], payload)
		return appendUUID(dst, u[:])
	case code == Empty:
		return dst
	case code > Hex && code <= Hex+hexMax:
		return hex.AppendEncode(dst, payload)
	}
	return append(dst, payload...)
}

// appendIDKey appends the canonical key of an id, which is the same for every stored form, from its code, its payload
// without the length of a long one, and its row's time. It contains the whole id: an index that left a part out could
// be filled with ids that differ only in that part.
func appendIDKey(dst []byte, code byte, payload []byte, ms int64) []byte {
	switch code {
	case Timed:
		var t [8]byte
		binary.BigEndian.PutUint64(t[:], uint64(ms))
		dst = append(dst, t[8-timeSize:]...)
	case Empty:
		return dst
	}
	return append(dst, payload...)
}

// appendKeyOf appends the key of an id's text.
func appendKeyOf(dst []byte, id string) []byte {
	at := len(dst)
	dst, code := packID(dst, id, 0, false)
	_, skip, _ := idSize(code, dst[at:])
	return appendIDKey(dst[:at], code, dst[at+skip:], 0)
}

// uuidTime is the time in the first six bytes of a UUIDv7.
func uuidTime(u []byte) uint64 {
	return uint64(binary.BigEndian.Uint16(u))<<32 | uint64(binary.BigEndian.Uint32(u[2:]))
}

// parseUUID reads the canonical lower-case text of a UUID, and nothing else.
func parseUUID(u *[uuidSize]byte, s string) bool {
	if len(s) != uuidText || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	at := 0
	for i := 0; i < uuidText; i += 2 {
		if s[i] == '-' {
			i++
		}
		hi, lo := hexDigit(s[i]), hexDigit(s[i+1])
		if hi|lo > 0x0f {
			return false
		}
		u[at] = hi<<4 | lo
		at++
	}
	return true
}

// appendUUID appends the canonical text of u, 16 bytes. A pass over a tree spends most of its time here.
func appendUUID(dst, u []byte) []byte {
	var text [uuidText]byte
	be := binary.BigEndian
	w := hexText(be.Uint32(u))
	be.PutUint64(text[:], w)
	w = hexText(be.Uint32(u[4:]))
	be.PutUint32(text[9:], uint32(w>>32))
	be.PutUint32(text[14:], uint32(w))
	w = hexText(be.Uint32(u[8:]))
	be.PutUint32(text[19:], uint32(w>>32))
	be.PutUint32(text[24:], uint32(w))
	be.PutUint64(text[28:], hexText(be.Uint32(u[12:])))
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return append(dst, text[:]...)
}

// hexText returns the eight lower-case hex digits of v, the first in the highest byte.
func hexText(v uint32) uint64 {
	const ones = 0x0101010101010101
	x := uint64(v)
	x = x&0xffff0000<<16 | x&0xffff // spread the half bytes over bytes
	x = x&0x0000ff000000ff00<<8 | x&0x000000ff000000ff
	x = x&0x00f000f000f000f0<<4 | x&0x000f000f000f000f
	letters := (x + 6*ones) >> 4 & ones // 1 where it is over 9
	return x + '0'*ones + letters*('a'-'0'-10)
}

// hexDigit returns the value of a lower-case hex digit, 0xff for anything else.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}

func isLowerHex(s string) bool {
	for i := range len(s) {
		if hexDigit(s[i]) == 0xff {
			return false
		}
	}
	return true
}
