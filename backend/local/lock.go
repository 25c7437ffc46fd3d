package local

import (
	"container/list"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local/vfs"
)

const (
	lockFile = ".lock"
	// lockTries bounds how often the lock is taken anew because its file was replaced meanwhile.
	lockTries = 64
	// Waiting for another process polls: the context must be able to end it, and a blocking flock
	// cannot be interrupted.
	pollFirst = 20 * time.Microsecond
	pollLast  = time.Millisecond
)

// lockName is the lock file of a key: that of its session, else that of its folder. The last
// "sessions" counts, so that the name is the same file from wherever in the tree a store is opened.
func lockName(key string) string {
	const mark = "sessions/"
	for end := len(key); ; {
		i := strings.LastIndex(key[:end], mark)
		if i < 0 {
			break
		}
		if i == 0 || key[i-1] == '/' {
			id, _, below := strings.Cut(key[i+len(mark):], "/")
			if below {
				return key[:i+len(mark)+len(id)+1] + lockFile
			}
		}
		end = i
	}
	if dir := vfs.Folder(key); dir != "." {
		return dir + "/" + lockFile
	}
	return lockFile
}

// A domain is what one lock file guards. Within the process the semaphore excludes, so that only one
// goroutine asks the system. What follows sem belongs to who holds it.
type domain struct {
	name string
	sem  chan struct{}

	lock   vfs.File // nil until it is needed
	lockID vfs.ID
	// The file that was appended to last. flock belongs to the open file, so it can stay open.
	key    string
	file   vfs.File
	fileID vfs.ID

	refs int // guarded by domains.mu, as is elem
	elem *list.Element
}

// domains keeps the most recently used ones open, at most max and those in use.
type domains struct {
	max int

	mu     sync.Mutex
	byName map[string]*domain
	recent list.List // of *domain, newest first
}

func (s *domains) get(name string) *domain {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.byName[name]
	if d == nil {
		d = &domain{name: name, sem: make(chan struct{}, 1)}
		if s.byName == nil {
			s.byName = make(map[string]*domain)
		}
		s.byName[name] = d
		d.elem = s.recent.PushFront(d)
	} else {
		s.recent.MoveToFront(d.elem)
	}
	d.refs++
	return d
}

func (s *domains) put(d *domain) {
	s.mu.Lock()
	d.refs--
	over := len(s.byName) > s.max
	s.mu.Unlock()
	if over {
		s.evict(s.max)
	}
}

// evict closes idle domains, the oldest first, until at most keep are left; it counts those closed.
func (s *domains) evict(keep int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for e := s.recent.Back(); e != nil && len(s.byName) > keep; {
		d, ok := e.Value.(*domain)
		e = e.Prev()
		if !ok || d.refs > 0 {
			continue
		}
		d.drop()
		s.recent.Remove(d.elem)
		delete(s.byName, d.name)
		n++
	}
	return n
}

// drop closes both files; a lock ends with its file.
func (d *domain) drop() {
	d.dropFile()
	if d.lock != nil {
		d.lock.Close()
		d.lock = nil
	}
}

func (d *domain) dropFile() {
	if d.file != nil {
		d.file.Close()
		d.file, d.key = nil, ""
	}
}

// acquire takes the lock of key against every other call, here and in other processes. The error is
// missing where the key's folder does not exist. Nothing has been changed when it fails.
func (b *Backend) acquire(ctx context.Context, key string) (*domain, error) {
	d := b.locks.get(lockName(key))
	select {
	case d.sem <- struct{}{}:
	default:
		select {
		case d.sem <- struct{}{}:
		case <-ctx.Done():
			b.locks.put(d)
			return nil, ctx.Err()
		case <-b.done:
			b.locks.put(d)
			return nil, backend.ErrClosed
		}
	}
	if err := b.lockDomain(ctx, d); err != nil {
		d.drop()
		<-d.sem
		b.locks.put(d)
		return nil, err
	}
	return d, nil
}

// lockDomain locks the file that has the lock's name now. The name never moves to another file by our
// doing, but someone may have removed the folder and made it anew: then a lock on the old file
// would exclude nobody.
func (b *Backend) lockDomain(ctx context.Context, d *domain) error {
	for range lockTries {
		if d.lock == nil {
			if err := b.openLock(d); err != nil {
				return err
			}
		}
		if err := b.await(ctx, d.lock, true); err != nil {
			return err
		}
		st, err := b.fs.Lstat(d.name)
		if err == nil && st.ID == d.lockID {
			return nil
		}
		if err != nil && !vfs.Missing(err) {
			return vfs.Step("look at lock", err)
		}
		d.drop()
		b.dirs.Forget()
	}
	return vfs.ErrUnsettled
}

func (b *Backend) openLock(d *domain) error {
	if _, err := vfs.Lookup(b.fs, d.name); err != nil && !vfs.Missing(err) {
		return err
	}
	f, err := b.fs.OpenFile(d.name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return backend.ErrNotExist // the folder
		}
		return vfs.Step("open lock", err)
	}
	got, err := f.Stat()
	if err != nil {
		f.Close()
		return vfs.Step("open lock", err)
	}
	if !got.Mode.IsRegular() {
		f.Close()
		return vfs.Foreign(d.name, got.Mode)
	}
	d.lock, d.lockID = f, got.ID
	return nil
}

// release lets go of the domain, and of the object's lock if one is held.
func (b *Backend) release(d *domain) {
	if d.file != nil && d.file.Unlock() != nil {
		d.dropFile()
	}
	if d.lock != nil && d.lock.Unlock() != nil {
		d.drop()
	}
	<-d.sem
	b.locks.put(d)
}

// await polls for a lock until it is there, the context is done, or the backend is closed.
func (b *Backend) await(ctx context.Context, f vfs.File, exclusive bool) error {
	for wait := pollFirst; ; wait = min(2*wait, pollLast) {
		ok, err := f.TryLock(exclusive)
		if err != nil {
			return vfs.Step("lock", err)
		}
		if ok {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return b.waitError(ctx)
		case <-b.done:
			timer.Stop()
			return b.waitError(ctx)
		}
	}
}
