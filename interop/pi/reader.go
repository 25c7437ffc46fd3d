// Package pi reads and writes session files of the pi family: versions 1 to 3, and later versions with the same
// structure. Lines of version 3 stay unchanged; others are converted. A damaged file is read as far as possible: a torn
// or bad line never hides another, and skipped bytes are reported. The only errors are those of the underlying reader,
// and ErrNotSession.
//
// Write makes a file that pi loads. An entry that pi cannot express becomes a custom entry or a custom message, and is
// counted.
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

// ErrNotSession is wrapped by the error for a file that is not a session of the pi family.
var ErrNotSession = interop.ErrNotSession

// Dialect describes the extensions of another program of the family. The zero Dialect is pi.
type Dialect struct {
	// Slots: a line of type "title" without an ID is part of the format, and not a finding.
	Slots bool
	// Entry is called with every entry as a version 3 line, and returns its replacement or the same slice. nil = lines
	// stay unchanged.
	Entry func(l transcript.Line, say func(kind, detail string)) []byte
}

// Reader reads a session file of the pi family, versions 1 to 3 and later ones with the same structure, line by line,
// and returns lines of version 3. Lines of that version stay unchanged. Damage is skipped and reported: a torn or bad
// line never hides another. The file is only read. A Reader holds one line at a time, of at most 64 MiB; for a version
// 1 file also the IDs that it made.
//
//	f := Open(src, options)
//	h, err := f.Header()
//	for d, err := f.Next(); err == nil; d, err = f.Next() { ... }   // io.EOF at the end
//
// It is not safe for concurrent use.
type Reader struct {
	src     interop.Source
	close   func() error
	dialect Dialect
	in      *jsonl.EntryScanner
	now     time.Time
	from    *interop.Mark
	newest  interop.Mark // line of the last entry
	header  interop.Header
	started bool
	err     error // sticky

	pending  *jsonl.Entry // first entry of a file without a header
	ids      []string     // version 1: IDs by index among the file's objects; the header is 0
	last     string       // version 1: ID of the entry before
	anything bool         // a line was an object
	slotted  bool         // a title line precedes the header
}

const (
	maxRefused     = 1000 // lines without an entry after which a file is rejected
	oldestWithTree = 2    // earlier versions have no IDs
	currentVersion = 3
)

// NewReader reads from r. now is the time of entries without one: equal input and clock make equal output.
func NewReader(r io.Reader, now time.Time) *Reader {
	src := interop.Source{Open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil }}
	return Open(src, interop.Options{Now: now})
}

// Open returns a reader of a source, which Header opens.
func Open(src interop.Source, o interop.Options) *Reader { return OpenDialect(src, o, Dialect{}) }

// OpenDialect is Open for another program of the family.
func OpenDialect(src interop.Source, o interop.Options, d Dialect) *Reader {
	return &Reader{src: src, now: o.Now, from: o.From, dialect: d}
}

// Header reads the file's header. If it is missing and entries follow, the reader makes one and reports it. For a file
// with neither, the error wraps ErrNotSession and describes the file.
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
	if m := f.from; m != nil { // marks exist only for intact files of version 3
		f.in.Start(int(m.Line), m.Offset)
		f.header.Version, f.started = currentVersion, true
	}
}

// begin reads one object before the header.
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

// isSlot reports whether a line is omp's title line, which omp rewrites in place and which is no entry.
func isSlot(l jsonl.Entry) bool { return l.Type == "title" && l.ID == "" }

func (f *Reader) slot(l jsonl.Entry, detail string) {
	if f.dialect.Slots {
		f.in.Change() // it is neither header nor entry: only the original keeps it
		return
	}
	f.in.NoteOnce(l, transcript.DiagConverted, detail)
}

// Next returns the next entry as a draft with Raw: a line of version 3 with an ID. It returns io.EOF at the end. Other
// errors are those of the underlying reader, or of Header.
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

// object reads up to the next object with a type.
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

// Verbatim reports, after io.EOF, whether the header line and all lines returned, each with a newline, are the file's
// bytes. If not, the original must be kept too.
func (f *Reader) Verbatim() bool {
	return errors.Is(f.err, io.EOF) && f.started && !f.in.Changed()
}

// Mark returns the last line of a Verbatim file, where no line depends on an earlier one.
func (f *Reader) Mark() *interop.Mark {
	if !f.Verbatim() || f.newest.Entry == "" || f.dialect.Entry != nil || f.dialect.Slots {
		return nil
	}
	m := f.newest
	return &m
}

// Diagnostics returns at most 100 findings, and a count of the others. Ordinal is the line number.
func (f *Reader) Diagnostics() []transcript.Diagnostic {
	if f.in == nil {
		return nil
	}
	return f.in.Diagnostics()
}

// BadLines returns the number of lines so far of which bytes were skipped because they are not an entry. Blank lines do
// not count.
func (f *Reader) BadLines() int {
	if f.in == nil {
		return 0
	}
	return f.in.Bad()
}

// Close closes the source. A closed reader returns no more entries.
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
