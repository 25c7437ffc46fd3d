package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

// maxParts bounds the files of one session, each of which begins where the one before ends.
const maxParts = 16

// follows returns that of some sessions whose file has the line after which a file begins; "" = none has.
func (f file) follows(ctx context.Context, st *coppice.Store, sessions []string) (string, error) {
	if len(sessions) == 0 {
		return "", nil
	}
	line, _, err := f.program.After(f.Source)
	if err != nil || line == "" {
		return "", err
	}
	for _, id := range slices.Backward(sessions) {
		size, _, err := f.program.Upto(kept(ctx, st, id), line)
		if err != nil || size > 0 {
			return id, err
		}
	}
	return "", nil
}

// follow notes the session of which a new one is the next part.
func (is *place) follow(ctx context.Context, st *coppice.Store, f file, sessions []string) (err error) {
	if is.after, err = f.follows(ctx, st, sessions); is.after != "" {
		is.taken = "session " + is.after + " has the part before: imported as a session that continues it"
	}
	return err
}

// isOther reports whether a session is of the same session of the program, which may be in more than one file.
func (f file) isOther(s *checkpoint.Source) bool {
	return f.program != nil && f.program.After != nil && s != nil && s.Bytes > 0 && f.is(s)
}

// after returns the session of the part before a session's; gone = it was deleted.
func (f file) after(ctx context.Context, st *coppice.Store, part *found) (id string, gone bool, err error) {
	if part.Parent == "" || f.program == nil || f.program.After == nil {
		return "", false, nil
	}
	was, err := look(ctx, st, part.Parent)
	if was == nil || was.source == nil || err != nil || !f.is(was.source) {
		return "", false, err
	}
	return part.Parent, was.gone != nil, nil
}

// kept returns the file that a session was imported from.
func kept(ctx context.Context, st *coppice.Store, id string) interop.Source {
	return interop.Source{Name: id, Open: func() (io.ReadCloser, error) { return exported(ctx, st, id), nil }}
}

// behind returns a file as it follows the parts of the session before it, the last of which is a session's, and how
// many lines these have.
func (f file) behind(
	ctx context.Context, st *coppice.Store, id string, parts int,
) (src interop.Source, lines int, err error) {
	line, _, err := f.program.After(f.Source)
	if err != nil {
		return src, 0, err
	}
	first := f
	first.Source = kept(ctx, st, id)
	first.Name = f.Name
	part, err := look(ctx, st, id)
	if err == nil && part == nil {
		err = fmt.Errorf("session %s: %w", id, fs.ErrNotExist)
	}
	if err != nil {
		return src, 0, err
	}
	whole := first.Source
	before, gone, err := f.after(ctx, st, part)
	if before != "" && !gone && parts < maxParts {
		whole, _, err = first.behind(ctx, st, before, parts+1)
	}
	if err != nil {
		return src, 0, err
	}
	size, lines, err := f.program.Upto(whole, line)
	if err == nil && size == 0 {
		err = fmt.Errorf("session %s has no line %s: %w", id, line, fs.ErrNotExist)
	}
	src = f.Source
	src.Open = func() (io.ReadCloser, error) {
		a, err := whole.Open()
		if err != nil {
			return nil, err
		}
		b, err := f.Open()
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
		end := bytes.NewReader([]byte("\n")) // the first part may not have one
		return &chain{io.MultiReader(io.LimitReader(a, size), end, b), a, b}, nil
	}
	return src, lines + 1, err
}

// chain is two files, one after the other.
type chain struct {
	io.Reader
	a, b io.Closer
}

func (c *chain) Close() error { return errors.Join(c.a.Close(), c.b.Close()) }

// continuation reads a file together with the parts before it. What it reports is of the file alone.
type continuation struct {
	interop.Family
	lines  int // of the parts before
	theirs func(child interop.Child) (bool, error)
}

// continued opens a file that begins where a session's ends, and returns its header.
func (f file) continued(
	ctx context.Context, st *coppice.Store, id string, h interop.Header, o Options,
) (*continuation, interop.Header, error) {
	src, lines, err := f.behind(ctx, st, id, 0)
	if err != nil {
		return nil, h, err
	}
	r, err := formats.Open(src, o.Format, interop.Options{Now: o.Now})
	if err != nil {
		return nil, h, err
	}
	family, ok := r.(interop.Family)
	if _, err = r.Header(); err != nil || !ok {
		return nil, h, errors.Join(err, r.Close())
	}
	h.Parent = id
	h.Raw = rawjson.WithField(h.Raw, "parentSession", rawjson.AppendString(nil, id))
	h.Raw = rawjson.WithField(h.Raw, "coppice", []byte(`{"relation":"fork"}`))
	return &continuation{family, lines, func(child interop.Child) (bool, error) {
		is, err := look(ctx, st, child.Header.ID)
		return is != nil && is.Parent == id, err
	}}, h, nil
}

// Children yields those that the parts before do not have.
func (c *continuation) Children() iter.Seq2[interop.Child, error] {
	return func(yield func(interop.Child, error) bool) {
		for child, err := range c.Family.Children() {
			if err == nil && child.File == "" {
				var theirs bool
				if theirs, err = c.theirs(child); theirs {
					continue
				}
			}
			if !yield(child, err) {
				return
			}
		}
	}
}

// Diagnostics returns those of the file, with the numbers of its own lines.
func (c *continuation) Diagnostics() (list []transcript.Diagnostic) {
	for _, d := range c.Family.Diagnostics() {
		if d.Ordinal == 0 || d.Ordinal > uint64(c.lines) {
			d.Ordinal -= min(d.Ordinal, uint64(c.lines))
			list = append(list, d)
		}
	}
	return list
}
