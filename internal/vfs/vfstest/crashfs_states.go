package vfstest

import (
	"iter"
	"math/rand/v2"
	"strconv"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Spread bounds the number of states after a crash that are examined. The extremes are first: all lost, all kept, and
// each change alone lost or kept.
type Spread struct {
	Contents int // for each file that is not wholly durable
	States   int // for each crash
}

// States returns images that a crash at this point may leave: all of them if they fit into the spread, else the
// extremes and, up to the bound, others that the seed selects. Some may be equal.
func (p *Point) States(sp Spread, seed uint64) iter.Seq[*Image] {
	return func(yield func(*Image) bool) {
		e := p.dimensions(sp)
		if e.product > 0 && e.product <= sp.States {
			e.all(yield)
			return
		}
		e.some(sp.States, seed, yield)
	}
}

// Durable returns the image without any unsynced change.
func (p *Point) Durable() *Image {
	e := p.dimensions(Spread{Contents: 1})
	return e.image()
}

// Kept returns the image with all changes: the disk after a clean shutdown, or a killed process.
func (p *Point) Kept() *Image {
	e := p.dimensions(Spread{Contents: 2})
	for d := range e.sizes {
		e.choose(d, e.kept(d))
	}
	return e.image()
}

// enumeration enumerates the states after a crash: one dimension for each name and each file that is not durable.
type enumeration struct {
	p       *Point
	named   []int
	held    []*content
	names   []int        // dimension -> index of the name
	files   []int        // dimension, after those of the names -> index of the inode
	after   [][]*content // of each of files
	sizes   []int        // of each dimension
	product int          // of all sizes; 0 = too many to count
}

func (p *Point) dimensions(sp Spread) *enumeration {
	e := &enumeration{p: p, named: make([]int, len(p.names)), held: make([]*content, len(p.inodes)), product: 1}
	grow := func(n int) {
		e.sizes = append(e.sizes, n)
		if e.product *= n; e.product > 1<<30 {
			e.product = 0
		}
	}
	for i, n := range p.names {
		if len(n.since) > 0 {
			e.names = append(e.names, i)
			grow(1 + len(n.since))
		}
	}
	for i, c := range p.contents {
		if len(c.since) == 0 {
			e.held[i] = c.durable()
			continue
		}
		after := c.crash(sp.Contents)
		e.held[i] = after[0]
		if len(after) > 1 {
			e.files, e.after = append(e.files, i), append(e.after, after)
			grow(len(after))
		}
	}
	return e
}

// choose sets one dimension; 0 is the durable state.
func (e *enumeration) choose(d, to int) {
	if d < len(e.names) {
		e.named[e.names[d]] = to
		return
	}
	d -= len(e.names)
	e.held[e.files[d]] = e.after[d][to]
}

// kept returns the choice of a dimension without a loss.
func (e *enumeration) kept(d int) int {
	if d < len(e.names) {
		return e.sizes[d] - 1
	}
	return 1
}

func (e *enumeration) image() *Image { return e.p.build(e.named, e.held) }

// all yields the whole product.
func (e *enumeration) all(yield func(*Image) bool) {
	at := make([]int, len(e.sizes))
	for {
		if !yield(e.image()) {
			return
		}
		d := 0
		for ; d < len(at); d++ {
			if at[d]++; at[d] < e.sizes[d] {
				e.choose(d, at[d])
				break
			}
			at[d] = 0
			e.choose(d, 0)
		}
		if d == len(at) {
			return
		}
	}
}

// some yields the extremes, then selected states, n in all.
func (e *enumeration) some(n int, seed uint64, yield func(*Image) bool) {
	give := func() bool {
		n--
		return n >= 0 && yield(e.image())
	}
	for _, keep := range []bool{false, true} {
		base := func(d int) {
			if keep {
				e.choose(d, e.kept(d))
			} else {
				e.choose(d, 0)
			}
		}
		for d := range e.sizes {
			base(d)
		}
		if !give() {
			return
		}
		for d, size := range e.sizes {
			for to := range min(size, 5) { // of a file: lost, kept, size without data, with stale data, half
				e.choose(d, to)
				if !give() {
					return
				}
			}
			base(d)
		}
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	for {
		for d, size := range e.sizes {
			e.choose(d, rng.IntN(size))
		}
		if !give() {
			return
		}
	}
}

const (
	sector = 512
	page   = 4096
)

// crash returns the possible contents of a file after a crash, at most limit and at least one: the durable one,
// everything written, its size without the data, or with the earlier content of the blocks, half of it, the contents in
// between, and then forms torn at sectors, pages and single bytes.
func (c *content) crash(limit int) []*content {
	limit = max(limit, 1)
	if c.asked >= limit {
		return c.after[:min(limit, len(c.after))]
	}
	t := tear{old: c.disk, now: c.next, freed: c.freed, limit: limit, seen: map[sum]bool{}}
	t.add(c.disk)
	if t.add(c.next); len(t.out) == 1 && limit > 1 { // equal to the durable content, unlike those in between
		t.out = append(t.out, t.out[0])
	}
	t.zeros()
	t.stale()
	t.half()
	for _, b := range c.since[:len(c.since)-1] {
		t.add(b)
	}
	for _, unit := range []int{sector, page} {
		t.ends(unit)
		t.subsets(unit)
	}
	t.chosen()
	c.after, c.asked = t.out, limit
	return c.after
}
