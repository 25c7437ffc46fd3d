package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"slices"
	"sync"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/shortid"
)

// The errors of looking an id up. ErrNotFound is also fs.ErrNotExist.
var (
	ErrNotFound  = fmt.Errorf("transcript: no such entry: %w", fs.ErrNotExist)
	ErrAmbiguous = errors.New("more than one id begins like that")
)

// idIndex finds committed rows by id: a hash table that all trees of a builder share, 12 to 24 bytes an
// entry. It is built at the first look-up and grows from there. Of rows with the same id it holds the
// last. The seed is random, so that ids cannot be chosen to collide.
type idIndex struct {
	mu      sync.RWMutex
	seed    maphash.Seed
	slots   []uint64 // 32 bits of hash, then ordinal+1; 0 = free. A power of two, at most two thirds full
	n       uint32   // rows seen
	used    int
	doubles []uint32 // rows that a later one with the same id has replaced: at most MaxDiagnostics
	doubled int
}

func newIDIndex() *idIndex { return &idIndex{seed: maphash.MakeSeed()} }

// lookup returns the last entry with this id. Commits are not found.
func (t *Tree) lookup(id string) (uint32, bool) {
	for k := len(t.pending.rows) - 1; k >= 0; k-- {
		if t.pending.rows[k].ID == id && t.pendingClasses[k]&classCommit == 0 {
			return t.committed + uint32(k), true
		}
	}
	x := t.ids
	x.mu.RLock()
	for x.n < t.committed {
		x.mu.RUnlock()
		x.mu.Lock()
		x.grow(t)
		x.mu.Unlock()
		x.mu.RLock()
	}
	i, ok := x.find(t, id)
	scan := !ok && x.n > t.committed && x.doubled > 0 // a younger tree may have replaced what this one holds
	x.mu.RUnlock()
	if scan {
		return t.lookBack([]byte(id), t.committed)
	}
	return i, ok
}

// lookBack looks among the last committed rows, at most limit of them, the last one first.
func (t *Tree) lookBack(id []byte, limit uint32) (uint32, bool) {
	var buf [64]byte
	for i := t.committed; i > t.committed-min(limit, t.committed); i-- {
		c, k := t.at(i - 1)
		if t.classes[i-1]&classCommit == 0 && bytes.Equal(c.appendID(buf[:0], k), id) {
			return i - 1, true
		}
	}
	return noRow, false
}

func (x *idIndex) hash(packed []byte) uint64 { return maphash.Bytes(x.seed, packed) >> 32 }

func (x *idIndex) find(t *Tree, id string) (uint32, bool) {
	if len(x.slots) == 0 {
		return noRow, false
	}
	hash := x.hash(codec.Row{ID: id}.AppendPackedID(nil))
	s := x.slot(t, hash, func(c *chunk, k int) bool {
		var buf [64]byte
		return string(c.appendID(buf[:0], k)) == id
	})
	if i := uint32(x.slots[s]); i != 0 {
		return i - 1, true
	}
	return noRow, false
}

// slot returns the slot of an id: the one that holds it, else a free one. same compares a row of that hash.
// Slots of rows that t does not have are passed by.
func (x *idIndex) slot(t *Tree, hash uint64, same func(c *chunk, k int) bool) uint64 {
	mask := uint64(len(x.slots) - 1)
	for s := hash & mask; ; s = (s + 1) & mask {
		i := uint32(x.slots[s])
		if i == 0 {
			return s
		}
		if x.slots[s]>>32 != hash || i > t.committed {
			continue
		}
		if same(t.at(i - 1)) {
			return s
		}
	}
}

// grow adds the rows of t that are not in the index yet. The lock is held.
func (x *idIndex) grow(t *Tree) {
	if x.n >= t.committed {
		return
	}
	if want := x.used + int(t.committed-x.n); len(x.slots)*2 < want*3 {
		x.resize(want)
	}
	var packed, id, other [64]byte
	for ord := x.n; ord < t.committed; {
		c, k := t.at(ord)
		same := func(d *chunk, j int) bool {
			return bytes.Equal(c.appendID(id[:0], k), d.appendID(other[:0], j))
		}
		for ; k < c.len() && ord < t.committed; k, ord = k+1, ord+1 {
			if t.classes[ord]&classCommit != 0 {
				continue
			}
			key := c.appendPackedID(packed[:0], k)
			if len(key) == 0 {
				continue
			}
			hash := x.hash(key)
			s := x.slot(t, hash, same)
			if before := uint32(x.slots[s]); before == 0 {
				x.used++
			} else if x.doubled++; len(x.doubles) < MaxDiagnostics {
				x.doubles = append(x.doubles, before-1)
			}
			x.slots[s] = hash<<32 | uint64(ord+1)
		}
	}
	x.n = t.committed
}

// resize makes room for want rows in all. Those that are in stay in: no two of them have one id.
func (x *idIndex) resize(want int) {
	size := 64
	for size*2 < want*3 {
		size *= 2
	}
	old := x.slots
	x.slots = make([]uint64, size)
	mask := uint64(size - 1)
	for _, e := range old {
		if e == 0 {
			continue
		}
		s := e >> 32 & mask
		for x.slots[s] != 0 {
			s = (s + 1) & mask
		}
		x.slots[s] = e
	}
}

// Ordinal returns the ordinal of an entry by its id, or by a prefix that no other entry's id has, but for those that
// were made of it ("id.model"). Where ids are double the last entry answers. Errors: ErrNotFound, ErrAmbiguous. A
// prefix costs a look at every id, a whole id does not.
func (t *Tree) Ordinal(idOrPrefix string) (uint64, error) {
	t.ready()
	i, err := t.find(idOrPrefix)
	return uint64(i), err
}

func (t *Tree) find(idOrPrefix string) (uint32, error) {
	if idOrPrefix == "" {
		return noRow, fmt.Errorf("entry %q: %w", idOrPrefix, ErrNotFound)
	}
	if i, ok := t.lookup(idOrPrefix); ok {
		return i, nil
	}
	found := noRow
	var ids []string
	prefix := []byte(idOrPrefix)
	var buf []byte
	for i := range t.n {
		if t.class(i)&classCommit != 0 {
			continue
		}
		c, k := t.at(i)
		if buf = c.appendID(buf[:0], k); !bytes.HasPrefix(buf, prefix) {
			continue
		}
		id, n := string(buf), len(ids)
		if n > 0 && shortid.Derived(id, ids[n-1]) {
			continue
		}
		if found = i; n > 0 && shortid.Derived(ids[n-1], id) {
			ids[n-1] = id
		} else if n == 0 || id != ids[n-1] {
			ids = append(ids, id)
		}
		if len(ids) > shortid.Named {
			break
		}
	}
	switch {
	case len(ids) == 0:
		return noRow, fmt.Errorf("entry %q: %w", idOrPrefix, ErrNotFound)
	case slices.ContainsFunc(ids, func(id string) bool { return id != ids[0] }):
		return noRow, fmt.Errorf("entry %q: %w: %s", idOrPrefix, ErrAmbiguous, shortid.Candidates(ids))
	}
	return found, nil
}
