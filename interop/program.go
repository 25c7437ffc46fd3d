package interop

import (
	"io"
	"time"
)

// Program is where a program keeps its session files on a machine, and how it continues a session. Files are only
// named: they need not exist.
type Program struct {
	Name string // as people know it: "Claude Code"
	// Folders returns the folders in which the program keeps sessions; "" among them is an unknown one.
	Folders func(e Env) []string
	UUIDs   bool // the ids of its sessions are UUIDs
	// ID returns the id of a session, or of an agent's, by the name of its file without folder; "" = the name has none.
	// nil = names have none.
	ID func(name string) string
	// File returns the file of a session in a working directory that was begun at a time.
	File func(e Env, id, cwd string, begun time.Time) (string, error)
	// Taken returns patterns, as filepath.Glob takes them, of the files that a session with this id may have.
	Taken func(e Env, id string) []string
	// Command returns the command that continues a session: a program and its arguments.
	Command func(id, file string) []string
	// Hides reports, by the beginning of a file, whether the program leaves its session out of the list of sessions.
	// nil = none.
	Hides func(head []byte) bool

	Lists []string // names of files that are in its folders and hold no session
	// Beside and ListsBeside report files, and folders to be listed, outside of a file's folder that the reader asks a
	// Source for. nil = there are none.
	Beside, ListsBeside func(path string) bool
	// Agent reports files that may be read with the file of the session that started an agent. nil = there are none.
	Agent func(file string) bool
	// Owner returns the file with which one of an agent is read; "" = it is read alone. nil = so are all.
	Owner func(file string) string
	// After returns the id of the line after which a file continues a session that another file begins, and the time
	// of its first line; "" = it continues none. nil = a session is in one file.
	After func(src Source) (line string, at time.Time, err error)
	// Upto returns the size of the beginning of a file that ends with a line, and its number of lines; 0 = there is no
	// such line. It goes with After.
	Upto func(src Source, line string) (size int64, lines int, err error)
	// Open opens a file that may be packed, and unpacks it. nil = files are never packed.
	Open func(src Source) (io.ReadCloser, error)
	// Settled returns what finds the lines that later ones can change. nil = a line that is complete is settled.
	Settled func() Settler
}

// Env is what the places of files on a machine depend on.
type Env struct {
	Getenv func(name string) string
	Home   string // folder of the user; "" = unknown
	Temp   string // folder for temporary files
}

// Settler follows the lines of a growing file, and finds those whose meaning a later line can change.
type Settler interface {
	// Line takes the next line, which begins and ends at these offsets, in bytes. nil = it is too long to be looked at.
	// After the first line, settled ones may be left out.
	Line(line []byte, from, end int64)
	// Settled returns how many bytes, from the beginning of the file, no later line can change.
	Settled() int64
}
