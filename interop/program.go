package interop

import (
	"io"
	"time"
)

// Program describes where a program keeps its session files on a machine, and how it continues a session. The named
// files need not exist.
type Program struct {
	Name string // for display: "Claude Code"
	// Folders returns the folders in which the program keeps sessions. An element "" is a folder with an unknown path.
	Folders func(e Env) []string
	UUIDs   bool // session IDs are UUIDs
	// ID returns the ID of a session, or of an agent, from its file name without folder; "" = no ID. nil = file names
	// contain no IDs.
	ID func(name string) string
	// File returns the path for the file of a session, by its working directory and start.
	File func(e Env, id, cwd string, begun time.Time) (string, error)
	// Taken returns patterns for filepath.Glob: the possible files of a session with this ID.
	Taken func(e Env, id string) []string
	// Command returns the command that continues a session: a program and its arguments.
	Command func(id, file string) []string
	// Hides reports whether the program omits a session from its list, by the beginning of the file. nil = it omits
	// none.
	Hides func(head []byte) bool

	Lists []string // names of files in its folders that are not sessions
	// Whether a reader may open a file, or list a folder, outside of the session's folder (see Source). nil = never.
	Beside, ListsBeside func(path string) bool
	// Agent reports whether a file may be read as a part of the session that started an agent. nil = never.
	Agent func(file string) bool
	// Owner returns the session file to which an agent's file belongs; "" = none. nil = agents' files belong to no
	// other.
	Owner func(file string) string
	// After supports sessions that are split over several files. It returns the ID of the last line before a file's own
	// first line, and that line's time; "" = the file begins the session. nil = a session is one file.
	After func(src Source) (line string, at time.Time, err error)
	// Upto returns the size and number of lines of a file up to the end of a line; 0 = no such line. It is set if After
	// is.
	Upto func(src Source, line string) (size int64, lines int, err error)
	// Open opens a file and decompresses it. nil = files are never compressed.
	Open func(src Source) (io.ReadCloser, error)
	// Tail returns a new Tail, which finds the lines that later ones can change. nil = a complete line never changes.
	Tail func() Tail
}

// Env is the environment on which the paths of files depend.
type Env struct {
	Getenv func(name string) string
	Home   string // home directory; "" = unknown
	Temp   string // directory for temporary files
}

// Tail follows the lines of a growing file and finds those whose meaning a later line can change.
type Tail interface {
	// Line processes the next line. Offsets are in bytes. nil = the line is too long. After the first line, the caller
	// may skip lines that no later line can change.
	Line(line []byte, from, end int64)
	// Stable returns the length in bytes of the beginning of the file that no later line can change.
	Stable() int64
}
