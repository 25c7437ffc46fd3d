package jsonl

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Finder finds the objects of lines. The objects of a line depend on that line alone. It is not safe for concurrent
// use.
type Finder struct {
	Accepts func(object []byte) bool // as a Scanner's
	// Member is called with the members of an object while it is checked, first with key nil. May be nil.
	Member func(key, val []byte)
	// Check checks the first object of a piece of a line and returns where it ends, in place of Member. May be nil.
	Check func(piece []byte) (end int, err error)
	// Last returns the whole object at the end of a damaged piece of a line, in place of Accepts, or nil. The result is
	// a part of the piece. May be nil.
	Last func(piece []byte) (object []byte)
	Noun string // what remarks call an object; "" = "object"
	// Exact also reports what is not damage: blank lines, and white space around an object.
	Exact bool
	Note  func(Remark)

	line   Line
	fresh  bool   // nothing of the line was examined
	rest   []byte // of the line, after its first object
	restAt int
}

// Take continues with another line.
func (f *Finder) Take(line Line) { f.line, f.fresh, f.rest = line, true, nil }

// Next returns the next object of the line; false = it holds no more. Lines without one are noted.
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
			o.left = int64(len(piece))
			return o, true
		}
	}
	return Object{}, false
}

func (f *Finder) first() (Object, bool) {
	if f.line.Bad > 0 {
		f.note(f.line.BadText())
	}
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
	if ok && !f.line.Ended && !f.Exact {
		f.note("the last line has no newline")
	}
	return o, ok
}

func (f *Finder) at(at int) Object {
	return Object{Number: f.line.Number, Offset: f.line.Offset, At: at, Size: f.line.Size}
}

// object returns the first object of a piece of a line, or one after damage.
func (f *Finder) object(piece []byte, at int) (Object, bool) {
	end, err := f.check(piece)
	if err != nil {
		return f.salvage(piece, at, err)
	}
	if rest := bytes.Trim(piece[end:], blanks); len(rest) > 0 {
		f.rest = rest
		f.restAt = at + bytes.Index(piece[end:], rest[:1]) + end
		f.note("more than one object on the line")
	}
	o := f.at(at)
	o.Raw = piece[:end]
	return o, true
}

// check returns where the object at the start of p ends.
func (f *Finder) check(p []byte) (end int, err error) {
	switch {
	case f.Check != nil:
		return f.Check(p)
	case p[0] != '{':
		return 0, errors.New("no JSON object")
	case f.Member == nil:
		return rawjson.ValueEnd(p, 0, maxDepth)
	}
	return f.members(p)
}

// members checks the object at the start of p and calls Member, in one pass.
func (f *Finder) members(p []byte) (end int, err error) {
	f.Member(nil, nil)
	return Members(p, func(_, key []byte, at int) (int, error) {
		end, err := rawjson.ValueEnd(p, at, maxDepth-1)
		if err != nil {
			return 0, err
		}
		f.Member(key, p[at:end])
		return end, nil
	})
}

// Members iterates over the object at the start of p and returns where it ends. member returns the end of the value at
// p[at]; name is the name's JSON string, key its content.
func Members(p []byte, member func(name, key []byte, at int) (end int, err error)) (end int, err error) {
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
		var escaped bool
		if i, escaped, err = rawjson.StringEnd(p, i); err != nil {
			return 0, err
		}
		name := p[from:i]
		key := name[1 : len(name)-1]
		if escaped {
			key = []byte(rawjson.Text(name))
		}
		if i = rawjson.Space(p, i); i >= len(p) || p[i] != ':' {
			return 0, rawjson.SyntaxError(p, i)
		}
		if i = rawjson.Space(p, i+1); i >= len(p) {
			break
		}
		if i, err = member(name, key, i); err != nil {
			return 0, err
		}
		i = rawjson.Space(p, i)
	}
	return 0, rawjson.SyntaxError(p, len(p))
}

