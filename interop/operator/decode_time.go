package operator

import (
	"bytes"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Times keep every digit. Seconds with a fraction become an ISO-8601 string with as many digits, at least three.
// Milliseconds of messages keep the fraction of a millisecond.

// maxDigits bounds the digits of a fraction: a float has 17 in all.
const maxDigits = 17

// isoTime returns a time in seconds as an ISO-8601 string; other values unchanged.
func isoTime(val []byte) []byte { return appendISOTime(nil, val) }

// appendISOTime appends the result of isoTime.
func appendISOTime(dst, val []byte) []byte {
	seconds, fraction, ok := splitSeconds(val)
	if !ok {
		return append(dst, val...)
	}
	dst = time.Unix(seconds, 0).UTC().AppendFormat(append(dst, '"'), time.RFC3339)
	dst[len(dst)-1] = '.' // the Z follows the fraction
	dst = append(dst, fraction...)
	for n := len(fraction); n < 3; n++ {
		dst = append(dst, '0')
	}
	return append(dst, 'Z', '"')
}

// splitSeconds returns the whole part and the digits of the fraction of a number of seconds, without rounding.
func splitSeconds(val []byte) (seconds int64, fraction []byte, ok bool) {
	if !rawjson.IsNumber(val) || val[0] == '-' {
		return 0, nil, false
	}
	if bytes.IndexByte(val, 'e') >= 0 || bytes.IndexByte(val, 'E') >= 0 {
		f, err := strconv.ParseFloat(string(val), 64)
		if err != nil || f < 0 || f > maxSeconds {
			return 0, nil, false
		}
		val = strconv.AppendFloat(nil, f, 'f', -1, 64)
	}
	whole, fraction, _ := bytes.Cut(val, []byte("."))
	for _, c := range whole {
		if seconds = seconds*10 + int64(c-'0'); seconds > maxSeconds {
			return 0, nil, false
		}
	}
	return seconds, fraction[:min(len(fraction), maxDigits)], true
}

// maxSeconds is the end of the year 9999.
const maxSeconds = 253402300799

// appendMillis appends a time in seconds as milliseconds; other values unchanged.
func appendMillis(dst, val []byte) []byte {
	seconds, fraction, ok := splitSeconds(val)
	if !ok {
		return append(dst, val...)
	}
	for i := range 3 {
		seconds *= 10
		if i < len(fraction) {
			seconds += int64(fraction[i] - '0')
		}
	}
	dst = strconv.AppendInt(dst, seconds, 10)
	if rest := bytes.TrimRight(fraction[min(3, len(fraction)):], "0"); len(rest) > 0 {
		dst = append(append(dst, '.'), rest...)
	}
	return dst
}
