package claudecode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// maxHeld bounds the lines that wait for a later parent.
const maxHeld = 64 << 20

var errChanged = errors.New("the file changed while it was read")

// piece is one of the lines of an entry.
type piece struct {
	row int32
	raw []byte
}

// unit is a group of lines from which entries are made together.
type unit struct {
	what   uint8
	row    int32   // the row of the entries; of a beginning, the number of the child
	pieces []piece // the lines; the last one is the row's
	at     int64   // time of the first line, or of the line before: milliseconds since 1970
}

// Kinds of units.
const (
	ofRow     uint8 = iota
	beginning       // the root entry
	ending          // the head of the conversation
	amending        // the row's line amends the entries of earlier pieces; pieces has it in place of the old line
	waited          // too many lines wait for a parent: a diagnostic follows
)

// order makes the second pass. It returns the units of one child, parents first.
type order struct {
	x     *index
	child int32
	rows  []int32
	fetch func(row int32) ([]byte, error)
	tip   int32
	last  int64 // time of the line before, in milliseconds

	begun, over bool
	marked      bool              // a row from the mark on was returned
	parts       map[int32][]piece // by the last row of a message: its pieces so far
	waits       map[int32][]unit  // by row: units whose parent it is
	held        int
	given       int32             // the last row returned
	amended     map[int32][]piece // by last row of a message: its pieces, as long as later lines may amend them
	amendedSize int
	one         [1]piece
	out         []unit
	at          int
	err         error // sticky
}

func newOrder(x *index, child int32, now time.Time, fetch func(int32) ([]byte, error)) *order {
	o := &order{
		x: x, child: child, rows: x.List(child), fetch: fetch, tip: x.Tips[child], last: now.UnixMilli(),
		parts: map[int32][]piece{}, waits: map[int32][]unit{}, given: noRow, amended: map[int32][]piece{},
	}
	if !x.Created.IsZero() {
		o.last = x.Created.UnixMilli()
	}
	for _, i := range o.rows {
		x.Done[i] = false
	}
	return o
}

// resume starts after the first row, which represents the lines before the mark.
func (o *order) resume(known *resumeState) {
	o.begun, o.rows, o.last, o.x.Done[0] = true, o.rows[1:], known.Last, true
}

// next returns the next unit, valid until the following call, or io.EOF.
func (o *order) next() (unit, error) {
	for o.at == len(o.out) && o.err == nil {
		clear(o.out)
		o.out, o.at = o.out[:0], 0
		switch {
		case !o.begun:
			o.begun = true
			o.out = append(o.out, unit{what: beginning, row: o.child, at: o.last})
		case len(o.rows) > 0:
			i := o.rows[0]
			o.rows = o.rows[1:]
			raw, err := o.fetch(i)
			if o.err = err; err == nil {
				o.step(i, raw)
			}
		case !o.over:
			o.over = true
			o.flush()
			if o.tip != noRow && o.tip != o.given {
				o.out = append(o.out, unit{what: ending, row: o.tip, at: o.last})
			}
		default:
			o.err = io.EOF
		}
	}
	if o.err != nil {
		return unit{}, o.err
	}
	o.at++
	return o.out[o.at-1], nil
}

// step processes one line.
func (o *order) step(i int32, raw []byte) {
	r := &o.x.Rows[i]
	if r.Unit != i {
		o.parts[r.Unit] = append(o.parts[r.Unit], piece{i, bytes.Clone(raw)})
		return
	}
	u := unit{row: i}
	if r.Kind == kindNewer {
		u.what, u.pieces = o.amend(i, raw)
	} else if len(o.parts) > 0 {
		u.pieces = o.parts[i]
		delete(o.parts, i)
	}
	if u.pieces == nil {
		u.pieces = o.one[:0]
	}
	if u.what != amending {
		u.pieces = append(u.pieces, piece{i, raw})
		o.x.sort(u.pieces)
	}
	if r.Up == noRow || o.x.Done[r.Up] {
		o.give(u)
		return
	}
	u.pieces = slices.Clone(u.pieces)
	for k := range u.pieces {
		if u.pieces[k].row == i {
			u.pieces[k].raw = bytes.Clone(raw)
		}
	}
	o.waits[r.Up] = append(o.waits[r.Up], u)
	if o.held += len(raw); o.held > maxHeld {
		o.out = append(o.out, unit{what: waited, row: i})
		o.flush()
	}
}

