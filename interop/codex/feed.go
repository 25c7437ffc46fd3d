package codex

import (
	"bytes"
	"errors"

	"github.com/coppice-go/coppice/internal/parallel"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// The bounds of what is under way at once: 2*lanes+3 batches, of which one holds a line over batchRoom.
const (
	feedLanes = 2         // batches that are worked on
	batchRoom = 512 << 10 // bytes of lines in a batch; one longer than that has room of its own
	batchFull = 256 << 10 // bytes from which on a batch gets no more
	batchMost = 1024      // objects in a batch
)

// pieceBatch is some objects in the order of the file.
type pieceBatch struct {
	pieces []rolloutPiece
	lines  []byte    // where they lie
	tail   lineNotes // what was found after the last one
	full   bool      // a line has room of its own: no more
	large  bool      // it is the one long line
	shop   pieceMaker
}

// pieceFeed returns the pieces of a file in order: one goroutine cuts the file into lines and checks
// them, others read batches of them, each line without regard to those before it, and the reader takes
// what they made. Next and Close belong to the reader's goroutine.
//
// It holds at most 7 batches, each of up to 1,024 objects in 512 KiB and one more of that size; only
// one of them holds a line that is longer (at most 64 MiB). What is made of a line is some bytes larger
// than the line, and at most six times as large (a thought of which each byte has to be escaped).
type pieceFeed struct {
	s     *jsonl.Scanner
	base  int
	pipe  *parallel.Pipe[*pieceBatch, *pieceBatch]
	in    *pieceBatch // is being filled
	err   error       // of the scanner; given once the batches before it are out
	out   *pieceBatch // is being taken
	at    int
	free  chan *pieceBatch // to be filled again
	large chan struct{}    // holds a token while a long line is under way
	stop  chan struct{}
	ended bool
}

// newPieceFeed continues where s is. s is the feed's from now on. base is what the pieces have for their file.
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

// Next returns the next piece, valid until the next call, or what was found after the last one and io.EOF or the
// error at which the file could not be read on.
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

// done returns a batch that was taken back to be filled again.
func (f *pieceFeed) done() {
	if f.out.large {
		<-f.large
		f.out.large = false
		return // with its room, which is of a size that is not needed again
	}
	if cap(f.out.lines) > 0 {
		select {
		case f.free <- f.out:
		default:
		}
	}
}

// Close ends the work, and waits for it.
func (f *pieceFeed) Close() {
	if !f.ended {
		f.ended = true
		close(f.stop)
		f.pipe.Close()
	}
}

var errStopped = errors.New("codex: stopped")

// fill cuts the next batch from the file.
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

// keep copies an object, for the scanner uses its room again.
func (f *pieceFeed) keep(b *pieceBatch, raw []byte) ([]byte, error) {
	from := len(b.lines)
	if from+len(raw) <= cap(b.lines) {
		b.lines = append(b.lines, raw...)
		return b.lines[from:len(b.lines):len(b.lines)], nil
	}
	b.full = true
	if len(raw) > batchRoom {
		select { // until the long line before it has been taken
		case f.large <- struct{}{}:
			b.large = true
		case <-f.stop:
			return nil, errStopped
		}
	}
	return bytes.Clone(raw), nil
}

// empty returns a batch with room.
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
