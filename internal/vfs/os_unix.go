//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// openFlags: a named pipe or a device in a file's place must not block the open.
	openFlags = syscall.O_NONBLOCK
	dirFlags  = syscall.O_DIRECTORY | syscall.O_NONBLOCK
)

// Lstat is one system call, so the append path can afford it. It opens nothing.
func (o *osFS) Lstat(name string) (Stat, error) {
	_, top, err := o.get()
	if err != nil {
		return Stat{}, err
	}
	var st unix.Stat_t
	err = uninterrupted(func() error {
		return unix.Fstatat(int(top.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	runtime.KeepAlive(top)
	if err != nil {
		return Stat{}, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return statOf(&st), nil
}

func (f osFile) Stat() (Stat, error) {
	var st unix.Stat_t
	err := uninterrupted(func() error { return unix.Fstat(int(f.Fd()), &st) })
	runtime.KeepAlive(f.File)
	if err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return statOf(&st), nil
}

func statOf(st *unix.Stat_t) Stat {
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	default:
		mode |= fs.ModeDevice
	}
	return Stat{
		ID:      ID{Dev: uint64(st.Dev), Ino: uint64(st.Ino)}, //nolint:unconvert // differs by system
		Links:   uint64(st.Nlink),                             //nolint:unconvert // differs by system
		Size:    st.Size,
		Mode:    mode,
		ModTime: time.Unix(st.Mtim.Unix()),
	}
}

func (f osFile) TryLock(exclusive bool) (bool, error) {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	err := uninterrupted(func() error { return unix.Flock(int(f.Fd()), how|unix.LOCK_NB) })
	runtime.KeepAlive(f.File)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return true, nil
}

func (f osFile) Unlock() error {
	err := uninterrupted(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) })
	runtime.KeepAlive(f.File)
	return os.NewSyscallError("flock", err)
}

// Sync makes names durable. Some file systems (FUSE, SMB) cannot sync a directory and return EINVAL or ENOTSUP: a retry
// would not help.
func (d *osDir) Sync() error {
	err := d.File.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

// again opens a directory a second time, by its path.
func again(d *os.File, path string) (*os.File, error) {
	fd, err := unix.FcntlInt(d.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	runtime.KeepAlive(d)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
