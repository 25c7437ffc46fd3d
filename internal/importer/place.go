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
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop"
)

// place is the session of a file: an existing one, or where to import it.
type place struct {
	id        string                // "" = a new one
	unchanged bool                  // it exists, with these bytes
	grows     bool                  // it exists, from when the file was shorter
	apart     string                // of a child that grows: its id if it does not match the existing session
	stale     []string              // sessions of earlier states of it, which go once it is imported
	entries   int                   // of the existing session
	taken     string                // why the id is not the one in the file
	after     string                // the session of the part of the file before, in another folder; "" = there is none
	parts     []string              // sessions of other files of the same session
	deleted   *checkpoint.Tombstone // of its session, which is not imported again; nil = none
}

// find finds the place of a file: under the id in the file; if another session has that, under an
// id derived from the file's bytes, or, with Grow, from the id. A file without an id has, with Grow,
// one that is derived from its first line, which stays when the file grows. So a file is imported
// once, whatever its id, and again when its bytes have changed. apart are sessions to which the file
// cannot be appended although it begins with their bytes.
func find(
	ctx context.Context, st *coppice.Store, h interop.Header, f file, o Options, apart []string,
) (is place, err error) {
	free, named := "", !h.Made && layout.ValidID(h.ID) == nil
	if named {
		if is, free, err = findNamed(ctx, st, h.ID, f, o, apart); err == nil && is.isNew() && o.Grow {
			is.stale, err = unnamed(ctx, st, f)
		}
		if err != nil || is.id != "" {
			return is, err
		}
	}
	if o.Again {
		return is, nil
	}
	id, err := ownID(f)
	if err != nil {
		return is, err
	}
	has, old, err := before(ctx, st, id, f, o.Verify)
	switch {
	case err != nil:
		return is, err
	case has == removed && !o.Grow:
		return place{id: id, deleted: old.gone}, nil
	case has == whole:
		return place{id: id, unchanged: true, entries: int(old.Entries), parts: is.parts}, nil
	case o.Grow && !named:
		if id, err = firstLineID(f); err != nil {
			return is, err
		}
		if is, free, err = findNamed(ctx, st, id, f, o, apart); is.id == "" {
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
	ctx context.Context, st *coppice.Store, id string, f file, o Options, apart []string,
) (is place, free string, err error) {
	var deleted place
	alive := false     // a session of the file exists, and cannot grow
	var parts []string // sessions of other files, the end of which the file may be
	defer func() {
		is.parts = parts
		if err == nil && (is.id == "" || is.isNew()) {
			err = is.follow(ctx, st, f, parts)
		}
	}()
	for k := range layout.MaxApart {
		at := layout.Apart(id, k)
		has, old, err := before(ctx, st, at, f, o.Verify)
		if err == nil && old != nil && old.gone != nil {
			has, old, err = f.inPlaceOf(ctx, st, has, old, o.Verify)
		}
		first, gone := "", false
		if err == nil && has == beginning && o.Grow {
			if first, gone, err = f.after(ctx, st, old); gone {
				has = another // without its beginning the file cannot be compared with it
			}
		}
		if has == another && old != nil && old.gone == nil && f.isOther(old.source) {
			parts = append(parts, at)
		}
		switch {
		case err != nil:
			return is, "", err
		case has == nothing && k == 0:
			return place{id: at}, "", nil
		case has == nothing && deleted.id != "" && !alive:
			return deleted, "", nil
		case has == nothing:
			return is, at, nil
		case has == removed && o.Again: // the new session has its id
			return place{id: at}, "", nil
		case has == removed: // unless one of the next ids has the file now
			deleted = place{id: old.ID, deleted: old.gone}
		case o.Again && has != another:
			is.taken = has.of(at) + ": imported as a new session"
			return is, "", nil
		case has == whole, has == longer && o.Grow:
			return place{id: old.ID, unchanged: true, entries: int(old.Entries)}, "", nil
		case has == beginning && o.Grow && !slices.Contains(apart, at):
			return place{id: at, grows: true, entries: int(old.Entries), after: first}, "", nil
		case has == beginning && o.Grow:
			alive = true
		}
		if k == 0 && has != removed {
			is.taken = has.of(at) + ": imported as a new session"
			if has == beginning && !o.Grow {
				is.taken += "; with --grow the new entries are appended to it"
			}
		}
	}
	return is, "", nil
}

// isNew reports whether the place is that of a session that does not exist yet.
func (is place) isNew() bool { return is.id != "" && !is.unchanged && !is.grows && is.deleted == nil }

// unnamed returns the sessions that were imported from the beginning of a file when it did not have its id yet.
func unnamed(ctx context.Context, st *coppice.Store, f file) (stale []string, err error) {
	id, err := firstLineID(f)
	if errors.Is(err, interop.ErrNotSession) {
		return nil, nil
	}
	for k := 0; err == nil && k < layout.MaxApart; k++ {
		var has earlier
		if has, _, err = before(ctx, st, layout.Apart(id, k), f, true); has == nothing {
			break
		}
		if has == beginning || has == whole {
			stale = append(stale, layout.Apart(id, k))
		}
	}
	return stale, err
}

// maxFirstLine bounds the part of a first line that identifies a file.
const maxFirstLine = 64 << 10

// firstLineID derives an id from the first line of a file. A file that ends within it holds no session
// yet.
func firstLineID(f file) (string, error) {
	r, err := f.open()
	if err != nil {
		return "", err
	}
	in := bufio.NewReaderSize(r, maxFirstLine)
	line, err := in.ReadSlice('\n')
	if err = errors.Join(r.Close(), err); errors.Is(err, io.EOF) && !json.Valid(line) {
		return "", fmt.Errorf("%w: its first line is not complete", interop.ErrNotSession)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return "", err
	}
	sum := sha256.Sum256(bytes.TrimRight(line, "\r\n"))
	return layout.Derived(append([]byte("first line\x00"), sum[:]...)), nil
}

// ownID derives an id from the bytes of a file.
func ownID(f file) (string, error) {
	r, err := f.open()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, r)
	return layout.Derived(sum.Sum(nil)), errors.Join(err, r.Close())
}

// earlier is what a store has under the id of a file.
type earlier uint8

const (
	nothing   earlier = iota // no session with the id
	another                  // a session that was not imported from the file, or was deleted
	beginning                // a session of the file, which has grown since
	whole                    // a session of the file as it is
	longer                   // a session of the file, or of a copy, when it had more
	removed                  // a deleted session of the file
)

// of describes what there is under an id.
func (has earlier) of(id string) string {
	switch has {
	case beginning:
		return "session " + id + " was imported from this file when it was shorter"
	case whole:
		return "session " + id + " was imported from this file"
	case nothing, another, longer, removed:
	}
	return "the id " + id + " belongs or belonged to another session"
}

// before compares a file with what a session was imported from. all: with every byte of that. A session that cannot be
// read is an error: importing the file as another session would double it.
func before(ctx context.Context, st *coppice.Store, id string, f file, all bool) (has earlier, is *found, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("compare with session %s: %w", id, err)
		}
	}()
	is, err = look(ctx, st, id)
	switch {
	case err != nil || is == nil:
		return nothing, nil, err
	case is.gone != nil:
		has, err = f.deleted(is.gone.Source)
		return has, is, err
	case is.source != nil && is.source.Bytes == 0 && f.is(is.source):
		return beginning, is, nil // its import was broken off
	case is.source != nil && is.source.Bytes > 0:
		if has, err = f.begins(is.source, all); has != nothing || err != nil {
			return has, is, err
		}
	}
	has, err = f.compare(exported(ctx, st, id), asIs)
	if has == another && err == nil && f.program != nil && f.program.Open != nil { // one of them may be packed
		has, err = f.compare(exported(ctx, st, id), f.program.Open)
	}
	return has, is, err
}

