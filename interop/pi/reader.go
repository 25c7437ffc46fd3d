// Package pi reads and writes session files of the pi family: versions 1 to 3, and whatever calls itself
// later. Lines of version 3 come through byte for byte; anything else is converted to them. A file that is
// damaged is read as far as it goes: a torn or bad line never hides another, what is passed over is reported,
// and only the reader below or a file that is no session at all is an error.
//
// Write makes a file that pi loads: what pi has no form for becomes a custom entry or a custom
// message, and is counted.
package pi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// ErrNotSession is wrapped by the error for a file that holds no session of the pi family at all.
var ErrNotSession = interop.ErrNotSession

// Dialect is what a program of the family has beside pi's lines. The zero Dialect is pi's own.
type Dialect struct {
	// Slots: a line of type "title" without an id is part of the format, not an oddity.
	Slots bool
	// Entry is called with every entry as a version 3 line, and returns the line that replaces it: the same
	// one, untouched, or another. nil = every line as it is.
	Entry func(l transcript.Line, say func(kind, detail string)) []byte
}

// Reader reads a session file of the pi family, versions 1 to 3 and whatever calls itself later, line by
// line, and returns lines of version 3. Lines that are that already come through byte for byte. What is
// damaged is passed over and reported: a torn or bad line never hides another, and the file is only read.
// It holds one line at a time, of at most 64 MiB; of a version 1 file also the ids that it gave.
//
//	f := Open(src, options)
//	h, err := f.Header()
//	for d, err := f.Next(); err == nil; d, err = f.Next() { ... }   // io.EOF at the end
//
// Not safe for concurrent use.
type Reader struct {
	src     interop.Source
	close   func() error
	dialect Dialect
	in      *jsonl.EntryScanner
	now     time.Time
	from    *interop.Mark
	newest  interop.Mark // the line of the last entry
	header  interop.Header
	started bool
	err     error // sticky

	pending  *jsonl.Entry // the first entry of a file without a header
	ids      []string     // version 1: by index among the file's objects, the header being 0
	last     string       // version 1: the id of the entry before
	anything bool         // a line was an object
	slotted  bool         // a title line came before the header
}

const (
	maxRefused     = 1000 // lines without any entry before a file is given up
	oldestWithTree = 2    // versions before have no ids
	currentVersion = 3
)

// NewReader reads from r. now stamps what the file has no time for: equal input and clock give equal output.
func NewReader(r io.Reader, now time.Time) *Reader {
	src := interop.Source{Open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil }}
	return Open(src, interop.Options{Now: now})
}

// Open reads from a source, which is opened when the header is asked for.
func Open(src interop.Source, o interop.Options) *Reader { return OpenDialect(src, o, Dialect{}) }

// OpenDialect is Open for another program of the family.
func OpenDialect(src interop.Source, o interop.Options, d Dialect) *Reader {
	return &Reader{src: src, now: o.Now, from: o.From, dialect: d}
}

// Header reads the file's header. Without one, if entries follow, one is made and reported. A file that
// holds neither is an error that wraps ErrNotSession and says what it looks like.
func (f *Reader) Header() (interop.Header, error) {
	if f.in == nil && f.err == nil {
		f.open()
	}
	for !f.started && f.err == nil {
		f.err = f.begin()
	}
	if !f.started {
		return interop.Header{}, f.err
	}
	return f.header, nil
}

func (f *Reader) open() {
	r, err := f.src.Open()
	if err != nil {
		f.err = err
		return
	}
	f.close = r.Close
	f.in = jsonl.NewEntryScanner(r, "parentId", looksLikeEntry)
	if m := f.from; m != nil { // it was a whole file of version 3, each line an entry
		f.in.Start(int(m.Line), m.Offset)
		f.header.Version, f.started = currentVersion, true
	}
}

// begin looks at one object before the header.
func (f *Reader) begin() error {
	l, err := f.object()
	switch {
	case errors.Is(err, io.EOF):
		return f.notSession()
	case err != nil:
		return err
	case l.Type == "session":
		return f.setHeader(l)
	case isSlot(l):
		f.slotted = true
		f.header.Title = rawjson.Text(rawjson.Field(l.Raw, "title"))
		f.slot(l, "a title line before the header")
	case looksLikeEntry(l.Line):
		l.Raw = bytes.Clone(l.Raw)
		f.pending = &l
		return f.makeHeader(l)
	default:
		f.anything = true
		f.in.Refuse(l, transcript.DiagBadLine, "neither a session header nor an entry")
	}
	return nil
}

// isSlot reports whether a line is omp's title line, which is rewritten in place and is no entry.
func isSlot(l jsonl.Entry) bool { return l.Type == "title" && l.ID == "" }

func (f *Reader) slot(l jsonl.Entry, detail string) {
	if f.dialect.Slots {
		f.in.Change() // it has no place among header and entries: the original keeps it
		return
	}
	f.in.NoteOnce(l, transcript.DiagConverted, detail)
}

// Next returns the next entry as a draft with Raw set: a line of version 3 with an id. io.EOF = the end. Any
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
		raw := f.convert(l)
		if f.from != nil && f.in.Changed() {
			f.err = fmt.Errorf("line %d: %w", l.Number, interop.ErrWhole)
			break
		}
		if raw != nil {
			f.newest = interop.Mark{Offset: l.Offset, Line: int64(l.Number - 1), Entry: l.ID}
			return transcript.Draft{Raw: raw}, nil
		}
	}
	return transcript.Draft{}, f.err
}

func (f *Reader) next() (jsonl.Entry, error) {
	if l := f.pending; l != nil {
		f.pending = nil
		return *l, nil
	}
	return f.object()
}

// object reads on to the next object with a type.
func (f *Reader) object() (jsonl.Entry, error) {
	for {
		if !f.started && f.in.Refused() >= maxRefused {
			return jsonl.Entry{}, f.notSession()
		}
		l, err := f.in.Next()
		switch {
		case err != nil:
			return jsonl.Entry{}, err
		case l.Type != "":
			return l, nil
		case l.Raw != nil && !l.Part:
			f.anything = true
			f.in.Refuse(l, transcript.DiagBadLine, "an object without a type")
		}
	}
}

// Verbatim reports, after io.EOF, that the header line and every line given, each with a newline, are the
// file byte for byte. false: keep the original as well.
func (f *Reader) Verbatim() bool {
	return errors.Is(f.err, io.EOF) && f.started && !f.in.Changed()
}

// Mark returns the last line, of a file that is Verbatim: then no line depends on one before it.
func (f *Reader) Mark() *interop.Mark {
	if !f.Verbatim() || f.newest.Entry == "" || f.dialect.Entry != nil || f.dialect.Slots {
		return nil
	}
	m := f.newest
	return &m
}

// Diagnostics returns what was found so far, at most 100 and then a count; Ordinal is the line's number.
func (f *Reader) Diagnostics() []transcript.Diagnostic {
	if f.in == nil {
		return nil
	}
	return f.in.Diagnostics()
}

// BadLines counts the lines so far of which bytes were passed over because they are no entry; blank lines aside.
func (f *Reader) BadLines() int {
	if f.in == nil {
		return 0
	}
	return f.in.Bad()
}

// Close closes what was opened. A reader that was closed returns no more entries.
func (f *Reader) Close() error {
	if f.close == nil {
		return nil
	}
	c := f.close
	f.close = nil
	if f.err == nil {
		f.err = fmt.Errorf("read %s: %w", f.src.Name, fs.ErrClosed)
	}
	return c()
}
