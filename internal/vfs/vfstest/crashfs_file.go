package vfstest

import (
	"bytes"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/coppice-go/coppice/internal/vfs"
)

// content is the content of a file. Immutable: each change makes another.
type content struct {
	mem   []byte   // visible to readers
	next  []byte   // made durable by a sync: mem, except what a failed sync lost
	disk  []byte   // what is durable
	since [][]byte // next after each change since the last sync, newest last
	freed []byte   // earlier content of the blocks of a new file

	sum    sum        // of disk, if since is empty
	summed bool       // sum is set
	after  []*content // possible contents after a crash, once requested
	asked  int        // number requested
}

var nothing = whole(nil)

// splice writes p over b at off, into a new slice.
func splice(b, p []byte, off int) []byte {
	out := make([]byte, max(len(b), off+len(p)))
	copy(out, b)
	copy(out[off:], p)
	return out
}

// edit returns c with both views of the file changed alike.
func (c *content) edit(change func(b []byte) []byte) *content {
	next := &content{mem: change(c.mem), disk: c.disk, freed: c.freed}
	next.next = next.mem
	if !same(c.mem, c.next) {
		next.next = change(c.next)
	}
	next.since = append(slices.Clip(c.since), next.next)
	return next
}

// same reports whether both are the same slice.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// synced returns c after a successful sync.
func (c *content) synced() *content {
	return &content{mem: c.mem, next: c.next, disk: c.next, freed: c.freed}
}

// lost returns c after a failed sync: changes since the last one count as clean, and can still be read. The disk keeps
// the old bytes, at the new size.
func (c *content) lost() *content {
	kept := make([]byte, len(c.next))
	copy(kept, c.disk)
	return &content{mem: c.mem, next: kept, disk: c.disk, since: [][]byte{kept}, freed: c.freed}
}

// durable returns the content after a crash, if nothing was changed since the last sync: data that a failed one lost
// cannot be read any more.
func (c *content) durable() *content {
	if same(c.mem, c.disk) {
		return c
	}
	return whole(c.disk)
}

// crashFile is an open file.
type crashFile struct {
	s      *CrashFS
	n      *inode
	path   string
	end    bool // writes are appended
	closed bool
	held   int // 0 = no lock, 1 = shared, 2 = exclusive
}

func (f *crashFile) check(op string) error {
	if f.closed {
		return fail(op, f.path, fs.ErrClosed)
	}
	return nil
}

func (f *crashFile) ReadAt(p []byte, off int64) (int, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if err := f.check("read"); err != nil {
		return 0, err
	}
	mem := f.n.content.mem
	if off >= int64(len(mem)) {
		return 0, io.EOF
	}
	n := copy(p, mem[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *crashFile) Write(p []byte) (int, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if !f.end && len(f.n.content.mem) > 0 {
		return 0, fail("write", f.path, syscall.ENOSYS) // the file has no position
	}
	return f.write(p, len(f.n.content.mem))
}

func (f *crashFile) WriteAt(p []byte, off int64) (int, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.end {
		return 0, fail("write", f.path, syscall.EINVAL)
	}
	return f.write(p, int(off))
}

func (f *crashFile) write(p []byte, off int) (int, error) {
	if err := f.check("write"); err != nil || len(p) == 0 {
		return 0, err
	}
	f.s.change("write", f.path)
	f.put(f.n.content.edit(func(b []byte) []byte { return splice(b, p, off) }))
	return len(p), nil
}

func (f *crashFile) put(c *content) {
	f.n.content, f.n.modified = c, f.s.ops
}

func (f *crashFile) Truncate(size int64) error {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if err := f.check("truncate"); err != nil {
		return err
	}
	if int(size) == len(f.n.content.mem) {
		return nil
	}
	f.s.change("truncate", f.path)
	f.put(f.n.content.edit(func(b []byte) []byte {
		if int(size) > len(b) {
			return splice(b, nil, int(size))
		}
		return b[:size:size]
	}))
	return nil
}

func (f *crashFile) Stat() (vfs.Stat, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if err := f.check("stat"); err != nil {
		return vfs.Stat{}, err
	}
	return f.n.stat(), nil
}

func (f *crashFile) Sync() error     { return f.sync() }
func (f *crashFile) Datasync() error { return f.sync() }

func (f *crashFile) sync() error {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if err := f.check("sync"); err != nil {
		return err
	}
	if c := f.n.content; len(c.since) > 0 {
		f.s.change("sync", f.path)
		f.n.content = c.synced()
	}
	return nil
}

// Lose fails a sync: its data is not written, now or by any later one, unless it is written to the file again. It can
// still be read. The caller reports the error.
func (f *crashFile) Lose() {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if c := f.n.content; len(c.since) > 0 {
		f.s.change("sync", f.path)
		f.n.content = c.lost()
	}
}

func (f *crashFile) TryLock(exclusive bool) (bool, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if err := f.check("flock"); err != nil {
		return false, err
	}
	f.release()
	switch {
	case f.n.exclusive != nil, exclusive && f.n.shared > 0:
		return false, nil
	case exclusive:
		f.n.exclusive, f.held = f, 2
	default:
		f.n.shared++
		f.held = 1
	}
	return true, nil
}

func (f *crashFile) Unlock() error {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.release()
	return f.check("flock")
}

func (f *crashFile) release() {
	switch f.held {
	case 1:
		f.n.shared--
	case 2:
		f.n.exclusive = nil
	}
	f.held = 0
}

func (f *crashFile) Close() error {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if err := f.check("close"); err != nil {
		return err
	}
	f.release()
	f.closed = true
	return nil
}

// crashDir is an open directory.
type crashDir struct {
	s    *CrashFS
	path string
	left []fs.DirEntry // entries that ReadDir has not returned yet
	read bool
}

func (d *crashDir) ReadDir(n int) ([]fs.DirEntry, error) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if !d.read {
		for _, e := range d.s.names {
			if now := e.now(); now != nil && e.dir == d.path {
				d.left = append(d.left, entry{e.path, now.stat()})
			}
		}
		slices.SortFunc(d.left, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		d.read = true
	}
	if n <= 0 {
		n = len(d.left)
	} else if len(d.left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.left))
	out := d.left[:n]
	d.left = d.left[n:]
	return out, nil
}

func (d *crashDir) Sync() error {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if d.s.DirsLie {
		return nil
	}
	told := false
	for p, n := range d.s.names {
		if n.dir != d.path || len(n.since) == 0 {
			continue
		}
		if !told {
			d.s.change("syncdir", d.path)
			told = true
		}
		if now := n.now(); now == nil {
			delete(d.s.names, p)
		} else {
			d.s.names[p] = &name{path: n.path, dir: n.dir, hash: n.hash, disk: now}
		}
	}
	return nil
}

func (d *crashDir) Close() error { return nil }

// Bytes returns a copy of a file's content; with Overwrite tests read and damage it.
func (s *CrashFS) Bytes(p string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.at(p)
	if err != nil || n.dir {
		return nil, false
	}
	return bytes.Clone(n.content.mem), true
}

// Overwrite replaces a file's content, durably: damage to the medium.
func (s *CrashFS) Overwrite(p string, b []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.at(p)
	if err != nil || n.dir {
		return false
	}
	b = bytes.Clone(b)
	n.content = &content{mem: b, next: b, disk: b}
	return true
}
