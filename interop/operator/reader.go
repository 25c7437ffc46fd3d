// Package operator reads and writes operator's session files: a tree of entries in snake case with times in seconds,
// and the older form, a line of metadata followed by messages.
//
// Every entry becomes a line of pi's version 3 with the same ID and parent, fields and blocks under pi's names, and
// every digit of its times. A message with several tool results becomes a run of messages. A type that pi does not have
// becomes a custom entry with the type after "operator.". Write reverses all of that. The lines are never the file's
// bytes, so an import always keeps the original.
//
// Bounds and handling of damage are those of package pi. A reader also holds the IDs of split messages, and the tools
// of the newest 4,096 calls. The lines of one entry take at most 128 MiB, or a stub replaces it; while they are made,
// the same amount may be held twice more.
package operator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// Reader reads one file. It is not safe for concurrent use.
type Reader struct {
	src     interop.Source
	o       interop.Options
	close   func() error
	in      *jsonl.EntryScanner
	header  interop.Header
	started bool
	old     bool // older form: metadata and messages
	err     error

	first  *jsonl.Entry      // first entry of a file without a header
	ready  [][]byte          // remaining lines of a split entry
	last   string            // older form: ID of the message before
	tails  map[string]string // split messages: ID of the last part, by ID of the first
	called map[string]string // names of tools by ID of the call; the newest ones

	// Reused for each entry.
	sheet decodedEntry
	out   []byte
	ends  []int
	lines [][]byte
}

const (
	maxRefused = 1000
	maxID      = 1 << 10 // bytes of a call's ID

	transcriptName = 64 << 10 // longest ID of an entry, in bytes
)

// NewReader returns a reader of a source, which Header opens.
func NewReader(src interop.Source, o interop.Options) *Reader {
	return &Reader{src: src, o: o, tails: map[string]string{}, called: map[string]string{}}
}

// Header returns the file's header in pi's form.
func (r *Reader) Header() (interop.Header, error) {
	if r.in == nil && r.err == nil {
		f, err := r.src.Open()
		if err != nil {
			r.err = err
		} else {
			r.close = f.Close
			r.in = jsonl.NewEntryScanner(f, "parent_id", isEntry)
			r.in.Change()
		}
	}
	for !r.started && r.err == nil {
		r.err = r.begin()
	}
	if !r.started {
		return interop.Header{}, r.err
	}
	return r.header, nil
}

func (r *Reader) begin() error {
	if r.in.Refused() >= maxRefused {
		return r.notSession()
	}
	o, err := r.in.Next()
	switch {
	case errors.Is(err, io.EOF):
		return r.notSession()
	case err != nil:
		return err
	case o.Raw == nil:
		return nil
	case o.Type == "session", o.Type == "session_header":
		return r.setHeader(o)
	case o.Type == "metadata":
		r.old = true
		return r.setOldHeader(o)
	case isEntry(o.Line), isOldMessage(o):
		r.old = !isEntry(o.Line)
		o.Raw = bytes.Clone(o.Raw)
		r.first = &o
		return r.makeHeader(o)
	}
	r.in.Refuse(o, transcript.DiagBadLine, "neither a session header nor an entry")
	return nil
}

func (r *Reader) notSession() error {
	return fmt.Errorf("%w: no header and no entries of an operator session in %d lines", interop.ErrNotSession,
		r.in.Lines())
}

// isEntry reports whether an object is an entry: a type, an id, and a parent_id or a time in seconds.
func isEntry(l transcript.Line) bool {
	return l.Type != "" && l.ID != "" && (rawjson.Field(l.Raw, "parent_id") != nil ||
		rawjson.IsNumber(rawjson.Field(l.Raw, "timestamp")))
}

func isOldMessage(o jsonl.Entry) bool { return rawjson.IsString(rawjson.Field(o.Raw, "role")) }

// Next returns the next entry, io.EOF at the end.
func (r *Reader) Next() (transcript.Draft, error) {
	if _, err := r.Header(); err != nil {
		return transcript.Draft{}, err
	}
	for len(r.ready) == 0 && r.err == nil {
		r.ready, r.err = r.entry()
	}
	if len(r.ready) == 0 {
		return transcript.Draft{}, r.err
	}
	raw := r.ready[0]
	r.ready = r.ready[1:]
	return transcript.Draft{Raw: raw}, nil
}

