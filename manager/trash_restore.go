package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/layout"
)

// Restore restores an item as a session of a store, under its old id if that is free (it is not in the store from which
// it was deleted), and removes it from the trash. A later import of its original file recognises the session. The
// caller closes the session. A restore that fails leaves no session, and keeps the item in the trash.
func (t *Trash) Restore(ctx context.Context, st *coppice.Store, name string) (*coppice.Session, error) {
	item, err := t.read(name)
	if err != nil {
		return nil, err
	}
	s, err := t.bring(ctx, st, item)
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", name, err)
	}
	if err := t.remove(name); err != nil {
		return s, fmt.Errorf("restore %s: restored, but still in the trash: %w", name, err)
	}
	return s, nil
}

// bring copies the session of an item to a store, under the first free id: its own, those under which an import looks
// for the session of its file, a new one.
func (t *Trash) bring(ctx context.Context, st *coppice.Store, item TrashItem) (s *coppice.Session, err error) {
	folder := filepath.Join(t.Path, item.Name, storeFolder)
	if _, err := os.Stat(folder); err != nil { // Open would create it
		return nil, err
	}
	bin, err := coppice.Open(ctx, folder, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bin.Close()) }()
	kept, err := bin.Open(ctx, item.Session, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	source := kept.Info().Source
	if err := kept.Close(); err != nil {
		return nil, err
	}
	ids := []string{item.Session}
	for k := 1; source != nil && source.Bytes > 0 && k < layout.MaxApart; k++ {
		ids = append(ids, layout.Apart(cmp.Or(source.Session, item.Session), k))
	}
	for _, id := range append(ids, "") {
		if s, err = st.Copy(ctx, bin, item.Session, id); !errors.Is(err, os.ErrExist) {
			return s, err
		}
	}
	return nil, err
}
