package crash

import (
	"errors"
	"io/fs"
	"os"

	"github.com/coppice-go/coppice/internal/vfs"
)

// mortal is the file system of a process that is killed before its change number left: that change and all later calls
// fail, and its locks are released, as the system does for a dead process. There is no power loss.
type mortal struct {
	vfs.FS
	left  int // changes until then; below 0 = never
	made  int // changes so far
	dead  bool
	files []vfs.File

	before func() // called before each change; nil = none
}

var errKilled = errors.New("the process was killed")

// call counts a call; change: it changes the disk.
func (m *mortal) call(change bool) error {
	if change && m.before != nil {
		m.before()
	}
	if !m.dead && change {
		if m.made == m.left {
			m.dead = true
			for _, f := range m.files {
				_ = f.Close() // most are closed already
			}
		}
		m.made++
	}
	if m.dead {
		return errKilled
	}
	return nil
}

func (m *mortal) Make() error { return errors.Join(m.call(false), m.FS.Make()) }

func (m *mortal) Mkdir(p string) error {
	if err := m.call(true); err != nil {
		return err
	}
	return m.FS.Mkdir(p)
}

func (m *mortal) OpenFile(p string, flag int) (vfs.File, error) {
	if err := m.call(flag&os.O_CREATE != 0); err != nil {
		return nil, err
	}
	f, err := m.FS.OpenFile(p, flag)
	if err != nil {
		return nil, err
	}
	m.files = append(m.files, f)
	return &mortalFile{f, m}, nil
}

func (m *mortal) OpenDir(p string) (vfs.Dir, error) {
	if err := m.call(false); err != nil {
		return nil, err
	}
	d, err := m.FS.OpenDir(p)
	if err != nil {
		return nil, err
	}
	return &mortalDir{d, m}, nil
}

func (m *mortal) Lstat(p string) (vfs.Stat, error) {
	if err := m.call(false); err != nil {
		return vfs.Stat{}, err
	}
	return m.FS.Lstat(p)
}

func (m *mortal) Link(from, to string) error {
	if err := m.call(true); err != nil {
		return err
	}
	return m.FS.Link(from, to)
}

func (m *mortal) Rename(from, to string) error {
	if err := m.call(true); err != nil {
		return err
	}
	return m.FS.Rename(from, to)
}

func (m *mortal) Remove(p string) error {
	if err := m.call(true); err != nil {
		return err
	}
	return m.FS.Remove(p)
}

type mortalFile struct {
	vfs.File
	m *mortal
}

func (f *mortalFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.m.call(false); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *mortalFile) Write(p []byte) (int, error) {
	if err := f.m.call(true); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *mortalFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.m.call(true); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

func (f *mortalFile) Truncate(size int64) error {
	if err := f.m.call(true); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *mortalFile) Sync() error {
	if err := f.m.call(true); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *mortalFile) Datasync() error {
	if err := f.m.call(true); err != nil {
		return err
	}
	return f.File.Datasync()
}

func (f *mortalFile) TryLock(exclusive bool) (bool, error) {
	if err := f.m.call(false); err != nil {
		return false, err
	}
	return f.File.TryLock(exclusive)
}

type mortalDir struct {
	vfs.Dir
	m *mortal
}

func (d *mortalDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if err := d.m.call(false); err != nil {
		return nil, err
	}
	return d.Dir.ReadDir(n)
}

func (d *mortalDir) Sync() error {
	if err := d.m.call(true); err != nil {
		return err
	}
	return d.Dir.Sync()
}
