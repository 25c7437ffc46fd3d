package model

import (
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"
)

// key is a state packed into bits: two states are equal iff their keys are. Keys are stored whole, without hashing, so
// that distinct states never collide.
type key [6]uint64

// event is a transition between states: its kind in the model, and its numbers.
type event struct {
	what uint8 // below 64
	a, b uint8
}

// space is a model as the search uses it; K is the stored form of a state.
type space[S any, K comparable] struct {
	begin S
	pack  func(s *S) K
	open  func(k K) S
	next  func(s *S, emit func(t *S, e event))
	wrong func(s *S) string // "" = every invariant holds
}

// result is the result of a search.
type result struct {
	states, edges int64
	depth         int
	wrong         string  // the first violation; "" = none
	trace         []event // a shortest path to it
	whole         bool    // every state within the model's bounds was visited
	events        uint64  // a bit for each kind that happened: a kind that never happens proves nothing
}

const (
	shardBits = 6
	shards    = 1 << shardBits
)

// shard is a part of the set of visited states: an open hash table of indexes into a list.
type shard[K comparable] struct {
	mu    sync.Mutex
	seed  maphash.Seed
	table []uint64 // 1 + the index in keys, and 32 bits of the hash above it; 0 = free
	keys  []K
	from  []uint32 // the predecessor of each: place<<shardBits | shard
	_     [64]byte // a cache line between neighbours
}

// add adds a key; false if it exists already.
func (s *shard[K]) add(k *K, h uint64, from uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if 4*(len(s.keys)+1) > 3*len(s.table) {
		s.grow()
	}
	mask := uint64(len(s.table) - 1)
	for i := h >> shardBits & mask; ; i = (i + 1) & mask {
		n := s.table[i]
		if n == 0 {
			s.keys, s.from = append(s.keys, *k), append(s.from, from)
			s.table[i] = h>>32<<32 | uint64(len(s.keys))
			return true
		}
		if n>>32 == h>>32 && s.keys[uint32(n)-1] == *k {
			return false
		}
	}
}

func (s *shard[K]) grow() {
	s.table = make([]uint64, max(64, 2*len(s.table)))
	mask := uint64(len(s.table) - 1)
	for n := range s.keys {
		h := maphash.Comparable(s.seed, s.keys[n])
		i := h >> shardBits & mask
		for s.table[i] != 0 {
			i = (i + 1) & mask
		}
		s.table[i] = h>>32<<32 | uint64(n+1)
	}
}

// search visits every state that the model reaches, level by level, so that the first violation has a shortest path.
// workers 0 = one for each core. limit bounds the states. The counts are those of whole levels, so that they are the
// same in each run.
func search[S any, K comparable](sp *space[S, K], workers int, limit int64) result {
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	x := &running[S, K]{space: sp, seed: maphash.MakeSeed(), limit: limit}
	for i := range x.seen {
		x.seen[i].seed = x.seed
	}
	first := sp.pack(&sp.begin)
	h := maphash.Comparable(x.seed, first)
	x.seen[h%shards].add(&first, h, 0)
	x.states.Store(1)
	var lo, hi [shards]int
	for r := (result{}); ; r.depth++ {
		more := false
		for i := range x.seen {
			lo[i], hi[i] = hi[i], len(x.seen[i].keys)
			more = more || hi[i] > lo[i]
		}
		if x.found == nil {
			r.states, r.edges, r.events = x.states.Load(), x.edges.Load(), x.events.Load()
		}
		if !more || x.found != nil || r.states >= limit {
			r.whole = !more && x.found == nil
			if x.found != nil {
				r.wrong, r.trace = x.found.wrong, x.trace(first)
			}
			return r
		}
		x.level(&lo, &hi, workers)
	}
}

// running is a search in progress.
type running[S any, K comparable] struct {
	*space[S, K]
	seed          maphash.Seed
	seen          [shards]shard[K]
	states, edges atomic.Int64
	events        atomic.Uint64
	limit         int64

	mu    sync.Mutex
	found *violation[K]
	over  atomic.Bool
}

// violation is a state in which an invariant does not hold.
type violation[K comparable] struct {
	wrong string
	last  K
	from  uint32
	by    event
}

// level expands the states that were added at the previous level: keys lo to hi of each shard.
func (x *running[S, K]) level(lo, hi *[shards]int, workers int) {
	const chunk = 512
	type job struct{ shard, lo, hi int }
	var jobs []job
	for i := range lo {
		for at := lo[i]; at < hi[i]; at += chunk {
			jobs = append(jobs, job{i, at, min(at+chunk, hi[i])})
		}
	}
	var lists [shards][]K // present keys never change; the list of a shard may move when it grows
	for i := range x.seen {
		lists[i] = x.seen[i].keys[:hi[i]]
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, len(jobs)) {
		wg.Go(func() {
			for !x.over.Load() {
				n := int(next.Add(1)) - 1
				if n >= len(jobs) || x.states.Load() >= x.limit {
					return
				}
				j := jobs[n]
				for at := j.lo; at < j.hi && !x.over.Load(); at++ {
					x.expand(lists[j.shard][at], uint32(at)<<shardBits|uint32(j.shard))
				}
			}
		})
	}
	wg.Wait()
}

// expand adds the successors of one state.
func (x *running[S, K]) expand(k K, place uint32) {
	s := x.open(k)
	edges, added, events := int64(0), int64(0), uint64(0)
	x.next(&s, func(t *S, e event) {
		edges++
		events |= 1 << e.what
		tk := x.pack(t)
		h := maphash.Comparable(x.seed, tk)
		if x.over.Load() || !x.seen[h%shards].add(&tk, h, place) {
			return
		}
		added++
		if wrong := x.wrong(t); wrong != "" {
			x.stop(&violation[K]{wrong, tk, place, e})
		}
	})
	x.edges.Add(edges)
	x.states.Add(added)
	if events&^x.events.Load() != 0 {
		x.events.Or(events)
	}
}

func (x *running[S, K]) stop(v *violation[K]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.found == nil {
		x.found = v
		x.over.Store(true)
	}
}

// trace follows the predecessors from the violation to the start, and finds the events by repeating them.
func (x *running[S, K]) trace(first K) []event {
	out := []event{x.found.by}
	place := x.found.from
	for {
		s := &x.seen[place%shards]
		k := s.keys[place>>shardBits]
		if k == first {
			break
		}
		place = s.from[place>>shardBits]
		before := x.open(x.seen[place%shards].keys[place>>shardBits])
		done := false
		x.next(&before, func(t *S, e event) {
			if !done && x.pack(t) == k {
				done = true
				out = append(out, e)
			}
		})
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// bitWriter packs numbers into a key.
type bitWriter struct {
	k key
	n uint
}

// put adds a number of at most 32 bits, which must fit.
func (w *bitWriter) put(v uint64, width uint) {
	i, at := w.n/64, w.n%64
	w.k[i] |= v << at
	if at+width > 64 {
		w.k[i+1] |= v >> (64 - at)
	}
	w.n += width
}

// bitReader returns them in the same order.
type bitReader struct {
	k *key
	n uint
}

func (r *bitReader) get(width uint) uint8 {
	i, at := r.n/64, r.n%64
	v := r.k[i] >> at
	if at+width > 64 {
		v |= r.k[i+1] << (64 - at)
	}
	r.n += width
	return uint8(v & (1<<width - 1))
}

func (r *bitReader) flag() bool { return r.get(1) == 1 }
