package coppice

import (
	"context"
	"slices"

	"github.com/coppice-go/coppice/internal/journal"
)

// idsAtOnce bounds the ids that Copies looks for at a time.
const idsAtOnce = 10_000

// Copies returns the ids of the other sessions of the store that have entries of a session: forks of it, the session
// that it was forked from, and other imports of its file. If the session cannot be read, or was deleted, its entries
// are not known, and all that are related to it are returned.
func (s *Store) Copies(ctx context.Context, id string) ([]string, error) {
	h, err := s.session(id, nil)
	if err != nil {
		return nil, fail("copies", id, err)
	}
	all, _, err := s.relatives(ctx, id)
	if err != nil || len(all) == 0 {
		return nil, fail("copies", id, err)
	}
	found, err := s.sharing(ctx, h, all)
	if err != nil && ctx.Err() == nil {
		return all, nil
	}
	return found, fail("copies", id, err)
}

// sharing returns which of some sessions have an entry of h that is not erased there. One that cannot be read counts
// as having it.
func (s *Store) sharing(ctx context.Context, h *Session, others []string) (found []string, err error) {
	cfg := h.cfg
	cfg.ReadOnly = true
	j, err := journal.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	look := func(ids []string) error {
		for _, other := range others {
			if slices.Contains(found, other) {
				continue
			}
			on, err := s.session(other, nil)
			if err != nil {
				return err
			}
			if has, _, err := s.hasEntries(ctx, on, ids, 1, nil); err != nil || len(has) > 0 {
				found = append(found, other)
			}
		}
		return ctx.Err()
	}
	var ids []string
	for sk, err := range j.Skeletons(ctx, j.State(), 0) {
		if err != nil {
			return nil, err
		}
		for i := range sk.Len() {
			ids = append(ids, sk.Row(i).ID)
		}
		if len(ids) < idsAtOnce {
			continue
		}
		if err := look(ids); err != nil || len(found) == len(others) {
			return found, err
		}
		ids = ids[:0]
	}
	if err := look(ids); err != nil {
		return nil, err
	}
	slices.Sort(found)
	return found, j.Close(ctx)
}
