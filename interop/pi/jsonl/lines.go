package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// The bounds of a line (I15).
const (
	MaxLine     = 64 << 20 // what is buffered of one, in bytes
	prefixBytes = 64 << 10 // what is kept of a longer one: enough for its head
	chunkBytes  = 1 << 20
	readBytes   = 1 << 18
)

// lineReader cuts a stream into lines with a bounded buffer.
type lineReader struct {
	r      *bufio.Reader
	chunks [][]byte // of a line longer than r's buffer; the first is kept for the next such line
	number int      // of the line given last, from 1
	offset int64    // bytes read
}

// next gives the next line without its newline, valid until the following call, and its size in the stream;
// of a line over MaxLine only the beginning. ended: a newline was there. io.EOF = no more bytes.
func (l *lineReader) next() (line []byte, size int64, ended bool, err error) {
	if len(l.chunks) > 0 {
		l.chunks = l.chunks[:1:1]
		l.chunks[0] = l.chunks[0][:0]
	}
	for {
		part, err := l.r.ReadSlice('\n')
		l.offset += int64(len(part))
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return nil, 0, false, fmt.Errorf("read at offset %d: %w", l.offset, err)
		}
		first := size == 0
		if size += int64(len(part)); size == 0 {
			return nil, 0, false, io.EOF
		}
		if err == nil {
			size, part, ended = size-1, part[:len(part)-1], true
		}
		done := !errors.Is(err, bufio.ErrBufferFull)
		if done && first {
			l.number++
			return part, size, ended, nil // the usual case: nothing copied
		}
		if size <= MaxLine {
			l.keep(part)
		} else if len(l.chunks) > 0 {
			l.chunks = l.chunks[:1:1] // the prefix is enough; let go of the rest
		}
		if done {
			l.number++
			return l.join(size), size, ended, nil
		}
	}
}

func (l *lineReader) keep(part []byte) {
	for len(part) > 0 {
		n := len(l.chunks) - 1
		if n < 0 || len(l.chunks[n]) == cap(l.chunks[n]) {
			l.chunks = append(l.chunks, make([]byte, 0, chunkBytes))
			continue
		}
		c := l.chunks[n]
		m := min(len(part), cap(c)-len(c))
		l.chunks[n] = append(c, part[:m]...)
		part = part[m:]
	}
}

// join gives what was kept of a line, in one piece.
func (l *lineReader) join(size int64) []byte {
	if size > MaxLine {
		return l.chunks[0][:min(len(l.chunks[0]), prefixBytes)]
	}
	if len(l.chunks) == 1 {
		return l.chunks[0]
	}
	return bytes.Join(l.chunks, nil)
}
