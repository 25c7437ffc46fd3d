// Package interop defines what the readers and writers of other programs' session files share, and what
// each reader guarantees: it returns lines of the pi v3 format, a header and then entries in the order
// in which they are to be appended. It streams, and holds no more than a documented part of a file,
// whatever its size. It skips and reports what is damaged, which never hides what is intact, and only
// reads the file. It drops nothing silently: what a transcript cannot express becomes an entry of type
// "custom".
package interop

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/coppice-go/coppice/transcript"
)

var (
	// ErrNotSession is wrapped by the error of a reader for a file that holds no session of its format.
	ErrNotSession = errors.New("not a session file")
	// ErrHead is wrapped by the error of a writer for a head that is none of the entries.
	ErrHead = errors.New("the head is none of the entries")
	// ErrWhole is wrapped by the error of a reader with Options.From where the new lines mean something only together
	// with lines before that place: the file is to be read from its beginning.
	ErrWhole = errors.New("the file must be read from its beginning")
)

// Format names a program's session files, as the command line does.
type Format string

// The formats.
const (
	Pi         Format = "pi"
	Omp        Format = "omp"
	Atomic     Format = "atomic"
	Operator   Format = "operator"
	ClaudeCode Format = "claude-code"
	Codex      Format = "codex"
)

// Header is the first line of a session.
type Header struct {
	// as it goes into a session: of version 3; byte for byte what the file has if it has that already
	Raw     []byte
	Version int       // as the file says it; 1 if it does not
	ID      string    // the session's id in its old home; a new one if the file has none
	Cwd     string    // working directory; "" = not said
	CwdWas  string    // that of the entries, where Cwd is to be another one; "" = it is theirs
	Title   string    // "" = not said
	Parent  string    // session or path that it was forked from; "" = none
	Created time.Time // zero = not said
	Made    bool      // the file has no header
}

// Source is what a session is read from. A reader may open it more than once; each opening begins at the
// first byte. Name is a path, or what replaces one in messages.
//
// What Open and Beside return may be read from another goroutine than the one that opened it, one at a time; the
// reader's Close waits for it.
type Source struct {
	Name string
	Open func() (io.ReadCloser, error)
	// Beside opens a file that the session's names by a path relative to its folder, or that List returned
	// (a blob, the transcript of an agent that it started, a tool's output). nil, or fs.ErrNotExist =
	// there is none. Readers check names: nothing outside of that folder is asked for but omp's images,
	// "../../blobs/<sha256>" or "../blobs/<sha256>", and of Codex's "../../../YYYY/MM/DD/rollout-*" and
	// the like in the other folders that List is asked for, where it keeps the files of another day,
	// and "session_index.jsonl" four folders up or one.
	Beside func(name string) (io.ReadCloser, error)
	// List returns the names of what is in a folder, for what the session's file does not name: paths
	// as Beside takes them, sorted, at most 10,000. dir is relative to the session's folder, "." = that
	// one. nil, or fs.ErrNotExist = there is none. Readers check what they are given, and ask for no
	// folder outside but "../../../YYYY/MM/DD", where Codex keeps the files of another day,
	// "../../../../archived_sessions", and from there "../sessions/YYYY/MM/DD".
	List func(dir string) ([]string, error)

	// Size and Changed are the size of the file as it is stored, in bytes, and its modification time; 0 and zero = not
	// known.
	Size    int64
	Changed time.Time
}

// Bytes returns the source of a file in memory, alone.
func Bytes[T ~string | ~[]byte](name string, file T) Source {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(file))), nil }
	return Source{Name: name, Open: open}
}

// Options of a reader. Equal input and clock give equal output: ids that have to be made are hashes of what is in the
// file.
type Options struct {
	Now time.Time // stamps what the file has no time for
	// From is a place that a reader of the shorter file returned: the source begins there, and Next returns what the
	// lines from there on make, without a header. nil = the source is the whole file.
	From *Mark
}

// Mark is a place in a file with which a reader of the grown file can begin.
type Mark struct {
	Offset int64  // of a line, in bytes
	Line   int64  // number of lines before it
	Entry  string // id of the first entry that is made from there on
	State  string // what the reader knows of the lines before
}

// Marker is a Reader that can begin in the middle of a file. Next returns what a reader of the whole file returns, or
// an error that wraps ErrWhole.
type Marker interface {
	Reader
	// Mark returns, after io.EOF, where a reader of the grown file can begin; nil = with its first line.
	Mark() *Mark
}

// Reader reads one session. It is not safe for concurrent use.
type Reader interface {
	// Header comes first. ErrNotSession where the file is none of the reader's format.
	Header() (Header, error)
	// Next returns the next entry, io.EOF at the end. Its Raw is a whole line of the pi v3 format.
	Next() (transcript.Draft, error)
	// Verbatim reports, after io.EOF, whether header and lines, each with a line feed, are the file's bytes. If
	// not, an import keeps the original beside the session.
	Verbatim() bool
	// BadLines returns the number of lines of which bytes were skipped because they are no entry, blank ones aside.
	BadLines() int
	// Diagnostics returns what was found so far, bounded; Ordinal is the line's number in the file, from 1.
	Diagnostics() []transcript.Diagnostic
	// Close releases what the reader holds.
	Close() error
}

// Child is a session that another one's file holds: a sidechain, the work of an agent that it started.
type Child struct {
	Header  Header // Parent is the id of the session that it belongs to
	Entries iter.Seq2[transcript.Draft, error]
	File    string // the name by which Beside opened the file that holds it; "" = the session's own file does
}

// Family is a Reader whose file holds children too.
type Family interface {
	Reader
	// Children yields them after Next returned io.EOF.
	Children() iter.Seq2[Child, error]
}

// Losses counts what a writer could not express in its target's format, by kind: a sentence.
type Losses map[string]int
