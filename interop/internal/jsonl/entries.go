package jsonl

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"iter"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Entry is one JSON object of a file of entries. Raw is valid until the next call of Next; nil = the line has no
// object.
type Entry struct {
	transcript.Line
	Number int   // of its line, from 1
	Offset int64 // of its line
	Size   int64 // bytes in the file
	Part   bool  // the line is over MaxLine: Raw is only its beginning
}

// EntryScanner reads the objects of a file of entries, and collects what there is to report about the file. It
// reports everything that keeps the file from being copied byte for byte, blank lines too. It is not safe for
// concurrent use.
type EntryScanner struct {
	in      *LineReader
	find    Finder
	isEntry func(transcript.Line) bool
	line    transcript.Line // of the object that was checked last
	once    OnceFilter
	mend    mender
	parent  string  // name of the member with an entry's parent
	queue   []Entry // to be returned before other lines are read
	damaged bool    // the piece of a line that was looked at last
	changed bool
	bad     int
	refused int
	diag    transcript.DiagnosticList
}

// NewEntryScanner reads from r. isEntry reports whether an object is an entry of the format, and not a part of one:
// a damaged line may hold a whole entry at its end. parent is the name of the member with the id of an entry's
// parent.
func NewEntryScanner(r io.Reader, parent string, isEntry func(transcript.Line) bool) *EntryScanner {
	s := &EntryScanner{in: NewLineReader(r), isEntry: isEntry, parent: parent}
	s.mend = mender{seed: maphash.MakeSeed(), known: map[uint64]struct{}{}}
	s.find = Finder{Exact: true, Check: s.check, Last: s.lastEntry, Noun: "entry", Note: s.remark}
	return s
}

// Start sets where in a file the stream begins: after so many lines, at an offset.
func (s *EntryScanner) Start(lines int, offset int64) { s.in.Start(lines, offset) }

// Next returns the next object, of any content. For a line without one it returns an Entry without Raw. Before an entry
// whose parent was on a damaged line, it returns an entry of type custom in that line's place. The error is io.EOF at
// the end; any other one is the stream's.
func (s *EntryScanner) Next() (Entry, error) {
	if len(s.queue) == 0 {
		e, err := s.next()
		if err != nil || e.ID == "" || e.Type == "" || e.Type == "session" || e.Type == "session_header" {
			return e, err
		}
		up := e.ParentID
		if s.parent != "parentId" {
			up = rawjson.Text(rawjson.Field(e.Raw, s.parent))
		}
		s.queue = append(s.mend.before(e.ID, up, s.parent), e)
	}
	e := s.queue[0]
	s.queue = s.queue[1:]
	return e, nil
}

func (s *EntryScanner) next() (Entry, error) {
	for {
		s.damaged = false
		if o, ok := s.find.Next(); ok {
			return s.entry(o), nil
		}
		if s.damaged {
			return Entry{Number: s.find.line.Number, Size: s.find.line.Size}, nil
		}
		line, err := s.in.Next()
		if err != nil {
			return Entry{}, err
		}
		s.find.Take(line)
	}
}

func (s *EntryScanner) entry(o Object) Entry {
	e := Entry{Line: s.line, Number: o.Number, Offset: o.Offset, Size: o.Size, Part: o.Part}
	if o.left > 0 {
		e.Size = o.left
	}
	if !o.Part {
		if !s.damaged && !s.find.line.Ended && len(s.find.rest) == 0 {
			s.Note(e, transcript.DiagConverted, "the last line has no newline")
		}
		return e
	}
	if e.Line = headOf(o.Raw); e.Type == "" {
		s.Refuse(e, transcript.DiagOversize,
			fmt.Sprintf("%d bytes, over the limit of %d, and no type at its start", e.Size,
				MaxLine))
	}
	return e
}

// check reads the first object of a piece of a line, and returns where it ends.
func (s *EntryScanner) check(piece []byte) (end int, err error) {
	if s.line, err = transcript.ParseLine(piece); err == nil {
		return len(piece), nil
	}
	m := rawjson.Walk(piece)
	object := m.Closing == '}'
	for m.Next() {
	}
	if !object || m.Err != nil || m.Closing != 0 || m.Pos >= len(piece) {
		return 0, err
	}
	first, invalid := transcript.ParseLine(piece[:m.Pos])
	if invalid != nil {
		return 0, err
	}
	s.line = first
	return m.Pos, nil
}

