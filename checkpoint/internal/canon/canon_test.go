package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/codec"
)

var samples = []string{
	`null`, `true`, `false`, `0`, `-0`, `1.5e+10`, `1E-2`, `01`, `-`, `1.`, `.5`, `1e`, `+1`, `""`, `"a\"b"`, `"\u00e9"`, `"\u00g0"`, `"\x"`, `"\`, `"`,
	"\"\t\"", "\"\x7f\"", "\"\xff\"", `[]`, `[1,2]`, `[1,]`, `[,1]`, `[1 2]`, `{}`, `{"a":1}`, `{"a":1,}`, `{"a"}`, `{a:1}`, `{"a":1 "b":2}`, `{"a" : [ 1 , { } ] }`,
	`[}`, `{]`, `[[[]]]`, `nul`, `nulll`, `tru`, ` 1 `, "\n[\t]\r", `{"":""}`, `"12345678"`, `"1234567\u000012345678"`, `"12345678é12345678"`, `[1]]`, `{"a":{"b":[{"c":null}]}}`, ``, ` `,
}

// scanned reports whether all of p is one value, like json.Valid.
func scanned(p []byte) (ok, compact bool) {
	end, compact, err := scan(p, 0, EnvelopeDepth)
	if err != nil {
		return false, false
	}
	return len(bytes.TrimLeft(p[end:], " \t\r\n")) == 0, compact
}

func TestScanAgreesWithEncodingJSON(t *testing.T) {
	for _, s := range samples {
		if ok, _ := scanned([]byte(s)); ok != json.Valid([]byte(s)) {
			t.Errorf("%q: %v", s, ok)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 8).Draw(t, "pieces") {
			b.WriteString(rapid.SampledFrom(append(samples, ",", ":", "[", "]", "{", "}", `"a":`)).Draw(t, "piece"))
		}
		p := []byte(b.String())
		ok, compact := scanned(p)
		if ok != json.Valid(p) {
			t.Fatalf("%q: %v", p, ok)
		}
		var c bytes.Buffer
		if ok && json.Compact(&c, p) == nil && (c.String() == string(p)) != (compact && c.Len() == len(p)) {
			t.Fatalf("%q: compact %v, encoding/json makes it %q", p, compact, c.String())
		}
	})
}

func FuzzScan(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		_, _, err := scan(p, 0, EnvelopeDepth)
		if _, ok := errors.AsType[*codec.LimitError](err); ok {
			return
		}
		if ok, _ := scanned(p); ok != json.Valid(p) {
			t.Errorf("%q: %v", p, ok)
		}
	})
}

func TestScanDepth(t *testing.T) {
	nest := func(n int) []byte { return []byte(strings.Repeat(`[{"a":`, n/2) + "1" + strings.Repeat("}]", n/2)) }
	if _, _, err := scan(nest(MaxDepth), 0, MaxDepth); err != nil {
		t.Error(err)
	}
	var limit *codec.LimitError
	if _, _, err := scan(nest(MaxDepth+2), 0, MaxDepth); !errors.As(err, &limit) || limit.Limit != MaxDepth ||
		limit.Value != MaxDepth+1 {
		t.Errorf("two too deep: %v", err)
	}
	if _, _, err := scan(bytes.Repeat([]byte("["), 20<<20), 0, EnvelopeDepth); !errors.As(err, &limit) {
		t.Errorf("20 MB of brackets: %v", err)
	}
}

// Text reads the output of AppendString, and no other spelling of the same text.
func TestStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.SampledFrom([]byte("ab\"\\/\n\x00\x1f\x7f\x80\xc3\xa9\xe2\x80\xa8\xff<&"))).Draw(t, "s"))
		p := AppendString(nil, s)
		var std string
		if err := json.Unmarshal(p, &std); err != nil || std != strings.ToValidUTF8(s, "\uFFFD") && len([]rune(s)) != len([]rune(std)) {
			t.Fatalf("%q: encoding/json reads %q, %v", s, std, err)
		}
		c := Read(p, 0)
		if got := c.Text(); !c.Done() || got != std {
			t.Fatalf("%q: %q, %v", s, got, c.OK)
		}
	})
	for _, s := range []string{`"\u0061"`, `"\/"`, `"\n"`, `"\u00E9"`, "\"\xff\"", `"\ud800"`, `"`, `a`, ``} {
		c := Read([]byte(s), 0)
		if got := c.Text(); c.OK {
			t.Errorf("%s reads as %q", s, got)
		}
	}
}

func TestNumbers(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "7": 7, "-7": -7, "9223372036854775807": 1<<63 - 1} {
		c := Read([]byte(s), 0)
		if got := c.Int(); !c.Done() || got != want {
			t.Errorf("%s: %d, %v", s, got, c.OK)
		}
	}
	for _, s := range []string{"", "-", "-0", "00", "+1", "9223372036854775808", "-9223372036854775808", "x", "18446744073709551616", "111111111111111111111"} {
		c := Read([]byte(s), 0)
		if got := c.Int(); c.Done() {
			t.Errorf("%q reads as %d", s, got)
		}
	}
	c := Read([]byte("18446744073709551615"), 0)
	if got := c.Uint(); !c.Done() || got != 1<<64-1 {
		t.Errorf("the largest: %d", got)
	}
	if c := Read([]byte("2147483648"), 0); c.Count() != 0 || c.OK {
		t.Error("a count over 31 bits")
	}
	for _, s := range []string{"0123456", "0123456G", "0123456A"} {
		if c := Read([]byte(s), 0); c.Hex(8) != 0 && c.Done() {
			t.Errorf("%q is hex", s)
		}
	}
}

func TestTimes(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.FixedZone("x", -3600)).Add(-2 * time.Hour)} {
		p, err := AppendTime(nil, at)
		if err != nil {
			t.Fatal(err)
		}
		c := Read(p, 0)
		if got := c.Time(); !c.Done() || !got.Equal(at.Truncate(time.Millisecond)) {
			t.Errorf("%v: %s, %v", at, p, got)
		}
	}
	if _, err := AppendTime(nil, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)); !errors.Is(err, codec.ErrFormat) {
		t.Error(err)
	}
	for _, s := range []string{"2026-02-30T00:00:00.000Z", "2026-02-03 00:00:00.000Z", "2026-02-03T24:00:00.000Z", "2026-02-03T00:00:00,000Z", "2026-02-03T00:00:00.00Z"} {
		c := Read([]byte(s), 0)
		if got := c.Time(); c.OK {
			t.Errorf("%s reads as %v", s, got)
		}
	}
}
