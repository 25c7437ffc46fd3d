package manager

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/erase"
	"github.com/coppice-go/coppice/transcript"
)

// comparedMost bounds the entries of a session by which its copies are known.
const comparedMost = 1000

// Having returns the items that have parts of a session and have not erased them: entries, known by id, and if that is
// short by their time too, and what o names of States and Docs, where the item is the session, a fork, or has an entry
// of it. With nil o it returns those that have one of the first 1,000 entries. An item whose store cannot be read is
// among them: what it has is not known.
func (t *Trash) Having(
	ctx context.Context, s *coppice.Session, entries []string, o *coppice.EraseOptions,
) (found []TrashItem, err error) {
	items, err := t.List()
	if err != nil || len(items) == 0 {
		return nil, err
	}
	p := parts{of: s.Info(), o: o}
	if o == nil || len(o.States)+len(o.Docs) > 0 {
		p.first, err = bare(ctx, s, comparedMost)
	}
	if o == nil {
		p.named = p.first
	} else if err == nil && len(entries) > 0 {
		p.named, err = bare(ctx, s, len(entries), entries...)
	}
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		has, err := t.has(ctx, it, p)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if has || err != nil {
			found = append(found, it)
		}
	}
	return found, nil
}

// parts are what Having looks for.
type parts struct {
	of           checkpoint.Summary // the session
	named, first []transcript.Entry // ids and times
	o            *coppice.EraseOptions
}

// bare returns ids and times of entries of a session, at most most of them.
func bare(ctx context.Context, s *coppice.Session, most int, ids ...string) (list []transcript.Entry, err error) {
	for e, err := range s.Entries(ctx, ids...) {
		if err != nil {
			return nil, err
		}
		list = append(list, transcript.Entry{ID: e.ID, Time: e.Time})
		if len(list) == most {
			break
		}
	}
	return list, nil
}

func (t *Trash) has(ctx context.Context, it TrashItem, p parts) (has bool, err error) {
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
	has, err = hasOne(ctx, s, p.named, false)
	if has || err != nil || p.o == nil || len(p.o.States)+len(p.o.Docs) == 0 {
		return has, err
	}
	of, is := p.of, s.Info()
	kin := is.ID == of.ID && is.Created.Equal(of.Created) ||
		is.Relation == forked && is.Parent == of.ID || of.Relation == forked && of.Parent == is.ID
	if !kin {
		if kin, err = hasOne(ctx, s, p.first, true); !kin || err != nil {
			return false, err
		}
	}
	r, err := bin.Erase(ctx, it.Session, nil, &coppice.EraseOptions{States: p.o.States, Docs: p.o.Docs, DryRun: true})
	return len(r.States)+len(r.Docs) > 0, err
}

// forked is the relation of a fork to the session from which it was forked.
const forked = "fork"

// hasOne reports whether a session has one of some entries; stubs: one that is erased counts.
func hasOne(ctx context.Context, s *coppice.Session, entries []transcript.Entry, stubs bool) (bool, error) {
	for _, e := range entries {
		own, err := s.Entry(ctx, e.ID)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		_, erased := own.Erased()
		if (stubs || !erased) && own.ID == e.ID && erase.SameEntry(e.ID, e.Time, own.Time) {
			return true, nil
		}
	}
	return false, nil
}

// Copies returns what has entries of a session before it is deleted: other sessions of its store, and items, its own
// among them. Of a session that cannot be read, or was deleted, no items are known.
func (t *Trash) Copies(ctx context.Context, st *coppice.Store, id string) (ids []string, items []TrashItem, err error) {
	if ids, err = st.Copies(ctx, id); err != nil {
		return nil, nil, err
	}
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return ids, nil, ctx.Err()
	}
	items, err = t.Having(ctx, s, nil, nil)
	return ids, items, errors.Join(err, s.Close())
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
