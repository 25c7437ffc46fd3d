package local_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coppice-go/coppice/internal/vfs"
)

// script is a file system that records each call and makes selected ones fail. Syncs do not reach the disk.
type script struct {
	vfs.FS
	t *testing.T

	mu    sync.Mutex
	calls []string
	fail  func(n int, call string) error // n counts from 0
	short bool                           // a failing write first writes a half
	open  int                            // number of open files
}

// newScript is for a directory that exists: Make has nothing to do.
func newScript(t *testing.T, dir string) *script {
	return &script{FS: vfs.OS(dir), t: t}
}

// did records a call and returns the error with which it fails.
func (s *script) did(call string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.calls)
	s.calls = append(s.calls, call)
	if s.fail == nil {
		return nil
	}
	return s.fail(n, call)
}

// reset clears the recorded calls and sets the function that makes calls fail.
func (s *script) reset(fail func(n int, call string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.fail = nil, fail
}

// failNth fails the nth call with err.
func failNth(n int, err error) func(int, string) error {
	return func(i int, _ string) error {
		if i == n {
			return err
		}
		return nil
	}
}

// failCall fails the first call of a kind.
func failCall(prefix string, err error) func(int, string) error {
	done := false
	return func(_ int, call string) error {
		if done || !strings.HasPrefix(call, prefix) {
			return nil
		}
		done = true
		return err
	}
}

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

func (s *script) Make() error {
	return s.did("make")
}

func (s *script) Mkdir(name string) error {
	if err := s.did("mkdir " + name); err != nil {
		return pathError("mkdir", name, err)
	}
	return s.FS.Mkdir(name)
}

func (s *script) Lstat(name string) (vfs.Stat, error) {
	if err := s.did("lstat " + name); err != nil {
		return vfs.Stat{}, pathError("lstat", name, err)
	}
	return s.FS.Lstat(name)
}

func (s *script) Link(o, n string) error {
	if err := s.did("link " + o + " " + n); err != nil {
		return pathError("link", o, err)
	}
	return s.FS.Link(o, n)
}

func (s *script) Rename(o, n string) error {
	if err := s.did("rename " + o + " " + n); err != nil {
		return pathError("rename", o, err)
	}
	return s.FS.Rename(o, n)
}

func (s *script) Remove(name string) error {
	if err := s.did("remove " + name); err != nil {
		return pathError("remove", name, err)
	}
	return s.FS.Remove(name)
}

func (s *script) OpenDir(name string) (vfs.Dir, error) {
	if err := s.did("opendir " + name); err != nil {
		return nil, pathError("open", name, err)
	}
	d, err := s.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &scriptDir{d, s, name}, nil
}

func (s *script) OpenFile(name string, flag int) (vfs.File, error) {
	if err := s.did(fmt.Sprintf("open %s", name)); err != nil {
		return nil, pathError("open", name, err)
	}
	f, err := s.FS.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.open++
	s.mu.Unlock()
	return &scriptFile{f, s, name, false}, nil
}

type scriptDir struct {
	vfs.Dir
	s    *script
	name string
}

func (d *scriptDir) Sync() error { return d.s.did("syncdir " + d.name) }

func (d *scriptDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if err := d.s.did("readdir " + d.name); err != nil {
		return nil, err
	}
	return d.Dir.ReadDir(n)
}

type scriptFile struct {
	vfs.File
	s    *script
	name string
	lost bool // a sync of it has failed
}

func (f *scriptFile) Write(p []byte) (int, error) {
	if err := f.s.did("write " + f.name); err != nil {
		n := 0
		if f.s.short {
			n, _ = f.File.Write(p[:len(p)/2])
		}
		return n, pathError("write", f.name, err)
	}
	return f.File.Write(p)
}

func (f *scriptFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.s.did("writeat " + f.name); err != nil {
		return 0, pathError("write", f.name, err)
	}
	return f.File.WriteAt(p, off)
}

func (f *scriptFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.s.did("readat " + f.name); err != nil {
		return 0, pathError("read", f.name, err)
	}
	return f.File.ReadAt(p, off)
}

func (f *scriptFile) Truncate(size int64) error {
	if err := f.s.did("truncate " + f.name); err != nil {
		return pathError("truncate", f.name, err)
	}
	return f.File.Truncate(size)
}

func (f *scriptFile) Stat() (vfs.Stat, error) {
	if err := f.s.did("stat " + f.name); err != nil {
		return vfs.Stat{}, pathError("stat", f.name, err)
	}
	return f.File.Stat()
}

// sync checks the driver: a descriptor whose sync failed is not synced again.
func (f *scriptFile) sync(call string) error {
	if f.lost {
		f.s.t.Errorf("%s %s: again after a failed sync", call, f.name)
	}
	err := f.s.did(call + " " + f.name)
	f.lost = err != nil
	return err
}

func (f *scriptFile) Sync() error     { return f.sync("sync") }
func (f *scriptFile) Datasync() error { return f.sync("datasync") }

func (f *scriptFile) TryLock(exclusive bool) (bool, error) {
	if err := f.s.did("lock " + f.name); err != nil {
		return false, pathError("flock", f.name, err)
	}
	return f.File.TryLock(exclusive)
}

func (f *scriptFile) Unlock() error {
	if err := f.s.did("unlock " + f.name); err != nil {
		return err
	}
	return f.File.Unlock()
}

func (f *scriptFile) Close() error {
	f.s.mu.Lock()
	f.s.open--
	f.s.mu.Unlock()
	return f.File.Close()
}

// errnos are errors that a disk and a kernel may return.
var errnos = []syscall.Errno{
	syscall.EIO, syscall.ENOSPC, syscall.EINTR, syscall.EDQUOT,
	syscall.EROFS, syscall.EACCES, syscall.EMFILE,
}

func writes(calls []string) []string {
	return slices.DeleteFunc(slices.Clone(calls), func(c string) bool {
		for _, quiet := range []string{"lstat", "stat", "open", "opendir", "readdir", "readat", "lock", "unlock"} {
			if strings.HasPrefix(c, quiet+" ") {
				return true
			}
		}
		return false
	})
}
