package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// The bounds, in bytes.
const (
	MaxLine    = 64 << 20 // of a line that is held whole
	Prefix     = 64 << 10 // held of a longer line: enough for its head
	chunkSize  = 1 << 20
	bufferSize = 1 << 18
)

// Line is one line of a stream.
type Line struct {
	// Bytes is valid UTF-8, with U+FFFD for each byte of the stream that is not; so it is at most three times as long
	// as Size. It has no newline and is valid until the next call. For a line over MaxLine it is the beginning.
	Bytes  []byte
	Number int   // from 1
	Offset int64 // of its first byte
	Size   int64 // of the whole line in bytes of the stream, without the newline
	Ended  bool  // a newline ends it
	Bad    int   // number of bytes that are not valid UTF-8; 0 for a line over MaxLine
	BadAt  int   // offset in the line of the first of these
}

// Part reports whether Bytes is only the beginning of the line.
func (l Line) Part() bool { return l.Size > MaxLine }

// BadText returns the diagnostic for a line with bytes that are not valid UTF-8.
func (l Line) BadText() string {
	return fmt.Sprintf("bytes that are not valid UTF-8 became U+FFFD: %d, the first is byte %d", l.Bad, l.BadAt)
}

// repair replaces the bytes that are not valid UTF-8.
func (l *Line) repair() {
	text, bad := errors.AsType[*codec.TextError](rawjson.CheckText("line", l.Bytes))
	if !bad {
		return
	}
	repaired := rawjson.ValidText(l.Bytes)
	if !l.Part() { // the beginning of a longer line may end within a character
		l.Bad, l.BadAt = (len(repaired)-len(l.Bytes))/(len("\ufffd")-1), int(text.Offset)
	}
	l.Bytes = repaired
}

// LineReader reads the lines of a stream. It is not safe for concurrent use.
type LineReader struct {
	in     *bufio.Reader
	chunks [][]byte // of a line longer than the buffer; the first is kept for reuse
	number int
	offset int64
	err    error // sticky
}

// NewLineReader reads from r.
func NewLineReader(r io.Reader) *LineReader {
	return &LineReader{in: bufio.NewReaderSize(r, bufferSize)}
}

// Start sets where in a file the stream begins: after so many lines, at an offset.
func (r *LineReader) Start(lines int, offset int64) { r.number, r.offset = lines, offset }

// Number returns the number of the last line returned, from 1.
func (r *LineReader) Number() int { return r.number }

// Next returns the next line. io.EOF = the end; any other error is the stream's, and is returned again by later calls.
func (r *LineReader) Next() (Line, error) {
	if r.err != nil {
		return Line{}, r.err
	}
	l, err := r.next()
	if r.err = err; err == nil {
		l.repair()
	}
	return l, err
}

func (r *LineReader) next() (Line, error) {
	if len(r.chunks) > 0 {
		r.chunks = r.chunks[:1:1]
		r.chunks[0] = r.chunks[0][:0]
	}
	l := Line{Number: r.number + 1, Offset: r.offset}
	for first := true; ; first = false {
		part, err := r.in.ReadSlice('\n')
		r.offset += int64(len(part))
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return Line{}, fmt.Errorf("read at offset %d: %w", r.offset, err)
		}
		if l.Size += int64(len(part)); l.Size == 0 {
			return Line{}, io.EOF
		}
		if l.Ended = err == nil; l.Ended {
			l.Size, part = l.Size-1, part[:len(part)-1]
		}
		done := !errors.Is(err, bufio.ErrBufferFull)
		switch {
		case done && first:
			r.number++
			l.Bytes = part // the usual case: no copy
			return l, nil
		case l.Size <= MaxLine:
			r.keep(part)
		case len(r.chunks) > 1:
			r.chunks = r.chunks[:1:1] // only the beginning is needed
		}
		if done {
			r.number++
			l.Bytes = r.join(l.Size)
			return l, nil
		}
	}
}

func (r *LineReader) keep(part []byte) {
	for len(part) > 0 {
		n := len(r.chunks) - 1
		if n < 0 || len(r.chunks[n]) == cap(r.chunks[n]) {
			r.chunks = append(r.chunks, make([]byte, 0, chunkSize))
			continue
		}
		c := r.chunks[n]
		m := min(len(part), cap(c)-len(c))
		r.chunks[n] = append(c, part[:m]...)
		part = part[m:]
	}
}

// join returns the held part of a line as one slice.
func (r *LineReader) join(size int64) []byte {
	switch {
	case size > MaxLine:
		return r.chunks[0][:min(len(r.chunks[0]), Prefix)]
	case len(r.chunks) == 1:
		return r.chunks[0]
	}
	return bytes.Join(r.chunks, nil)
}
