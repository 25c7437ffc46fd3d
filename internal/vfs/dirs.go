package vfs

import (
	"errors"
	"io/fs"
	"sync"
)

// maxDirs bounds the cache of durable directories.
const maxDirs = 4096

// Dirs caches the directories whose names are durable up to the root. This package never removes directories, so an
// entry stays valid; see Forget.
type Dirs struct {
	fs FS

	mu    sync.Mutex
	known map[string]struct{}
}

// NewDirs returns an empty cache for a file system.
func NewDirs(f FS) *Dirs { return &Dirs{fs: f} }

func (s *Dirs) has(dir string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.known[dir]
	return ok
}

func (s *Dirs) add(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxDirs {
		s.known = make(map[string]struct{})
	}
	s.known[dir] = struct{}{}
}

// Forget clears the cache, after another program removed directories.
func (s *Dirs) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = nil
}

// Ensure creates dir and its missing parents, and syncs the name of each in its parent, also of existing ones, since
// their creator may not have synced them.
func (s *Dirs) Ensure(dir string) error {
	if s.has(dir) {
		return nil
	}
	if dir == "." {
		if err := s.fs.Make(); err != nil {
			return Step("create store", err)
		}
		s.add(dir)
		return nil
	}
	parent := Folder(dir)
	if err := s.Ensure(parent); err != nil { // as deep as a key has components
		return err
	}
	if err := MakeDir(s.fs, dir); err != nil {
		return err
	}
	if err := SyncDir(s.fs, parent); err != nil {
		return err
	}
	s.add(dir)
	return nil
}

// MakeDir creates a directory if it does not exist.
func MakeDir(f FS, dir string) error {
	st, err := f.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return Step("create directory", err)
		}
		st, err = f.Lstat(dir)
	}
	if err != nil {
		return Step("look at directory", err)
	}
	if !st.Mode.IsDir() {
		return Foreign("folder "+dir, st.Mode)
	}
	return nil
}

// SyncDir makes the names in a directory durable.
func SyncDir(f FS, dir string) error {
	d, err := f.OpenDir(dir)
	if err != nil {
		return Step("open directory", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return Step("sync directory", err)
	}
	return nil
}
