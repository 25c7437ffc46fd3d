package transcript

import (
	"time"

	"github.com/coppice-go/coppice/codec"
)

// node makes one node.
func (t *Tree) node(i uint32) Node {
	t.ready()
	c, k := t.at(i)
	n := c.node(k)
	n.ID, n.ParentID, n.Preview, n.Label = t.id(i), t.id(t.parent(i)), c.preview(k), t.label(i)
	n.Ordinal, n.OnPath = uint64(i), t.isOnPath(i)
	t.amendNode(i, &n)
	return n
}

// node is what the columns of a chunk hold of a node; the caller adds the rest.
func (c *chunk) node(k int) (n Node) {
	var ms int64
	var flags uint8
	if c.sk != nil {
		n.Type, n.Role = c.sk.Kind(k)
		n.Size, ms, flags = int(c.sk.Size(k)), c.sk.Time(k), c.sk.Flags(k)
	} else {
		r := &c.rows[k]
		n.Type, n.Role, n.Size, ms, flags = r.Type, r.Role, int(r.Size), r.Time, r.Flags
	}
	if flags&codec.FlagAmend != 0 {
		n.Role = "" // it is that of the amended entry
	}
	n.Failed = flags&(codec.FlagFailed|codec.FlagAmend) == codec.FlagFailed
	if ms != 0 {
		n.Time = time.UnixMilli(ms).UTC()
	}
	return n
}

func (t *Tree) id(i uint32) string {
	if i == noRow {
		return ""
	}
	c, k := t.at(i)
	if c.sk == nil {
		return c.rows[k].ID
	}
	return c.sk.ID(k)
}

// idsKept is how many ids a pass remembers: of parents, which are nearly always a few rows back.
const idsKept = 64

// pass makes many nodes. It holds the chunk of the last one with its previews, so that nothing is looked up or
// decoded again, and the ids that it made last: a node costs one allocation, its id.
type pass struct {
	t        *Tree
	labelled bool
	c        *chunk
	previews codec.Previews
	ids      [idsKept]struct {
		next uint32 // the ordinal and one
		id   string
	}
}

// newPass returns a pass over t, which marks the path to the head first.
func (t *Tree) newPass() *pass {
	t.ready()
	t.pathOnce.Do(t.markPath)
	t.labelsOnce.Do(t.readLabels)
	return &pass{t: t, labelled: len(t.labelOf) > 0}
}

// node makes the node of a row, with this parent.
func (p *pass) node(i, parent uint32) Node {
	k := p.find(i)
	n := p.c.node(k)
	n.ID, n.ParentID = p.id(i), p.id(parent)
	if p.c.sk != nil {
		n.Preview = p.previews.At(k)
	} else {
		n.Preview = p.c.rows[k].Preview
	}
	if p.labelled {
		n.Label = p.t.label(i)
	}
	n.Ordinal, n.OnPath = uint64(i), p.t.isOnPath(i)
	p.t.amendNode(i, &n)
	return n
}

// find makes the chunk of a row the current one, and returns the row's place in it.
func (p *pass) find(i uint32) int {
	if p.c != nil && i >= p.c.first && i-p.c.first < uint32(p.c.len()) {
		return int(i - p.c.first)
	}
	c, k := p.t.at(i)
	p.c, p.previews = c, codec.Previews{}
	if c.sk != nil {
		p.previews = c.sk.Previews()
	}
	return k
}

func (p *pass) id(i uint32) string {
	if i == noRow {
		return ""
	}
	kept := &p.ids[i%idsKept]
	if kept.next != i+1 {
		kept.next, kept.id = i+1, p.t.idNear(p.c, i)
	}
	return kept.id
}

// idNear returns the id of a row that is probably in chunk c.
func (t *Tree) idNear(c *chunk, i uint32) string {
	if c.sk == nil || i < c.first || i-c.first >= uint32(c.len()) {
		return t.id(i)
	}
	return c.sk.ID(int(i - c.first))
}
