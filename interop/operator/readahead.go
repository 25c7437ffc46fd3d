package operator

import (
	"errors"
	"sync/atomic"

	"github.com/coppice-go/coppice/internal/parallel"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// The bounds of reading ahead: at most 3 batches in the pipe, one that is being cut, one that is being given, and
// spare ones; each has at most maxBatch bytes, one line more, and the heads of maxObjects lines.
const (
	maxBatch   = 256 << 10 // bytes of lines
	maxObjects = 1024
	maxPlain   = 64 << 10 // bytes of a line that is read ahead
	maxID      = 1 << 10  // bytes of its id
	calmLines  = 16       // such lines in a row before a goroutine is started for them
	spare      = 4        // batches that wait to be filled again
)

// readAhead reads the objects of a file. While nothing is odd it cuts and checks lines in a goroutine of its own, which
// is a third of the work, and ends it at the first line about which there may be something to say: so what is said
// of a file has the order of its lines. Its methods belong to one goroutine.
type readAhead struct {
	in    *jsonl.EntryScanner
	plain func(o jsonl.Entry) bool // nothing will be said of the line
	run   int                      // plain lines in a row
	pipe  *parallel.Pipe[*batch, *batch]
	now   []*batch // cut, and not yet given
	at    int      // in the first of them
	free  chan *batch
	halt  atomic.Bool
	err   error // how the pipe ended: errPause, or what the scanner gave
}

// batch is a run of objects; their bytes are its own.
type batch struct {
	lines   []byte
	objects []jsonl.Entry
}

var errPause = errors.New("operator: not read ahead")

// next returns the next object, valid until the following call.
func (a *readAhead) next() (jsonl.Entry, error) {
	for {
		if len(a.now) > 0 {
			if b := a.now[0]; a.at < len(b.objects) {
				a.at++
				return b.objects[a.at-1], nil
			}
			a.done()
			continue
		}
		if a.pipe == nil && a.run < calmLines {
			if a.err != nil && !errors.Is(a.err, errPause) {
				return jsonl.Entry{}, a.err
			}
			return a.here()
		}
		if a.pipe == nil {
			a.start()
		}
		a.take()
	}
}

// here reads on in the caller's goroutine.
func (a *readAhead) here() (jsonl.Entry, error) {
	o, err := a.in.Next()
	if a.run++; err != nil || !a.plain(o) {
		a.run = 0
	}
	return o, err
}

func (a *readAhead) start() {
	a.err = nil
	a.halt.Store(false)
	if a.free == nil {
		a.free = make(chan *batch, spare)
	}
	a.pipe = parallel.NewPipe(1, a.fill, func(b *batch) *batch { return b })
}

// fill is the source of the pipe, and runs in its goroutine: only it reads from the scanner then.
func (a *readAhead) fill() (*batch, error) {
	if a.err == nil && a.halt.Load() {
		a.err = errPause
	}
	if a.err != nil {
		return nil, a.err
	}
	var b *batch
	select {
	case b = <-a.free:
	default:
		b = &batch{lines: make([]byte, 0, maxBatch+maxPlain)}
	}
	for a.err == nil && len(b.lines) < maxBatch && len(b.objects) < maxObjects {
		o, err := a.in.Next()
		if err != nil {
			a.err = err
			break
		}
		if o.Raw != nil && !a.plain(o) {
			a.err = errPause // and so its bytes stay valid
		} else if o.Raw != nil {
			from := len(b.lines)
			b.lines = append(b.lines, o.Raw...)
			o.Raw = b.lines[from:len(b.lines):len(b.lines)]
		}
		b.objects = append(b.objects, o)
	}
	if len(b.objects) == 0 {
		return nil, a.err
	}
	return b, nil
}

// take waits for the next batch, and ends the pipe after the last.
func (a *readAhead) take() (more bool) {
	b, err := a.pipe.Next()
	if err != nil {
		a.close()
		return false
	}
	a.now = append(a.now, b)
	return true
}

// done lets go of the first batch.
func (a *readAhead) done() {
	b := a.now[0]
	a.now, a.at = a.now[1:], 0
	if len(a.now) == 0 {
		a.now = nil
	}
	clear(b.objects)
	b.lines, b.objects = b.lines[:0], b.objects[:0]
	select {
	case a.free <- b:
	default:
	}
}

// alone returns the scanner when no goroutine reads from it. What was cut is kept.
func (a *readAhead) alone() *jsonl.EntryScanner {
	if a.pipe != nil {
		for a.halt.Store(true); a.take(); {
		}
	}
	return a.in
}

// close ends the goroutines and waits for them; a read that is under way is waited for.
func (a *readAhead) close() {
	if a.pipe != nil {
		a.pipe.Close()
		a.pipe, a.run = nil, 0
	}
}
