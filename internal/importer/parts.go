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
	"github.com/coppice-go/coppice/internal/layout"
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

// others returns the sessions of other files of a file's session than id.
func (f file) others(ctx context.Context, st *coppice.Store, id string) (list []string, err error) {
	if f.program == nil || f.program.After == nil || f.id == "" {
		return nil, nil
	}
	for k := range layout.MaxApart {
		at := layout.Apart(f.id, k)
		if at == id {
			continue
		}
		s, err := look(ctx, st, at)
		if s == nil || err != nil {
			return list, err
		}
		if s.gone == nil && f.isOther(s.source) {
			list = append(list, s.ID)
		}
	}
	return list, nil
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

// afterParts returns a source of the file f preceded by its earlier parts, and the number of lines of those. Session id
// was imported from the last of the earlier parts.
func (f file) afterParts(
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
		whole, _, err = first.afterParts(ctx, st, before, parts+1)
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

// adopt makes sessions continue that of a file, if theirs were imported before it and begin where it ends. Such a
// session is imported again from the bytes that it keeps, as one whose parent is the file's, and then deleted. If it
// was used since its import it stays, and its metadata names the other one. was is the session in whose place the
// file's is.
func (f file) adopt(
	ctx context.Context, st *coppice.Store, parts []string, was string, o Options, res *Result,
) (err error) {
	if len(parts) == 0 || !o.Grow {
		return nil
	}
	older, err := f.earlier(ctx, st, res.Session)
	for i := 0; err == nil && i < len(parts); i++ {
		var part *found
		part, err = look(ctx, st, parts[i])
		if err != nil || part == nil || part.gone != nil || slices.Contains(older, part.ID) ||
			part.Parent != "" && part.Parent != was || part.Meta[continues] == res.Session {
			continue
		}
		if err = f.adoptPart(ctx, st, part, slices.DeleteFunc(slices.Clone(parts), func(id string) bool {
			return id == part.ID
		}), o, res); err != nil {
			err = fmt.Errorf("session %s, which may continue it: %w", part.ID, err)
		}
	}
	return err
}

// earlier returns a session, and those of the parts before its own.
func (f file) earlier(ctx context.Context, st *coppice.Store, id string) (list []string, err error) {
	for range maxParts {
		list = append(list, id)
		is, err := look(ctx, st, id)
		if is == nil || is.gone != nil || err != nil {
			return list, err
		}
		if id, _, err = f.after(ctx, st, is); id == "" || err != nil {
			return list, err
		}
	}
	return list, nil
}

// continues is the key of metadata that names the session of the part before.
const continues = "continues"

func (f file) adoptPart(
	ctx context.Context, st *coppice.Store, part *found, parts []string, o Options, res *Result,
) error {
	next := f
	next.Source = kept(ctx, st, part.ID)
	next.Name, next.Size, next.Changed = f.Name, part.source.Size, part.source.Changed
	line, _, err := f.program.After(next.Source)
	if err != nil || line == "" {
		return err
	}
	if size, _, err := f.program.Upto(f.Source, line); size == 0 || err != nil {
		return err
	}
	note := func(detail string) {
		res.Diagnostics = append(res.Diagnostics, Diagnostic{Kind: "next-part", Detail: detail})
	}
	if used, err := used(ctx, st, part.ID); used || err != nil {
		if err == nil {
			err = o.link(ctx, st, part.ID, res.Session)
			note("session " + part.ID + " continues it: its metadata says so, since it was used")
		}
		return err
	}
	o.Session, o.Read, o.beside = "", nil, nil
	if !next.Changed.IsZero() {
		o.Now = next.Changed
	}
	is := place{after: res.Session}
	if is.id, err = freeID(ctx, st, f.id); err != nil {
		return err
	}
	r, err := formats.Open(next.Source, o.Format, interop.Options{Now: o.Now})
	if err != nil {
		return err
	}
	again := Result{File: next.Name, Format: string(o.Format)}
	h, err := r.Header()
	if err == nil {
		err = next.take(ctx, st, r, h, is, o, "", &again)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	note("session " + again.Session + " continues it, in place of " + part.ID)
	if err = next.adopt(ctx, st, parts, part.ID, o, &again); err != nil {
		return err
	}
	if err = f.moveAgents(ctx, st, part.ID, again.Session, o); err != nil {
		return err
	}
	gone := attempts{apart: []string{part.ID}}
	return gone.drop(ctx, st, &again)
}

// moveAgents copies the sessions of agents with files of their own, which are not read now, from one parent to another.
func (f file) moveAgents(ctx context.Context, st *coppice.Store, from, to string, o Options) error {
	for sum, err := range st.List(ctx, coppice.ListOptions{Parent: from, Exact: true}) {
		if err != nil {
			return err
		}
		is, err := look(ctx, st, sum.ID)
		if err != nil {
			return err
		}
		if is == nil || is.source == nil || is.source.Session == f.id { // deleted; in the file; a part of it
			continue
		}
		if err = moveAgent(ctx, st, is, to, o); err != nil {
			return fmt.Errorf("session %s: %w", is.ID, err)
		}
	}
	return nil
}

func moveAgent(ctx context.Context, st *coppice.Store, is *found, to string, o Options) error {
	r, err := formats.Open(kept(ctx, st, is.ID), interop.Pi, interop.Options{Now: o.Now})
	if err != nil {
		return err
	}
	h, err := r.Header()
	if err != nil {
		return errors.Join(err, r.Close())
	}
	h.Raw = rawjson.WithField(h.Raw, "parentSession", rawjson.AppendString(nil, to))
	n := 0
	s, err := st.Import(ctx, lines(h, r.Next, &n), &coppice.SessionOptions{
		ID: layout.Apart(ofParent(is.source.Session, to), 1), Title: o.title(h), Cwd: h.Cwd, Parent: to,
		Meta:   o.meta(h),
		Source: func() (*checkpoint.Source, error) { return is.source, nil },
	})
	if err = errors.Join(err, r.Close()); err == nil {
		err = o.end(s)
	} else if errors.Is(err, fs.ErrExist) { // an earlier try was broken off
		err = nil
	}
	return err
}

// used reports whether a session has commits that no import made: then Store.DropImport leaves it.
func used(ctx context.Context, st *coppice.Store, id string) (used bool, err error) {
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for c, err := range s.Log(ctx, coppice.Target{}) {
		if err != nil {
			return false, err
		}
		if !slices.Contains([]string{"create", "import", "roll"}, c.Reason) {
			return true, nil
		}
	}
	return false, nil
}

// freeID returns the first id for a file with an id that no session has or had.
func freeID(ctx context.Context, st *coppice.Store, id string) (string, error) {
	for k := range layout.MaxApart {
		at := layout.Apart(id, k)
		if is, err := look(ctx, st, at); is == nil || err != nil {
			return at, err
		}
	}
	return "", fmt.Errorf("%s: %d sessions have ids of it: %w", id, layout.MaxApart, fs.ErrExist)
}

// link notes in the metadata of a session which one it continues.
func (o Options) link(ctx context.Context, st *coppice.Store, id, before string) error {
	s, err := st.Open(ctx, id, nil)
	if err != nil {
		return err
	}
	_, err = s.SetInfo(ctx, coppice.InfoChange{Meta: map[string]*string{continues: &before}})
	return errors.Join(err, o.end(s))
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
	src, lines, err := f.afterParts(ctx, st, id, 0)
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
