package repair

import (
	"bytes"
	"testing"
)

// FuzzParse takes a damaged segment apart: no byte is lost on the way, and every line that is kept gets an
// ordinal of its own inside of the part.
func FuzzParse(f *testing.F) {
	const key = 7
	for _, s := range []string{
		"", "\n", "{\"type\":\"session\"}\n{\"type\":\"custom\"}\n{\"type\":\"message\",\"id\":\"a\",\"parentId\":null}\n", "{\"id\":\"a\",\"type\":\"x\"}\n\x00\x00\x00\n{\"id\":\"b\",\"type\":\"x\"}\n{\"id\":\"c",
		`{"type":"custom","id":"c","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","customType":"coppice.commit","data":{"seq":0,"headOrd":-1,"docCRC":"00000000","synced":1,"self":"00000000"}}` + "\n",
	} {
		for opening := range 3 {
			f.Add([]byte(s), opening, uint64(10), uint64(14))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, opening int, first, end uint64) {
		opening, first = opening&3, first%1000
		lines := Parse(raw, key, opening)
		var kept []byte
		for i, l := range lines {
			if bytes.IndexByte(l.Raw, '\n') >= 0 {
				t.Fatalf("line %d holds a line feed", i)
			}
			kept = append(append(kept, l.Raw...), '\n')
		}
		rest := raw
		for range opening {
			_, rest, _ = bytes.Cut(rest, []byte{'\n'})
		}
		if want := append(bytes.TrimSuffix(rest, []byte{'\n'}), '\n'); !bytes.Equal(kept, want) && len(rest) > 0 {
			t.Fatalf("of %q came %q", raw, kept)
		}
		if end %= 2000; end <= first {
			end = 0
		}
		d := &Damaged{Lines: lines, First: first, End: end}
		seen := map[*Line]bool{}
		for ord, l := range d.align() {
			if ord < first || end > 0 && ord >= end {
				t.Fatalf("ordinal %d is outside of %d to %d", ord, first, end)
			}
			if seen[l] || !l.good() {
				t.Fatalf("a line twice, or none, at %d", ord)
			}
			seen[l] = true
		}
	})
}
