package server

import (
	"context"
	"errors"
	"slices"
	"sync"

	coppice "github.com/coppice-go/coppice"
)

// Bounds of the handles that are kept for reading. The one used last may be larger.
const (
	maxReaders     = 16
	maxReaderBytes = 256 << 20 // estimated by their entries
)

// treeEntryBytes is what the tree of a handle keeps for each entry and commit.
const treeEntryBytes = 21

// readers are the handles by which trees are read: a handle reads its tree once, which takes most of a second for
// 1,000,000 entries, and then only what was committed since.
type readers struct {
	mu     sync.Mutex
	list   []*reader // the one used last is last
	closed bool
}

// reader is the handle of a session. Requests use it at the same time.
type reader struct {
	key  writerKey
	s    *coppice.Session
	seq  uint64 // of the newest commit that was seen, by readers.mu
	size int64  // estimated, by readers.mu

	users int  // by readers.mu
	spent bool // not in the list any more: the last user closes it
}

// readTree is read for what needs the tree: on a handle that requests share. Its head may move while f runs: f takes
// the ETag before it reads.
func (s *Server) readTree(ctx context.Context, q *request, f func(*coppice.Session) (answer, error)) (answer, error) {
	r, err := s.readers.acquire(ctx, writerKey{q.on.Store, q.id})
	if err != nil {
		return answer{}, err
	}
	q.find()
	a, err := f(r.s)
	if a.list == nil || err != nil {
		s.readers.release(r)
		return a, err
	}
	items := a.list.items
	a.list.items = func(yield func(any, error) bool) {
		defer s.readers.release(r)
		items(yield)
	}
	return a, nil
}

// acquire returns a handle of a session as it is now.
func (rs *readers) acquire(ctx context.Context, key writerKey) (*reader, error) {
	if r := rs.find(key); r != nil {
		err := r.s.Reload(ctx)
		if err == nil && rs.still(r) {
			return r, nil
		}
		rs.drop(r)
		rs.release(r)
		if err != nil {
			return nil, err
		}
	}
	h, err := key.store.Open(ctx, key.id, &coppice.SessionOptions{ReadOnly: true, Intact: true})
	if err != nil {
		return nil, err
	}
	return rs.add(&reader{key: key, s: h, seq: h.Head().Seq}), nil
}

func (rs *readers) find(key writerKey) *reader {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for i, r := range rs.list {
		if r.key == key {
			rs.list = append(slices.Delete(rs.list, i, i+1), r)
			r.users++
			return r
		}
	}
	return nil
}

// still reports whether the session went on from what the handle had read, and was not replaced by a repair or a
// restore.
func (rs *readers) still(r *reader) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	now := r.s.Head().Seq
	if now < r.seq {
		return false
	}
	r.seq = now
	return true
}

// add keeps a handle for one user, unless another one was opened at the same time: then it returns that one.
func (rs *readers) add(r *reader) *reader {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, other := range rs.list {
		if other.key == r.key && other.seq >= r.seq {
			_ = r.s.Close() // it wrote nothing
			other.users++
			return other
		}
	}
	r.users = 1
	if r.spent = rs.closed; !r.spent {
		rs.list = append(rs.list, r)
	}
	return r
}

func (rs *readers) drop(r *reader) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if i := slices.Index(rs.list, r); i >= 0 {
		rs.list = slices.Delete(rs.list, i, i+1)
	}
	r.spent = true
}

// release ends a use, and closes handles that are too many.
func (rs *readers) release(r *reader) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.users--
	r.size = int64(r.s.Info().Entries+r.s.Info().Seq) * treeEntryBytes
	if r.spent && r.users == 0 {
		_ = r.s.Close() // it wrote nothing
	}
	bytes := int64(0)
	for _, r := range rs.list {
		bytes += r.size
	}
	for len(rs.list) > 1 && (len(rs.list) > maxReaders || bytes > maxReaderBytes) {
		old := rs.list[0]
		rs.list, bytes = slices.Delete(rs.list, 0, 1), bytes-old.size
		if old.spent = true; old.users == 0 {
			_ = old.s.Close()
		}
	}
}

// forget drops the handles of a store that closes them.
func (rs *readers) forget(st *coppice.Store) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.list = slices.DeleteFunc(rs.list, func(r *reader) bool { return r.key.store == st })
}

// close closes the handles. Those in use are closed by their last user.
func (rs *readers) close() (err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.closed = true
	for _, r := range rs.list {
		if r.spent = true; r.users == 0 {
			err = errors.Join(err, r.s.Close())
		}
	}
	rs.list = nil
	return err
}
