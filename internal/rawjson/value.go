package rawjson

import (
	"strconv"
	"time"
)

// IsString reports whether a value is a string.
func IsString(val []byte) bool { return len(val) >= 2 && val[0] == '"' }

// IsTrue reports whether a value is true.
func IsTrue(val []byte) bool { return len(val) == 4 && val[0] == 't' }

// IsNumber reports whether a value is a number.
func IsNumber(val []byte) bool {
	return len(val) > 0 && (val[0] == '-' || '0' <= val[0] && val[0] <= '9')
}

// isoLen is the length of the time stamps that pi and coppice write: 2006-01-02T15:04:05.000Z.
const isoLen = len("2006-01-02T15:04:05.000Z")

// Time reads an ISO-8601 string, or a number of Unix seconds or milliseconds; zero = neither.
func Time(val []byte) time.Time {
	if len(val) == 0 {
		return time.Time{}
	}
	if val[0] != '"' {
		return numberTime(val)
	}
	if len(val) == isoLen+2 {
		if t, ok := parseISO(val[1 : len(val)-1]); ok {
			return t
		}
	}
	t, err := time.Parse(time.RFC3339Nano, Text(val))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// parseISO reads the usual form without allocation. Days 29 to 31 are left to package time, which knows the months.
func parseISO(s []byte) (time.Time, bool) {
	const form = "0000-00-00T00:00:00.000Z"
	var v [7]int
	f := 0
	for i := range form {
		switch c := s[i]; {
		case form[i] == '0' && '0' <= c && c <= '9':
			v[f] = v[f]*10 + int(c-'0')
		case form[i] != '0' && form[i] == c:
			f++
		default:
			return time.Time{}, false
		}
	}
	if v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > 28 || v[3] > 23 || v[4] > 59 || v[5] > 59 {
		return time.Time{}, false
	}
	return time.Date(v[0], time.Month(v[1]), v[2], v[3], v[4], v[5], v[6]*int(time.Millisecond), time.UTC), true
}

// numberTime reads Unix time: milliseconds from 1e11 on (which as seconds would be the year 5138), else seconds, which
// some programs write with a fraction.
func numberTime(val []byte) time.Time {
	n, err := strconv.ParseFloat(string(val), 64)
	switch {
	case err != nil || n < 0 || n > 1e15:
		return time.Time{}
	case n >= 1e11:
		return time.UnixMilli(int64(n)).UTC()
	}
	return time.UnixMilli(int64(n * 1000)).UTC()
}
