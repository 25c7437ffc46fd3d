package formats

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-go/coppice/interop"
)

// maxSettled is the longest line that is examined, in bytes.
const maxTailLine = 16 << 20

// Stable returns the length in bytes of the beginning of a file that keeps its meaning when the file grows: an import
// of it makes entries that an import of the longer file makes too, in the same places. It excludes a line without a
// line feed; for Claude Code, lines of a message to which more may come; for Codex, an answer whose token count may
// still come, and events that an item may repeat.
//
// The result is an estimate based on how these programs write. Later lines may still change it, which only an import of
// the longer file detects. A line longer than maxTailLine bytes is not examined and counts as stable. from is
// the Offset of the Mark of an import, or 0: if the format allows it, the lines between the first one and that offset
// are not read.
func Stable(f interop.Format, src interop.Source, from int64) (n int64, err error) {
	t, err := Of(f)
	if err != nil {
		return 0, err
	}
	in, err := src.Open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	var tail interop.Tail
	if t.Program != nil && t.Program.Tail != nil {
		tail = t.Program.Tail()
	}
	r, at := bufio.NewReaderSize(in, 64<<10), int64(0)
	var line []byte
	for size := int64(0); ; {
		part, err := r.ReadSlice('\n')
		size += int64(len(part))
		if len(line) <= maxTailLine {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && tail != nil:
			return tail.Stable(), nil
		case errors.Is(err, io.EOF):
			return at, nil
		case err != nil:
			return 0, fmt.Errorf("read %s: %w", src.Name, err)
		}
		if len(line) > maxTailLine {
			line = nil // only its place matters
		}
		if tail != nil {
			tail.Line(line, at, size)
		}
		if s, ok := in.(io.Seeker); ok && at == 0 && from > size {
			if _, err := s.Seek(from, io.SeekStart); err != nil {
				return 0, fmt.Errorf("read %s: %w", src.Name, err)
			}
			r.Reset(in)
			size = from
		}
		at, line = size, line[:0]
	}
}
