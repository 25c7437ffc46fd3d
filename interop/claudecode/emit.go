package claudecode

import (
	"sync"

	"github.com/coppice-go/coppice/internal/parallel"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// emitter returns the entries of one child, parents first. It splits the units of an order into batches, which are
// converted independently.
type emitter struct {
	x     *index
	order *order
	more  func() (*batch, error) // returns the next batch, converted
	close func()
	spare chan *batch // for reuse
	gate  *jsonl.Gate
	now   *batch // the current batch
	at    int    // how many of its entries were returned; noted: of its notes
	noted int
}

// newEmitter returns an emitter that converts in the caller's goroutine.
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

// newPipe returns an emitter that reads ahead and converts in parallel until it is closed.
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

// next returns the next entry, or io.EOF.
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

// tell reports the notes of an entry, and all before them.
func (e *emitter) tell(at int) {
	for ; e.noted < len(e.now.notes) && e.now.notes[e.noted].at <= at; e.noted++ {
		n := &e.now.notes[e.noted]
		e.x.noted = max(e.x.noted, int(n.Ordinal))
		e.x.Diag.Add(n.Entry, n.Ordinal, n.Kind, n.Detail)
	}
}

// batch is a run of units and the entries made of them.
type batch struct {
	units  []unit
	pieces []piece
	held   jsonl.Batch // the lines
	size   int
	marked int // index of the first entry that was made of the resume mark's row or a later one; -1 = none
	converter
}

// fill returns the next units. Their size is at least jsonl.BatchSize bytes, or less at the end, and exceeds it by at
// most one unit.
func (e *emitter) fill() (*batch, error) {
	e.gate.Wait()
	b := e.take()
	b.units, b.pieces, b.size = b.units[:0], b.pieces[:0], 0
	b.held.Clear()
	for b.size < jsonl.BatchSize {
		u, err := e.order.next()
		if err != nil && len(b.units) > 0 {
			break // the next call returns the error again
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
	const fixed = 64 // bytes counted for a unit without lines
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

// note is a diagnostic, reported with an entry.
type note struct {
	at int // index of the entry in its batch
	transcript.Diagnostic
}

func (c *converter) note(entry string, line int32, kind, detail string) {
	c.notes = append(c.notes, note{len(c.out), transcript.Diagnostic{
		Entry: entry, Ordinal: uint64(line), Kind: kind,
		Detail: detail,
	}})
}
