package jsonl

import (
	"bytes"
	"fmt"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/lines"
	"github.com/coppice-go/coppice/transcript"
)

// salvage looks for entries on a line that is no single object: a whole one in front, when a newline is
// missing between two; or one at the end, appended behind a torn one.
func (s *Scanner) salvage(clean []byte, o Object, ended bool, cause error) (transcript.Line, bool) {
	m := rawjson.Walk(clean)
	object := m.Closing == '}'
	for m.Next() {
	}
	if object && m.Err == nil && m.Closing == 0 && m.Pos < len(clean) {
		if head, err := transcript.ParseLine(clean[:m.Pos]); err == nil {
			s.rest, s.restEnded = bytes.Trim(clean[m.Pos:], " \t\r\x00"), ended
			s.Note("", o, diag.Converted, "more than one object on the line")
			return head, true
		}
	}
	s.Refuse(o, damage(ended), cause.Error())
	head, err := s.lastEntry(clean)
	if err != nil {
		return transcript.Line{}, false
	}
	s.Note("", o, diag.Converted, "an entry was found behind the damage, on the same line")
	return head, true
}

func damage(ended bool) string {
	if ended {
		return diag.BadLine
	}
	return diag.TornLine
}

// clean takes away what is around a line's object: byte order mark, carriage return, white space, runs of
// NUL as a crash leaves them. Nothing is left of a blank line.
func (s *Scanner) clean(raw []byte, o Object) []byte {
	line := raw
	if o.Number == 1 {
		if cut, ok := bytes.CutPrefix(line, []byte("\xef\xbb\xbf")); ok {
			line = cut
			s.Note("", o, diag.Converted, "a byte order mark")
		}
	}
	if cut, ok := bytes.CutSuffix(line, []byte("\r")); ok {
		line = cut
		s.Note("crlf", o, diag.Converted, "lines end with CR LF")
	}
	if cut := bytes.Trim(line, "\x00"); len(cut) < len(line) {
		s.bad++
		s.Note("", o, diag.BadLine, fmt.Sprintf("%d NUL bytes, as a crash leaves them", len(line)-len(cut)))
		line = cut
	}
	cut := bytes.Trim(line, " \t\r\x00")
	switch {
	case len(raw) == 0 || len(cut) == 0 && len(line) > 0:
		s.Note("", o, diag.Converted, "a blank line")
	case len(cut) < len(line):
		s.Note("space", o, diag.Converted, "white space around a line")
	}
	return cut
}

// lastEntry finds an entry at the end of a damaged line: appended behind a torn one that had no newline. A
// block of the torn message does not pass for one, for it has no time stamp. It looks at the last few
// places where an object with a type starts, and behind the last NUL.
func (s *Scanner) lastEntry(line []byte) (transcript.Line, error) {
	nul := bytes.LastIndexByte(line, 0)
	for at := range lines.Behind(line, `{"type":"`) {
		if at <= nul {
			break
		}
		if l, err := transcript.ParseLine(line[at:]); err == nil && s.isEntry(l) && !l.Time.IsZero() {
			return l, nil
		}
	}
	if nul < 0 {
		return transcript.Line{}, transcript.ErrLine
	}
	return transcript.ParseLine(bytes.TrimLeft(line[nul:], "\x00 \t\r"))
}

// headOf reads the head of a line that is there only in part.
func headOf(prefix []byte) transcript.Line {
	l := transcript.Line{Raw: prefix}
	for m := rawjson.Walk(prefix); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type":
			l.Type = rawjson.Text(m.Val)
		case "id":
			l.ID = rawjson.Text(m.Val)
		case "parentId":
			l.HasParent, l.ParentID = rawjson.IsString(m.Val), rawjson.Text(m.Val)
		case "timestamp":
			l.Time = rawjson.Time(m.Val)
		}
	}
	return l
}
