// Package pi reads session files of the pi family, versions 1 to 3 and whatever calls itself later. Lines of
// version 3 come through byte for byte; anything else is converted to them. A file that is damaged is read as
// far as it goes: a torn or bad line never hides another, what is passed over is reported, and only the
// reader below or a file that is no session at all gives an error.
package pi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// ErrNotSession is wrapped by the error for a file that holds no session of the pi family at all.
var ErrNotSession = errors.New("transcript: not a session file")

// Header is the first line of a session file.
type Header struct {
	Raw     []byte    // as it goes into a session: version 3; byte for byte what the file has if it has that already
	Version int       // as the file says it; 1 if it does not
	ID      string    // the session's id in its old home; a new one if the file has none
	Cwd     string    // working directory; "" = not said
	Title   string    // omp's title; "" = not said
	Parent  string    // session or path that it was forked from; "" = none
	Created time.Time // zero = not said
	Made    bool      // the file has no header
}

// Reader reads a session file of the pi family, versions 1 to 3 and whatever calls itself later, line by
// line, and gives lines of version 3. Lines that are that already come through byte for byte. What is
// damaged is passed over and reported: a torn or bad line never hides another, and the file is only read.
// It holds one line at a time, of at most 64 MiB; of a version 1 file also the ids that it gave.
//
//	f := NewReader(r, now, rand)
//	h, err := f.Header()
//	for d, err := f.Next(); err == nil; d, err = f.Next() { ... }   // io.EOF at the end
//
// Not safe for concurrent use.
type Reader struct {
	in      lineReader
	now     time.Time
	rand    io.Reader
	header  Header
	started bool
	err     error // sticky

	pending   *fileLine // the first entry of a file without a header
	rest      []byte    // of the current line: what stands behind its first object
	restEnded bool
	ids       []string // version 1: by index among the file's objects, the header being 0
	last      string   // version 1: the id of the entry before
	changed   bool     // the lines given are not the file's bytes
	noted     map[string]bool
	bad       int
	refused   int
	anything  bool // a line was an object
	diag      diag.List
}

// fileLine is one object of the file.
type fileLine struct {
	transcript.Line
	number int   // of its line, from 1
	size   int64 // bytes in the file
	part   bool  // Raw is only its beginning
}

const (
	maxEntryBytes  = 4 << 20  // of one entry, beside its images (DESIGN 8)
	maxLineBytes   = 64 << 20 // what is buffered of a line
	prefixBytes    = 64 << 10 // what is kept of a longer one: enough for its head
	maxRefused     = 1000     // lines without any entry before a file is given up
	oldestWithTree = 2        // versions before have no ids
)

// NewReader reads from r. now stamps what the file has no time for; ids that have to be made come from
// it, the entries' own times and rand: equal input, clock and randomness give equal output.
func NewReader(r io.Reader, now time.Time, rand io.Reader) *Reader {
	return &Reader{in: lineReader{r: bufio.NewReaderSize(r, 1<<18)}, now: now, rand: rand, noted: map[string]bool{}}
}

// Header reads the file's header. Without one, if entries follow, one is made and reported. A file that
// holds neither gives an error that wraps ErrNotSession and says what it looks like.
func (f *Reader) Header() (Header, error) {
	for !f.started && f.err == nil {
		l, err := f.object()
		switch {
		case errors.Is(err, io.EOF):
			f.err = f.notSession()
		case err != nil:
			f.err = err
		case l.Type == "session":
			f.err = f.setHeader(l)
		case l.Type == "title" && l.ID == "": // omp's slot in front of the header
			f.header.Title = rawjson.Text(rawjson.Field(l.Raw, "title"))
			f.note("title", l, diag.Converted, "a title line before the header")
		case looksLikeEntry(l):
			f.pending = &l
			f.err = f.makeHeader(l)
		default:
			f.anything = true
			f.refuse(l, diag.BadLine, "neither a session header nor an entry")
		}
	}
	if !f.started {
		return Header{}, f.err
	}
	return f.header, nil
}

// Next gives the next entry as a draft with Raw set: a line of version 3 with an id. io.EOF = the end. Any
// other error comes from the reader below, or from Header.
func (f *Reader) Next() (transcript.Draft, error) {
	if _, err := f.Header(); err != nil {
		return transcript.Draft{}, err
	}
	for f.err == nil {
		l, err := f.next()
		if err != nil {
			f.err = err
			break
		}
		raw, err := f.convert(l)
		if err != nil {
			f.err = err
			break
		}
		if raw != nil {
			return transcript.Draft{Raw: raw}, nil
		}
	}
	return transcript.Draft{}, f.err
}

func (f *Reader) next() (fileLine, error) {
	if l := f.pending; l != nil {
		f.pending = nil
		return *l, nil
	}
	return f.object()
}

// Verbatim reports, after io.EOF, that the header line and every line given, each with a newline, are the
// file byte for byte. false: keep the original as well.
func (f *Reader) Verbatim() bool { return errors.Is(f.err, io.EOF) && f.started && !f.changed }

// Diagnostics gives what was found so far, at most 100 and then a count; Ordinal is the line's number.
func (f *Reader) Diagnostics() []transcript.Diagnostic { return f.diag.All() }

// BadLines counts the lines so far of which bytes were passed over because they are no entry; blank lines aside.
func (f *Reader) BadLines() int { return f.bad }

// object reads on to the next object with a type.
func (f *Reader) object() (fileLine, error) {
	for {
		if !f.started && f.refused >= maxRefused {
			return fileLine{}, f.notSession()
		}
		l, clean, ended, err := f.line()
		if err != nil {
			return fileLine{}, err
		}
		if l.part {
			if l.Line = headOf(clean); l.Type != "" {
				return l, nil
			}
			f.refuse(l, diag.Oversize, fmt.Sprintf("%d bytes, over the limit of %d, and no type at its start", l.size, maxLineBytes))
			continue
		}
		if len(clean) == 0 {
			continue
		}
		if l.Line, err = transcript.ParseLine(clean); err != nil {
			var found bool
			if l.Line, found = f.salvage(clean, l, ended, err); !found {
				continue
			}
		} else if !ended {
			f.note("", l, diag.Converted, "the last line has no newline")
		}
		if l.Type != "" {
			return l, nil
		}
		f.anything = true
		f.refuse(l, diag.BadLine, "an object without a type")
	}
}

// line gives the next line of the file, or what is left of one that held more than one object.
func (f *Reader) line() (l fileLine, clean []byte, ended bool, err error) {
	if len(f.rest) > 0 {
		clean, f.rest = f.rest, nil
		return fileLine{number: f.in.number, size: int64(len(clean))}, clean, f.restEnded, nil
	}
	raw, size, ended, err := f.in.next()
	if err != nil {
		return fileLine{}, nil, false, err
	}
	l = fileLine{number: f.in.number, size: size, part: size > int64(len(raw))}
	if l.part {
		return l, raw, ended, nil
	}
	return l, f.clean(raw, l), ended, nil
}

// note reports something that keeps the file from coming through byte for byte. once names what is said
// only the first time; "" = always.
func (f *Reader) note(once string, l fileLine, kind, detail string) {
	f.changed = true
	if once != "" {
		if f.noted[once] {
			return
		}
		f.noted[once] = true
		detail += " (said once)"
	}
	f.diag.Add(l.ID, uint64(l.number), kind, detail)
}

// refuse reports a line that gives no entry.
func (f *Reader) refuse(l fileLine, kind, detail string) {
	f.bad++
	f.refused++
	f.note("", l, kind, detail)
}
