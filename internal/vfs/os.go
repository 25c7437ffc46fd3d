package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// OS is the real file system below dir. It opens dir at the first use, and creates it only in Make.
func OS(dir string) FS { return &osFS{dir: dir} }

// osFS uses one os.Root, so that neither ".." nor a symbolic link leads out of the store.
type osFS struct {
	dir string

	mu   sync.Mutex
	root *os.Root
	top  *os.File // the root as a descriptor, for lstat
}

// osFile adds operations that package os lacks: identity, locks, fdatasync.
type osFile struct{ *os.File }

// osDir is a directory whose Sync succeeds on file systems that do not support it.
type osDir struct {
	*os.File

	path  string
	names *os.File // the same directory, from the first ReadDir on
}

func (o *osFS) get() (*os.Root, *os.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.root != nil {
		return o.root, o.top, nil
	}
	// A named pipe in the root's place would block the open.
	switch info, err := os.Stat(o.dir); {
	case err != nil:
		return nil, nil, err
	case !info.IsDir():
		return nil, nil, fmt.Errorf("root %s: %w", o.dir, errNotDir)
	}
	root, err := os.OpenRoot(o.dir)
	if err != nil {
		return nil, nil, err
	}
	top, err := root.Open(".")
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	o.root, o.top = root, top
	return root, top, nil
}

func (o *osFS) Make() error {
	var missing []string
	dir := o.dir
	for {
		info, err := os.Stat(dir)
		if err == nil {
			if !info.IsDir() {
				return fmt.Errorf("root %s: %w", dir, errNotDir)
			}
			break
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return err
		}
		missing = append(missing, dir)
		dir = parent
	}
	if len(missing) == 0 {
		// The creator of the root may not have synced its name. The parent may not be readable, and then its sync is
		// not our responsibility.
		if d, err := os.Open(filepath.Dir(dir)); err == nil {
			if err = (&osDir{File: d}).Sync(); errors.Is(err, syscall.EROFS) {
				err = nil
			}
			return errors.Join(err, d.Close())
		}
		return nil
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := os.Mkdir(missing[i], 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := syncPath(filepath.Dir(missing[i])); err != nil {
			return err
		}
	}
	return nil
}

// ReadDir reads the entries as the system returns them: a file opened by os.Root would call lstat for each.
func (d *osDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if d.names == nil {
		names, err := again(d.File, d.path)
		if err != nil {
			return nil, err
		}
		d.names = names
	}
	return d.names.ReadDir(n)
}

func (d *osDir) Close() error {
	if d.names != nil && d.names != d.File {
		_ = d.names.Close()
	}
	return d.File.Close()
}

func syncPath(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join((&osDir{File: d}).Sync(), d.Close())
}

func (o *osFS) Mkdir(name string) error {
	root, _, err := o.get()
	if err != nil {
		return err
	}
	return root.Mkdir(name, 0o700)
}

func (o *osFS) OpenFile(name string, flag int) (File, error) {
	root, _, err := o.get()
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, flag|openFlags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (o *osFS) OpenDir(name string) (Dir, error) {
	root, _, err := o.get()
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|dirFlags, 0)
	if err != nil {
		return nil, err
	}
	return &osDir{File: f, path: filepath.Join(o.dir, filepath.FromSlash(name))}, nil
}

func (o *osFS) Link(oldname, newname string) error {
	root, _, err := o.get()
	if err != nil {
		return err
	}
	return root.Link(oldname, newname)
}

func (o *osFS) Rename(oldname, newname string) error {
	root, _, err := o.get()
	if err != nil {
		return err
	}
	return root.Rename(oldname, newname)
}

func (o *osFS) Remove(name string) error {
	root, _, err := o.get()
	if err != nil {
		return err
	}
	return root.Remove(name)
}

func (o *osFS) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.root == nil {
		return nil
	}
	err := errors.Join(o.top.Close(), o.root.Close())
	o.root, o.top = nil, nil
	return err
}
