package claudecode

import (
	"sync"

	"github.com/coppice-go/coppice/internal/parallel"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// emitter hands out the entries of one child, parents first: what order says is cut into batches, and
// each batch is converted by itself.
type emitter struct {
	x     *index
	order *order
	more  func() (*batch, error) // the next batch, converted
	close func()
	spare chan *batch // to be filled again
	gate  *jsonl.Gate
	now   *batch // what is handed out
	at    int    // how much of its entries was, and of its notes
	noted int
}

// newEmitter converts where it is called.
func newEmitter(x *index, o *order, spare chan *batch) *emitter {
	e := &emitter{x: x, order: o, close: func() {}, spare: spare, gate: jsonl.NewGate()}
	e.more = func() (*batch, error) {
		b, err := e.fill()
		if err != nil {
			return b, err
		}
		b.work()
		return b, nil
	}
	return e
}

// newPipe reads ahead and converts in lanes, until it is closed.
func newPipe(x *index, o *order, spare chan *batch) *emitter {
	e := newEmitter(x, o, spare)
	p := parallel.NewPipe(scanLanes, e.fill, (*batch).work)
	e.more = p.Next
	e.close = sync.OnceFunc(func() {
		e.gate.Close()
		p.Close()
	})
	return e
}

// next returns the next entry; io.EOF = no more.
func (e *emitter) next() (transcript.Draft, error) {
	for e.now == nil || e.at == len(e.now.out) {
		if e.now != nil {
			e.tell(len(e.now.out))
			e.gate.Back(e.now.held.Size())
			e.keep(e.now)
		}
		b, err := e.more()
		if e.now, e.at, e.noted = b, 0, 0; err != nil {
			e.now = nil
			return transcript.Draft{}, err
		}
		if e.x.first == "" && b.marked >= 0 && e.order.child == 0 {
			e.x.first = idOf(b.out[b.marked])
		}
	}
	e.tell(e.at)
	e.at++
	return transcript.Draft{Raw: e.now.out[e.at-1]}, nil
}

// tell reports what there is to say about an entry, and about all before it.
func (e *emitter) tell(at int) {
	for ; e.noted < len(e.now.notes) && e.now.notes[e.noted].at <= at; e.noted++ {
		n := &e.now.notes[e.noted]
		e.x.noted = max(e.x.noted, int(n.Ordinal))
		e.x.Diag.Add(n.Entry, n.Ordinal, n.Kind, n.Detail)
	}
}

// batch is some units that follow each other, and what becomes of them.
type batch struct {
	units  []unit
	pieces []piece
	held   jsonl.Batch // their lines
	size   int
	marked int // the first entry of the rows from the mark on; -1 = none
	converter
}

// fill returns the next units: of at least jsonl.BatchSize bytes together if there are so many, and of less than
// that and one unit.
func (e *emitter) fill() (*batch, error) {
	e.gate.Wait()
	b := e.take()
	b.units, b.pieces, b.size = b.units[:0], b.pieces[:0], 0
	b.held.Clear()
	for b.size < jsonl.BatchSize {
		u, err := e.order.next()
		if err != nil && len(b.units) > 0 {
			break // it comes again
		}
		if err != nil {
			e.keep(b)
			return nil, err
		}
		b.add(u)
	}
	e.gate.Out(b.held.Size())
	return b, nil
}

func (e *emitter) take() *batch {
	select {
	case b := <-e.spare:
		return b
	default:
		return &batch{converter: converter{x: e.x}}
	}
}

func (e *emitter) keep(b *batch) {
	select {
	case e.spare <- b:
	default:
	}
}

func (b *batch) add(u unit) {
	const fixed = 64 // bytes for what has no line
	b.size += fixed
	from := len(b.pieces)
	for _, p := range u.pieces {
		p.raw = b.held.Hold(p.raw)
		b.size += len(p.raw)
		b.pieces = append(b.pieces, p)
	}
	u.pieces = b.pieces[from:len(b.pieces):len(b.pieces)]
	b.units = append(b.units, u)
}

// work converts the units.
func (b *batch) work() *batch {
	clear(b.out)
	b.out, b.notes = b.out[:0], b.notes[:0]
	b.marked = -1
	for i := range b.units {
		at := len(b.out)
		b.unit(&b.units[i])
		if u := &b.units[i]; b.marked < 0 && at < len(b.out) && u.what != beginning && b.x.isMarked(u.row) {
			b.marked = at
		}
	}
	return b
}

// note is something to say about an entry before it is given.
type note struct {
	at int // of the entry in its batch
	transcript.Diagnostic
}

func (c *converter) note(entry string, line int32, kind, detail string) {
	c.notes = append(c.notes, note{len(c.out), transcript.Diagnostic{
		Entry: entry, Ordinal: uint64(line), Kind: kind,
		Detail: detail,
	}})
}
