package vfstest

import (
	"fmt"
	"io/fs"
	"sync"
	"syscall"

	"github.com/coppice-go/coppice/internal/vfs"
)

// FaultKind is the way in which a call fails.
type FaultKind int

// The kinds of failure.
const (
	Before FaultKind = iota // it has no effect
	After                   // it has its effect, and returns an error
	Short                   // half of a write is done; Errno 0 = shown by the count alone
	Most                    // all of a write but its last byte is done
	Lose                    // a sync fails, and its data counts as clean from then on
)

func (k FaultKind) String() string { return [...]string{"before", "after", "short", "most", "lose"}[k] }

// CallClass is the class of a call, which determines its possible failures.
type CallClass int

// The classes of calls.
const (
	Read   CallClass = iota // changes nothing
	Change                  // changes names or sizes
	Write                   // changes bytes
	Sync                    // makes bytes durable
	Names                   // makes names durable
)

// Kinds returns the ways in which a call of a class can fail.
func (c CallClass) Kinds() []FaultKind {
	return [...][]FaultKind{
		{Before},
		{Before, After},
		{Before, After, Short, Most},
		{Before, After, Lose},
		{Before, After},
	}[c]
}

// Fault is one failure: of call number At, counted from 0.
type Fault struct {
	At    int
	Kind  FaultKind
	Errno syscall.Errno
}

func (f Fault) String() string {
	return fmt.Sprintf("call %d fails %v its effect with %v", f.At, f.Kind, error(f.Errno))
}

// Call is one call that was made.
type Call struct {
	Class CallClass
	Name  string // for people
}

// FaultFS is a file system that fails once, or twice, at selected calls, as a disk or a kernel does: before the call
// had an effect, after it, in the middle of a write, or in a sync that drops its data and lets every later sync
// succeed. It wraps another vfs.FS; a sync that drops its data needs a CrashFS. It also records open files that are
// synced again after a failed sync. Safe for concurrent use.
type FaultFS struct {
	inner vfs.FS

	mu      sync.Mutex
	faults  []Fault
	calls   []Call
	retried []string
}

// NewFaultFS wraps a file system with faults.
func NewFaultFS(inner vfs.FS, faults ...Fault) *FaultFS {
	return &FaultFS{inner: inner, faults: faults}
}

// Calls returns the calls so far.
func (s *FaultFS) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Heal ends all faults.
func (s *FaultFS) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Retried returns the names of open files that were synced again after a failed sync.
func (s *FaultFS) Retried() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.retried...)
}

// did counts a call; the fault is nil if the call is to succeed.
func (s *FaultFS) did(class CallClass, name string) *Fault {
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

// run makes a call or makes it fail.
func (s *FaultFS) run(class CallClass, op, name string, call func() error) error {
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
func (s *FaultFS) Make() error { return s.run(Names, "make", ".", s.inner.Make) }

// Mkdir makes a directory.
func (s *FaultFS) Mkdir(name string) error {
	return s.run(Change, "mkdir", name, func() error { return s.inner.Mkdir(name) })
}

// Link returns a file a second name.
func (s *FaultFS) Link(from, to string) error {
	return s.run(Change, "link", to, func() error { return s.inner.Link(from, to) })
}

// Rename moves a file.
func (s *FaultFS) Rename(from, to string) error {
	return s.run(Change, "rename", to, func() error { return s.inner.Rename(from, to) })
}

// Remove unlinks a file.
func (s *FaultFS) Remove(name string) error {
	return s.run(Change, "remove", name, func() error { return s.inner.Remove(name) })
}

// Lstat describes a name.
func (s *FaultFS) Lstat(name string) (st vfs.Stat, err error) {
	err = s.run(Read, "lstat", name, func() error {
		st, err = s.inner.Lstat(name)
		return err
	})
	return st, err
}

// OpenFile opens a file. It fails before it opens or creates anything.
func (s *FaultFS) OpenFile(name string, flag int) (vfs.File, error) {
	var f vfs.File
	err := s.run(Read, "open", name, func() (err error) {
		f, err = s.inner.OpenFile(name, flag)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &faultFile{File: f, s: s, name: name}, nil
}

// OpenDir opens a directory.
func (s *FaultFS) OpenDir(name string) (vfs.Dir, error) {
	var d vfs.Dir
	err := s.run(Read, "opendir", name, func() (err error) {
		d, err = s.inner.OpenDir(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &faultDir{Dir: d, s: s, name: name}, nil
}

// Close releases the root.
func (s *FaultFS) Close() error { return s.inner.Close() }

type faultDir struct {
	vfs.Dir
	s    *FaultFS
	name string
}

func (d *faultDir) Sync() error { return d.s.run(Names, "syncdir", d.name, d.Dir.Sync) }

func (d *faultDir) ReadDir(n int) (out []fs.DirEntry, err error) {
	err = d.s.run(Read, "readdir", d.name, func() error {
		out, err = d.Dir.ReadDir(n)
		return err
	})
	return out, err
}