// deleted reports whether a deleted session was this file's. A file that is shorter now is a copy from earlier.
func (f file) deleted(s *checkpoint.Source) (earlier, error) {
	if s == nil || !f.is(s) {
		return another, nil
	}
	has, err := f.begins(s, false)
	if err == nil && has == nothing {
		has, err = f.startsAs(s)
	}
	if err != nil || has == another {
		return another, err
	}
	return removed, nil
}

// inPlaceOf follows a session that an import deleted to the one that it made of the same file: a copy of the file as it
// was then does not come back. What else there is under an id stays as it is.
func (f file) inPlaceOf(
	ctx context.Context, st *coppice.Store, has earlier, was *found, all bool,
) (earlier, *found, error) {
	by := was
	for range layout.MaxApart {
		s := by.gone.Source
		if s == nil || s.Program != checkpoint.SourceReplaced || s.Session == "" {
			break
		}
		now, is, err := before(ctx, st, s.Session, f, all)
		switch {
		case err != nil || is == nil:
			return has, was, err
		case now == whole, now == longer, now == removed:
			return now, is, nil
		case is.gone == nil:
			return has, was, nil
		}
		by = is
	}
	if by != was && f.id == "" { // its lines do not name the session that was deleted
		return removed, by, nil
	}
	return has, was, nil
}

