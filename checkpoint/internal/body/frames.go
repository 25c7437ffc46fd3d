package body

import (
	"bytes"
	"slices"

	"github.com/coppice-go/coppice/codec"
)

const (
	longest   = 1 << 20 // the longest line of a run: longer ones are not kept twice
	mergeRuns = 4       // the number of small runs that are merged
	leastRun  = 1 << 10 // the smallest run between others
)

// The lists of a body. The key of a line determines its list.
const (
	Pool = iota
	Tail
	Blobs
	Lineage
	lists
)

// runSize is the minimum size of a run of a list: smaller frames compress worse, larger ones are compressed again more
// often. The lineage is short and loses its oldest commit with every commit.
var runSize = [lists]int{Pool: 16 << 10, Tail: 16 << 10, Blobs: 16 << 10, Lineage: 3 << 10}

// run is some lines of a list, and their frame.
type run struct {
	lines [][]byte
	bytes int
	frame []byte
}

// Memo is the compressed data of one body, for use by the next. It keeps the lines of its runs, which must not change
// any more. The zero value is empty.
type Memo struct {
	runs [lists]map[uint64]run // by the key of the first line
}

// Packer makes the frames of one body. It is used once.
type Packer struct {
	Loose []byte // bytes of the body that are not in a run; Lines may empty it
	Bytes int    // of the body, without those in Loose
	known *Memo
	used  *Memo
	out   []byte
}

// NewPacker starts a body similar to that of known; nil = the body is one frame, and nothing is kept. loose and out are
// buffers to write to.
func NewPacker(known *Memo, loose, out []byte) *Packer {
	return &Packer{known: known, used: &Memo{}, Loose: loose[:0], out: out[:0]}
}

// Lines appends lines to the body. Each has a key, unique within its list. A line that is unchanged since the previous
// body costs a comparison, or nothing if it is the same slice.
func (p *Packer) Lines(list int, keys []uint64, lines [][]byte) {
	if p.known == nil {
		p.spread(lines)
		return
	}
	start := 0
	for i := 0; i < len(lines); {
		r, ok := p.known.runs[list][keys[i]]
		if !ok || !r.leads(lines[i:]) {
			i++
			continue
		}
		p.fresh(list, keys[start:i], lines[start:i], true)
		if n, size := p.several(list, keys[i:], lines[i:]); n > 0 {
			p.run(list, keys[i], lines[i:i+n], size)
			i += n
		} else {
			p.frame(list, keys[i], r)
			i += len(r.lines)
		}
		start = i
	}
	p.fresh(list, keys[start:], lines[start:], false)
}

// several counts the lines at the start, and their bytes, that are in several small adjacent runs: those are merged
// into one, which compresses better. The lineage is not merged: it loses its oldest line too soon.
func (p *Packer) several(list int, keys []uint64, lines [][]byte) (n, size int) {
	if list == Lineage {
		return 0, 0
	}
	for range mergeRuns {
		if n == len(lines) {
			return 0, 0
		}
		r, ok := p.known.runs[list][keys[n]]
		if !ok || r.bytes >= 2*runSize[list] || !r.leads(lines[n:]) {
			return 0, 0
		}
		n, size = n+len(r.lines), size+r.bytes
	}
	return n, size
}

// leads reports whether lines begin with those of the run.
func (r run) leads(lines [][]byte) bool {
	if len(lines) < len(r.lines) {
		return false
	}
	for i, line := range r.lines {
		if !bytes.Equal(line, lines[i]) {
			return false
		}
	}
	return true
}

// fresh makes runs of lines that were in none. Lines that do not fill one become loose bytes, unless a run follows:
// then they are the rest of a run whose front was dropped, and will stay for a while.
func (p *Packer) fresh(list int, keys []uint64, lines [][]byte, followed bool) {
	start, size := 0, 0
	for i, line := range lines {
		if size += len(line); size >= runSize[list] {
			p.run(list, keys[start], lines[start:i+1], size)
			start, size = i+1, 0
		}
	}
	if followed && list != Lineage && size >= leastRun {
		p.run(list, keys[start], lines[start:], size)
		return
	}
	p.spread(lines[start:])
}

// run makes a run of lines, size bytes together.
func (p *Packer) run(list int, key uint64, lines [][]byte, size int) {
	if size > longest {
		p.spread(lines)
		return
	}
	r := run{lines: lines[:len(lines):len(lines)], bytes: size}
	raw := make([]byte, 0, size)
	for _, l := range lines {
		raw = append(raw, l...)
	}
	if list == Lineage { // its lines are encoded again for every body
		r.lines = recut(raw, lines)
	}
	r.frame = codec.Compress(nil, raw, codec.Default)
	p.frame(list, key, r)
}

// recut returns lines as views of raw, which contains them end to end.
func recut(raw []byte, lines [][]byte) [][]byte {
	own := make([][]byte, len(lines))
	for i, l := range lines {
		own[i], raw = raw[:len(l):len(l)], raw[len(l):]
	}
	return own
}

// spread appends lines to the loose bytes.
func (p *Packer) spread(lines [][]byte) {
	p.Loose = slices.Grow(p.Loose, size(lines))
	for _, l := range lines {
		p.Loose = append(p.Loose, l...)
	}
}

// frame appends a run's frame.
func (p *Packer) frame(list int, key uint64, r run) {
	p.flush()
	p.out = append(p.out, r.frame...)
	p.Bytes += r.bytes
	if p.used.runs[list] == nil {
		p.used.runs[list] = make(map[uint64]run, len(p.known.runs[list])+1)
	}
	p.used.runs[list][key] = r
}

// flush makes a frame of the loose bytes.
func (p *Packer) flush() {
	if len(p.Loose) == 0 {
		return
	}
	level := codec.Fast
	if p.known == nil {
		level = codec.Default
	}
	p.out = codec.Compress(p.out, p.Loose, level)
	p.Bytes += len(p.Loose)
	p.Loose = p.Loose[:0]
}

// Frames ends the body: it returns its frames, and the memo for the next one.
func (p *Packer) Frames() ([]byte, *Memo) {
	p.flush()
	if p.known == nil {
		return p.out, nil
	}
	return p.out, p.used
}
