package codex

import (
	"bytes"
	"errors"

	"github.com/coppice-go/coppice/internal/parallel"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// Bounds of the work in progress: 2*feedLanes+3 batches, at most one of them with a line over batchRoom.
const (
	feedLanes = 2         // batches processed at once
	batchRoom = 512 << 10 // bytes of lines in a batch; a longer line gets a buffer of its own
	batchFull = 256 << 10 // bytes from which on a batch gets no more lines
	batchMost = 1024      // objects in a batch
)

// pieceBatch is a number of objects in file order.
type pieceBatch struct {
	pieces []rolloutPiece
	lines  []byte    // bytes of the objects
	tail   lineNotes // findings after the last object
	full   bool      // a line has a buffer of its own: no more are added
	large  bool      // it holds the long line
	shop   pieceMaker
}

// pieceFeed returns the pieces of a file in order. One goroutine splits the file into lines and checks them. Others
// parse batches of lines, each line independently of those before it. The reader takes the results. Next and Close must
// be called from the reader's goroutine.
//
// A feed holds at most 7 batches, each of up to 1,024 objects in 512 KiB, and one more batch of that size. At most one
// batch holds a longer line (up to 64 MiB). The result for a line is a few bytes larger than the line, and at most six
// times as large (reasoning text in which each byte must be escaped).
type pieceFeed struct {
	s     *jsonl.Scanner
	base  int
	pipe  *parallel.Pipe[*pieceBatch, *pieceBatch]
	in    *pieceBatch // being filled
	err   error       // of the scanner; returned after the batches before it
	out   *pieceBatch // being returned
	at    int
	free  chan *pieceBatch // for reuse
	large chan struct{}    // holds a token while a long line is in progress
	stop  chan struct{}
	ended bool
}

// newPieceFeed reads on from the position of s, and takes ownership of s. base is the file number in the positions of
// the pieces.
func newPieceFeed(s *jsonl.Scanner, base int) *pieceFeed {
	f := &pieceFeed{
		s: s, base: base, out: &pieceBatch{}, free: make(chan *pieceBatch, 2*feedLanes+3),
		large: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	s.Note = func(number int, kind, detail string, bad int) {
		f.in.tail.add(number, kind, detail, bad)
	}
	f.pipe = parallel.NewPipe(feedLanes, f.fill, func(b *pieceBatch) *pieceBatch {
		for i := range b.pieces {
			b.shop.work(&b.pieces[i])
		}
		return b
	})
	return f
}

// Next returns the next piece, valid until the next call. At the end it returns the findings after the last piece and
// io.EOF, or the error of the file.
func (f *pieceFeed) Next() (*rolloutPiece, lineNotes, error) {
	for f.at == len(f.out.pieces) {
		tail := f.out.tail
		f.out.tail = lineNotes{}
		if tail.any() {
			return nil, tail, nil
		}
		f.done()
		b, err := f.pipe.Next()
		if err != nil {
			f.out, f.at = &pieceBatch{}, 0
			return nil, lineNotes{}, err
		}
		f.out, f.at = b, 0
	}
	f.at++
	return &f.out.pieces[f.at-1], lineNotes{}, nil
}

// done returns a batch for reuse.
func (f *pieceFeed) done() {
	if f.out.large {
		<-f.large
		f.out.large = false
		return // its buffer is too large for reuse
	}
	if cap(f.out.lines) > 0 {
		select {
		case f.free <- f.out:
		default:
		}
	}
}

// Close stops the goroutines and waits for them.
func (f *pieceFeed) Close() {
	if !f.ended {
		f.ended = true
		close(f.stop)
		f.pipe.Close()
	}
}

var errStopped = errors.New("codex: stopped")

// fill reads the next batch from the file.
func (f *pieceFeed) fill() (*pieceBatch, error) {
	if f.err != nil {
		return nil, f.err
	}
	f.in = f.empty()
	b := f.in
	for len(b.lines) < batchFull && len(b.pieces) < batchMost && !b.full {
		o, err := f.s.Next()
		if err != nil {
			f.err = err
			break
		}
		raw, err := f.keep(b, o.Raw)
		if err != nil {
			return nil, err
		}
		p := rolloutPiece{
			At: position{Base: f.base, Line: o.Number, N: o.At}, Raw: raw, Offset: o.Offset, Cut: o.Part, Size: o.Size,
			Notes: b.tail,
		}
		b.tail = lineNotes{}
		b.pieces = append(b.pieces, p)
	}
	if len(b.pieces) == 0 && !b.tail.any() {
		return nil, f.err
	}
	return b, nil
}

// keep copies an object, because the scanner reuses its buffer.
func (f *pieceFeed) keep(b *pieceBatch, raw []byte) ([]byte, error) {
	from := len(b.lines)
	if from+len(raw) <= cap(b.lines) {
		b.lines = append(b.lines, raw...)
		return b.lines[from:len(b.lines):len(b.lines)], nil
	}
	b.full = true
	if len(raw) > batchRoom {
		select { // wait until the long line before it was taken
		case f.large <- struct{}{}:
			b.large = true
		case <-f.stop:
			return nil, errStopped
		}
	}
	return bytes.Clone(raw), nil
}

// empty returns an empty batch.
func (f *pieceFeed) empty() *pieceBatch {
	select {
	case b := <-f.free:
		clear(b.pieces)
		b.pieces, b.lines, b.full = b.pieces[:0], b.lines[:0], false
		b.shop = pieceMaker{room: b.shop.room[:0], texts: b.shop.texts[:0], spare: b.shop.spare[:0]}
		return b
	default:
	}
	return &pieceBatch{lines: make([]byte, 0, batchRoom)}
}
