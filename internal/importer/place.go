package importer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"

	"github.com/google/uuid"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop"
)

// maxApart bounds the sessions that are compared with a file with their id. Each time that a file is
// imported anew takes one more id, and an id that was deleted costs one small read.
const maxApart = 1024

// place is the session of a file: an existing one, or where to import it.
type place struct {
	id        string   // "" = a new one
	unchanged bool     // it exists, with these bytes
	grows     bool     // it exists, from when the file was shorter
	apart     string   // of a child that grows: its id if it does not match the existing session
	stale     []string // sessions of earlier states of it, which go once it is imported
	entries   int      // of the existing session
	taken     string   // why the id is not the one in the file
}

// find finds the place of a file: under the id in the file; if another session has that, under an
// id derived from the file's bytes, or, with Grow, from the id. A file without an id has, with Grow,
// one that is derived from its first line, which stays when the file grows. So a file is imported
// once, whatever its id, and again when its bytes have changed. apart are sessions to which the file
// cannot be appended although it begins with their bytes.
func find(
	ctx context.Context, st *coppice.Store, h interop.Header, src interop.Source, o Options, apart []string,
) (is place, err error) {
	free, named := "", !h.Made && layout.ValidID(h.ID) == nil
	if named {
		if is, free, err = findNamed(ctx, st, h.ID, src, o, apart); err == nil && is.isNew() && o.Grow {
			is.stale, err = unnamed(ctx, st, src)
		}
		if err != nil || is.id != "" {
			return is, err
		}
	}
	if o.Again {
		return is, nil
	}
	id, err := ownID(src)
	if err != nil {
		return is, err
	}
	has, entries, err := before(ctx, st, id, src)
	switch {
	case err != nil:
		return is, err
	case has == whole:
		return place{id: id, unchanged: true, entries: entries}, nil
	case o.Grow && !named:
		if id, err = firstLineID(src); err != nil {
			return is, err
		}
		if is, free, err = findNamed(ctx, st, id, src, o, apart); is.id == "" {
			is.id, is.taken = free, ""
		}
		return is, err
	case o.Grow && free != "":
		is.id = free
	case has == nothing:
		is.id = id
	}
	return is, nil
}

// findNamed finds the place among the sessions of files with the same id. If the file is none of
// these the place has no id, and free is the first unused id for a file with this id.
func findNamed(
	ctx context.Context, st *coppice.Store, id string, src interop.Source, o Options, apart []string,
) (is place, free string, err error) {
	for k := range maxApart {
		at := apartFrom(id, k)
		has, entries, err := before(ctx, st, at, src)
		switch {
		case err != nil:
			return is, "", err
		case has == nothing && k == 0:
			return place{id: at}, "", nil
		case has == nothing:
			return is, at, nil
		case o.Again:
			is.taken = has.of(at) + ": imported as a new session"
			return is, "", nil
		case has == whole, has == longer && o.Grow:
			return place{id: at, unchanged: true, entries: entries}, "", nil
		case has == beginning && o.Grow && !slices.Contains(apart, at):
			return place{id: at, grows: true, entries: entries}, "", nil
		case k == 0:
			is.taken = has.of(at) + ": imported as a new session"
			if has == beginning && !o.Grow {
				is.taken += "; with --grow the new entries are appended to it"
			}
		}
	}
	return is, "", nil
}

// isNew reports whether the place is that of a session that does not exist yet.
func (is place) isNew() bool { return is.id != "" && !is.unchanged && !is.grows }

// unnamed returns the sessions that were imported from the beginning of a file when it did not say its
// id yet.
func unnamed(ctx context.Context, st *coppice.Store, src interop.Source) (stale []string, err error) {
	id, err := firstLineID(src)
	if errors.Is(err, interop.ErrNotSession) {
		return nil, nil
	}
	for k := 0; err == nil && k < maxApart; k++ {
		var has earlier
		if has, _, err = before(ctx, st, apartFrom(id, k), src); has == nothing {
			break
		}
		if has == beginning || has == whole {
			stale = append(stale, apartFrom(id, k))
		}
	}
	return stale, err
}

// maxFirstLine bounds the part of a first line that identifies a file.
const maxFirstLine = 64 << 10

