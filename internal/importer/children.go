package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// children imports the sessions that a file holds besides its own, each as a child of its session.
// If the file was imported before, it imports those that are missing because that import was
// interrupted, and those that have grown: with o.Grow they are appended to their sessions, provided
// that nothing else was appended to these.
func children(ctx context.Context, st *coppice.Store, f interop.Family, o Options, res *Result) (err error) {
	var places []place
	if res.Unchanged || res.Grew {
		if places, err = placesOf(ctx, st, f, o.Grow, res); err != nil {
			return fmt.Errorf("sessions in the file: %w", err)
		}
		if !slices.ContainsFunc(places, isLeft) {
			return nil
		}
	}
	for range maxLost { // again for those that do not match their sessions, or that another import was first with
		places, err = importChildren(ctx, st, f, places, o, res)
		if err != nil || !slices.ContainsFunc(places, isLeft) {
			return err
		}
	}
	return fmt.Errorf("sessions in the file: other imports were first %d times: %w", maxLost, coppice.ErrConflict)
}

func isLeft(is place) bool { return !is.unchanged }

// importChildren imports each child at its place; places is nil for the first import of a file. It
// returns the places of the children that are left, because they do not match the sessions that
// they were to be appended to, or because another import was first: these have no place.
func importChildren(
	ctx context.Context, st *coppice.Store, f interop.Family, places []place, o Options, res *Result,
) (left []place, err error) {
	i := 0
	for child, err := range f.Children() {
		var is place
		switch {
		case err != nil:
		case i < len(places) && (places[i].unchanged || places[i].id != ""):
			is = places[i]
		default:
			if places == nil {
				res.note(child)
			}
			is, err = childPlace(ctx, st, child.Header.ID, -1, o.Grow, res)
		}
		i++
		stays := place{unchanged: true}
		if err == nil && !is.unchanged {
			err = importChild(ctx, st, child, is, o, res)
		}
		if _, other := errors.AsType[*otherError](err); other {
			stays, err = place{id: is.apart, stale: []string{is.id}}, nil
		} else if err == nil {
			err = dropImports(ctx, st, is.stale, is.id, res)
		} else if lost(err) && ctx.Err() == nil {
			stays, err = place{}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("session in the file: %w", err)
		}
		left = append(left, stays)
	}
	return left, nil
}

