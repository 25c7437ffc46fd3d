package formats

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-go/coppice/interop"
)

// maxSettled is the longest line that is looked at, in bytes.
const maxSettled = 16 << 20

// Settled returns how many bytes at the beginning of a file keep their meaning when the file grows: an import of them
// makes entries that an import of the longer file makes too, at the same places. It leaves out a line without a line
// feed; of Claude Code the lines of a message of which more may come; of Codex an answer whose count of tokens may
// still come, and events that an item may repeat. It is a judgement by how these programs write: what follows may still
// change what was settled, and only an import of the longer file tells. It holds a line of at most maxSettled bytes; a
// longer line is settled. from is a Mark's offset of what was imported, or 0: where the file allows it, the lines
// between the first one and that are not read.
func Settled(f interop.Format, src interop.Source, from int64) (n int64, err error) {
	t, err := Of(f)
	if err != nil {
		return 0, err
	}
	in, err := src.Open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	var tail interop.Settler
	if t.Program != nil && t.Program.Settled != nil {
		tail = t.Program.Settled()
	}
	r, at := bufio.NewReaderSize(in, 64<<10), int64(0)
	var line []byte
	for size := int64(0); ; {
		part, err := r.ReadSlice('\n')
		size += int64(len(part))
		if len(line) <= maxSettled {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && tail != nil:
			return tail.Settled(), nil
		case errors.Is(err, io.EOF):
			return at, nil
		case err != nil:
			return 0, fmt.Errorf("read %s: %w", src.Name, err)
		}
		if len(line) > maxSettled {
			line = nil // only its place counts
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
