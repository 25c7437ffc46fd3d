package coppice

import (
	"context"
	"slices"
	"time"

	"github.com/coppice-go/coppice/internal/erase"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/transcript"
)

// idsAtOnce bounds the ids that Copies looks for at a time.
const idsAtOnce = 10_000

// Copies returns the ids of the other sessions of the store that have entries or commits of a session: forks of it, the
// session that it was forked from, and other imports of its file. If the session cannot be read, or was deleted, its
// entries are not known, and all that are related to it are returned.
func (s *Store) Copies(ctx context.Context, id string) ([]string, error) {
	h, err := s.session(id, nil)
	if err != nil {
		return nil, fail("copies", id, err)
	}
	k, err := s.relatives(ctx, id)
	if err != nil || len(k.linked) == 0 {
		return nil, fail("copies", id, err)
	}
	found, err := s.sharing(ctx, h, k.linked, false)
	if err != nil && ctx.Err() == nil {
		return k.linked, nil
	}
	return found, fail("copies", id, err)
}

// sharing returns which of some sessions have an entry or a commit of h, with stubs also one that is erased there. One
// that cannot be read counts as having it.
func (s *Store) sharing(
	ctx context.Context, h *Session, others []string, stubs bool,
) (found []string, err error) {
	cfg := h.cfg
	cfg.ReadOnly = true
	j, err := journal.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var ids []string
	var times []time.Time
	is := func(i int, e *transcript.Entry, _ bool) bool {
		_, erased := e.Erased()
		return (stubs || !erased) && erase.SameEntry(ids[i], times[i], e.Time)
	}
	look := func() error {
		for _, other := range others {
			if slices.Contains(found, other) {
				continue
			}
			on, err := s.session(other, nil)
			if err != nil {
				return err
			}
			if has, _, err := s.hasEntries(ctx, on, ids, 1, is); err != nil || len(has) > 0 {
				found = append(found, other)
			}
		}
		return ctx.Err()
	}
	for sk, err := range j.Skeletons(ctx, j.State(), 0) {
		if err != nil {
			return nil, err
		}
		for i := range sk.Len() {
			row := sk.Row(i)
			ids, times = append(ids, row.ID), append(times, time.UnixMilli(row.Time))
		}
		if len(ids) < idsAtOnce {
			continue
		}
		if err := look(); err != nil || len(found) == len(others) {
			return found, err
		}
		ids, times = ids[:0], times[:0]
	}
	if err := look(); err != nil {
		return nil, err
	}
	slices.Sort(found)
	return found, j.Close(ctx)
}