// placesOf finds the places of the children of a session that was imported before. Only its entries
// show whether a child is complete, and they can be read once: to import a child the caller asks
// for the children again.
func placesOf(
	ctx context.Context, st *coppice.Store, f interop.Family, grow bool, res *Result,
) (places []place, err error) {
	for err == nil {
		_, err = f.Next()
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	for child, err := range f.Children() {
		if err != nil {
			return nil, err
		}
		n := 0
		for _, err := range child.Entries {
			if err != nil {
				return nil, err
			}
			n++
		}
		is, err := childPlace(ctx, st, child.Header.ID, n, grow, res)
		if err != nil {
			return nil, err
		}
		res.note(child)
		places = append(places, is)
	}
	return places, nil
}

// note adds the file that holds a child.
func (r *Result) note(child interop.Child) {
	if child.File != "" {
		r.Files = append(r.Files, child.File)
	}
}

// childPlace finds the place of a child: under its own id, or, if another session has that, under
// one derived from the ids of parent and child. The child is unchanged if one of these sessions has
// more than its n entries, or if all of them were deleted. With grow it may be appended to the newest
// of them, which compares them; without, or if that one was used, it is unchanged with n entries too. n < 0: the file
// is imported for the first time, and only another import at the same time has made a session of the child.
func childPlace(
	ctx context.Context, st *coppice.Store, id string, n int, grow bool, res *Result,
) (is place, err error) {
	deleted, parent := "", res.Session
	for id := range childIDs(id, parent, n) {
		info, err := look(ctx, st, id)
		switch {
		case err != nil:
			return place{}, err
		case info == nil && is.grows:
			is.apart = id
			return is, nil
		case info == nil && deleted != "":
			return place{id: deleted, unchanged: true}, nil
		case info == nil:
			return place{id: id}, nil
		case n < 0 && (info.Parent != parent || slices.Contains(res.Children, id)):
			continue
		case info.gone != nil:
			deleted = id // a child that was imported again has a session after it
			continue
		}
		if of, err := isChildOf(ctx, st, info, parent); err != nil || !of {
			if err != nil {
				return place{}, err
			}
			continue
		}
		had, used := int(info.Entries), false
		if had >= n && n >= 0 {
			if had, used, err = imported(ctx, st, id); err != nil {
				return place{}, err
			}
		}
		switch {
		case !grow && n < 0, had > n && n >= 0, had == n && (!grow || used):
			return place{id: id, unchanged: true}, nil
		case grow:
			is = place{id: id, grows: true}
		}
	}
	return is, nil
}

// isChildOf reports whether a session is a child of another one, or of a deleted one of the same file: that is what the
// other one was before it was restored.
func isChildOf(ctx context.Context, st *coppice.Store, child *found, parent string) (bool, error) {
	if child.Parent == parent || child.Parent == "" {
		return child.Parent == parent, nil
	}
	was, err := look(ctx, st, child.Parent)
	if was == nil || was.gone == nil || was.source == nil || err != nil {
		return false, err
	}
	is, err := look(ctx, st, parent)
	if is == nil || is.source == nil || err != nil {
		return false, err
	}
	return is.source.Program == was.source.Program && is.source.Session == was.source.Session, nil
}

// childIDs yields the ids under which a child may be, in the order in which they are tried.
func childIDs(id, parent string, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		if layout.ValidID(id) == nil && !yield(id) {
			return
		}
		of := ofParent(id, parent)
		for k := 1; k < layout.MaxApart; k++ {
			if !yield(layout.Apart(of, k)) {
				return
			}
		}
		yield(layout.Derived([]byte(parent + "\x00" + id + "\x00" + strconv.Itoa(n))))
	}
}

// ofParent derives from the ids of child and parent what the ids of a child are derived from.
func ofParent(id, parent string) string { return layout.Derived([]byte(parent + "\x00" + id)) }

// sourceOf returns the source of a child that has a file of its own.
func (o Options) sourceOf(ctx context.Context, child interop.Child) (*checkpoint.Source, error) {
	f := file{program: row(o.Format).Program, format: o.Format, id: child.Header.ID}
	f.Name, f.Open = child.File, func() (io.ReadCloser, error) { return o.beside(child.File) }
	r, err := f.Open()
	if err != nil {
		return nil, nil //nolint:nilerr // it was read; without a source the next import reads it again
	}
	f.Source = stamp(r, f.Source)
	if err := r.Close(); err != nil {
		return nil, err
	}
	s, err := f.identify(ctx)
	return s.Whole(), err
}

// importChild imports a child at its place.
func importChild(
	ctx context.Context, st *coppice.Store, child interop.Child, is place, o Options, res *Result,
) error {
	next, stop := iter.Pull2(child.Entries)
	defer stop()
	h, n := child.Header, 0
	all := lines(h, func() (transcript.Draft, error) {
		d, err, more := next()
		if !more {
			return d, io.EOF
		}
		return d, err
	}, &n)
	opts := &coppice.SessionOptions{
		ID: is.id, Title: o.title(h), Cwd: h.Cwd, Parent: res.Session, Meta: o.meta(h),
	}
	if child.File != "" && o.beside != nil {
		opts.Source = func() (*checkpoint.Source, error) { return o.sourceOf(ctx, child) }
	}
	var s *coppice.Session
	var err error
	added := 1
	if is.grows {
		s, added, err = o.grow(ctx, st, all, opts)
	} else {
		s, err = st.Import(ctx, all, opts)
	}
	if err != nil {
		return err
	}
	if added > 0 {
		res.Children = append(res.Children, s.ID())
		var tree *transcript.Tree
		if tree, err = s.Tree(ctx); err == nil {
			res.count(tree)
		}
	}
	return errors.Join(err, o.end(s))
}
