package transcript

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Tree is the tree of a session at one moment: columns over packed skeletons, no bodies. It never
// changes, and all its methods are safe for concurrent use. What a method needs beyond the columns
// (children, an index by id, labels) is made when it is first asked for.
//
// Wherever a method takes an id, a prefix that no other entry's id has will do. An id that is not there,
// or not unique, returns no node; Ordinal reports which. Commits are no nodes, no children and no versions:
// CommitOn alone knows them.
//
// All walks are iterative. Parents that lead in a circle are cut at the entry of the circle that came
// first, which becomes a root; Diagnostics reports it.
type Tree struct {
	head      string
	branches  []Branch
	chunks    []chunk // shared with the builder, as all that is committed
	tail      chunk
	pending   chunk
	parents   []uint32
	classes   []class
	labels    []uint32
	amends    []uint32 // rows of amendments, of the pending ones too once addPending has run
	noted     notes
	irregular bool
	ids       *idIndex
	committed uint32
	n         uint32

	pendingParents []uint32
	pendingClasses []class

	readyOnce sync.Once
	fixed     []uint32       // parents put right; nil = they are right as read
	odd       DiagnosticList // what was put right

	headOnce sync.Once
	headOrd  uint32 // noRow = there is none
	pathOnce sync.Once
	onPath   atomic.Pointer[[]uint64] // a bit for each entry from the head to its root, for passes

	shared    *climb
	climbOnce sync.Once
	depth     []uint32
	jump      []uint32

	linksOnce sync.Once
	starts    []uint32 // starts[p]..starts[p+1] are the places of p's children in kids; roots at p = n
	kids      []uint32

	labelsOnce sync.Once
	labelOf    map[uint32]uint32 // entry -> the label entry in force

	amendsOnce sync.Once
	amendsOf   map[uint32][]uint32 // entry -> its amendments, oldest first
}

// Node is an entry as the tree shows it.
type Node struct {
	ID, ParentID string // ParentID "" = a root
	Type, Role   string // Role of a message
	Preview      string // one line of at most 80 bytes
	Label        string // "" = none
	AmendedBy    string // id of the amendment in force, of which Role and Preview are; "" = none
	Ordinal      uint64
	Time         time.Time
	Size         int  // bytes of the entry's line
	OnPath       bool // on the way from the head to its root
	Hidden       bool // by the amendment; FilterAll alone shows it
	Failed       bool // an answer that ended in an error, was refused or aborted, or a result of a call that failed
}

// Branch is a name for a head; Head "" = an empty branch: a new root comes next.
type Branch struct{ Name, Head string }

// Len is the number of rows, commits and pending ones included: one more than the last ordinal.
func (t *Tree) Len() int { return int(t.n) }

// Head is the id of the entry from which the next one grows; "" = none.
func (t *Tree) Head() string { return t.head }

// Branches returns the named branches.
func (t *Tree) Branches() []Branch { return slices.Clone(t.branches) }

// Node returns an entry.
func (t *Tree) Node(id string) (Node, bool) {
	i, err := t.find(id)
	if err != nil {
		return Node{}, false
	}
	return t.node(i), true
}

// NodeAt returns the row with this ordinal, a commit too; the zero Node if there is none.
func (t *Tree) NodeAt(ordinal uint64) Node {
	if ordinal >= uint64(t.n) {
		return Node{}
	}
	return t.node(uint32(ordinal))
}

// NodesAt returns the rows with these ordinals in their order, as NodeAt does, but for those that are not there. A pass
// over many costs less than as many calls of NodeAt.
func (t *Tree) NodesAt(ordinals iter.Seq[uint64]) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		p := t.newPass()
		for ord := range ordinals {
			if ord < uint64(t.n) && !yield(p.node(uint32(ord), t.parent(uint32(ord)))) {
				return
			}
		}
	}
}

// ID returns the id of the row with this ordinal, a commit too; "" if there is none.
func (t *Tree) ID(ordinal uint64) string {
	if ordinal >= uint64(t.n) {
		return ""
	}
	return t.id(uint32(ordinal))
}