// sort orders the pieces of an answer by the parents that they name, if the file has them in wrong order.
func (x *index) sort(pieces []piece) {
	if !slices.ContainsFunc(pieces, func(p piece) bool { return x.Rows[p.row].parent > p.row }) {
		return
	}
	const most = 256
	if len(pieces) > most {
		return
	}
	depth := func(p piece) (n int) {
		for at := x.Rows[p.row].parent; n <= len(pieces); n++ {
			if !slices.ContainsFunc(pieces, func(p piece) bool { return p.row == at }) {
				break
			}
			at = x.Rows[at].parent
		}
		return n
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return depth(a) - depth(b) })
}

// give returns a unit, and the units that waited for it.
func (o *order) give(u unit) {
	for todo := []unit(nil); ; u, todo = todo[0], todo[1:] {
		if !o.marked && o.x.isMarked(u.row) {
			o.marked, o.x.markLast = true, o.last
		}
		first := &o.x.Rows[u.pieces[0].row]
		if u.what == amending {
			first = &o.x.Rows[u.row]
		} else if len(o.x.newer) > 0 {
			o.remember(&u)
		}
		if first.Flags&flagTimed != 0 {
			o.last = first.Time
		}
		u.at = o.last
		o.out = append(o.out, u)
		o.x.Done[u.row] = true
		o.given = u.row
		if len(o.waits) > 0 {
			waiting := o.waits[u.row]
			delete(o.waits, u.row)
			for _, w := range waiting {
				o.held -= len(w.pieces[len(w.pieces)-1].raw)
			}
			todo = append(todo, waiting...)
		}
		if len(todo) == 0 {
			return
		}
	}
}

// remember keeps the pieces of a unit that later lines amend, up to the bound.
func (o *order) remember(u *unit) {
	last, size := noRow, 0
	for _, p := range u.pieces {
		size += len(p.raw)
		if j, ok := o.x.newer[p.row]; ok {
			last = max(last, j)
		}
	}
	if last == noRow || o.amendedSize+size > maxHeld {
		return
	}
	o.amendedSize += size
	kept := slices.Clone(u.pieces)
	for k := range kept {
		kept[k].raw = bytes.Clone(kept[k].raw)
	}
	o.amended[u.row] = kept
}

// amend returns the pieces of a message with a later line in place of the one that it amends. If the message is not
// complete yet, the piece is replaced and the line itself is kept as a row of its own. The latter also happens if the
// pieces are not held.
func (o *order) amend(i int32, raw []byte) (what uint8, pieces []piece) {
	old := o.x.Rows[i].parent
	at := o.x.Rows[old].Unit
	is := func(p piece) bool { return p.row == old }
	if k := slices.IndexFunc(o.parts[at], is); k >= 0 {
		o.parts[at][k].raw = bytes.Clone(raw)
	}
	kept := o.amended[at]
	k := slices.IndexFunc(kept, is)
	if k < 0 {
		return ofRow, nil
	}
	o.amendedSize += len(raw) - len(kept[k].raw)
	kept[k].raw = bytes.Clone(raw)
	if !slices.ContainsFunc(kept, func(p piece) bool { return o.x.newer[p.row] > i }) {
		delete(o.amended, at)
		for _, p := range kept {
			o.amendedSize -= len(p.raw)
		}
	}
	return amending, slices.Clone(kept)
}

// flush returns all waiting units in file order.
func (o *order) flush() {
	var all []unit
	for _, w := range o.waits {
		all = append(all, w...)
	}
	slices.SortFunc(all, func(a, b unit) int { return int(a.row) - int(b.row) })
	clear(o.waits)
	o.held = 0
	for _, u := range all {
		o.give(u)
	}
}

// tape reads the lines of rows from a stream. Rows must be requested in file order.
type tape struct {
	x      *index
	in     io.ReadCloser
	s      *jsonl.LineReader
	line   []byte
	number int
}

func newTape(x *index, in io.ReadCloser) *tape {
	return &tape{x: x, in: in, s: jsonl.NewLineReader(in)}
}

// start sets the position at which the stream begins.
func (t *tape) start(from *interop.Mark) {
	t.s.Start(int(from.Line), from.Offset)
	t.number = int(from.Line)
}

func (t *tape) get(i int32) ([]byte, error) {
	r := &t.x.Rows[i]
	for t.number < int(r.Line) {
		line, err := t.s.Next()
		if errors.Is(err, io.EOF) {
			err = errChanged
		}
		if err != nil {
			return nil, err
		}
		t.line = line.Bytes
		t.number++
	}
	if r.Flags&flagPart != 0 {
		return t.line, nil
	}
	from, to := int(r.At), int(r.At)+int(r.Size)
	if to > len(t.line) || t.line[from] != '{' || t.line[to-1] != '}' {
		return nil, fmt.Errorf("line %d: %w", r.Line, errChanged)
	}
	return t.line[from:to], nil
}
