package canon

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/rawjson"
)

const (
	hexDigits  = "0123456789abcdef"
	timeLayout = "2006-01-02T15:04:05.000Z"
)

// AppendString appends s as JSON: only required escapes are used, and invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(append(dst, s[from:i]...), "\uFFFD"...)
		} else {
			dst = append(dst, s[from:i]...)
			if c == '"' || c == '\\' {
				dst = append(dst, '\\', c)
			} else {
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

// AppendID appends an id, or null for "".
func AppendID(dst []byte, id string) []byte {
	if id == "" {
		return append(dst, "null"...)
	}
	return AppendString(dst, id)
}

// AppendHex writes the lowest digits of v in hex.
func AppendHex(dst []byte, v uint64, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[v>>shift&15])
	}
	return dst
}

// AppendTime writes milliseconds in UTC, as pi does.
func AppendTime(dst []byte, t time.Time) ([]byte, error) {
	t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return dst, Malformed("time %v: year outside 0 to 9999", t)
	}
	return t.AppendFormat(dst, timeLayout), nil
}

// Cursor reads the canonical form. After the first unexpected byte OK is false and every further call does nothing.
type Cursor struct {
	P  []byte
	At int // index of the next byte
	OK bool
}

// Read starts a cursor at p[at].
func Read(p []byte, at int) *Cursor { return &Cursor{P: p, At: at, OK: true} }

// Fail stops the cursor.
func (c *Cursor) Fail() { c.OK = false }

// Done reports whether everything was read without a failure.
func (c *Cursor) Done() bool { return c.OK && c.At == len(c.P) }

// Has skips s if it is next.
func (c *Cursor) Has(s string) bool {
	if !c.OK || len(c.P)-c.At < len(s) || string(c.P[c.At:c.At+len(s)]) != s {
		return false
	}
	c.At += len(s)
	return true
}

// Want skips s, which must be next.
func (c *Cursor) Want(s string) {
	if !c.Has(s) {
		c.Fail()
	}
}

// Uint reads a decimal number without leading zeros.
func (c *Cursor) Uint() uint64 {
	from := c.At
	for c.At < len(c.P) && c.P[c.At] >= '0' && c.P[c.At] <= '9' && c.At-from < 20 {
		c.At++
	}
	v, err := strconv.ParseUint(string(c.P[from:c.At]), 10, 64)
	if err != nil || c.P[from] == '0' && c.At-from > 1 {
		c.Fail()
	}
	return v
}

// Count reads a number of at most 31 bits.
func (c *Cursor) Count() int {
	v := c.Uint()
	if v > math.MaxInt32 {
		c.Fail()
		return 0
	}
	return int(v)
}

// Size reads a number of at most 63 bits.
func (c *Cursor) Size() int64 {
	v := c.Uint()
	if v > math.MaxInt64 {
		c.Fail()
		return 0
	}
	return int64(v)
}

// Int reads a decimal number with an optional sign; the most negative one is refused.
func (c *Cursor) Int() int64 {
	if !c.Has("-") {
		return c.Size()
	}
	v := c.Size()
	if v == 0 {
		c.Fail()
	}
	return -v
}

// Hex reads lower-case hex digits.
func (c *Cursor) Hex(digits int) (v uint64) {
	if !c.OK || len(c.P)-c.At < digits {
		c.Fail()
		return 0
	}
	for _, b := range c.P[c.At : c.At+digits] {
		switch {
		case b >= '0' && b <= '9':
			v = v<<4 | uint64(b-'0')
		case b >= 'a' && b <= 'f':
			v = v<<4 | uint64(b-'a'+10)
		default:
			c.Fail()
		}
	}
	c.At += digits
	return v
}

// Text reads a string as AppendString writes it.
func (c *Cursor) Text() string {
	if !c.OK || c.At >= len(c.P) || c.P[c.At] != '"' {
		c.Fail()
		return ""
	}
	end, escaped, err := rawjson.StringEnd(c.P, c.At)
	if err != nil {
		c.Fail()
		return ""
	}
	token := c.P[c.At:end]
	c.At = end
	plain := !escaped
	for _, b := range token[1 : len(token)-1] {
		plain = plain && b < utf8.RuneSelf
	}
	if plain {
		return string(token[1 : len(token)-1])
	}
	var s string
	if err := json.Unmarshal(token, &s); err != nil || string(AppendString(nil, s)) != string(token) {
		c.Fail()
		return ""
	}
	return s
}

// Name reads a text that is not empty.
func (c *Cursor) Name() string {
	s := c.Text()
	if s == "" {
		c.Fail()
	}
	return s
}

// ID reads the output of AppendID.
func (c *Cursor) ID() string {
	if c.Has("null") {
		return ""
	}
	return c.Name()
}

// Time reads the output of AppendTime.
func (c *Cursor) Time() time.Time {
	if !c.OK || len(c.P)-c.At < len(timeLayout) {
		c.Fail()
		return time.Time{}
	}
	token := c.P[c.At : c.At+len(timeLayout)]
	c.At += len(timeLayout)
	t, err := time.Parse(timeLayout, string(token))
	if err != nil {
		c.Fail()
	}
	var again [len(timeLayout)]byte
	if string(t.AppendFormat(again[:0], timeLayout)) != string(token) {
		c.Fail()
	}
	return t
}

// Value skips a JSON value without white space and returns its bytes.
func (c *Cursor) Value(limit int) json.RawMessage {
	if !c.OK {
		return nil
	}
	end, compact, err := scan(c.P, c.At, limit)
	if err != nil || !compact {
		c.Fail()
		return nil
	}
	raw := c.P[c.At:end:end]
	c.At = end
	return raw
}
