package vfs

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/windows"
)

const (
	openFlags = 0
	dirFlags  = 0
)

// The locked byte is beyond any object, because locks on Windows are mandatory for the bytes that they cover.
var lockedByte = windows.Overlapped{OffsetHigh: 0x7fffffff}

// Lstat opens the file for a moment: only a handle has the identity.
func (o *osFS) Lstat(name string) (Stat, error) {
	root, _, err := o.get()
	if err != nil {
		return Stat{}, err
	}
	info, err := root.Lstat(name)
	if err != nil {
		return Stat{}, err
	}
	if !info.Mode().IsRegular() {
		return Stat{Mode: info.Mode(), ModTime: info.ModTime()}, nil
	}
	f, err := root.Open(name)
	if err != nil {
		return Stat{}, err
	}
	st, err := osFile{f}.Stat()
	return st, errors.Join(err, f.Close())
}

func (f osFile) Stat() (Stat, error) {
	var info windows.ByHandleFileInformation
	err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info)
	runtime.KeepAlive(f.File)
	if err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	st := Stat{
		ID: ID{
			Dev: uint64(info.VolumeSerialNumber),
			Ino: uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow),
		},
		Links:   uint64(info.NumberOfLinks),
		Size:    int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow),
		Mode:    0o600,
		ModTime: time.Unix(0, info.LastWriteTime.Nanoseconds()),
	}
	if info.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0 {
		st.Mode |= fs.ModeDir
	}
	return st, nil
}

func (f osFile) TryLock(exclusive bool) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := lockedByte
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	runtime.KeepAlive(f.File)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return true, nil
}

func (f osFile) Unlock() error {
	at := lockedByte
	err := windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
	runtime.KeepAlive(f.File)
	return os.NewSyscallError("unlock", err)
}

// Sync does nothing: NTFS journals its names, and has no further call.
func (d *osDir) Sync() error { return nil }

func again(d *os.File, _ string) (*os.File, error) { return d, nil }
