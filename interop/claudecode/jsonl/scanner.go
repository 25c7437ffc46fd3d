// Package jsonl finds the objects in the lines of session files within bounds, whatever is in them (I15): a
// line is there whole up to MaxLine bytes and of a longer one only its beginning; what a crash leaves around
// and between objects (byte order mark, carriage returns, NULs, two lines in one, a whole one behind a torn
// one) is taken away and reported. The same bytes give the same objects at the same places each time they are
// read.
package jsonl

import (
	"io"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/lines"
)

// The bounds.
const (
	MaxLine  = lines.MaxLine // bytes of a line that are held
	Prefix   = lines.Prefix  // bytes that are held of a longer one
	maxDepth = rawjson.MaxDepth - 2
)

// Object is one JSON object of a file.
type Object struct {
	Raw    []byte // valid JSON; of a line over MaxLine only a prefix. Valid as long as its line is
	Number int    // of its line, from 1
	Offset int64  // of its line
	At     int    // where it starts in its line
	Size   int64  // bytes of the line
	Part   bool   // Raw is a prefix
}

// Scanner gives the objects of a stream, each valid until the next call. Not safe for concurrent use.
type Scanner struct {
	// Accepts tells an object worth finding behind damage on the same line from a piece of a torn one. nil =
	// none is looked for.
	Accepts func(object []byte) bool
	// Note is told what was found and how many lines it spoils (0 or 1). nil = nobody asks.
	Note func(number int, kind, detail string, bad int)

	in   *lines.Reader
	find Finder
	said Said
}

// NewScanner reads from r.
func NewScanner(r io.Reader) *Scanner { return &Scanner{in: lines.New(r)} }

// Number is the line that was read last, from 1.
func (s *Scanner) Number() int { return s.in.Number() }

// Next gives the next object; io.EOF = no more. Lines that hold none are noted.
func (s *Scanner) Next() (Object, error) {
	s.find.Accepts, s.find.Note = s.Accepts, s.note
	for {
		if o, ok := s.find.Next(); ok {
			return o, nil
		}
		line, err := s.in.Next()
		if err != nil {
			return Object{}, err
		}
		s.find.Take(line)
	}
}

func (s *Scanner) note(r Remark) {
	if s.Note != nil && s.said.First(r) {
		s.Note(r.Number, r.Kind, r.Detail, r.Bad)
	}
}

// Remark is what there is to say about a line.
type Remark struct {
	Number       int // of the line
	Kind, Detail string
	Bad          int  // how many lines it spoils: 0 or 1
	once         bool // of a file it is said only the first time
}

// Said tells what is to be said from what was said before. The zero Said has heard nothing.
type Said map[string]bool

// First reports whether a remark is to be made.
func (s *Said) First(r Remark) bool {
	if !r.once {
		return true
	}
	if (*s)[r.Detail] {
		return false
	}
	if *s == nil {
		*s = Said{}
	}
	(*s)[r.Detail] = true
	return true
}
