// Package vfstest has two test doubles of vfs.FS, for local.Options.FS: CrashFS, a file system in memory that simulates
// power loss and distinguishes durable from visible data, and FaultFS, which makes selected calls of another one fail.
//
// Bytes of a file, and its size, become durable with Sync or Datasync of the file; a name becomes durable with Sync of
// its directory; nothing else guarantees anything, not even an order. Watch shows the disk before each call that
// changes it (a Point), Point.States returns the states that a crash there may leave (Image), and Boot starts a new
// file system from one of those. All of it is deterministic: the same calls and the same seed produce the same images.
//
// # Effects of a crash
//
// On a file: lose what was written since its last sync, keep it, keep the size without the data (zeros, or the earlier
// content of the blocks, of a removed file or of this one), keep any subset of the changed 512-byte sectors or 4-KiB
// pages, stop at any sector or in the middle of one, or undo a truncation. On a directory: keep any subset of the names
// that were created, replaced or removed since its last sync. So a rename may be lost, done, or half done (both names,
// or neither); a file may exist without its data, and be lost with its directory. Synced data stays.
//
// Lose makes a sync fail as it does on Linux: the unsynced data counts as clean from then on, can still be read, and is
// lost in a crash even if a later sync succeeds.
package vfstest

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-go/coppice/internal/vfs"
)

// CrashFS is the file system. The zero value is an empty one.
type CrashFS struct {
	// DirsLie makes syncs of directories report success without making names durable, like some network file systems.
	// It must not change during a call.
	DirsLie bool

	mu    sync.Mutex
	names map[string]*name // by path; also names that were removed, but not durably
	last  uint64           // the last inode number given
	ops   int              // number of changes
	watch func(op Op, at *Point)
	freed []byte // content of the last removed file: the next one may get its blocks
}

var _ vfs.FS = (*CrashFS)(nil)

// Op is a call that changes the possible states after a crash.
type Op struct {
	N    int    // its number, from 0
	Kind string // write, sync, create, link, rename, remove, mkdir, truncate, syncdir
	Name string
}

// name is the inode of a path: now, durably, and at every moment between. Immutable.
type name struct {
	path, dir string
	hash      sum
	disk      *inode   // durable by the directory's last sync; nil = none
	since     []*inode // the inode after each change since; the last one is the present
}

// now returns the present inode; nil = none.
func (n *name) now() *inode {
	if len(n.since) > 0 {
		return n.since[len(n.since)-1]
	}
	return n.disk
}

// inode is a file or a directory.
type inode struct {
	id       uint64
	dir      bool
	links    uint64
	modified int
	content  *content

	exclusive *crashFile
	shared    int
}

// NewCrashFS makes an empty file system.
func NewCrashFS() *CrashFS { return &CrashFS{} }

// Watch makes f be called before each change, with the disk at that moment; nil ends it. f must not call the file
// system.
func (s *CrashFS) Watch(f func(op Op, at *Point)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = f
}

// Ops counts the changes so far.
func (s *CrashFS) Ops() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ops
}

// Point returns the disk at this moment.
func (s *CrashFS) Point() *Point {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.point()
}

// change announces a change; s.mu is held, and the change cannot fail any more.
func (s *CrashFS) change(kind, of string) {
	if s.watch != nil {
		s.watch(Op{N: s.ops, Kind: kind, Name: of}, s.point())
	}
	s.ops++
}

// set changes the inode of a path.
func (s *CrashFS) set(p string, to *inode) {
	old := s.names[p]
	next := &name{path: p, dir: vfs.Folder(p)}
	if old != nil {
		next.hash, next.disk = old.hash, old.disk
		next.since = append(slices.Clip(old.since), to)
	} else {
		next.hash, next.since = sumOf(p), []*inode{to}
	}
	if s.names == nil {
		s.names = make(map[string]*name)
	}
	s.names[p] = next
}

// at returns the inode of a path; the error is the system's.
func (s *CrashFS) at(p string) (*inode, error) {
	if n := s.names[p]; n != nil && n.now() != nil {
		return n.now(), nil
	}
	if dir, err := s.dir(vfs.Folder(p)); dir == nil {
		return nil, err
	}
	return nil, syscall.ENOENT
}

// root is ".", which always exists.
var root = &inode{dir: true, links: 1}

// dir finds a directory.
func (s *CrashFS) dir(p string) (*inode, error) {
	if p == "." {
		return root, nil
	}
	n, err := s.at(p)
	switch {
	case err != nil:
		return nil, err
	case !n.dir:
		return nil, syscall.ENOTDIR
	}
	return n, nil
}

