// Package local stores objects as plain files below one directory. An effect that a call reported as done survives
// power loss; a call that was reported as not applied has left no byte; several processes, and several handles in one,
// may use the same directory at once.
//
// On disk the key is the path. Files are 0600, directories 0700. Names that start with a dot belong to the driver:
// ".tmp/" at the root holds files that are being written, and files in a folder that start with ".lock" are the locks
// of its objects. Only plain files are opened: a symbolic link, a pipe or a device in an object's place is ErrForeign,
// and os.Root keeps every path inside the directory.
//
// # Writing
//
// Put writes a temporary file, syncs it, publishes it (link for IfAbsent, so that the kernel decides the one winner;
// otherwise rename) and syncs the directory. Append, Cut and Resync change the file in place: an append is one write at
// the end of the file (O_APPEND, never at an offset, so that a program that ignores the lock loses nothing) and one
// fdatasync. A short write is cut back before the lock is released. Cut reads and compares the bytes to remove under
// the same lock. A failed sync is never repeated, and its descriptor never used again.
//
// # Locks
//
// Every call that can replace or change an object holds an advisory lock (flock, LockFileEx) until its sync has
// returned. The lock file of a key below "sessions/<id>/" is "sessions/<id>/.lock". That of any other key is one of 64
// in the key's own folder, ".lock-00" to ".lock-3f": the CRC-32 (IEEE) of the key's last component, modulo 64. So
// publishing the checkpoint of one session rarely waits for the directory sync of another's, and the number of lock
// files does not grow with the objects. Both names are the same when a store is opened at a folder above or below. Lock
// files and directories are never replaced or removed, so a process may rely on those that it has found.
//
// Releases before these 64 locks took ".lock" in the folder instead, exclusively. This one takes it too, shared and
// after its own, so that both kinds may use a directory at once. A process of the older kind can wait long while many
// others publish all the time.
//
// The object itself is locked as well while it is written, and while a reader determines its size. A reader therefore
// sees only whole and durable appends; it waits for nothing else and needs no right to write. A Get that overlaps a Cut
// and a later Append may return bytes of both after the cut: Cut is meant for tails that no checksum accepts. Waiting
// is polling, ends with the context, and is not fair.
//
// # Versions
//
// A version is the first half of the SHA-256 of the content: inode and time stamps would be cheaper, but inodes are
// reused within one tick of the clock, and a condition must not depend on a clock (I12). Get of a whole object and Put
// have the bytes in memory; Stat reads the object. A ranged Get, List, Append and Resync return no version. A caller
// that needs only the size calls Get with Tail(0), which reads nothing.
//
// # Leftovers
//
// A crash may leave a file in ".tmp/". Its writer held a lock on it, so the first write of a handle removes files
// without a lock; no clock is used.
package local

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/vfs"
)

// Backend is a directory of objects. Safe for concurrent use.
type Backend struct {
	fs    vfs.FS
	locks domains
	dirs  *vfs.Dirs
	temps atomic.Uint64 // the last number used for a temporary file
	sweep sync.Once

	reserve sync.Once   // creates it if it is missing
	spent   atomic.Bool // it was removed: the next Delete creates it again

	mu     sync.Mutex
	closed bool
	done   chan struct{}  // closed by Close: ends waits for locks
	calls  sync.WaitGroup // those under way; Close waits for them
}

var _ backend.Appender = (*Backend)(nil)

// Options are the settings of Open. The zero value of each field is its default.
type Options struct {
	// FS replaces the real file system; Open's directory is not used then.
	FS vfs.FS
	// MaxOpen bounds the locks that stay open between calls, each with the file that was last appended to under it: two
	// file descriptors, and a third if the folder's own lock belongs to it; 512. When descriptors run out, all idle
	// ones are closed.
	MaxOpen int
}

func init() {
	backend.Register("file", openURL)
}

// Open returns a backend for the directory dir. It touches nothing: a store that is only read is never written to
// (I14), and the first write creates the directory. From its first use a handle refers to that directory, even if it is
// moved: after restoring one from a backup, open it again. Nil options are the defaults.
func Open(dir string, o *Options) (*Backend, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.FS == nil {
		if dir == "" {
			return nil, fail("open", "", backend.NotApplied, errors.New("no directory"))
		}
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, fail("open", "", backend.NotApplied, err)
		}
		opts.FS = vfs.OS(abs)
	}
	if opts.MaxOpen <= 0 {
		opts.MaxOpen = 512
	}
	b := &Backend{done: make(chan struct{})}
	b.locks.max = opts.MaxOpen
	b.fs = vfs.Thrifty{FS: opts.FS, Evict: func() int { return b.locks.evict(0) }}
	b.dirs = vfs.NewDirs(b.fs)
	return b, nil
}

// Close waits for the calls under way and releases all open files; calls that wait for a lock end with ErrClosed.
func (b *Backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		b.calls.Wait()
		return nil
	}
	b.closed = true
	close(b.done)
	b.mu.Unlock()
	b.calls.Wait()
	b.locks.evict(0)
	if err := b.fs.Close(); err != nil {
		return fail("close", "", backend.Applied, vfs.Step("close", err))
	}
	return nil
}

// enter begins a call; each successful enter needs a leave.
func (b *Backend) enter(ctx context.Context, op, key string) error {
	if err := b.admit(); err != nil {
		return fail(op, key, backend.NotApplied, err)
	}
	if err := ctx.Err(); err != nil {
		b.leave()
		return fail(op, key, backend.NotApplied, err)
	}
	return nil
}

// enterKey is enter for a call on one key.
func (b *Backend) enterKey(ctx context.Context, op, key string) error {
	if err := b.enter(ctx, op, key); err != nil {
		return err
	}
	if err := backend.ValidKey(key); err != nil {
		b.leave()
		return fail(op, key, backend.NotApplied, errors.Unwrap(err))
	}
	return nil
}

func (b *Backend) admit() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return backend.ErrClosed
	}
	b.calls.Add(1)
	return nil
}

func (b *Backend) leave() { b.calls.Done() }

// openURL opens file:///dir, file://localhost/dir, file:dir and the URL that backend.Open makes of a bare path.
func openURL(_ context.Context, u *url.URL) (backend.Backend, error) {
	switch {
	case u.Host != "" && u.Host != "localhost":
		return nil, fmt.Errorf("address of host %q: only files of this host can be opened (file:///dir)", u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("a file address takes no parameters (a '?' or '#' of the path is written %3F or %23)")
	}
	dir := filepath.FromSlash(u.Path)
	if filepath.Separator == '\\' && len(dir) > 2 && dir[0] == '\\' && dir[2] == ':' {
		dir = dir[1:] // file:///C:/dir
	}
	return Open(dir, nil)
}
