package term

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Size returns a number of bytes for people: "1.2 MiB".
func Size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// Number returns a number with separated thousands: "1,002".
func Number(n uint64) string { return humanize.Comma(int64(n)) }

// Count returns a number with its noun: "1 entry", "1,002 entries".
func Count[T int | int64 | uint64](n T, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(int64(n)) + " " + many
}

// Ago returns a time relative to now: "3 hours ago"; a date if it is more than a month ago.
func Ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "-"
	case d < time.Minute && d > -time.Minute:
		return "just now"
	case d < 30*24*time.Hour && d > 0:
		return humanize.RelTime(t, now, "ago", "from now")
	}
	return t.Local().Format(time.DateOnly)
}

// Clock returns a time to the second, in the local zone.
func Clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// Duration returns a duration with three significant digits: "1.23 ms".
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// ShortenHome returns a path with "~" for the home folder.
func ShortenHome(path, home string) string {
	if home == "" || home == "/" {
		return path
	}
	if path == home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/"); ok {
		return "~/" + rest
	}
	return path
}
