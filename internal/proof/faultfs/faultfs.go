// Package faultfs is a file system that fails once, or twice, at chosen calls, as a disk or a kernel does:
// before the call had an effect, after it, in the middle of a write, or in a sync that drops what it was to
// write and lets every later sync succeed.
//
// It stands between the local driver and another vfs.FS. A sync that drops its data needs simfs below it. It
// also sees to it that nobody syncs an open file again after a sync of it failed.
package faultfs

import (
	"fmt"
	"io/fs"
	"sync"
	"syscall"

	"github.com/coppice-go/coppice/backend/local/vfs"
)

// Kind is how a call fails.
type Kind int

// The ways in which a call fails.
const (
	Before Kind = iota // it has no effect
	After              // it has its effect, and says that it failed
	Short              // half of a write arrives; Errno 0 says so by the count alone
	Most               // all of a write but its last byte arrives
	Lose               // a sync fails, and what it was to write counts as clean from then on
)

func (k Kind) String() string { return [...]string{"before", "after", "short", "most", "lose"}[k] }

// Class is what sort of call it is: the kinds of failure differ.
type Class int

// The sorts of calls.
const (
	Read   Class = iota // changes nothing
	Change              // changes names or sizes
	Write               // changes bytes
	Sync                // makes bytes durable
	Names               // makes names durable
)

// Kinds are the ways in which a call of a class can fail.
func (c Class) Kinds() []Kind {
	return [...][]Kind{{Before}, {Before, After}, {Before, After, Short, Most}, {Before, After, Lose}, {Before, After}}[c]
}

// Fault is one failure: of call number At, counted from 0.
type Fault struct {
	At    int
	Kind  Kind
	Errno syscall.Errno
}

func (f Fault) String() string {
	return fmt.Sprintf("call %d fails %v its effect with %v", f.At, f.Kind, error(f.Errno))
}

// Call is one call that was made.
type Call struct {
	Class Class
	Name  string // what it was, for reading
}

// FS counts calls and fails those that it was told to. Safe for concurrent use.
type FS struct {
	inner vfs.FS

	mu      sync.Mutex
	faults  []Fault
	calls   []Call
	retried []string
}

// New puts a file system with faults over another.
func New(inner vfs.FS, faults ...Fault) *FS { return &FS{inner: inner, faults: faults} }

// Calls are those made so far.
func (s *FS) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Heal lets nothing fail from here on.
func (s *FS) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Retried names the open files that were synced again after a sync of theirs had failed.
func (s *FS) Retried() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.retried...)
}

// did counts a call; the fault is nil where it is to succeed.
func (s *FS) did(class Class, name string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.calls)
	s.calls = append(s.calls, Call{class, name})
	for i := range s.faults {
		if s.faults[i].At == n {
			return &s.faults[i]
		}
	}
	return nil
}

// run makes a call or lets it fail.
func (s *FS) run(class Class, op, name string, call func() error) error {
	f := s.did(class, op+" "+name)
	switch {
	case f == nil:
		return call()
	case f.Kind == After:
		if err := call(); err != nil {
			return err
		}
	}
	return &fs.PathError{Op: op, Path: name, Err: f.Errno}
}

// Make creates the root.
func (s *FS) Make() error { return s.run(Names, "make", ".", s.inner.Make) }

// Mkdir makes a directory.
func (s *FS) Mkdir(name string) error {
	return s.run(Change, "mkdir", name, func() error { return s.inner.Mkdir(name) })
}

// Link gives a file a second name.
func (s *FS) Link(from, to string) error {
	return s.run(Change, "link", to, func() error { return s.inner.Link(from, to) })
}

// Rename moves a file.
func (s *FS) Rename(from, to string) error {
	return s.run(Change, "rename", to, func() error { return s.inner.Rename(from, to) })
}

// Remove unlinks a file.
func (s *FS) Remove(name string) error {
	return s.run(Change, "remove", name, func() error { return s.inner.Remove(name) })
}

// Lstat describes a name.
func (s *FS) Lstat(name string) (st vfs.Stat, err error) {
	err = s.run(Read, "lstat", name, func() error {
		st, err = s.inner.Lstat(name)
		return err
	})
	return st, err
}

// OpenFile opens a file. It fails before it opens or creates anything.
func (s *FS) OpenFile(name string, flag int) (vfs.File, error) {
	var f vfs.File
	err := s.run(Read, "open", name, func() (err error) {
		f, err = s.inner.OpenFile(name, flag)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &file{File: f, s: s, name: name}, nil
}

// OpenDir opens a directory.
func (s *FS) OpenDir(name string) (vfs.Dir, error) {
	var d vfs.Dir
	err := s.run(Read, "opendir", name, func() (err error) {
		d, err = s.inner.OpenDir(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &dir{Dir: d, s: s, name: name}, nil
}

// Close releases the root.
func (s *FS) Close() error { return s.inner.Close() }

type dir struct {
	vfs.Dir
	s    *FS
	name string
}

func (d *dir) Sync() error { return d.s.run(Names, "syncdir", d.name, d.Dir.Sync) }

func (d *dir) ReadDir(n int) (out []fs.DirEntry, err error) {
	err = d.s.run(Read, "readdir", d.name, func() error {
		out, err = d.Dir.ReadDir(n)
		return err
	})
	return out, err
}
