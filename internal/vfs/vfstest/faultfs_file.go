package vfstest

import (
	"io/fs"

	"github.com/coppice-go/coppice/internal/vfs"
)

// faultFile is an open file.
type faultFile struct {
	vfs.File
	s      *FaultFS
	name   string
	failed bool // a sync of it
}

// write makes a write, or makes it fail: short ones write a part.
func (f *faultFile) write(op string, p []byte, call func(p []byte) (int, error)) (int, error) {
	ft := f.s.did(Write, op+" "+f.name)
	if ft == nil {
		return call(p)
	}
	n := 0
	var err error
	switch ft.Kind {
	case After:
		_, err = call(p) // the caller does not learn that it was written
	case Short:
		n, err = call(p[:len(p)/2])
	case Most:
		n, err = call(p[:max(len(p)-1, 0)])
	case Before, Lose:
	}
	if err == nil && ft.Errno != 0 {
		err = &fs.PathError{Op: op, Path: f.name, Err: ft.Errno}
	}
	return n, err
}

func (f *faultFile) Write(p []byte) (int, error) { return f.write("write", p, f.File.Write) }

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	return f.write("writeat", p, func(p []byte) (int, error) { return f.File.WriteAt(p, off) })
}

func (f *faultFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.s.run(Read, "readat", f.name, func() error {
		n, err = f.File.ReadAt(p, off)
		return err
	})
	return n, err
}

func (f *faultFile) Truncate(size int64) error {
	return f.s.run(Change, "truncate", f.name, func() error { return f.File.Truncate(size) })
}

func (f *faultFile) Stat() (st vfs.Stat, err error) {
	err = f.s.run(Read, "stat", f.name, func() error {
		st, err = f.File.Stat()
		return err
	})
	return st, err
}

// loser is a file of CrashFS.
type loser interface{ Lose() }

func (f *faultFile) sync(op string, call func() error) error {
	if f.failed {
		f.s.mu.Lock()
		f.s.retried = append(f.s.retried, f.name)
		f.s.mu.Unlock()
	}
	ft := f.s.did(Sync, op+" "+f.name)
	if ft == nil {
		return call()
	}
	f.failed = true
	switch ft.Kind {
	case After:
		if err := call(); err != nil {
			return err
		}
	case Lose:
		if l, ok := f.File.(loser); ok {
			l.Lose()
		}
	case Before, Short, Most:
	}
	return &fs.PathError{Op: op, Path: f.name, Err: ft.Errno}
}

func (f *faultFile) Sync() error     { return f.sync("fsync", f.File.Sync) }
func (f *faultFile) Datasync() error { return f.sync("fdatasync", f.File.Datasync) }

func (f *faultFile) TryLock(exclusive bool) (ok bool, err error) {
	err = f.s.run(Read, "lock", f.name, func() error {
		ok, err = f.File.TryLock(exclusive)
		return err
	})
	return ok, err
}

func (f *faultFile) Unlock() error { return f.s.run(Read, "unlock", f.name, f.File.Unlock) }
