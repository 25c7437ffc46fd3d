package checkpoint

import (
	"strconv"
	"time"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
)

// Source identifies the file that a session was imported from, so that an import recognises the file without reading
// all of it. It never contains a path.
type Source struct {
	Program string // format of the file, as interop.Format: at most 32 bytes
	Session string // id of the session in its program, at most MaxName bytes; "" = the file has none

	// Bytes is the length of the imported part of the file, decompressed. 0 = the import did not end: the session has
	// an unknown part of the file, and the fields below are empty.
	Bytes int64
	// SHA256 is the hash of these bytes, in hex; Head that of the first SourceHead of them, Tail of the last
	// SourceTail.
	SHA256, Head, Tail string

	Size    int64     // of the stored file, in bytes; 0 = unknown
	Changed time.Time // its modification time then; zero = unknown

	// Resume is the position at which a reader of the grown file can begin; nil = its first byte.
	Resume *Resume
}

// Resume is the position at which the next import of a grown file begins to read. It is bound to Source.Bytes and
// Source.SHA256.
type Resume struct {
	Hash  string // state of SHA-256 after the whole blocks of 64 bytes in Source.Bytes, in hex
	From  int64  // offset of the first line to read
	Line  int64  // number of lines before that one
	Entry string // id of the first entry made from there: the entries from it on are compared
	State string // the reader's state from the lines before, at most MaxResume bytes
}

// MaxResume bounds Resume.State, in bytes.
const MaxResume = 8 << 10

// The parts of a file's prefix that are hashed separately, in bytes.
const (
	SourceHead = 4 << 10
	SourceTail = 64 << 10
)

// SourceReplaced is the Program of the source of a session that was deleted because another one has its file now.
// Session is the id of that one in the store; "" = unknown.
const SourceReplaced = "replaced"

const (
	maxProgram = 32 // bytes of Source.Program
	hashDigits = 64 // of a SHA-256
)

// Begun returns the source of an import that has not ended; nil of nil.
func (s *Source) Begun() *Source {
	if s == nil {
		return nil
	}
	return &Source{Program: s.Program, Session: s.Session}
}

// Whole returns the source without Resume; nil of nil.
func (s *Source) Whole() *Source {
	if s == nil || s.Resume == nil {
		return s
	}
	whole := *s
	whole.Resume = nil
	return &whole
}

// Equal reports whether s is nil or equal to t: nothing has to be stored.
func (s *Source) Equal(t *Source) bool {
	return s == nil || t != nil && s.Changed.Equal(t.Changed) && s.Bytes == t.Bytes && s.Size == t.Size &&
		s.SHA256 == t.SHA256 && s.Program == t.Program && s.Session == t.Session && s.Resume.equal(t.Resume)
}

func (r *Resume) equal(t *Resume) bool { return r == nil || t != nil && *r == *t }

// valid reports whether a source can be stored and read again.
func (s *Source) valid() bool {
	for _, sum := range [...]string{s.SHA256, s.Head, s.Tail} {
		if len(sum) != 0 && len(sum) != hashDigits {
			return false
		}
	}
	if r := s.Resume; r != nil && (len(r.Hash) != hashDigits || r.From < 0 || r.From > s.Bytes || r.Line < 0 ||
		r.Entry == "" || len(r.Entry) > MaxName || len(r.State) > MaxResume) {
		return false
	}
	return s.Program != "" && len(s.Program) <= maxProgram && len(s.Session) <= MaxName && s.Bytes >= 0 && s.Size >= 0
}

// append adds the source as a JSON object.
func (s *Source) append(b []byte) []byte {
	b = canon.AppendString(append(b, `{"program":`...), s.Program)
	b = canon.AppendString(append(b, `,"session":`...), s.Session)
	b = strconv.AppendInt(append(b, `,"bytes":`...), s.Bytes, 10)
	b = canon.AppendString(append(b, `,"sha256":`...), s.SHA256)
	b = canon.AppendString(append(b, `,"head":`...), s.Head)
	b = canon.AppendString(append(b, `,"tail":`...), s.Tail)
	b = strconv.AppendInt(append(b, `,"size":`...), s.Size, 10)
	changed := int64(0)
	if !s.Changed.IsZero() {
		changed = s.Changed.UnixNano()
	}
	b = strconv.AppendInt(append(b, `,"changed":`...), changed, 10)
	if r := s.Resume; r != nil {
		b = canon.AppendString(append(b, resumeField...), r.Hash)
		b = strconv.AppendInt(append(b, `,"from":`...), r.From, 10)
		b = strconv.AppendInt(append(b, `,"line":`...), r.Line, 10)
		b = canon.AppendString(append(b, `,"entry":`...), r.Entry)
		b = append(canon.AppendString(append(b, `,"state":`...), r.State), '}')
	}
	return append(b, '}')
}

const resumeField = `,"resume":{"hash":`

// readSource reads what append wrote.
func readSource(c *canon.Cursor) *Source {
	s := &Source{}
	c.Want(`{"program":`)
	s.Program = c.Text()
	c.Want(`,"session":`)
	s.Session = c.Text()
	c.Want(`,"bytes":`)
	s.Bytes = c.Size()
	c.Want(`,"sha256":`)
	s.SHA256 = c.Text()
	c.Want(`,"head":`)
	s.Head = c.Text()
	c.Want(`,"tail":`)
	s.Tail = c.Text()
	c.Want(`,"size":`)
	s.Size = c.Size()
	c.Want(`,"changed":`)
	if at := c.Int(); at != 0 {
		s.Changed = time.Unix(0, at).UTC()
	}
	if c.Has(resumeField) {
		r := &Resume{Hash: c.Text()}
		c.Want(`,"from":`)
		r.From = c.Size()
		c.Want(`,"line":`)
		r.Line = c.Size()
		c.Want(`,"entry":`)
		r.Entry = c.Text()
		c.Want(`,"state":`)
		r.State = c.Text()
		c.Want(`}`)
		s.Resume = r
	}
	c.Want(`}`)
	if !s.valid() {
		c.Fail()
	}
	return s
}

// encodeSource encodes a source for the body of an object; nil if there is none.
func encodeSource(s *Source) []byte {
	if s == nil {
		return nil
	}
	return s.append(nil)
}

func decodeSource(p []byte) (*Source, error) {
	if len(p) == 0 {
		return nil, nil
	}
	c := canon.Read(p, 0)
	s := readSource(c)
	if !c.Done() {
		return nil, canon.Malformed("source of an import: unexpected bytes at %d of %d", c.At, len(p))
	}
	return s, nil
}

// Tombstone is the remaining record of a deleted session.
type Tombstone struct {
	Deleted time.Time // time of the deletion; zero = unknown
	Source  *Source   // of an imported session, without size, time and resume; nil = not imported, or unknown
}
