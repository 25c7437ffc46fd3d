package operator

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Times keep every digit: seconds with a fraction become an ISO-8601 string with as many digits, at least
// three; and milliseconds of messages have the fraction that the seconds had beyond them.

const isoForm = "2006-01-02T15:04:05"

// maxDigits bounds the digits of a fraction that are kept: a float has 17 in all.
const maxDigits = 17

// isoTime gives a time in seconds as an ISO-8601 string; anything else comes back as it is.
func isoTime(val []byte) []byte {
	seconds, fraction, ok := splitSeconds(val)
	if !ok {
		return val
	}
	for len(fraction) < 3 {
		fraction += "0"
	}
	return []byte(`"` + time.Unix(seconds, 0).UTC().Format(isoForm) + "." + fraction + `Z"`)
}

func isoOf(t time.Time) []byte {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000Z"`))
}

// splitSeconds takes a number of seconds apart: its digits, none of them rounded.
func splitSeconds(val []byte) (seconds int64, fraction string, ok bool) {
	if !rawjson.IsNumber(val) || val[0] == '-' {
		return 0, "", false
	}
	s := string(val)
	if strings.ContainsAny(s, "eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || f < 0 || f > maxSeconds {
			return 0, "", false
		}
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	whole, fraction, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds > maxSeconds {
		return 0, "", false
	}
	return seconds, fraction[:min(len(fraction), maxDigits)], true
}

// maxSeconds is the end of the year 9999.
const maxSeconds = 253402300799

// millis gives a time in seconds as milliseconds.
func millis(val []byte) []byte {
	seconds, fraction, ok := splitSeconds(val)
	if !ok {
		return val
	}
	for len(fraction) < 3 {
		fraction += "0"
	}
	out := strings.TrimLeft(strconv.FormatInt(seconds, 10)+fraction[:3], "0")
	if out == "" {
		out = "0"
	}
	if rest := strings.TrimRight(fraction[3:], "0"); rest != "" {
		out += "." + rest
	}
	return []byte(out)
}

// secondsOf gives an ISO-8601 string as seconds; nil if it is none.
func secondsOf(val []byte) []byte {
	s := rawjson.Text(val)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Unix() < 0 {
		return nil
	}
	fraction := ""
	if _, tail, ok := strings.Cut(s, "."); ok {
		n := 0
		for n < len(tail) && '0' <= tail[n] && tail[n] <= '9' {
			n++
		}
		fraction = tail[:n]
	}
	return decimal(strconv.FormatInt(t.Unix(), 10), fraction)
}

// secondsOfMillis gives milliseconds as seconds; nil if it is no number of milliseconds.
func secondsOfMillis(val []byte) []byte {
	if !rawjson.IsNumber(val) || val[0] == '-' || bytes.ContainsAny(val, "eE") {
		return nil
	}
	whole, fraction, _ := strings.Cut(string(val), ".")
	for len(whole) < 4 {
		whole = "0" + whole
	}
	return decimal(whole[:len(whole)-3], whole[len(whole)-3:]+fraction)
}

// decimal writes a number as the peer does: without zeros at the end, and with a point.
func decimal(whole, fraction string) []byte {
	if fraction = strings.TrimRight(fraction, "0"); fraction == "" {
		fraction = "0"
	}
	return []byte(whole + "." + fraction)
}

// oldTime reads a time of the older form: ISO-8601, with or without a zone.
func oldTime(val []byte) time.Time {
	if t := rawjson.Time(val); !t.IsZero() {
		return t
	}
	t, err := time.Parse("2006-01-02T15:04:05.999999999", rawjson.Text(val))
	if err != nil {
		return time.Time{}
	}
	return t
}
