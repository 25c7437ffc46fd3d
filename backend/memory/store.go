package memory

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"github.com/coppice-go/coppice/backend"
)

// pastMax bounds the number of older states of an object that a crash may restore.
const pastMax = 16

// store is the objects of one or more handles.
type store struct {
	mu      sync.Mutex
	objects map[string]*object
	ticks   int64         // the store's clock: one millisecond for each write, so that equal runs are equal
	turn    chan struct{} // held during a write by an Appender's writers; nil = not needed
	hook    Hook
}

// object is the visible state, and the states that a crash may restore.
type object struct {
	now  *state
	past []*state // states that a crash may leave instead, oldest first; empty = now is durable
}

// state is one content of an object. Its bytes are never changed, so that reads copy them without the lock; doubt is
// guarded by the store's lock.
type state struct {
	data    []byte
	gone    bool // no object
	version backend.Version
	mod     time.Time
	doubt   []span // bytes that no sync has confirmed, ascending
}

type span struct{ from, to int64 }

func newStore(appender bool) *store {
	s := &store{objects: map[string]*object{}}
	if appender {
		s.turn = make(chan struct{}, 1)
	}
	return s
}

func (st *state) info(key string) backend.Info {
	return backend.Info{Key: key, Size: int64(len(st.data)), Version: st.version, ModTime: st.mod}
}

// look returns the visible state of an object; nil = none.
func (s *store) look(key string) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[key]; o != nil && !o.now.gone {
		return o.now
	}
	return nil
}

func (s *store) all(prefix string) []backend.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	var infos []backend.Info
	for key, o := range s.objects {
		if strings.HasPrefix(key, prefix) && !o.now.gone {
			infos = append(infos, o.now.info(key))
		}
	}
	return infos
}

// next returns the next state; the lock is held.
func (s *store) next(data []byte, version backend.Version, doubt []span) *state {
	s.ticks++
	return &state{data: data, version: version, doubt: doubt, mod: time.UnixMilli(s.ticks).UTC()}
}

// install makes a state visible and keeps the replaced one; the lock is held.
func (s *store) install(key string, st *state) {
	o := s.objects[key]
	if o == nil {
		o = &object{now: &state{gone: true}}
		s.objects[key] = o
	}
	if len(o.past) == pastMax {
		o.past = append(o.past[:1], o.past[2:]...) // the oldest is the durable one
	}
	o.past = append(o.past, o.now)
	o.now = st
}

// harden makes st the oldest state that a crash may restore; the lock is held.
func (s *store) harden(key string, st *state) {
	o := s.objects[key]
	if o == nil {
		return
	}
	if o.now != st {
		for i, p := range o.past {
			if p == st {
				o.past = o.past[i:]
				return
			}
		}
		return // a newer state is durable already
	}
	o.past = nil
	if st.gone {
		delete(s.objects, key)
	}
}

// bodyVersion is a content hash, like S3's ETag: equal bodies, equal versions.
func bodyVersion(p []byte) backend.Version {
	sum := sha256.Sum256(p)
	return backend.Version(hex.EncodeToString(sum[:16]))
}

// changeVersion derives the version after an append or a cut without reading the whole object.
func changeVersion(v backend.Version, off int64, p []byte) backend.Version {
	h := sha256.New()
	h.Write([]byte(v))
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(off)))
	h.Write(p)
	return backend.Version(hex.EncodeToString(h.Sum(nil)[:16]))
}

// without removes [from, to) from spans.
func without(spans []span, from, to int64) []span {
	var rest []span
	for _, d := range spans {
		if left := (span{d.from, min(d.to, from)}); left.from < left.to {
			rest = append(rest, left)
		}
		if right := (span{max(d.from, to), d.to}); right.from < right.to {
			rest = append(rest, right)
		}
	}
	return rest
}
