package operator

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
)

func isoOf(t time.Time) []byte {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000Z"`))
}

// secondsOf returns an ISO-8601 string as seconds, or nil.
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

// secondsOfMillis returns milliseconds as seconds, or nil.
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

// decimal writes a number as operator does: without trailing zeros, and with a point.
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