// lastEntry returns the entry at the end of a damaged line, which was appended after a torn one without a newline. A
// block of the torn message is not taken for an entry, as it has no time stamp. It looks at the last few places where
// an object with a type starts, and after the last NUL.
func (s *EntryScanner) lastEntry(piece []byte) (object []byte) {
	nul := bytes.LastIndexByte(piece, 0)
	for at := range CandidatesAfterDamage(piece, `{"type":"`) {
		if at <= nul {
			break
		}
		if l, err := transcript.ParseLine(piece[at:]); err == nil && s.isEntry(l) && !l.Time.IsZero() {
			s.line = l
			return piece[at:]
		}
	}
	if nul < 0 {
		return nil
	}
	l, err := transcript.ParseLine(bytes.TrimLeft(piece[nul:], "\x00 \t\r"))
	if err != nil {
		return nil
	}
	s.line = l
	return l.Raw
}

func (s *EntryScanner) remark(r Remark) {
	s.changed = true
	s.bad += r.Bad
	if r.Damaged {
		s.damaged = true
		s.refused++
		s.mend.lose(r.Number, r.Piece.Raw, s.parent)
	}
	if s.once.First(r) {
		s.diag.Add("", uint64(r.Number), r.Kind, r.Detail)
	}
}

// Note reports something that keeps the file from being copied byte for byte.
func (s *EntryScanner) Note(e Entry, kind, detail string) {
	s.changed = true
	s.diag.Add(e.ID, uint64(e.Number), kind, detail)
}

// NoteOnce is Note for what is reported only the first time.
func (s *EntryScanner) NoteOnce(e Entry, kind, detail string) {
	s.changed = true
	if r := RemarkOnce(e.Number, kind, detail); s.once.First(r) {
		s.diag.Add(e.ID, uint64(e.Number), r.Kind, r.Detail)
	}
}

// Remark reports something about a line that is copied as it is.
func (s *EntryScanner) Remark(e Entry, kind, detail string) {
	s.diag.Add(e.ID, uint64(e.Number), kind, detail)
}

// Refuse reports a line without an entry.
func (s *EntryScanner) Refuse(e Entry, kind, detail string) {
	s.bad++
	s.refused++
	s.Note(e, kind, detail)
}

// Change records that the lines made of the file are not its bytes.
func (s *EntryScanner) Change() { s.changed = true }

// Changed reports whether Note, NoteOnce, Refuse or Change was called, or the scanner found something to note.
func (s *EntryScanner) Changed() bool { return s.changed }

// Lines returns the number of lines read.
func (s *EntryScanner) Lines() int { return s.in.Number() }

// Bad returns the number of lines of which bytes were skipped, blank ones aside.
func (s *EntryScanner) Bad() int { return s.bad }

// Refused returns the number of lines without an entry.
func (s *EntryScanner) Refused() int { return s.refused }

// Diagnostics returns what was found so far: at most 100, then a count.
func (s *EntryScanner) Diagnostics() []transcript.Diagnostic { return s.diag.All() }

// Stub reports a line over a limit, and returns the line that replaces it: its head, the fields of rest, and its
// size. parent is its parentId, nil for null.
func (s *EntryScanner) Stub(e Entry, parent, rest []byte) []byte {
	limit := MaxEntry
	if e.Part {
		limit = MaxLine
	}
	s.Note(e, transcript.DiagOversize, OversizeDetail(e.Size, limit))
	var id []byte
	if e.ID != "" {
		id = rawjson.AppendString(nil, e.ID)
	}
	out := rawjson.Object("type", rawjson.AppendString(nil, e.Type), "id", id,
		"parentId", rawjson.OrNull(parent), "timestamp", rawjson.Field(e.Raw, "timestamp"))
	for m := rawjson.Walk(rest); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type", "id", "parentId", "timestamp":
		default:
			out = append(rawjson.AppendString(append(out[:len(out)-1], ','), string(m.Key)), ':')
			out = append(append(out, m.Val...), '}')
		}
	}
	return rawjson.WithField(out, "stub", fmt.Appendf(nil, `{"bytes":%d,"limit":%d}`, e.Size, limit))
}

// headOf reads the head of a truncated line.
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

// maxHeadLines bounds the lines that HeadLines examines.
const maxHeadLines = 1000

// HeadLines returns the JSON objects among the first 1,000 lines of the beginning of a file, each with its line's
// index. Detection of formats uses it.
func HeadLines(head []byte) iter.Seq2[int, transcript.Line] {
	return func(yield func(int, transcript.Line) bool) {
		n := 0
		for line := range bytes.Lines(head) {
			if n == maxHeadLines {
				return
			}
			line = bytes.Trim(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")), blanks+"\n")
			if l, err := transcript.ParseLine(line); err == nil && !yield(n, l) {
				return
			}
			n++
		}
	}
}
