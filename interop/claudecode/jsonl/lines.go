// Package jsonl reads the lines of session files within bounds, whatever is in them (I15): a line is there
// whole up to MaxLine bytes and of a longer one only its beginning; what a crash leaves around and between
// objects (byte order mark, carriage returns, NULs, two lines in one, a whole one behind a torn one) is taken
// away and reported. The same bytes give the same objects at the same places each time they are read.
package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// The bounds.
const (
	MaxLine  = 64 << 20 // bytes of a line that are held
	Prefix   = 64 << 10 // bytes that are held of a longer one
	maxDepth = rawjson.MaxDepth - 2
	chunk    = 1 << 20
	buffer   = 1 << 18
)

// Object is one JSON object of a file.
type Object struct {
	Raw    []byte // valid JSON; of a line over MaxLine only a prefix. Valid until the next call
	Number int    // of its line, from 1
	Offset int64  // of its line
	At     int    // where it starts in its line
	Size   int64  // bytes of the line
	Part   bool   // Raw is a prefix
}

// Scanner gives the objects of a stream. Not safe for concurrent use.
type Scanner struct {
	// Accepts tells an object worth finding behind damage on the same line from a piece of a torn one. nil =
	// none is looked for.
	Accepts func(object []byte) bool
	// Member is shown the members of an object while it is checked, beginning with key nil. nil = nobody looks.
	Member func(key, val []byte)
	// Note is told what was found and how many lines it spoils (0 or 1). nil = nobody asks.
	Note func(number int, kind, detail string, bad int)

	in     *bufio.Reader
	chunks [][]byte
	number int
	offset int64  // behind the line
	start  int64  // of the line
	rest   []byte // of the current line: what stands behind its first object
	restAt int
	size   int64
	ended  bool
	said   map[string]bool
}

// NewScanner reads from r.
func NewScanner(r io.Reader) *Scanner {
	return &Scanner{in: bufio.NewReaderSize(r, buffer), said: map[string]bool{}}
}

// Number is the line that was read last, from 1.
func (s *Scanner) Number() int { return s.number }

// Line gives the next line without its newline as it is, or its beginning if it is too long. io.EOF = no more.
func (s *Scanner) Line() (line []byte, size int64, err error) {
	if len(s.chunks) > 1 {
		s.chunks = s.chunks[:1:1]
	}
	if len(s.chunks) == 1 {
		s.chunks[0] = s.chunks[0][:0]
	}
	s.start = s.offset
	for first := true; ; first = false {
		part, err := s.in.ReadSlice('\n')
		s.offset += int64(len(part))
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return nil, 0, fmt.Errorf("read at offset %d: %w", s.offset, err)
		}
		if size += int64(len(part)); size == 0 {
			return nil, 0, io.EOF
		}
		done := !errors.Is(err, bufio.ErrBufferFull)
		if s.ended = err == nil; s.ended {
			size, part = size-1, part[:len(part)-1]
		}
		if done && first {
			s.number++
			return part, size, nil // the usual case: nothing copied
		}
		if size <= MaxLine {
			s.keep(part)
		} else if len(s.chunks) > 1 {
			s.chunks = s.chunks[:1:1] // the prefix is enough; let go of the rest
		}
		if done {
			s.number++
			return s.join(size), size, nil
		}
	}
}

func (s *Scanner) keep(part []byte) {
	for len(part) > 0 {
		n := len(s.chunks) - 1
		if n < 0 || len(s.chunks[n]) == cap(s.chunks[n]) {
			s.chunks = append(s.chunks, make([]byte, 0, chunk))
			continue
		}
		c := s.chunks[n]
		m := min(len(part), cap(c)-len(c))
		s.chunks[n] = append(c, part[:m]...)
		part = part[m:]
	}
}

// join gives what was kept of a line, in one piece.
func (s *Scanner) join(size int64) []byte {
	switch {
	case len(s.chunks) == 0:
		return nil
	case size > MaxLine:
		return s.chunks[0][:min(len(s.chunks[0]), Prefix)]
	case len(s.chunks) == 1:
		return s.chunks[0]
	}
	return bytes.Join(s.chunks, nil)
}

// Next gives the next object; io.EOF = no more. Lines that hold none are noted.
func (s *Scanner) Next() (Object, error) {
	for {
		if len(s.rest) > 0 {
			line, at := s.rest, s.restAt
			s.rest = nil
			if o, ok := s.object(line, at); ok {
				return o, nil
			}
			continue
		}
		line, size, err := s.Line()
		if err != nil {
			return Object{}, err
		}
		s.size = size
		if size > int64(len(line)) {
			return Object{Raw: line, Number: s.number, Offset: s.start, Size: size, Part: true}, nil
		}
		clean, at := s.clean(line)
		if len(clean) == 0 {
			continue
		}
		if o, ok := s.object(clean, at); ok {
			if !s.ended {
				s.note(diag.Converted, "the last line has no newline", 0)
			}
			return o, nil
		}
	}
}

