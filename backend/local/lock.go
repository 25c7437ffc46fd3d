package local

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/vfs"
)

const (
	lockFile = ".lock"
	// stripes is the number of lock files shared by the objects of a folder. It is part of the format: all processes
	// must agree on it.
	stripes = 64
	// lockTries bounds how often the lock is taken again because its file was replaced meanwhile.
	lockTries = 64
	// Waiting for another process polls: the context must be able to end it, and a blocking flock cannot be
	// interrupted.
	pollFirst = 20 * time.Microsecond
	pollLast  = time.Millisecond
)

// lockNames returns the lock files of a key. A key below a session has the session's lock, which is taken exclusively;
// shared is empty then. The last "sessions" component counts, so that the name is the same file wherever in the tree a
// store is opened.
//
// Any other key has one of a fixed number of locks in its folder, chosen by the last component and taken exclusively:
// objects of one folder do not wait for each other's syncs, and the number of lock files is bounded. The lock of the
// folder is taken too, shared, because releases without these stripes take only that one, exclusively.
func lockNames(key string) (exclusive, shared string) {
	const mark = "sessions/"
	for end := len(key); ; {
		i := strings.LastIndex(key[:end], mark)
		if i < 0 {
			break
		}
		if i == 0 || key[i-1] == '/' {
			id, _, below := strings.Cut(key[i+len(mark):], "/")
			if below {
				return key[:i+len(mark)+len(id)+1] + lockFile, ""
			}
		}
		end = i
	}
	name := key[strings.LastIndexByte(key, '/')+1:]
	shared = strings.TrimSuffix(key, name) + lockFile
	return fmt.Sprintf("%s-%02x", shared, crc32.ChecksumIEEE([]byte(name))%stripes), shared
}

// lock is a lock file.
type lock struct {
	name      string
	exclusive bool
	file      vfs.File // nil until needed
	id        vfs.ID
}

// A domain is the set of objects under one exclusive lock file. Within the process the semaphore excludes, so that only
// one goroutine asks the system. The fields after sem belong to its holder.
type domain struct {
	name string
	sem  chan struct{}

	// locks are taken in this order. The folder's is last, so that it is held while the call works and not while it
	// waits.
	locks []lock
	// The file that was last appended to. flock belongs to the open file, so it can stay open.
	key    string
	file   vfs.File
	fileID vfs.ID

	refs int // guarded by domains.mu, as is elem
	elem *list.Element
}

// domains keeps the most recently used domains open, at most max and those in use.
type domains struct {
	max int

	mu     sync.Mutex
	byName map[string]*domain
	recent list.List // of *domain, newest first
}

func (s *domains) get(key string) *domain {
	name, shared := lockNames(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.byName[name]
	if d == nil {
		d = &domain{name: name, sem: make(chan struct{}, 1), locks: []lock{{name: name, exclusive: true}}}
		if shared != "" {
			d.locks = append(d.locks, lock{name: shared})
		}
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

// evict closes idle domains, the oldest first, until at most keep are left; it returns the number closed. Other calls
// do not wait for it: an idle domain holds no lock.
func (s *domains) evict(keep int) int {
	idle := s.forget(keep)
	for _, d := range idle {
		d.drop()
	}
	return len(idle)
}

func (s *domains) forget(keep int) (idle []*domain) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.recent.Back(); e != nil && len(s.byName) > keep; {
		d, ok := e.Value.(*domain)
		e = e.Prev()
		if ok && d.refs == 0 {
			s.recent.Remove(d.elem)
			delete(s.byName, d.name)
			idle = append(idle, d)
		}
	}
	return idle
}

// drop closes all files; a lock ends with its file.
func (d *domain) drop() {
	d.dropFile()
	for i := range d.locks {
		if l := &d.locks[i]; l.file != nil {
			l.file.Close()
			l.file = nil
		}
	}
}

func (d *domain) dropFile() {
	if d.file != nil {
		d.file.Close()
		d.file, d.key = nil, ""
	}
}

// acquire takes the lock of key against every other call, in this and in other processes. missing is the error if the
// key's folder does not exist. A failure has changed nothing.
func (b *Backend) acquire(ctx context.Context, key string) (*domain, error) {
	d := b.locks.get(key)
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

// lockDomain locks the files that have the locks' names now. The driver never moves these names to other files, but
// another program may have removed and recreated the folder: then a lock on the old file would exclude no one.
func (b *Backend) lockDomain(ctx context.Context, d *domain) error {
	for range lockTries {
		current, err := b.takeAll(ctx, d)
		if err != nil || current {
			return err
		}
		d.drop()
		b.dirs.Forget()
	}
	return vfs.ErrUnsettled
}

// takeAll waits for one lock after another; current reports whether their names still refer to the locked files.
func (b *Backend) takeAll(ctx context.Context, d *domain) (current bool, err error) {
	for i := range d.locks {
		current, err := b.take(ctx, &d.locks[i])
		if err != nil || !current {
			return false, err
		}
	}
	return true, nil
}

func (b *Backend) take(ctx context.Context, l *lock) (current bool, err error) {
	if l.file == nil {
		if err := b.openLock(l); err != nil {
			return false, err
		}
	}
	if err := b.await(ctx, l.file, l.exclusive); err != nil {
		return false, err
	}
	st, err := b.fs.Lstat(l.name)
	if err != nil && !vfs.Missing(err) {
		return false, vfs.Step("look at lock", err)
	}
	return err == nil && st.ID == l.id, nil
}

func (b *Backend) openLock(l *lock) error {
	if _, err := vfs.Lookup(b.fs, l.name); err != nil && !vfs.Missing(err) {
		return err
	}
	f, err := b.fs.OpenFile(l.name, os.O_RDWR|os.O_CREATE)
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
		return vfs.Foreign(l.name, got.Mode)
	}
	l.file, l.id = f, got.ID
	return nil
}

// release releases the domain, and the object's lock if it is held.
func (b *Backend) release(d *domain) {
	if d.file != nil && d.file.Unlock() != nil {
		d.dropFile()
	}
	for i := range d.locks {
		if l := &d.locks[i]; l.file != nil && l.file.Unlock() != nil {
			d.drop()
		}
	}
	<-d.sem
	b.locks.put(d)
}

// await polls for a lock until it is taken, the context is done, or the backend is closed.
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
