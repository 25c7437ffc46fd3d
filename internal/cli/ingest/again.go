package ingest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/google/uuid"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop"
)

// place is where a file's session goes, or is.
type place struct {
	id        string // "" = a new one
	unchanged bool   // it is there, from these bytes
	entries   int    // that it has
	taken     string // why the id is not that of the file
}

// find looks for the place of a file's session: under the id that the file says, if that is another's under one that is
// made of the file's bytes. So a file comes once, whatever it says, and once more when its bytes are others.
func find(ctx context.Context, st *coppice.Store, h interop.Header, src Source, o Options) (place, error) {
	is := place{}
	if !h.Made && layout.ValidID(h.ID) == nil {
		has, entries, err := before(ctx, st, h.ID, src)
		switch {
		case err != nil:
			return is, fmt.Errorf("compare it with session %s: %w", h.ID, err)
		case has == nothing:
			return place{id: h.ID}, nil
		case has == whole && !o.Again:
			return place{id: h.ID, unchanged: true, entries: entries}, nil
		}
		is.taken = has.of(h.ID) + ": imported as a new one"
	}
	if o.Again {
		return is, nil
	}
	id, err := ownID(src)
	if err != nil {
		return is, err
	}
	switch has, entries, err := before(ctx, st, id, src); {
	case err != nil:
		return is, fmt.Errorf("compare it with session %s: %w", id, err)
	case has == nothing:
		is.id = id
	case has == whole:
		is = place{id: id, unchanged: true, entries: entries}
	}
	return is, nil
}

// ownID makes an id of the bytes of a file.
func ownID(src Source) (string, error) {
	f, err := src.Open()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return derived(sum.Sum(nil)), errors.Join(err, f.Close())
}

// derived makes an id of what it stands for, a UUID of version 8.
func derived(of []byte) string { return uuid.NewHash(sha256.New(), uuid.Nil, of, 8).String() }

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

// before finds out what a store has of a file, by the bytes that the session of an id was imported from. What cannot
// be read of that session counts as another's: then the file is imported, and nothing of either is lost. entries is
// how many the session has.
func before(ctx context.Context, st *coppice.Store, id string, src Source) (has earlier, entries int, err error) {
	info, has, err := look(ctx, st, id)
	if has == nothing || err != nil || info == nil {
		return has, 0, err
	}
	f, err := src.Open()
	if err != nil {
		return another, 0, err
	}
	file := bufio.NewReaderSize(f, 1<<16)
	if err = st.Export(ctx, id, &same{file: file}); err == nil {
		has = beginning
		if _, err = file.Peek(1); errors.Is(err, io.EOF) {
			has = whole
		}
	}
	return has, int(info.Entries), errors.Join(ctx.Err(), f.Close())
}

// look gives the summary of a session; nil, with another, of one that was deleted or cannot be read.
func look(ctx context.Context, st *coppice.Store, id string) (*checkpoint.Summary, earlier, error) {
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	switch {
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, journal.ErrDeleted):
		return nil, nothing, nil
	case err != nil:
		return nil, another, ctx.Err()
	}
	info := s.Info()
	return &info, another, s.Close()
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