// salvage looks for a whole object at the end of a damaged piece of a line, appended after a torn one that had no
// newline.
func (f *Finder) salvage(piece []byte, at int, cause error) (Object, bool) {
	kind := transcript.DiagBadLine
	if !f.line.Ended {
		kind = transcript.DiagTornLine
	}
	object := f.last(piece)
	damaged := f.at(at)
	damaged.Raw, damaged.Part = piece[:len(piece)-len(object)], true
	f.report(Remark{Number: f.line.Number, Kind: kind, Detail: cause.Error(), Bad: 1, Damaged: true, Piece: damaged})
	if object == nil {
		return Object{}, false
	}
	noun := "object"
	if f.Noun != "" {
		noun = f.Noun
	}
	f.note("an " + noun + " was found behind the damage, on the same line")
	o := f.at(at + len(piece) - len(object))
	o.Raw = object
	return o, true
}

// last returns the whole object at the end of a damaged piece; nil = there is none.
func (f *Finder) last(piece []byte) []byte {
	if f.Last != nil {
		return f.Last(piece)
	}
	if f.Accepts == nil {
		return nil
	}
	for from := range CandidatesAfterDamage(piece, `{"`) {
		object := piece[from:]
		if end, err := f.check(object); err == nil && end == len(object) && f.Accepts(object) {
			return object
		}
	}
	return nil
}

// blanks is what is removed around an object: white space, and NUL as a crash leaves it.
const blanks = " \t\r\x00"

// clean removes what is around the objects of a line. at is the start of the rest.
func (f *Finder) clean(line []byte) (clean []byte, at int) {
	if n := len(line); n > 1 && line[0] == '{' && line[n-1] == '}' {
		return line, 0 // the usual case
	}
	return Clean(f.line.Number, line, f.Exact, f.report)
}

// Clean returns a line without byte order mark, carriage return, white space, and NULs left by a crash, around its
// objects. at is the start of the rest. note is called for each of these; for blank lines and white space only if
// exact.
func Clean(number int, line []byte, exact bool, note func(Remark)) (clean []byte, at int) {
	empty := len(line) == 0
	if number == 1 {
		if cut, ok := bytes.CutPrefix(line, []byte("\xef\xbb\xbf")); ok {
			line, at = cut, len(line)-len(cut)
			note(Remark{Number: number, Kind: transcript.DiagConverted, Detail: "a byte order mark"})
		}
	}
	if cut, ok := bytes.CutSuffix(line, []byte("\r")); ok {
		line = cut
		note(RemarkOnce(number, transcript.DiagConverted, "lines end with CR LF"))
	}
	clean = Trim(line)
	at += len(line) - len(bytes.TrimLeft(line, blanks))
	nuls := bytes.Count(line, []byte{0}) - bytes.Count(clean, []byte{0})
	if exact { // NULs among white space count as that
		size := len(line)
		line = bytes.Trim(line, "\x00")
		nuls = size - len(line)
	}
	if nuls > 0 {
		detail := fmt.Sprintf("%d NUL bytes, as a crash leaves them", nuls)
		note(Remark{Number: number, Kind: transcript.DiagBadLine, Detail: detail, Bad: 1})
	}
	switch {
	case !exact:
	case empty || len(clean) == 0 && len(line) > 0:
		note(Remark{Number: number, Kind: transcript.DiagConverted, Detail: "a blank line"})
	case len(clean) < len(line):
		note(RemarkOnce(number, transcript.DiagConverted, "white space around a line"))
	}
	return clean, at
}

// Trim returns a piece of a line without white space and NULs around it.
func Trim(piece []byte) []byte { return bytes.Trim(piece, blanks) }

// note reports a change that lost nothing of the line.
func (f *Finder) note(detail string) {
	f.report(Remark{Number: f.line.Number, Kind: transcript.DiagConverted, Detail: detail})
}

func (f *Finder) report(r Remark) {
	if f.Note != nil {
		f.Note(r)
	}
}