// object checks one piece of a line and finds what is to be found in it.
func (s *Scanner) object(piece []byte, at int) (Object, bool) {
	o := Object{Number: s.number, Offset: s.start, At: at, Size: s.size}
	if piece[0] != '{' {
		return s.salvage(piece, at, errors.New("no JSON object"))
	}
	end, err := s.check(piece)
	if err != nil {
		return s.salvage(piece, at, err)
	}
	if behind := bytes.Trim(piece[end:], " \t\r\x00"); len(behind) > 0 {
		s.rest = behind
		s.restAt = at + bytes.Index(piece[end:], behind[:1]) + end
		s.note(diag.Converted, "more than one object on the line", 0)
	}
	o.Raw = piece[:end]
	return o, true
}

// check tells where the object at the start of p ends, and shows its members on the way: one pass for both.
func (s *Scanner) check(p []byte) (end int, err error) {
	if s.Member == nil {
		return rawjson.ValueEnd(p, 0, maxDepth)
	}
	s.Member(nil, nil)
	i := rawjson.Space(p, 1)
	for first := true; i < len(p); first = false {
		switch {
		case p[i] == '}':
			return i + 1, nil
		case !first && p[i] != ',':
			return 0, rawjson.SyntaxError(p, i)
		case !first:
			i = rawjson.Space(p, i+1)
		}
		from := i
		if i >= len(p) || p[i] != '"' {
			return 0, rawjson.SyntaxError(p, i)
		}
		if i, _, err = rawjson.StringEnd(p, i); err != nil {
			return 0, err
		}
		key := p[from+1 : i-1]
		if i = rawjson.Space(p, i); i >= len(p) || p[i] != ':' {
			return 0, rawjson.SyntaxError(p, i)
		}
		from = rawjson.Space(p, i+1)
		if i, err = rawjson.ValueEnd(p, from, maxDepth-1); err != nil {
			return 0, err
		}
		s.Member(key, p[from:i])
		i = rawjson.Space(p, i)
	}
	return 0, rawjson.SyntaxError(p, i)
}

// salvage looks for a whole object at the end of a damaged line: appended behind a torn one that had no
// newline.
func (s *Scanner) salvage(piece []byte, at int, cause error) (Object, bool) {
	kind := diag.BadLine
	if !s.ended {
		kind = diag.TornLine
	}
	s.note(kind, cause.Error(), 1)
	if s.Accepts == nil {
		return Object{}, false
	}
	const tries, reach = 64, 1 << 20
	from := len(piece)
	for range tries {
		if from = bytes.LastIndex(piece[:from], []byte(`{"`)); from <= 0 || len(piece)-from > reach {
			return Object{}, false
		}
		object := piece[from:]
		if end, err := s.check(object); err == nil && end == len(object) && s.Accepts(object) {
			s.note(diag.Converted, "an object was found behind the damage, on the same line", 0)
			return Object{Raw: object, Number: s.number, Offset: s.start, At: at + from, Size: s.size}, true
		}
	}
	return Object{}, false
}

// clean takes away what is around a line's object: byte order mark, carriage return, white space, runs of
// NUL as a crash leaves them. at is where the rest starts.
func (s *Scanner) clean(line []byte) (clean []byte, at int) {
	if n := len(line); n > 1 && line[0] == '{' && line[n-1] == '}' {
		return line, 0 // the usual case
	}
	if s.number == 1 {
		if cut, ok := bytes.CutPrefix(line, []byte("\xef\xbb\xbf")); ok {
			line, at = cut, len(line)-len(cut)
			s.note(diag.Converted, "a byte order mark", 0)
		}
	}
	if bytes.HasSuffix(line, []byte("\r")) {
		s.once("lines end with CR LF")
	}
	cut := bytes.TrimLeft(line, " \t\r\x00")
	at += len(line) - len(cut)
	cut = bytes.TrimRight(cut, " \t\r\x00")
	if n := bytes.Count(line, []byte{0}) - bytes.Count(cut, []byte{0}); n > 0 {
		s.note(diag.BadLine, fmt.Sprintf("%d NUL bytes, as a crash leaves them", n), 1)
	}
	return cut, at
}

func (s *Scanner) once(detail string) {
	if !s.said[detail] {
		s.said[detail] = true
		s.note(diag.Converted, detail+" (said once)", 0)
	}
}

func (s *Scanner) note(kind, detail string, bad int) {
	if s.Note != nil {
		s.Note(s.number, kind, detail, bad)
	}
}
