package vfstest

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/vfs"
)

// sum identifies bytes: the first half of their SHA-256.
type sum [2]uint64

func sumOf[T string | []byte](p T) sum {
	h := sha256.Sum256([]byte(p))
	return sum{binary.LittleEndian.Uint64(h[:]), binary.LittleEndian.Uint64(h[8:])}
}

// with combines two sums; the order counts.
func (s sum) with(o sum) sum {
	const m1, m2 = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f
	hi, lo := bits.Mul64(s[0]^o[0]+m1, m1|1)
	s[0] = bits.RotateLeft64(s[0], 23)*m2 + hi ^ lo
	hi, lo = bits.Mul64(s[1]^o[1]+m2, m2|1)
	s[1] = bits.RotateLeft64(s[1], 41)*m1 + hi ^ lo
	return s
}

// whole returns content that is durable.
func whole(b []byte) *content {
	return &content{mem: b, next: b, disk: b, sum: sumOf(b), summed: true}
}

// identity returns c's sum; all of c is durable.
func (c *content) identity() sum {
	if !c.summed {
		c.sum, c.summed = sumOf(c.disk), true
	}
	return c.sum
}

// Point is a disk at one moment: its durable and its unsynced part. It does not change when the file system does.
type Point struct {
	names    []*name // by path
	parents  []int   // of each, its directory's index; -1 = the root
	inodes   []*inode
	contents []*content // of each inode at that moment
}

func (s *CrashFS) point() *Point {
	p := &Point{names: make([]*name, 0, len(s.names))}
	for _, n := range s.names {
		p.names = append(p.names, n)
	}
	slices.SortFunc(p.names, func(a, b *name) int { return strings.Compare(a.path, b.path) })
	for _, n := range p.names {
		p.note(n.disk)
		for _, i := range n.since {
			p.note(i)
		}
	}
	return p
}

func (p *Point) note(n *inode) {
	if n != nil && !n.dir && !slices.Contains(p.inodes, n) {
		p.inodes, p.contents = append(p.inodes, n), append(p.contents, n.content)
	}
}

// link finds the directory of each name.
func (p *Point) link() {
	if p.parents != nil {
		return
	}
	at := make(map[string]int, len(p.names))
	p.parents = make([]int, len(p.names))
	for i, n := range p.names {
		at[n.path], p.parents[i] = i, -1
		if n.dir != "." {
			p.parents[i] = at[n.dir] // a directory sorts before its content
		}
	}
}

// Image is a disk after a crash: all of it is durable. Immutable, and small because images share files.
type Image struct {
	files []imageFile
	sum   sum
	bytes int
}

// imageFile is one name of an image.
type imageFile struct {
	path string
	hash sum
	node int      // files with the same number are one file; -1 = a directory
	held *content // of a file
}

// Sum identifies the image: equal ones have the same names for the same contents.
func (m *Image) Sum() [2]uint64 { return m.sum }

// Size returns the total length of its files, in bytes.
func (m *Image) Size() int { return m.bytes }

// String lists the image's files.
func (m *Image) String() string {
	var b strings.Builder
	for _, f := range m.files {
		b.WriteString(f.path)
		if f.node < 0 {
			b.WriteString("/")
		} else {
			b.WriteString(" ")
			b.WriteString(itoa(len(f.held.disk)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Boot starts a file system from an image.
func Boot(m *Image) *CrashFS {
	s := &CrashFS{names: make(map[string]*name, len(m.files)+4)}
	names, nodes := make([]name, len(m.files)), make([]inode, len(m.files))
	var files [32]*inode
	byNode := files[:0]
	for i, f := range m.files {
		var n *inode
		if f.node >= 0 && f.node < len(byNode) {
			n = byNode[f.node]
			n.links++
		} else {
			s.last++
			n = &nodes[i]
			*n = inode{id: s.last, dir: f.node < 0, links: 1, content: f.held}
			if f.node >= 0 {
				byNode = append(byNode, n)
			}
		}
		names[i] = name{path: f.path, dir: vfs.Folder(f.path), hash: f.hash, disk: n}
		s.names[f.path] = &names[i]
	}
	return s
}

// Fork starts a file system from the point itself, with unsynced data still in memory: the processes died without a
// power loss.
func (p *Point) Fork() *CrashFS {
	s := &CrashFS{names: make(map[string]*name, len(p.names))}
	twin := make(map[*inode]*inode, len(p.names))
	of := func(n *inode) *inode {
		if n == nil {
			return nil
		}
		if twin[n] == nil {
			s.last = max(s.last, n.id)
			twin[n] = &inode{id: n.id, dir: n.dir, content: nothing}
		}
		return twin[n]
	}
	for _, n := range p.names {
		c := &name{path: n.path, dir: n.dir, hash: n.hash, disk: of(n.disk)}
		for _, to := range n.since {
			c.since = append(c.since, of(to))
		}
		if now := c.now(); now != nil {
			now.links++
		}
		s.names[n.path] = c
	}
	for i, n := range p.inodes {
		of(n).content = p.contents[i]
	}
	return s
}

// build makes the image in which named selects the inode of each name (an index into its history, 0 = the durable one)
// and held the content of each file.
func (p *Point) build(named []int, held []*content) *Image {
	p.link()
	m := &Image{files: make([]imageFile, 0, len(p.names))}
	present := make([]bool, len(p.names))
	var numbers [32]int
	nodes := numbers[:0]
	for i, n := range p.names {
		to := n.disk
		if named[i] > 0 {
			to = n.since[named[i]-1]
		}
		if to == nil || p.parents[i] >= 0 && !present[p.parents[i]] {
			continue
		}
		f := imageFile{path: n.path, hash: n.hash, node: -1}
		m.sum = m.sum.with(n.hash)
		if to.dir {
			present[i] = true
			m.files = append(m.files, f)
			continue
		}
		at := slices.Index(p.inodes, to)
		f.held = held[at]
		if f.node = slices.Index(nodes, at); f.node < 0 {
			f.node = len(nodes)
			nodes = append(nodes, at)
		}
		m.sum = m.sum.with(f.held.identity()).with(sum{uint64(f.node), 1})
		m.bytes += len(f.held.disk)
		m.files = append(m.files, f)
	}
	return m
}
