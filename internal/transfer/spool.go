package transfer

import (
	"bufio"
	"errors"
	"fmt"
	"os"
)

// spoolMemory is the maximum bytes of lines in memory while a history is gathered; more are written to a file in the
// system's temporary folder, which only its owner can read and which is removed with the import.
const spoolMemory = 16 << 20

// spoolAhead is the number of bytes per write to the file.
const spoolAhead = 256 << 10

// spool holds the lines of a history until all are read, since a parent may follow its child. In addition to the lines
// it needs 16 bytes for each.
type spool struct {
	held  [][]byte      // the first lines
	bytes int64         // of them
	most  int64         // maximum in memory
	file  *os.File      // the others
	ahead *bufio.Writer // buffer of the file, until the first read
	at    []int64       // the end of each of them in the file
}

func newSpool(memory int64) spool {
	if memory == 0 {
		memory = spoolMemory
	}
	return spool{most: memory}
}

// add adds a line, and keeps the slice.
func (s *spool) add(raw []byte) error {
	if s.file == nil && s.bytes+int64(len(raw)) <= s.most {
		s.held = append(s.held, raw)
		s.bytes += int64(len(raw))
		return nil
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "coppice-import-")
		if err != nil {
			return fmt.Errorf("create a temporary file for the lines: %w", err)
		}
		s.file, s.ahead = f, bufio.NewWriterSize(f, spoolAhead)
	}
	if _, err := s.ahead.Write(raw); err != nil {
		return fmt.Errorf("write a line to the temporary file: %w", err)
	}
	end := int64(len(raw))
	if n := len(s.at); n > 0 {
		end += s.at[n-1]
	}
	s.at = append(s.at, end)
	return nil
}

// get returns a line by its number.
func (s *spool) get(i int) ([]byte, error) {
	if i < len(s.held) {
		return s.held[i], nil
	}
	i -= len(s.held)
	begin := int64(0)
	if i > 0 {
		begin = s.at[i-1]
	}
	if err := s.ahead.Flush(); err != nil {
		return nil, fmt.Errorf("write lines to the temporary file: %w", err)
	}
	raw := make([]byte, s.at[i]-begin)
	if _, err := s.file.ReadAt(raw, begin); err != nil {
		return nil, fmt.Errorf("read a line of the temporary file: %w", err)
	}
	return raw, nil
}

// size is how many bytes a line has.
func (s *spool) size(i int) int {
	if i < len(s.held) {
		return len(s.held[i])
	}
	i -= len(s.held)
	if i == 0 {
		return int(s.at[0])
	}
	return int(s.at[i] - s.at[i-1])
}

// drop releases lines from to to-1; those in memory must not be read again.
func (s *spool) drop(from, to int) {
	for i := from; i < min(to, len(s.held)); i++ {
		s.held[i] = nil
	}
}

// close removes the file.
func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
