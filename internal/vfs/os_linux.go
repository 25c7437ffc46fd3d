package vfs

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Datasync is one fdatasync. It is never repeated: after a failed sync the kernel takes the lost pages for clean.
func (f osFile) Datasync() error {
	err := unix.Fdatasync(int(f.Fd()))
	runtime.KeepAlive(f.File)
	return os.NewSyscallError("fdatasync", err)
}

// Sync is one fsync, not repeated either (os.File.Sync repeats after EINTR).
func (f osFile) Sync() error {
	err := unix.Fsync(int(f.Fd()))
	runtime.KeepAlive(f.File)
	return os.NewSyscallError("fsync", err)
}
