package erase

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
)

const (
	lineMost = 64 << 20 // bytes of a line of an imported file
	longLeaf = 12       // bytes from which on a text is taken to be that of one entry
)

// original stores the imported file without the lines of the entries that go. Which these are is found by what
// they hold: the id of the entry, or one of its texts. If an entry is in no line that can be told, the file is not
// kept: an empty one takes its place.
func (e *eraser) original(ctx context.Context, st *state.State) error {
	e.rename = ""
	f := &filter{left: map[string]bool{}, drop: map[int]bool{}}
	for _, gone := range e.found.erased {
		if !gone.amendment {
			f.gone, f.left[gone.id] = append(f.gone, Gone{gone.id, gone}), true
		}
	}
	own := len(f.gone)
	for _, gone := range e.what.Imported {
		f.gone, f.left[gone.ID] = append(f.gone, gone), true
	}
	if st.Original == "" || len(f.gone) == 0 {
		return nil
	}
	var kept io.Reader = strings.NewReader("")
	err := e.readOriginal(ctx, st.Original, f.look)
	if err == nil && len(f.left) > 0 {
		f.within = true
		err = e.readOriginal(ctx, st.Original, f.look)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // a repair recorded that it is lost
		return nil
	case errors.Is(err, errLine):
		f.left[f.gone[0].ID] = true
	case err != nil:
		return err
	}
	for i := range e.what.Imported { // of these the file need not have any
		gone := &e.what.Imported[i]
		if err == nil && f.left[gone.ID] {
			delete(f.left, gone.ID)
		} else if !slices.Contains(e.imported, gone.ID) {
			e.imported = append(e.imported, gone.ID)
		}
	}
	switch {
	case own == 0 && len(f.drop)+len(f.left) == 0:
		return nil
	case st.Summary.Held():
		return journal.ErrHeld
	}
	e.res.Before = st.Original
	if len(f.left) > 0 {
		e.rename, err = e.store.PutOriginal(ctx, kept)
	} else {
		e.rename, err = e.rewriteOriginal(ctx, st.Original, f.drop)
	}
	if err == nil {
		e.res.After = e.rename
		e.res.Written = append(e.res.Written, layout.OriginalKey(e.cfg.Session, e.cfg.Since, e.rename))
	}
	return err
}

// rewriteOriginal stores a file without some of its lines, by number.
func (e *eraser) rewriteOriginal(ctx context.Context, sum string, drop map[int]bool) (string, error) {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := e.readOriginal(ctx, sum, func(n int, line []byte) error {
			if drop[n] {
				return nil
			}
			_, err := w.Write(line)
			return err
		})
		w.CloseWithError(err) // nil: the end of the file
	}()
	now, err := e.store.PutOriginal(ctx, r)
	_ = r.Close() // ends the writer
	<-done
	return now, err
}

var errLine = fmt.Errorf("a line of the imported file has over %d bytes: %w", lineMost, codec.ErrLimit)

// readOriginal calls visit with each line of an imported file, with its line feed.
func (e *eraser) readOriginal(ctx context.Context, sum string, visit func(n int, line []byte) error) error {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.CloseWithError(e.store.WriteOriginal(ctx, sum, w))
	}()
	err := eachLine(r, visit)
	_ = r.Close() // ends the reader of the store
	<-done
	return err
}

func eachLine(r io.Reader, visit func(n int, line []byte) error) error {
	in := bufio.NewReaderSize(r, 1<<16)
	var line []byte
	for n := 0; ; {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > lineMost {
			return errLine
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return err
		}
		if len(line) > 0 {
			if err := visit(n, line); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		line, n = line[:0], n+1
	}
}

// filter finds the lines of entries.
type filter struct {
	gone   []Gone
	left   map[string]bool // ids of entries that were found in no line so far
	drop   map[int]bool    // lines that go
	within bool            // a text may be a part of one in the line
	at     time.Time       // of the line, or of the last one before it that has a time
}

// look takes in one line of the file.
func (f *filter) look(n int, line []byte) error {
	val := bytes.TrimSpace(line)
	if len(val) == 0 || val[0] != '{' {
		return nil
	}
	if at := rawjson.Time(rawjson.Field(val, "timestamp")); !at.IsZero() {
		f.at = at
	}
	var leaves []string // of the line, once they are needed
	for i := range f.gone {
		g := &f.gone[i]
		if f.within && !f.left[g.ID] {
			continue
		}
		if !f.within && isOwn(val, g.ID) {
			f.drop[n] = true
			delete(f.left, g.ID)
			continue
		}
		if leaves == nil {
			leaves = leavesOf(val)
		}
		if g.isIn(leaves, f.within) || !f.within && g.isPart(f.at, leaves) {
			f.drop[n] = true
			if !f.within {
				delete(f.left, g.ID)
			}
		}
	}
	return nil
}

// isOwn reports whether a line has the id as its own.
func isOwn(line []byte, id string) bool {
	for m := rawjson.Walk(line); m.Closing == '}' && m.Next(); {
		if k := string(m.Key); (k == "id" || k == "uuid") && rawjson.Text(m.Val) == id {
			return true
		}
	}
	return false
}

// isIn reports whether one of the longer texts of the entry is among those of a line; within: or a part of one.
func (g *erased) isIn(leaves []string, within bool) bool {
	for _, text := range g.leaves {
		if len(text) < longLeaf {
			continue
		}
		if slices.ContainsFunc(leaves, func(leaf string) bool {
			return leaf == text || within && strings.Contains(leaf, text)
		}) {
			return true
		}
	}
	return false
}

// isPart reports whether a line of a time at which the file has lines of the entry has one of its texts, a longer text
// that has one, or most of one: arguments, outputs and their echoes are kept in several forms.
func (g *erased) isPart(at time.Time, leaves []string) bool {
	if at.IsZero() || at.Sub(g.time).Abs() >= time.Millisecond &&
		(!at.After(g.after) || !g.until.IsZero() && !at.Before(g.until)) {
		return false
	}
	return slices.ContainsFunc(g.leaves, func(text string) bool {
		return text != "" && slices.ContainsFunc(leaves, func(leaf string) bool {
			if len(text) < longLeaf || len(leaf) < longLeaf {
				return leaf == text
			}
			return strings.Contains(leaf, text) || 2*len(leaf) >= len(text) && strings.Contains(text, leaf)
		})
	})
}
