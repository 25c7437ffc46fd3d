// Package interop defines what the readers and writers of other programs' session files share. A reader returns lines
// of the pi v3 format: a header, and then entries in the order in which they must be appended. Guarantees of every
// reader:
//
//   - It streams: it holds no more than a documented part of a file, whatever the file's size.
//   - It skips and reports damage. Damage never hides intact data.
//   - It only reads the file.
//   - It drops nothing silently: lines that a transcript cannot express become entries of type "custom".
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
	// ErrHead is wrapped by the error of a writer if the head is not an entry.
	ErrHead = errors.New("the head is none of the entries")
	// ErrWhole is wrapped by the error of a reader with Options.From if the new lines depend on lines before that
	// place: the file must be read from its beginning.
	ErrWhole = errors.New("the file must be read from its beginning")
)

// Format names a kind of session file, as on the command line.
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
	// line of version 3; the file's own bytes if they are of that version
	Raw     []byte
	Version int       // version of the file; 1 if it names none
	ID      string    // the session's ID in the file; a new one if it has none
	Cwd     string    // working directory; "" = unknown
	CwdWas  string    // working directory of the entries, if Cwd is to differ from it; "" = the same
	Title   string    // "" = unknown
	Parent  string    // session or path from which it was forked; "" = none
	Created time.Time // zero = unknown
	Made    bool      // the file has no header
}

// Source is a session file. A reader may open it more than once; each Open begins at the first byte. Name is a path, or
// a name for messages.
//
// The streams of a source may be read from another goroutine, one at a time; the reader's Close waits for it.
type Source struct {
	Name string
	Open func() (io.ReadCloser, error)
	// Beside opens another file of the session: an image, the transcript of an agent, a tool's output. name is a path
	// relative to the session's folder, found in the session's file or returned by List. If the field is nil or the
	// error is fs.ErrNotExist, there is no such file. Readers check names. Outside of the folder they only open:
	//
	//   - images of omp: "../../blobs/<sha256>" and "../blobs/<sha256>";
	//   - rollouts of Codex, "rollout-*" in the other folders that List documents;
	//   - "session_index.jsonl" of Codex, four folders up or one.
	Beside func(name string) (io.ReadCloser, error)
	// List returns the files in a folder, including those that the session's file does not name: sorted, at most
	// 10,000. dir is relative to the session's folder, "." = that folder. If the field is nil or the error is
	// fs.ErrNotExist, there is none. Readers check dir. Outside of the folder they only list folders of Codex:
	// "../../../YYYY/MM/DD" (files of another day), "../../../../archived_sessions", and from there
	// "../sessions/YYYY/MM/DD".
	List func(dir string) ([]string, error)

	// Size and Changed are the file's stored size in bytes and its modification time; 0 and zero = unknown.
	Size    int64
	Changed time.Time
}

// Bytes returns a source of one file in memory.
func Bytes[T ~string | ~[]byte](name string, file T) Source {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(file))), nil }
	return Source{Name: name, Open: open}
}

// Options of a reader. Equal input and clock make equal output: IDs that a reader makes are hashes of the file's
// content.
type Options struct {
	Now time.Time // time of entries without one
	// From is a mark that a reader of the shorter file returned. The source begins there; Next returns the entries from
	// there on, without a header. nil = the source is the whole file.
	From *Mark
}

// Mark is a place in a file where a reader of the grown file can resume.
type Mark struct {
	Offset int64  // start of a line, in bytes
	Line   int64  // number of lines before it
	Entry  string // ID of the first entry from there on
	State  string // state of the reader at that place
}

// Marker is a Reader that can resume in the middle of a file. With Options.From its Next returns the same entries as a
// reader of the whole file, or an error that wraps ErrWhole.
type Marker interface {
	Reader
	// Mark returns, after io.EOF, where a reader of the grown file can resume; nil = at its beginning.
	Mark() *Mark
}

// Reader reads one session. It is not safe for concurrent use.
type Reader interface {
	// Header must be called first. It returns ErrNotSession if the file is not of the reader's format.
	Header() (Header, error)
	// Next returns the next entry, or io.EOF at the end. Its Raw is a whole line of the pi v3 format.
	Next() (transcript.Draft, error)
	// Verbatim reports, after io.EOF, whether the header and the lines, each with a line feed, are the file's bytes. If
	// not, an import also stores the original.
	Verbatim() bool
	// BadLines returns the number of lines of which bytes were skipped because they are not an entry. Blank lines do
	// not count.
	BadLines() int
	// Diagnostics returns the findings so far, bounded. Ordinal is the line number in the file, from 1.
	Diagnostics() []transcript.Diagnostic
	// Close releases all resources.
	Close() error
}

// Child is a session within another session's file: a sidechain, or the transcript of an agent.
type Child struct {
	Header  Header // Parent is the ID of the outer session
	Entries iter.Seq2[transcript.Draft, error]
	File    string // name under which the Source opened the child's file; "" = the session's own file
}

// Family is a Reader of files with children.
type Family interface {
	Reader
	// Children yields the children. It must be called after Next returned io.EOF.
	Children() iter.Seq2[Child, error]
}

// Losses counts what a writer could not express in the target's format. The keys are sentences.
type Losses map[string]int
