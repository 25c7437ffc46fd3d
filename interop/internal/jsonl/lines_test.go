package jsonl

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/testutil"
)

// TestLines: the lines of a stream are those between its newlines, each at its place, however the bytes come.
func TestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for range rapid.IntRange(0, most(6)).Draw(t, "lines") {
			n := rapid.SampledFrom([]int{0, 1, 3, 100, bufferSize - 1, bufferSize, bufferSize + 1, 2*bufferSize - 1, chunkSize, 3*chunkSize + 7}).Draw(t, "size")
			text = append(append(text, bytes.Repeat([]byte{byte('a' + n%26)}, n)...), '\n')
		}
		if rapid.Bool().Draw(t, "torn") {
			text = text[:max(0, len(text)-1)]
		}
		var in io.Reader = bytes.NewReader(text)
		if rapid.Bool().Draw(t, "halves") {
			in = iotest.HalfReader(in)
		}
		r, offset, number := NewLineReader(in), int64(0), 0
		for want := range bytes.Lines(text) {
			number++
			l, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			body, ended := bytes.CutSuffix(want, []byte{'\n'})
			if !bytes.Equal(l.Bytes, body) || l.Part() || l.Size != int64(len(body)) || l.Ended != ended || l.Offset != offset || l.Number != number || r.Number() != number {
				t.Fatalf("line %d at %d of %d bytes, ended %v; want %d at %d of %d, ended %v", l.Number, l.Offset, l.Size, l.Ended, number, offset, len(body), ended)
			}
			offset += int64(len(want))
		}
		if l, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("at the end: %+v, %v", l, err)
		}
	})
}

// most is n where there is time for it.
func most(n int) int {
	if testing.Short() {
		return n / 2
	}
	return n
}

// endless is a stream of n times the letter x, then a tail; it is not held.
func endless(n int64, tail string) io.Reader {
	return io.MultiReader(io.LimitReader(xs{}, n), strings.NewReader(tail))
}

type xs struct{}

var block = bytes.Repeat([]byte{'x'}, bufferSize)

func (xs) Read(p []byte) (int, error) { return copy(p, block), nil }

// TestSizeLine: up to MaxLine a line is there whole; of a longer one the beginning, and the line behind it is
// found.
func TestSizeLine(t *testing.T) {
	testutil.SkipLong(t)
	for _, c := range []struct {
		size, held int64
	}{{MaxLine, MaxLine}, {MaxLine + 1, Prefix}, {3 * MaxLine, Prefix}} {
		r := NewLineReader(endless(c.size, "\nend"))
		l, err := r.Next()
		if err != nil || l.Size != c.size || int64(len(l.Bytes)) != c.held || l.Part() != (c.held < c.size) || !l.Ended {
			t.Errorf("%d bytes, %d held, ended %v: %v; want %d, %d", l.Size, len(l.Bytes), l.Ended, err, c.size, c.held)
		}
		if kept := len(r.chunks); c.held < c.size && kept > 1 {
			t.Errorf("%d pieces of a line are held that is there only in part", kept)
		}
		l, err = r.Next()
		if err != nil || string(l.Bytes) != "end" || l.Number != 2 || l.Offset != c.size+1 || l.Ended {
			t.Errorf("behind it: %+v, %v", l, err)
		}
	}
}

// TestBrokenStream: lines before an error of the stream are given, then the error with its place.
func TestBrokenStream(t *testing.T) {
	broken := errors.New("broken")
	r := NewLineReader(io.MultiReader(strings.NewReader("one\ntwo"), iotest.ErrReader(broken)))
	if l, err := r.Next(); err != nil || string(l.Bytes) != "one" {
		t.Errorf("%q, %v", l.Bytes, err)
	}
	if _, err := r.Next(); !errors.Is(err, broken) || err.Error() != "read at offset 7: broken" {
		t.Errorf("got %v", err)
	}
}

// TestBehind: the last places come first; there are no more of them than the bounds allow, and none is the
// line's beginning.
func TestBehind(t *testing.T) {
	for _, c := range []struct {
		line string
		want []int
	}{
		{"", nil},
		{"{a", nil},
		{"{a{a-{a", []int{5, 2}},
		{"..{a" + strings.Repeat(".", maxCandidateDistance), nil},
		{"{a{a" + strings.Repeat(".", maxCandidateDistance-2), []int{2}},
	} {
		if got := slices.Collect(CandidatesAfterDamage([]byte(c.line), "{a")); !slices.Equal(got, c.want) {
			t.Errorf("%.20q: %v, want %v", c.line, got, c.want)
		}
	}
	if got := slices.Collect(CandidatesAfterDamage([]byte(strings.Repeat("{a", 1000)), "{a")); len(got) != maxCandidates {
		t.Errorf("%d places", len(got))
	}
}
