// Package jsonl reads files with one JSON object per line, of any content: it skips and reports damage, which never
// hides intact objects. It removes what a crash leaves around and between objects: byte order marks, carriage returns,
// runs of NUL, two objects on one line, an intact object after an incomplete one. The same bytes always make the same
// objects at the same places.
//
// Bounds (I15): one line at a time, of at most 64 MiB; of a longer one its first 64 KiB. An EntryScanner keeps 100
// diagnostics, then a count.
package jsonl

import (
	"io"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// maxDepth bounds the nesting of an object: an entry has it two levels deeper.
const maxDepth = rawjson.MaxDepth - 2

// Object is one JSON object of a file.
type Object struct {
	Raw    []byte // valid JSON, or a prefix of it for a line over MaxLine. Valid as long as its line
	Number int    // of its line, from 1
	Offset int64  // of its line
	At     int    // offset in its line
	Size   int64  // bytes of the line
	Part   bool   // Raw is a prefix
	left   int64  // bytes of the line after an earlier object; 0 = this is the first
}

// Scanner returns the objects of a stream, each valid until the next call. It is not safe for concurrent use.
type Scanner struct {
	// Accepts reports whether an object after damage on the same line is a whole one, and not a piece of an incomplete
	// one. nil = none is looked for.
	Accepts func(object []byte) bool
	// Note is called with each finding, and the number of lines it spoils (0 or 1). May be nil.
	Note func(number int, kind, detail string, bad int)

	in   *LineReader
	find Finder
	once OnceFilter
}

// NewScanner returns a Scanner that reads from r.
func NewScanner(r io.Reader) *Scanner { return &Scanner{in: NewLineReader(r)} }

// Start sets where in a file the stream begins: after so many lines, at an offset.
func (s *Scanner) Start(lines int, offset int64) { s.in.Start(lines, offset) }

// Number returns the number of the line that was read last, from 1.
func (s *Scanner) Number() int { return s.in.Number() }

// Next returns the next object, or io.EOF. Lines without one are reported.
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
	if s.Note != nil && s.once.First(r) {
		s.Note(r.Number, r.Kind, r.Detail, r.Bad)
	}
}

// Remark is a finding in a line.
type Remark struct {
	Number       int // of the line
	Kind, Detail string
	Bad          int    // how many lines it spoils: 0 or 1
	Damaged      bool   // a piece of the line is no object
	Piece        Object // that piece, with Part set
	once         bool   // reported only the first time in a file
}

// RemarkOnce returns a remark that a OnceFilter accepts only the first time in a file.
func RemarkOnce(number int, kind, detail string) Remark {
	return Remark{Number: number, Kind: kind, Detail: detail + " (said once)", once: true}
}

// OnceFilter drops repeated remarks of RemarkOnce. The zero value is ready to use.
type OnceFilter map[string]bool

// First reports whether a remark must be reported.
func (f *OnceFilter) First(r Remark) bool {
	if !r.once {
		return true
	}
	if (*f)[r.Detail] {
		return false
	}
	if *f == nil {
		*f = OnceFilter{}
	}
	(*f)[r.Detail] = true
	return true
}
