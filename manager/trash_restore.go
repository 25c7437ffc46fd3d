package manager

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// Restore brings an item back as a session of a store, under its old id if that can be had (in the store from which
// it was deleted it cannot), and takes it out of the trash. An import of the file that it was imported from knows it.
// The session is the caller's to close.
func (t *Trash) Restore(ctx context.Context, st *coppice.Store, name string) (*coppice.Session, error) {
	r, err := t.read(name)
	if err != nil {
		return nil, err
	}
	s, err := t.bring(ctx, st, r, r.Session)
	for k := 1; errors.Is(err, os.ErrExist) && r.Source != nil && k < layout.MaxApart; k++ {
		s, err = t.bring(ctx, st, r, layout.Apart(cmp.Or(r.Source.Session, r.Session), k))
	}
	if errors.Is(err, os.ErrExist) {
		s, err = t.bring(ctx, st, r, "")
	}
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", name, err)
	}
	if err := t.remove(name); err != nil {
		return s, fmt.Errorf("restore %s: restored, but still in the trash: %w", name, err)
	}
	return s, nil
}

// bring imports an item under an id; "" = a new one. Half a session does not stay.
func (t *Trash) bring(ctx context.Context, st *coppice.Store, r record, id string) (*coppice.Session, error) {
	dir := filepath.Join(t.Path, r.Name)
	f, err := os.Open(filepath.Join(dir, linesFile))
	if err != nil {
		return nil, err
	}
	o := &coppice.SessionOptions{
		ID: id, Title: r.Title, Cwd: r.Cwd, Profile: r.Profile,
		Original: func() (io.Reader, error) {
			same, err := sameLines(filepath.Join(dir, originalFile), filepath.Join(dir, linesFile))
			if err != nil || same {
				return nil, err
			}
			return os.Open(filepath.Join(dir, originalFile)) // which Import closes
		},
	}
	if r.Source != nil {
		o.Source = func() (*checkpoint.Source, error) { return r.Source, nil }
	}
	s, err := st.Import(ctx, fileLines(f, r.Entries), o)
	if err = errors.Join(err, f.Close()); err != nil {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
		return nil, err
	}
	if r.Whole && s.Head().Entry == r.Head {
		return s, nil // so the file may go on in it
	}
	if err := r.restore(ctx, s, "restore"); err != nil {
		return nil, errors.Join(err, s.Close(), st.Delete(ctx, s.ID()))
	}
	return s, nil
}

// sameLines reports whether what was imported are the lines that there are now, but for the one that says where the
// head is.
func sameLines(original, now string) (bool, error) {
	a, err := os.Open(original)
	if err != nil {
		return false, err
	}
	b, err := os.Open(now)
	if err != nil {
		return false, errors.Join(err, a.Close())
	}
	whole, lines := bufio.NewReader(a), bufio.NewReader(b)
	equal := true
	for more := 0; equal && more < 2; {
		x, err := whole.ReadByte()
		y, end := lines.ReadByte()
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return false, errors.Join(err, a.Close(), b.Close())
		case err == nil:
			equal = end == nil && x == y
		case end != nil:
			more = 2 // both end here
		case y == '\n':
			more++
			_, end = lines.Peek(1)
			equal = end != nil
		}
	}
	return equal, errors.Join(a.Close(), b.Close())
}

// fileLines returns the header and every entry of a file as they are, but not the line after them that says where the
// head is: the record knows.
func fileLines(r io.Reader, entries uint64) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		in := bufio.NewReaderSize(r, 1<<16)
		for n := uint64(0); n <= entries; n++ {
			line, err := in.ReadBytes('\n')
			if len(line) > 0 && !yield(entry.Line(line), nil) {
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(transcript.Draft{}, err)
				return
			}
		}
	}
}
