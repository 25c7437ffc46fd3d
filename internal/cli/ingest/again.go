package ingest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/interop"
)

// earlier says what a store has of a file that is to be imported.
type earlier uint8

const (
	nothing   earlier = iota // no session of its id
	another                  // a session of its id that came from elsewhere, or was deleted
	beginning                // a session that the file began as: it has grown since
	whole                    // a session of this very file
)

// of says what there is under an id.
func (has earlier) of(id string) string {
	switch has {
	case beginning:
		return "the session " + id + " is this file's, from when it was shorter"
	case whole:
		return "the session " + id + " is this file's already"
	case nothing, another:
	}
	return "the id " + id + " is or was another session's"
}

// before finds out what a store has of a file, by the bytes that the session of its id was imported from. What cannot
// be read of that session counts as another's: then the file is imported, and nothing of either is lost. entries is
// how many the session has.
func before(ctx context.Context, st *coppice.Store, id string, src Source) (has earlier, entries int, err error) {
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nothing, 0, nil
	case err != nil:
		return another, 0, ctx.Err()
	}
	entries = int(s.Info().Entries)
	if err := s.Close(); err != nil {
		return another, 0, err
	}
	f, err := src.Open()
	if err != nil {
		return another, 0, err
	}
	file := bufio.NewReaderSize(f, 1<<16)
	has = another
	if err = st.Export(ctx, id, &same{file: file}); err == nil {
		has = beginning
		if _, err = file.Peek(1); errors.Is(err, io.EOF) {
			has = whole
		}
	}
	return has, entries, errors.Join(ctx.Err(), f.Close())
}

// along gives the files that belong to the session of a file, as an import of it would.
func along(r interop.Reader) (files []string, err error) {
	family, ok := r.(interop.Family)
	if !ok {
		return nil, nil
	}
	for err == nil {
		_, err = r.Next()
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	for child, err := range family.Children() {
		if err != nil {
			return files, err
		}
		if child.File != "" {
			files = append(files, child.File)
		}
	}
	return files, nil
}

// errDiffers stops an export where the file goes another way.
var errDiffers = errors.New("the file is another")

// same takes what a file holds, byte for byte, and fails at what it does not hold.
type same struct {
	file *bufio.Reader
	buf  []byte
}

func (s *same) Write(p []byte) (int, error) {
	s.buf = append(s.buf[:0], p...)
	if _, err := io.ReadFull(s.file, s.buf); err != nil || !bytes.Equal(s.buf, p) {
		return 0, errDiffers
	}
	return len(p), nil
}