// firstLineID derives an id from the first line of a file. A file that ends within it holds no session
// yet.
func firstLineID(src interop.Source) (string, error) {
	f, err := src.Open()
	if err != nil {
		return "", err
	}
	in := bufio.NewReaderSize(f, maxFirstLine)
	line, err := in.ReadSlice('\n')
	if err = errors.Join(f.Close(), err); errors.Is(err, io.EOF) && !json.Valid(line) {
		return "", fmt.Errorf("%w: its first line is not complete", interop.ErrNotSession)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return "", err
	}
	sum := sha256.Sum256(bytes.TrimRight(line, "\r\n"))
	return derived(append([]byte("first line\x00"), sum[:]...)), nil
}

// apartFrom returns the id of the kth session of files with the same id.
func apartFrom(id string, k int) string {
	if k == 0 {
		return id
	}
	return derived([]byte(id + "\x00apart\x00" + strconv.Itoa(k)))
}

// ownID derives an id from the bytes of a file.
func ownID(src interop.Source) (string, error) {
	f, err := src.Open()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return derived(sum.Sum(nil)), errors.Join(err, f.Close())
}

// derived returns a UUID of version 8, a hash of its argument.
func derived(of []byte) string { return uuid.NewHash(sha256.New(), uuid.Nil, of, 8).String() }

// earlier is what a store has under the id of a file.
type earlier uint8

const (
	nothing   earlier = iota // no session with the id
	another                  // a session that was not imported from the file, or was deleted
	beginning                // a session of the file, which has grown since
	whole                    // a session of the file as it is
	longer                   // a session of the file, or of a copy, when it had more
)

// of describes what there is under an id.
func (has earlier) of(id string) string {
	switch has {
	case beginning:
		return "session " + id + " was imported from this file when it was shorter"
	case whole:
		return "session " + id + " was imported from this file"
	case nothing, another, longer:
	}
	return "the id " + id + " belongs or belonged to another session"
}

// before compares a file with the bytes from which the session with an id was imported, and returns the number of
// entries of that session. A session that cannot be read is an error: importing the file as another session would
// double it.
func before(
	ctx context.Context, st *coppice.Store, id string, src interop.Source,
) (has earlier, entries int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("compare with session %s: %w", id, err)
		}
	}()
	info, has, err := look(ctx, st, id, math.MaxInt)
	if has == nothing || err != nil || info == nil {
		return has, 0, err
	}
	f, err := src.Open()
	if err != nil {
		return another, 0, err
	}
	file := bufio.NewReaderSize(f, 1<<16)
	switch err = st.Export(ctx, id, &same{file: file}); {
	case errors.Is(err, errShorter):
		has, err = longer, nil
	case errors.Is(err, errDiffers):
		err = nil
	case err == nil:
		has = beginning
		if _, err = file.Peek(1); errors.Is(err, io.EOF) {
			has, err = whole, nil
		}
	}
	return has, int(info.Entries), errors.Join(err, f.Close())
}

// found is an existing session.
type found struct {
	checkpoint.Summary
	imported int  // entries that were imported
	used     bool // something else was committed after them
}

// look returns the session with an id; nil, with another, if it was deleted. The number of imported entries is read
// from the log only if the session has enough entries.
func look(ctx context.Context, st *coppice.Store, id string, enough int) (*found, earlier, error) {
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	switch {
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, coppice.ErrDeleted):
		return nil, nothing, nil
	case errors.Is(err, coppice.ErrDeleted):
		return nil, another, nil
	case err != nil:
		return nil, another, err
	}
	is := found{Summary: s.Info()}
	if is.imported = int(is.Entries); is.imported >= enough {
		for c, err := range s.Log(ctx, coppice.Target{}) { // newest first
			if err != nil {
				return nil, another, errors.Join(err, s.Close())
			}
			if c.Reason == "import" {
				break
			}
			is.used = true
			is.imported -= min(is.imported, c.Entries)
		}
	}
	return &is, another, s.Close()
}

// These stop an export where the file differs, and where it ends.
var (
	errDiffers = errors.New("the file differs")
	errShorter = errors.New("the file ends before")
)

// same is a writer that fails if what is written differs from a file, or is longer.
type same struct {
	file *bufio.Reader
	buf  []byte
}

func (s *same) Write(p []byte) (int, error) {
	s.buf = append(s.buf[:0], p...)
	n, err := io.ReadFull(s.file, s.buf)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, err
	}
	if !bytes.Equal(s.buf[:n], p[:n]) {
		return 0, errDiffers
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, errShorter
	}
	return len(p), nil
}