func (s *CrashFS) inode(dir bool) *inode {
	s.last++
	n := &inode{id: s.last, dir: dir, links: 1, modified: s.ops, content: nothing}
	if !dir && len(s.freed) > 0 {
		n.content = &content{freed: s.freed}
	}
	return n
}

// unlink removes one of a file's names.
func (s *CrashFS) unlink(n *inode) {
	if n.links--; n.links == 0 && len(n.content.disk) > 0 {
		s.freed = n.content.disk
	}
}

func fail(op, p string, err error) error { return &fs.PathError{Op: op, Path: p, Err: err} }

// Make has nothing to do: the root exists, durably.
func (s *CrashFS) Make() error { return nil }

// Close has nothing to do.
func (s *CrashFS) Close() error { return nil }

// Mkdir makes a directory.
func (s *CrashFS) Mkdir(p string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.dir(vfs.Folder(p)); err != nil {
		return fail("mkdir", p, err)
	}
	if _, err := s.at(p); err == nil || p == "." {
		return fail("mkdir", p, syscall.EEXIST)
	}
	s.change("mkdir", p)
	s.set(p, s.inode(true))
	return nil
}

// OpenFile opens a file, and creates it with os.O_CREATE.
func (s *CrashFS) OpenFile(p string, flag int) (vfs.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.at(p)
	switch {
	case err == nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, fail("open", p, syscall.EEXIST)
	case err == nil && n.dir:
		return nil, fail("open", p, syscall.EISDIR)
	case err != nil && flag&os.O_CREATE == 0:
		return nil, fail("open", p, err)
	case err != nil:
		if _, err := s.dir(vfs.Folder(p)); err != nil {
			return nil, fail("open", p, err)
		}
		s.change("create", p)
		n = s.inode(false)
		s.set(p, n)
	}
	return &crashFile{s: s, n: n, path: p, end: flag&os.O_APPEND != 0}, nil
}

// OpenDir opens a directory.
func (s *CrashFS) OpenDir(p string) (vfs.Dir, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.dir(p); err != nil {
		return nil, fail("open", p, err)
	}
	return &crashDir{s: s, path: p}, nil
}

// Lstat describes what a path names.
func (s *CrashFS) Lstat(p string) (vfs.Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == "." {
		return root.stat(), nil
	}
	n, err := s.at(p)
	if err != nil {
		return vfs.Stat{}, fail("lstat", p, err)
	}
	return n.stat(), nil
}

func (n *inode) stat() vfs.Stat {
	st := vfs.Stat{
		ID: vfs.ID{Dev: 1, Ino: n.id}, Links: n.links, Mode: 0o600,
		ModTime: time.Unix(1_700_000_000+int64(n.modified), 0),
	}
	if n.dir {
		st.Mode = fs.ModeDir | 0o700
	} else {
		st.Size = int64(len(n.content.mem))
	}
	return st
}

// Link returns a file a second name.
func (s *CrashFS) Link(from, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.at(from)
	if err != nil {
		return fail("link", to, err)
	}
	if n.dir {
		return fail("link", to, syscall.EPERM)
	}
	if _, err := s.dir(vfs.Folder(to)); err != nil {
		return fail("link", to, err)
	}
	if _, err := s.at(to); err == nil {
		return fail("link", to, syscall.EEXIST)
	}
	s.change("link", to)
	n.links++
	s.set(to, n)
	return nil
}

// Rename moves a file over another name.
func (s *CrashFS) Rename(from, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.at(from)
	if err != nil {
		return fail("rename", from, err)
	}
	if _, err := s.dir(vfs.Folder(to)); err != nil {
		return fail("rename", from, err)
	}
	old, _ := s.at(to)
	switch {
	case n.dir || old != nil && old.dir:
		return fail("rename", from, syscall.EISDIR)
	case old == n:
		return nil
	}
	s.change("rename", to)
	if old != nil {
		s.unlink(old)
	}
	s.set(from, nil)
	s.set(to, n)
	return nil
}

// Remove unlinks a file.
func (s *CrashFS) Remove(p string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.at(p)
	if err == nil && n.dir {
		err = syscall.EISDIR
	}
	if err != nil {
		return fail("remove", p, err)
	}
	s.change("remove", p)
	s.unlink(n)
	s.set(p, nil)
	return nil
}

// entry is one name of a directory.
type entry struct {
	path string
	stat vfs.Stat
}

func (e entry) Name() string               { return path.Base(e.path) }
func (e entry) IsDir() bool                { return e.stat.Mode.IsDir() }
func (e entry) Type() fs.FileMode          { return e.stat.Mode.Type() }
func (e entry) Info() (fs.FileInfo, error) { return nil, syscall.ENOSYS }
