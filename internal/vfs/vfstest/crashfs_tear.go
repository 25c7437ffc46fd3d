package vfstest

import (
	"bytes"
	"math/rand/v2"
)

// tear collects the possible contents of a file after a crash between two contents.
type tear struct {
	old, now []byte
	freed    []byte // earlier content of blocks that the file was given
	limit    int
	seen     map[sum]bool
	out      []*content
}

// add adds a content unless it is known; false once there are enough.
func (t *tear) add(b []byte) bool {
	if len(t.out) >= t.limit {
		return false
	}
	c := whole(b)
	if !t.seen[c.sum] {
		t.seen[c.sum] = true
		t.out = append(t.out, c)
	}
	return true
}

// base returns the old content at a size, with zeros after its end.
func (t *tear) base(size int) []byte {
	b := make([]byte, size)
	copy(b, t.old)
	return b
}

// zeros adds the size without the data.
func (t *tear) zeros() { t.add(t.base(len(t.now))) }

// stale adds the size without the data, with the earlier content of the new blocks: bytes of a removed file, or of an
// earlier part of this one.
func (t *tear) stale() { t.add(t.given(len(t.now))) }

// given returns the old content at a size, with earlier bytes after its end, from sector to sector.
func (t *tear) given(size int) []byte {
	b := t.base(size)
	from := t.freed
	if len(t.old) > 0 {
		from = t.old
	}
	if len(from) == 0 {
		return b
	}
	whole := (len(from) + sector - 1) / sector * sector
	for at := len(t.old); at < size; {
		src := at % whole
		if src >= len(from) {
			at = (at/sector + 1) * sector // the end of its last sector is empty
			continue
		}
		at += copy(b[at:], from[src:])
	}
	return b
}

// half adds the content without the second half of the added or changed bytes.
func (t *tear) half() {
	from, to := t.span()
	b := t.base(len(t.now))
	copy(b[from:], t.now[from:min((from+to)/2, len(t.now))])
	if len(t.now) > len(t.old) {
		b = b[:max((from+to)/2, len(t.old))]
	}
	t.add(b)
}

// span returns where the contents differ.
func (t *tear) span() (from, to int) {
	n := min(len(t.old), len(t.now))
	for from < n && t.old[from] == t.now[from] {
		from++
	}
	return from, max(len(t.old), len(t.now))
}

// changed returns the units in which the contents differ.
func (t *tear) changed(unit int) (units []int) {
	from, to := t.span()
	for at := from / unit * unit; at < to; at += unit {
		if !bytes.Equal(cut(t.old, at, unit), cut(t.now, at, unit)) {
			units = append(units, at)
		}
	}
	return units
}

func cut(b []byte, at, n int) []byte {
	return b[min(at, len(b)):min(at+n, len(b))]
}

// ends adds the contents that stop at a unit, with everything before it written.
func (t *tear) ends(unit int) {
	small, large := min(len(t.old), len(t.now)), max(len(t.old), len(t.now))
	from := t.now
	if len(t.old) > len(t.now) { // a half-done truncation
		from = append(bytes.Clone(t.now), t.old[len(t.now):]...)
	}
	for at := (small/unit + 1) * unit; at < large; at += unit {
		if !t.add(from[:at:at]) {
			return
		}
	}
}

// subsetsMax is the number of units up to which all subsets are tried.
const subsetsMax = 5

// subsets adds contents with some of the changed units: all subsets of a few, else one alone and all but one.
func (t *tear) subsets(unit int) {
	units := t.changed(unit)
	n := len(units)
	if n <= subsetsMax {
		for mask := range 1 << n {
			if !t.add(t.with(t.base(len(t.now)), units, unit, func(i int) bool { return mask>>i&1 != 0 }, len(t.now))) {
				return
			}
		}
		return
	}
	for i := range units {
		if !t.add(t.with(t.base(len(t.now)), units, unit, func(k int) bool { return k == i }, len(t.now))) ||
			!t.add(t.with(t.base(len(t.now)), units, unit, func(k int) bool { return k != i }, len(t.now))) {
			return
		}
	}
}

// with returns b, the old content at a size, with some of the changed units of the new.
func (t *tear) with(b []byte, units []int, unit int, arrived func(i int) bool, size int) []byte {
	for i, at := range units {
		if arrived(i) && at < size {
			n := copy(b[at:min(at+unit, size)], cut(t.now, at, unit))
			clear(b[at+n : min(at+unit, size)])
		}
	}
	return b
}

// chosen adds contents selected by a hash of the bytes: a subset of the units and any size between, at a unit or in the
// middle of one.
func (t *tear) chosen() {
	small, large := min(len(t.old), len(t.now)), max(len(t.old), len(t.now))
	last := whole(t.now).sum
	rng := rand.New(rand.NewPCG(last[0], uint64(len(t.now))))
	for range 4 * t.limit { // most are new
		unit := sector
		if rng.IntN(4) == 0 {
			unit = page
		}
		size := small + rng.IntN(large-small+1)
		b := t.now
		if len(t.now) < len(t.old) {
			b = append(bytes.Clone(t.now), t.old[len(t.now):]...)
		}
		if rng.IntN(2) == 0 {
			units := t.changed(unit)
			most := rng.IntN(4)
			under := t.base
			if rng.IntN(2) == 0 {
				under = t.given
			}
			b = t.with(under(large), units, unit, func(int) bool { return rng.IntN(4) <= most }, large)
		}
		if !t.add(b[:size:size]) {
			return
		}
	}
}
