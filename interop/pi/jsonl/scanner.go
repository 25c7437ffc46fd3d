// Package jsonl reads files of one JSON object a line as they are after years: torn lines, runs of NUL, lines
// that ran together, byte order marks. What is damaged is passed over and reported, and never hides what is
// intact.
//
// Bounds (I15): one line at a time, of at most 64 MiB; of a longer one the first 64 KiB. Diagnostics: 100,
// then a count.
package jsonl

import (
	"fmt"
	"io"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/interop/internal/lines"
	"github.com/coppice-go/coppice/transcript"
)

// MaxLine bounds the lines that are held whole (I15).
const MaxLine = lines.MaxLine

// Object is one JSON object of the file. Raw is valid until the next call of Next.
type Object struct {
	transcript.Line
	Number int   // of its line, from 1
	Size   int64 // bytes in the file
	Part   bool  // the line is over MaxLine: Raw is only its beginning
}

// Scanner reads objects, and keeps what there is to say about the file. It is not safe for concurrent use.
type Scanner struct {
	in        *lines.Reader
	isEntry   func(transcript.Line) bool
	rest      []byte // of the current line: what stands behind its first object
	restEnded bool
	noted     map[string]bool
	changed   bool
	bad       int
	refused   int
	diag      diag.List
}

// New reads from r. isEntry tells an entry of the format from a piece of one: a line that is damaged may hold
// a whole entry at its end.
func New(r io.Reader, isEntry func(transcript.Line) bool) *Scanner {
	return &Scanner{in: lines.New(r), isEntry: isEntry, noted: map[string]bool{}}
}

// Next gives the next object, whatever is in it. io.EOF = the end; any other error is the reader's below.
func (s *Scanner) Next() (Object, error) {
	for {
		o, clean, ended, err := s.line()
		if err != nil {
			return Object{}, err
		}
		if o.Part {
			if o.Line = headOf(clean); o.Type != "" {
				return o, nil
			}
			s.Refuse(o, diag.Oversize, fmt.Sprintf("%d bytes, over the limit of %d, and no type at its start", o.Size, MaxLine))
			return o, nil
		}
		if len(clean) == 0 {
			continue
		}
		if o.Line, err = transcript.ParseLine(clean); err != nil {
			var found bool
			if o.Line, found = s.salvage(clean, o, ended, err); !found {
				return Object{Number: o.Number, Size: o.Size}, nil
			}
		} else if !ended {
			s.Note("", o, diag.Converted, "the last line has no newline")
		}
		return o, nil
	}
}

// line gives the next line of the file, or what is left of one that held more than one object.
func (s *Scanner) line() (o Object, clean []byte, ended bool, err error) {
	if len(s.rest) > 0 {
		clean, s.rest = s.rest, nil
		return Object{Number: s.in.Number(), Size: int64(len(clean))}, clean, s.restEnded, nil
	}
	l, err := s.in.Next()
	if err != nil {
		return Object{}, nil, false, err
	}
	o = Object{Number: l.Number, Size: l.Size, Part: l.Part()}
	if o.Part {
		return o, l.Bytes, l.Ended, nil
	}
	return o, s.clean(l.Bytes, o), l.Ended, nil
}

// Note reports something that keeps the file from coming through byte for byte. once names what is said
// only the first time; "" = always.
func (s *Scanner) Note(once string, o Object, kind, detail string) {
	s.changed = true
	if once != "" {
		if s.noted[once] {
			return
		}
		s.noted[once] = true
		detail += " (said once)"
	}
	s.diag.Add(o.ID, uint64(o.Number), kind, detail)
}

// Remark reports something about a line that comes through all the same.
func (s *Scanner) Remark(o Object, kind, detail string) {
	s.diag.Add(o.ID, uint64(o.Number), kind, detail)
}

// Refuse reports a line that gives no entry.
func (s *Scanner) Refuse(o Object, kind, detail string) {
	s.bad++
	s.refused++
	s.Note("", o, kind, detail)
}

// Change says that what is given is not the file's bytes.
func (s *Scanner) Change() { s.changed = true }

// Changed reports that something was noted, or changed without a word.
func (s *Scanner) Changed() bool { return s.changed }

// Lines counts the lines read.
func (s *Scanner) Lines() int { return s.in.Number() }

// Bad counts the lines of which bytes were passed over; blank ones aside.
func (s *Scanner) Bad() int { return s.bad }

// Refused counts the lines that gave nothing.
func (s *Scanner) Refused() int { return s.refused }

// Diagnostics gives what was found so far.
func (s *Scanner) Diagnostics() []transcript.Diagnostic { return s.diag.All() }
