package jsonl

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/lines"
)

// Finder finds the objects of one line after the other. What a line gives depends on that line alone. Not safe
// for concurrent use.
type Finder struct {
	Accepts func(object []byte) bool // as a Scanner's
	// Member is shown the members of an object while it is checked, beginning with key nil. nil = nobody looks.
	Member func(key, val []byte)
	Note   func(Remark)

	line   lines.Line
	fresh  bool   // the line was not looked at
	rest   []byte // what stands behind the line's first object
	restAt int
}

// Take goes on with another line.
func (f *Finder) Take(line lines.Line) { f.line, f.fresh, f.rest = line, true, nil }

// Next gives the next object of the line; false = it holds no more. Lines that hold none are noted.
func (f *Finder) Next() (Object, bool) {
	if f.fresh {
		f.fresh = false
		if o, ok := f.first(); ok {
			return o, true
		}
	}
	for len(f.rest) > 0 {
		piece, at := f.rest, f.restAt
		f.rest = nil
		if o, ok := f.object(piece, at); ok {
			return o, true
		}
	}
	return Object{}, false
}

func (f *Finder) first() (Object, bool) {
	if f.line.Part() {
		o := f.at(0)
		o.Raw, o.Part = f.line.Bytes, true
		return o, true
	}
	clean, at := f.clean(f.line.Bytes)
	if len(clean) == 0 {
		return Object{}, false
	}
	o, ok := f.object(clean, at)
	if ok && !f.line.Ended {
		f.note(diag.Converted, "the last line has no newline", 0)
	}
	return o, ok
}

func (f *Finder) at(at int) Object {
	return Object{Number: f.line.Number, Offset: f.line.Offset, At: at, Size: f.line.Size}
}

// object checks one piece of a line and finds what is to be found in it.
func (f *Finder) object(piece []byte, at int) (Object, bool) {
	if piece[0] != '{' {
		return f.salvage(piece, at, errors.New("no JSON object"))
	}
	end, err := f.check(piece)
	if err != nil {
		return f.salvage(piece, at, err)
	}
	if behind := bytes.Trim(piece[end:], " \t\r\x00"); len(behind) > 0 {
		f.rest = behind
		f.restAt = at + bytes.Index(piece[end:], behind[:1]) + end
		f.note(diag.Converted, "more than one object on the line", 0)
	}
	o := f.at(at)
	o.Raw = piece[:end]
	return o, true
}

// check tells where the object at the start of p ends, and shows its members on the way: one pass for both.
func (f *Finder) check(p []byte) (end int, err error) {
	if f.Member == nil {
		return rawjson.ValueEnd(p, 0, maxDepth)
	}
	f.Member(nil, nil)
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
		escaped := false
		if i, escaped, err = rawjson.StringEnd(p, i); err != nil {
			return 0, err
		}
		key := p[from+1 : i-1]
		if escaped {
			key = []byte(rawjson.Text(p[from:i]))
		}
		if i = rawjson.Space(p, i); i >= len(p) || p[i] != ':' {
			return 0, rawjson.SyntaxError(p, i)
		}
		from = rawjson.Space(p, i+1)
		if i, err = rawjson.ValueEnd(p, from, maxDepth-1); err != nil {
			return 0, err
		}
		f.Member(key, p[from:i])
		i = rawjson.Space(p, i)
	}
	return 0, rawjson.SyntaxError(p, i)
}

// salvage looks for a whole object at the end of a damaged line: appended behind a torn one that had no
// newline.
func (f *Finder) salvage(piece []byte, at int, cause error) (Object, bool) {
	kind := diag.BadLine
	if !f.line.Ended {
		kind = diag.TornLine
	}
	f.note(kind, cause.Error(), 1)
	if f.Accepts == nil {
		return Object{}, false
	}
	for from := range lines.Behind(piece, `{"`) {
		object := piece[from:]
		if end, err := f.check(object); err == nil && end == len(object) && f.Accepts(object) {
			f.note(diag.Converted, "an object was found behind the damage, on the same line", 0)
			o := f.at(at + from)
			o.Raw = object
			return o, true
		}
	}
	return Object{}, false
}

// clean takes away what is around a line's object: byte order mark, carriage return, white space, runs of
// NUL as a crash leaves them. at is where the rest starts.
func (f *Finder) clean(line []byte) (clean []byte, at int) {
	if n := len(line); n > 1 && line[0] == '{' && line[n-1] == '}' {
		return line, 0 // the usual case
	}
	if f.line.Number == 1 {
		if cut, ok := bytes.CutPrefix(line, []byte("\xef\xbb\xbf")); ok {
			line, at = cut, len(line)-len(cut)
			f.note(diag.Converted, "a byte order mark", 0)
		}
	}
	if bytes.HasSuffix(line, []byte("\r")) {
		f.tell(Remark{Number: f.line.Number, Kind: diag.Converted, Detail: "lines end with CR LF (said once)", once: true})
	}
	cut := bytes.TrimLeft(line, " \t\r\x00")
	at += len(line) - len(cut)
	cut = bytes.TrimRight(cut, " \t\r\x00")
	if n := bytes.Count(line, []byte{0}) - bytes.Count(cut, []byte{0}); n > 0 {
		f.note(diag.BadLine, fmt.Sprintf("%d NUL bytes, as a crash leaves them", n), 1)
	}
	return cut, at
}

func (f *Finder) note(kind, detail string, bad int) {
	f.tell(Remark{Number: f.line.Number, Kind: kind, Detail: detail, Bad: bad})
}

func (f *Finder) tell(r Remark) {
	if f.Note != nil {
		f.Note(r)
	}
}
