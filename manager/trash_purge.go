package manager

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

// Having returns the items that have one of the entries, known by id and time, and have not erased it. An item
// whose store cannot be read is among them: what it has is not known.
func (t *Trash) Having(ctx context.Context, entries []transcript.Entry) (found []TrashItem, err error) {
	items, err := t.List()
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		has, err := t.has(ctx, it, entries)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if has || err != nil {
			found = append(found, it)
		}
	}
	return found, nil
}

func (t *Trash) has(ctx context.Context, it TrashItem, entries []transcript.Entry) (has bool, err error) {
	bin, err := coppice.Open(ctx, filepath.Join(t.Path, it.Name, storeFolder), nil)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, bin.Close()) }()
	s, err := bin.Open(ctx, it.Session, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, e := range entries {
		own, err := s.Entry(ctx, e.ID)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		if _, erased := own.Erased(); !erased && own.ID == e.ID && own.Time.Equal(e.Time) {
			return true, nil
		}
	}
	return false, nil
}

// Remove permanently removes items.
func (t *Trash) Remove(items ...TrashItem) error {
	for _, it := range items {
		if _, err := t.read(it.Name); err != nil {
			return err
		}
		if err := t.remove(it.Name); err != nil {
			return err
		}
	}
	return nil
}

// Purge permanently removes the items of a session, with what a crash left of removals and of copies of sessions with
// that id, and returns the items. store reports whether an item's store is the session's.
func (t *Trash) Purge(session string, store func(name string) bool) ([]TrashItem, error) {
	return t.removeThose(func(it TrashItem) bool {
		return it.Session == session && (it.Store == "" || store(it.Store)) // that of an incomplete copy is not known
	})
}