// Kind returns type and role of the row with this ordinal as it was appended, a commit too; "" if there is none.
func (t *Tree) Kind(ordinal uint64) (typ, role string) {
	if ordinal >= uint64(t.n) {
		return "", ""
	}
	c, k := t.at(uint32(ordinal))
	return c.kind(k)
}

// Size returns the bytes of the line of the row with this ordinal as it was appended, a commit too; 0 if there is none.
func (t *Tree) Size(ordinal uint64) int {
	if ordinal >= uint64(t.n) {
		return 0
	}
	c, k := t.at(uint32(ordinal))
	if c.sk == nil {
		return int(c.rows[k].Size)
	}
	return int(c.sk.Size(k))
}

// Time returns the time of the row with this ordinal, a commit too; zero if it has none, or is not there.
func (t *Tree) Time(ordinal uint64) time.Time {
	if ordinal >= uint64(t.n) {
		return time.Time{}
	}
	c, k := t.at(uint32(ordinal))
	ms := int64(0)
	if c.sk != nil {
		ms = c.sk.Time(k)
	} else {
		ms = c.rows[k].Time
	}
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Shows reports whether a filter lets the entry with this ordinal through, as Nodes asks it.
func (t *Tree) Shows(f Filter, ordinal uint64) bool {
	return ordinal < uint64(t.n) && t.shows(f, uint32(ordinal))
}

// IsCommit reports whether the row with this ordinal is a commit, and no entry.
func (t *Tree) IsCommit(ordinal uint64) bool {
	return ordinal < uint64(t.n) && t.class(uint32(ordinal))&classCommit != 0
}

// Parent returns the ordinal of an entry's parent. false: it is a root, or there is no such entry.
func (t *Tree) Parent(ordinal uint64) (uint64, bool) {
	if ordinal >= uint64(t.n) {
		return 0, false
	}
	t.ready()
	p := t.parent(uint32(ordinal))
	return uint64(p), p != noRow
}

// Nodes returns the entries that a filter lets through, parents first: in append order, unless an import has
// parents that come later. ParentID is the nearest ancestor that the filter lets through too, so what is
// yielded is a forest by itself. A filter that does not exist shows nothing.
func (t *Tree) Nodes(f Filter) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		pass := t.newPass()
		var nearest []uint32 // the nearest entry on the way up that is shown, itself included
		if f != FilterAll {
			nearest = make([]uint32, t.n)
		}
		for i := range t.topDown() {
			p, shown := t.parent(i), t.shows(f, i)
			if nearest != nil {
				if p != noRow {
					p = nearest[p]
				}
				if nearest[i] = p; shown {
					nearest[i] = i
				}
			}
			if !shown {
				continue
			}
			if !yield(pass.node(i, p)) {
				return
			}
		}
	}
}

// Children returns the entries whose parent this is, oldest first, see SortByTime; of "" the roots.
func (t *Tree) Children(id string) []Node {
	p, err := t.findOrTop(id)
	if err != nil {
		return nil
	}
	var kids []uint32
	for _, i := range t.children(p) {
		if t.class(i)&classCommit == 0 {
			kids = append(kids, i)
		}
	}
	nodes := t.nodes(kids)
	SortByTime(nodes)
	return nodes
}

func (t *Tree) nodes(list []uint32) []Node {
	if len(list) == 0 {
		return nil
	}
	nodes := make([]Node, len(list))
	for k, i := range list {
		nodes[k] = t.node(i)
	}
	return nodes
}

func (t *Tree) class(i uint32) class {
	if i < t.committed {
		return t.classes[i]
	}
	return t.pendingClasses[i-t.committed]
}

// findOrTop is find, and for "" the place above all roots.
func (t *Tree) findOrTop(id string) (uint32, error) {
	if id == "" {
		return noRow, nil
	}
	return t.find(id)
}
