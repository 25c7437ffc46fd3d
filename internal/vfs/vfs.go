// Package vfs holds all operating system calls of the local driver: FS is the interface at which vfstest replaces the
// file system by one that crashes or fails, OS the real file system.
//
// No path leads out of the root (os.Root ensures it), only plain files are opened, and no call blocks on another kind
// of file in a plain file's place (Lookup, OpenPlain). A directory counts as existing once its name is durable up to
// the root (Dirs).
package vfs

import (
	"io"
	"io/fs"
	"time"
)

// FS is the file system below a store: every call that the driver makes. Safe for concurrent use.
//
// Names are relative to the root of the store, with slashes; "." is the root. Errors carry the errno
// (errors.Is). Nothing here escapes the root, and nothing blocks on what is not a regular file.
type FS interface {
	// Make creates the root and its missing parents (0700), durably; idempotent.
	Make() error
	// Mkdir creates a directory (0700), not its parents.
	Mkdir(name string) error
	// OpenFile opens a file with the flags of package os; a created one is 0600.
	OpenFile(name string, flag int) (File, error)
	// OpenDir opens a directory to list or to sync it.
	OpenDir(name string) (Dir, error)
	// Lstat describes what name is; the last component is not followed.
	Lstat(name string) (Stat, error)
	// Link returns a file a second name; fs.ErrExist if it is taken.
	Link(oldname, newname string) error
	// Rename moves a file over newname, atomically.
	Rename(oldname, newname string) error
	// Remove unlinks a file.
	Remove(name string) error
	// Close releases the root.
	Close() error
}

// File is an open file. Locks are advisory, belong to this open file alone, and end with it.
type File interface {
	io.ReaderAt
	io.Writer // at the end, if opened with os.O_APPEND
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Stat() (Stat, error)
	// Sync makes data and metadata durable, Datasync data and size.
	Sync() error
	Datasync() error
	// TryLock takes the lock, shared or exclusive; false = another open file holds it.
	TryLock(exclusive bool) (bool, error)
	Unlock() error
}

// Dir is an open directory.
type Dir interface {
	// ReadDir returns the next n entries, io.EOF after the last; n <= 0 returns all.
	ReadDir(n int) ([]fs.DirEntry, error)
	// Sync makes the names in it durable.
	Sync() error
	io.Closer
}

// Stat describes a file.
type Stat struct {
	ID      ID
	Links   uint64 // names that the file has
	Size    int64
	Mode    fs.FileMode
	ModTime time.Time
}

// ID distinguishes files, as long as they exist.
type ID struct{ Dev, Ino uint64 }

// Thrifty is a file system that closes idle files when descriptors have run out, and tries again.
type Thrifty struct {
	FS
	Evict func() int // closes idle files, and returns their number
}

// OpenFile opens a file, and tries again after Evict has closed some.
func (t Thrifty) OpenFile(name string, flag int) (File, error) {
	f, err := t.FS.OpenFile(name, flag)
	if descriptorLimit(err) && t.Evict() > 0 {
		return t.FS.OpenFile(name, flag)
	}
	return f, err
}

// OpenDir opens a directory in the same way.
func (t Thrifty) OpenDir(name string) (Dir, error) {
	d, err := t.FS.OpenDir(name)
	if descriptorLimit(err) && t.Evict() > 0 {
		return t.FS.OpenDir(name)
	}
	return d, err
}
