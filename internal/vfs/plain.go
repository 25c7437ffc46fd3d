package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// openTries bounds how often an open is repeated because the name was replaced meanwhile.
const openTries = 64

// ErrForeign reports that a name is not a plain file of the store, but a symbolic link, a pipe, a device, or a file
// with further hard links. It is left alone: remove it by hand.
var ErrForeign = errors.New("not a plain file of the store")

// ErrUnsettled reports that the name is replaced faster than it can be opened.
var ErrUnsettled = errors.New("the name is replaced faster than it can be opened")

var errNotDir = errors.New("not a directory")

// Folder is the directory of a name, "." for one at the root.
func Folder(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return "."
}

// Lookup describes the plain file name. Every parent must be a directory, not a link to one (os.Root would follow a
// link that stays inside). A directory, or a name below a file, does not exist as an object: see Missing.
func Lookup(f FS, name string) (Stat, error) {
	for i, c := range name {
		if c != '/' {
			continue
		}
		st, err := f.Lstat(name[:i])
		if err != nil {
			return Stat{}, Step("look up", err)
		}
		if st.Mode.IsRegular() {
			return Stat{}, fs.ErrNotExist
		}
		if !st.Mode.IsDir() {
			return Stat{}, Foreign("folder "+name[:i], st.Mode)
		}
	}
	st, err := f.Lstat(name)
	switch {
	case err != nil:
		return Stat{}, Step("look up", err)
	case st.Mode.IsDir():
		return Stat{}, fs.ErrNotExist
	case !st.Mode.IsRegular():
		return Stat{}, Foreign(name, st.Mode)
	}
	return st, nil
}

// OpenPlain opens the plain file name, and checks that the opened file is the one that Lookup described.
func OpenPlain(f FS, name string, flag int) (File, Stat, error) {
	for range openTries {
		want, err := Lookup(f, name)
		if err != nil {
			return nil, Stat{}, err
		}
		file, err := f.OpenFile(name, flag)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed since the lookup: try again
			}
			return nil, Stat{}, Step("open", err)
		}
		got, err := file.Stat()
		if err == nil && got.Mode.IsRegular() && got.ID == want.ID {
			return file, got, nil
		}
		file.Close()
		if err != nil {
			return nil, Stat{}, Step("open", err)
		}
	}
	return nil, Stat{}, ErrUnsettled
}

// Step names the call that failed and drops the path, which the error's key contains already. The errno
// stays reachable.
func Step(what string, err error) error {
	var (
		path *fs.PathError
		link *os.LinkError
		call *os.SyscallError
	)
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	case errors.As(err, &call):
		err = call.Err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Foreign returns ErrForeign with the kind of the file.
func Foreign(what string, mode fs.FileMode) error {
	kind := "device"
	switch {
	case mode&fs.ModeSymlink != 0:
		kind = "symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		kind = "named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "socket"
	case mode.IsDir():
		kind = "directory"
	case mode.IsRegular():
		kind = "regular file"
	}
	return fmt.Errorf("%s is a %s: %w", what, kind, ErrForeign)
}

// Missing reports whether an error means that the name or one of its parents does not exist.
func Missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Unsupported reports whether an error means that the file system does not support the call.
func Unsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EPERM) ||
		errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EINVAL)
}

// descriptorLimit reports whether this process or the system has no file descriptor left.
func descriptorLimit(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
