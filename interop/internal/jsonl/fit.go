package jsonl

import (
	"fmt"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// MaxEntry bounds one entry, without its images (docs/design.md, Limits).
const MaxEntry = 4 << 20

// What is kept of an entry over the bound: values of up to keepValue bytes, keepTotal bytes together.
const (
	keepValue = 16 << 10
	keepTotal = 1 << 20
)

// Fit returns an entry of at most MaxEntry bytes unchanged. For a larger one it returns a stub, in which a notice
// replaces long strings. The structure stays: roles and IDs of calls.
func Fit(entry []byte) (fitted []byte, whole bool) {
	if len(entry) <= MaxEntry {
		return entry, true
	}
	if stored, _ := blob.Externalise(entry); len(stored) <= MaxEntry {
		return entry, true
	}
	small := Shrink(entry, 10)
	return rawjson.WithField(small, "stub", fmt.Appendf(nil, `{"bytes":%d,"limit":%d}`, len(entry), MaxEntry)), false
}

// OversizeDetail returns the detail of the diagnostic for a line or an entry over a limit that a stub replaces.
func OversizeDetail(size int64, limit int) string {
	const format = "%d bytes, over the limit of %d: a stub stands in its place, the bytes are in the original file"
	return fmt.Sprintf(format, size, limit)
}

// Shrink returns a JSON value with its long strings replaced by a notice, and null for what is nested deeper than
// depth levels.
func Shrink(val []byte, depth int) []byte {
	budget := keepTotal
	return shrink(val, &budget, depth)
}

func shrink(val []byte, budget *int, depth int) []byte {
	switch {
	case len(val) == 0 || depth == 0 || *budget <= 0:
		return []byte("null")
	case len(val) <= keepValue:
		*budget -= len(val)
		return val
	case val[0] == '"':
		*budget -= 80
		return fmt.Appendf(nil, `"[%d bytes left out, over the limit of %d for an entry]"`, len(val), MaxEntry)
	case val[0] != '{' && val[0] != '[':
		return []byte("null") // a number of that length
	}
	m := rawjson.Walk(val)
	closing, out := m.Closing, []byte{val[0]}
	for *budget > 0 && m.Next() {
		if len(m.Key) > keepValue {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		if m.Key != nil {
			*budget -= len(m.Key)
			out = append(rawjson.AppendString(out, string(m.Key)), ':')
		}
		out = append(out, shrink(m.Val, budget, depth-1)...)
	}
	return append(out, closing)
}

// AppendTime appends a time stamp as entries have it, in quotes.
func AppendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, `"2006-01-02T15:04:05.000Z"`)
}

// AppendMillis appends a time as messages have it: Unix milliseconds.
func AppendMillis(dst []byte, t time.Time) []byte { return strconv.AppendInt(dst, t.UnixMilli(), 10) }

// Stamp returns a line's time, or false if it is missing or not valid for an entry.
func Stamp(val []byte) (time.Time, bool) {
	t := rawjson.Time(val)
	y := t.Year()
	return t, !t.IsZero() && y >= 1970 && y <= 9999
}
