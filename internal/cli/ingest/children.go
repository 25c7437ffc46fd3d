package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// children sees to the sessions that a file holds beside its own: each becomes a child of its session. Of a file that
// was imported before those come that are missing, because that import was broken off, or that have grown since.
func children(ctx context.Context, st *coppice.Store, f interop.Family, res *Result) error {
	var places []place // of those of a file that was imported before
	if res.Unchanged {
		var err error
		if places, err = placesOf(ctx, st, f, res); err != nil {
			return fmt.Errorf("sessions within: %w", err)
		}
		if !slices.ContainsFunc(places, func(is place) bool { return !is.unchanged }) {
			return nil
		}
		res.Files = nil // they come again
	}
	i := 0
	for child, err := range f.Children() {
		res.note(child)
		var is place
		switch {
		case err != nil:
		case i < len(places):
			is = places[i]
		default:
			is, err = childPlace(ctx, st, child.Header.ID, res.Session, -1)
		}
		if i++; err == nil && !is.unchanged {
			err = bear(ctx, st, child, is.id, res)
		}
		if err != nil {
			return fmt.Errorf("a session within: %w", err)
		}
	}
	return nil
}

// placesOf finds where the children of a session are that was imported before. Whether one is whole only its entries
// tell, and these come once: who wants them asks for the children again.
func placesOf(ctx context.Context, st *coppice.Store, f interop.Family, res *Result) (places []place, err error) {
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
		is, err := childPlace(ctx, st, child.Header.ID, res.Session, n)
		if err != nil {
			return nil, err
		}
		res.note(child)
		places = append(places, is)
	}
	return places, nil
}

// note notes the file that holds a child.
func (r *Result) note(child interop.Child) {
	if child.File != "" {
		r.Files = append(r.Files, child.File)
	}
}

// childPlace finds where a child of a session goes: under its own id, if that is another's under one that is made of
// both, and if it has grown since under one that is made of its length too. It is unchanged if one of these has its
// entries, or was deleted. n < 0: whatever there is is another's.
func childPlace(ctx context.Context, st *coppice.Store, id, parent string, n int) (place, error) {
	of := parent + "\x00" + id
	ids := []string{id, derived([]byte(of)), derived([]byte(of + "\x00" + strconv.Itoa(n)))}
	if layout.ValidID(id) != nil {
		ids = ids[1:]
	}
	for _, id := range ids {
		info, has, err := look(ctx, st, id)
		switch {
		case err != nil:
			return place{}, err
		case has == nothing:
			return place{id: id}, nil
		case n >= 0 && (info == nil || info.Parent == parent && info.Entries >= uint64(n)):
			return place{id: id, unchanged: true}, nil
		}
	}
	return place{}, nil
}

// bear imports a child under an id.
func bear(ctx context.Context, st *coppice.Store, child interop.Child, id string, res *Result) error {
	next, stop := iter.Pull2(child.Entries)
	defer stop()
	h, n := child.Header, 0
	s, err := st.Import(ctx, lines(h, func() (transcript.Draft, error) {
		d, err, more := next()
		if !more {
			return d, io.EOF
		}
		return d, err
	}, &n), &coppice.SessionOptions{ID: id, Title: h.Title, Cwd: h.Cwd, Parent: res.Session})
	if err != nil {
		return err
	}
	res.Children = append(res.Children, s.ID())
	return s.Close()
}
