package importer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
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
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop"
)

// maxApart bounds the sessions that are compared with a file that says their id.
const maxApart = 32

// place is where a file's session goes, or is.
type place struct {
	id        string // "" = a new one
	unchanged bool   // it is there, from these bytes
	grows     bool   // it is there, from when the file was shorter
	apart     string // of a child that grows: where it goes if it cannot go on there
	entries   int    // that it has
	taken     string // why the id is not that of the file
}

// find looks for the place of a file's session: under the id that the file says, if that is another's under one that is
// made of the file's bytes, or, if it may grow, of the id. So a file comes once, whatever it says, and once more when its
// bytes are others. apart are sessions that the file cannot be brought into though it begins as they do.
func find(ctx context.Context, st *coppice.Store, h interop.Header, src Source, o Options, apart []string) (is place, err error) {
	free := ""
	if !h.Made && layout.ValidID(h.ID) == nil {
		if is, free, err = findNamed(ctx, st, h.ID, src, o, apart); err != nil || is.id != "" {
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
	case o.Grow && free != "":
		is.id = free
	case has == nothing:
		is.id = id
	}
	return is, nil
}

// findNamed looks among the sessions of files that say an id. If it is none of these there is no id in the place, and
// free is the first that a file of this name may have.
func findNamed(ctx context.Context, st *coppice.Store, id string, src Source, o Options, apart []string) (is place, free string, err error) {
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
			is.taken = has.of(at) + ": imported as a new one"
			return is, "", nil
		case has == whole:
			return place{id: at, unchanged: true, entries: entries}, "", nil
		case has == beginning && o.Grow && !slices.Contains(apart, at):
			return place{id: at, grows: true, entries: entries}, "", nil
		case k == 0:
			is.taken = has.of(at) + ": imported as a new one"
			if has == beginning && !o.Grow {
				is.taken += "; --grow lets it go on there"
			}
		}
	}
	return is, "", nil
}

// apartFrom is the id of the kth session of files that say the same id.
func apartFrom(id string, k int) string {
	if k == 0 {
		return id
	}
	return derived([]byte(id + "\x00apart\x00" + strconv.Itoa(k)))
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
	defer func() {
		if err != nil {
			err = fmt.Errorf("compare it with session %s: %w", id, err)
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
	if err = st.Export(ctx, id, &same{file: file}); err == nil {
		has = beginning
		if _, err = file.Peek(1); errors.Is(err, io.EOF) {
			has = whole
		}
	}
	return has, int(info.Entries), errors.Join(ctx.Err(), f.Close())
}

// found is a session that there is.
type found struct {
	checkpoint.Summary
	imported int // of its entries
}

// look gives what there is under an id; nil, with another, of a session that was deleted or cannot be read. Which of its
// entries were imported is asked of the log only where there are enough of them.
func look(ctx context.Context, st *coppice.Store, id string, enough int) (*found, earlier, error) {
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	switch {
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrDeleted):
		return nil, nothing, nil
	case err != nil:
		return nil, another, ctx.Err()
	}
	is := found{Summary: s.Info()}
	if is.imported = int(is.Entries); is.imported >= enough {
		for c, err := range s.Log(ctx, coppice.Target{}) { // newest first
			if err != nil || c.Reason == "import" {
				break // one that cannot be read is compared by all that it has
			}
			is.imported -= min(is.imported, c.Entries)
		}
	}
	return &is, another, s.Close()
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
