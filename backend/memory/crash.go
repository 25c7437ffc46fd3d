package memory

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// sector is the unit, in bytes, that a disk writes whole or not at all.
const sector = 512

// crash selects, object by object in key order, the state that a power loss leaves.
func (s *store) crash(seed uint64) *store {
	s.mu.Lock()
	defer s.mu.Unlock()
	rng := rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
	left := newStore(s.turn != nil)
	left.ticks = s.ticks
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		o := s.objects[key]
		st := o.now
		if i := rng.IntN(len(o.past) + 1); i < len(o.past) {
			st = o.past[i]
		}
		if st.gone {
			continue
		}
		kept := &state{data: st.data[:len(st.data):len(st.data)], version: st.version, mod: st.mod}
		if len(st.doubt) > 0 {
			kept.data = tear(rng, slices.Clone(st.data), st.doubt)
			kept.version = bodyVersion(kept.data)
		}
		left.objects[key] = &object{now: kept}
	}
	return left
}

// tear processes the unsynced pieces, the last first. It keeps a piece, cuts it off (only at the end of the object), or
// zeroes the sectors that never reached the disk.
func tear(rng *rand.Rand, data []byte, doubt []span) []byte {
	for _, d := range slices.Backward(doubt) {
		at := d.from + rng.Int64N(d.to-d.from)
		switch rng.IntN(4) {
		case 0: // it was on disk
		case 1:
			if d.to == int64(len(data)) {
				data = data[:at]
				continue
			}
			clear(data[at:d.to])
		case 2: // the size was on disk, the bytes from here on were not
			clear(data[at:d.to])
		case 3: // sectors are written in any order
			for from := d.from; from < d.to; from = from - from%sector + sector {
				if to := min(from-from%sector+sector, d.to); rng.IntN(2) == 0 {
					clear(data[from:to])
				}
			}
		}
	}
	return slices.Clip(data)
}