// entry returns the lines of the next object; none if it is no entry.
func (r *Reader) entry() ([][]byte, error) {
	var o jsonl.Entry
	if r.first != nil {
		o, r.first = *r.first, nil
	} else {
		var err error
		if o, err = r.in.Next(); err != nil {
			return nil, err
		}
	}
	if o.Raw == nil {
		return nil, nil
	}
	if o.Part {
		if o.Type == "" {
			return nil, nil
		}
		return r.large(o)
	}
	switch {
	case o.Type == "session", o.Type == "session_header", o.Type == "metadata":
		r.in.Refuse(o, transcript.DiagBadLine, "another session header: skipped")
		return nil, nil
	case o.Type == "" && isOldMessage(o) || r.old && isOldMessage(o):
		return r.fit(o, r.oldMessage)
	case o.Type == "":
		r.in.Refuse(o, transcript.DiagBadLine, "an object without a type")
		return nil, nil
	}
	return r.fit(o, r.convert)
}

// fit converts an entry. If the result is over the limit of an entry, it converts it again without long texts.
func (r *Reader) fit(o jsonl.Entry, convert func(jsonl.Entry) ([][]byte, error)) ([][]byte, error) {
	last := r.last
	lines, err := convert(o)
	if errors.Is(err, errSpread) {
		return r.large(o)
	}
	for _, raw := range lines {
		if len(raw) <= jsonl.MaxEntry {
			continue
		}
		if stored, _ := blob.Externalise(raw); len(stored) > jsonl.MaxEntry {
			r.last = last
			return r.shrunk(o, convert)
		}
	}
	return lines, err
}

func (r *Reader) shrunk(o jsonl.Entry, convert func(jsonl.Entry) ([][]byte, error)) ([][]byte, error) {
	stub := rawjson.Field(r.in.Stub(o, nil, nil), "stub")
	small := o
	small.Raw = jsonl.Shrink(o.Raw, 8)
	for _, name := range []string{"parent_id", "timestamp"} { // in any place of the line
		if val := rawjson.Field(o.Raw, name); len(val) < transcriptName {
			small.Raw = rawjson.WithField(small.Raw, name, val)
		}
	}
	lines, err := convert(small)
	if errors.Is(err, errSpread) || longest(lines) > jsonl.MaxEntry {
		return r.large(o)
	}
	if err == nil && len(lines) > 0 {
		lines[0] = rawjson.WithField(lines[0], "stub", stub)
	}
	return lines, err
}

func longest(lines [][]byte) (n int) {
	for _, raw := range lines {
		n = max(n, len(raw))
	}
	return n
}

// large returns the replacement of a truncated line over the limit.
func (r *Reader) large(o jsonl.Entry) ([][]byte, error) {
	id := r.id(o)
	o.ID = id
	var parent []byte
	for m := rawjson.Walk(o.Raw); m.Closing == '}' && m.Next(); {
		if string(m.Key) == "parent_id" && rawjson.IsString(m.Val) {
			parent = r.tail(m.Val)
		}
	}
	if r.old {
		parent, r.last = nonEmpty(r.last), id
	}
	raw := r.in.Stub(o, parent, nil)
	if at := rawjson.Field(raw, "timestamp"); at != nil {
		raw = rawjson.WithField(raw, "timestamp", isoTime(at))
	}
	return [][]byte{raw}, nil
}

func (r *Reader) id(o jsonl.Entry) string {
	if o.ID != "" {
		return o.ID
	}
	id := jsonl.MadeID(o.Time, o.Raw, o.Number)
	if !r.old {
		r.in.Note(o, transcript.DiagConverted, "an entry without an id: one was made")
	}
	return id
}

// stamp returns the line's time, or now.
func (r *Reader) stamp(o jsonl.Entry) time.Time {
	if y := o.Time.Year(); o.Time.IsZero() || y < 1970 || y > 9999 {
		return r.o.Now
	}
	return o.Time
}

// tail returns the ID, as JSON, of the last part of a parent.
func (r *Reader) tail(id []byte) []byte {
	if len(r.tails) == 0 {
		return id
	}
	s, _ := stringBytes(id)
	if t, ok := r.tails[string(s)]; ok {
		return rawjson.AppendString(nil, t)
	}
	return id
}

// Verbatim returns false: no line of operator is in pi's format.
func (r *Reader) Verbatim() bool { return false }

// BadLines returns the number of lines of which bytes were skipped. Blank lines do not count.
func (r *Reader) BadLines() int {
	if r.in == nil {
		return 0
	}
	return r.in.Bad()
}

// Diagnostics returns at most 100 findings, and a count of the others.
func (r *Reader) Diagnostics() []transcript.Diagnostic {
	if r.in == nil {
		return nil
	}
	return r.in.Diagnostics()
}

// Close closes the source.
func (r *Reader) Close() error {
	if r.close == nil {
		return nil
	}
	c := r.close
	r.close = nil
	if r.err == nil {
		r.err = fmt.Errorf("read %s: %w", r.src.Name, fs.ErrClosed)
	}
	return c()
}