// startsAs is begins for a file that is shorter than what was imported: it compares the head alone.
func (f file) startsAs(s *checkpoint.Source) (earlier, error) {
	r, err := f.open()
	if err != nil {
		return another, err
	}
	head := make([]byte, checkpoint.SourceHead)
	n, err := io.ReadFull(r, head)
	if err = errors.Join(r.Close(), err); err != nil && n < len(head) || sum(head) != s.Head {
		return another, nil //nolint:nilerr // too short to compare, or damaged
	}
	return longer, err
}

func asIs(src interop.Source) (io.ReadCloser, error) { return src.Open() }

// compare reports what an existing session is of the file, by the bytes from which it was imported. Damage of a packed
// file makes it another one; an error is that of the store, or of opening the file.
func (f file) compare(x *export, open func(interop.Source) (io.ReadCloser, error)) (earlier, error) {
	then, err := open(interop.Source{Name: "the import", Open: func() (io.ReadCloser, error) { return x, nil }})
	if err != nil {
		return another, errors.Join(err, x.Close())
	}
	now, err := open(f.Source)
	if err != nil {
		return another, errors.Join(err, then.Close())
	}
	has := compare(now, then)
	err = errors.Join(now.Close(), then.Close())
	if x.err != nil && !errors.Is(x.err, io.ErrClosedPipe) {
		return another, errors.Join(x.err, err)
	}
	return has, err
}

// export is the bytes from which a session was imported. Close ends the reading of the store, and waits for its end.
type export struct {
	*io.PipeReader
	done chan struct{}
	err  error // of the store; set once done is closed
}

// exported reads the bytes from which a session was imported.
func exported(ctx context.Context, st *coppice.Store, id string) *export {
	r, w := io.Pipe()
	x := &export{PipeReader: r, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		x.err = st.Export(ctx, id, w)
		_ = w.CloseWithError(x.err) // always nil
	}()
	return x
}

// Close ends the reading.
func (x *export) Close() error {
	err := x.PipeReader.Close()
	<-x.done
	return err
}

// found is a session that exists, or that was deleted.
type found struct {
	checkpoint.Summary
	source *checkpoint.Source    // of what it was imported from; nil = not known
	gone   *checkpoint.Tombstone // nil = it exists
	open   *coppice.Session      // nil = it is closed
}

// open opens the session with an id; nil = there is none.
func open(ctx context.Context, st *coppice.Store, id string) (*found, error) {
	s, err := st.Open(ctx, id, nil)
	if err != nil {
		if failed, ok := errors.AsType[*coppice.Error](err); ok && failed.Gone != nil {
			return &found{Summary: checkpoint.Summary{ID: id}, source: failed.Gone.Source, gone: failed.Gone}, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	return &found{Summary: s.Info(), source: s.Info().Source, open: s}, nil
}

// look is open of a session that is only looked at.
func look(ctx context.Context, st *coppice.Store, id string) (*found, error) {
	is, err := open(ctx, st, id)
	return is, errors.Join(err, is.close())
}

func (s *found) close() error {
	if s == nil || s.open == nil {
		return nil
	}
	was := s.open
	s.open = nil
	return was.Close()
}

// imported returns the number of imported entries of a session, and whether something else was committed after
// them.
func imported(ctx context.Context, st *coppice.Store, id string) (n int, used bool, err error) {
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return 0, false, err
	}
	n = int(s.Info().Entries)
	for c, err := range s.Log(ctx, coppice.Target{}) { // newest first
		if err != nil {
			return 0, false, errors.Join(err, s.Close())
		}
		if c.Reason == "import" {
			break
		}
		used = true
		n -= min(n, c.Entries)
	}
	return n, used, s.Close()
}
