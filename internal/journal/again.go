package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// The id of a deleted session is used again on request (ADR 0039). The new session is another incarnation of the id: it
// begins with the epoch after the tombstone's, and no object of it has a name that one of an earlier incarnation has.
//
// On a store that only replaces, its first commit replaces the tombstone, under the version of that. On one that
// appends, its first segment creates it, as always: its name holds that epoch, so that of two creators one succeeds.
// Its checkpoint replaces the tombstone afterwards.

// grave is the tombstone that a new incarnation follows.
type grave struct {
	next    uint64 // its first epoch
	version backend.Version
	cas     bool
}

// Again prepares the creation of a session with Config.Again: if one with its id was deleted, it reads the tombstone,
// on a disk makes it durable, and returns a Config for Create that names it. Else it returns cfg as it was.
func Again(ctx context.Context, cfg Config) (Config, error) {
	if !cfg.Again || cfg.grave != nil {
		return cfg, nil
	}
	j := newJournal(cfg)
	_, err := j.strategy.Load(ctx)
	f, ok := errors.AsType[*store.Failure](err)
	switch {
	case ok && f.Grave != nil:
	case err == nil, ok, errors.Is(err, fs.ErrNotExist):
		return cfg, nil // the creation returns what is wrong
	default:
		return cfg, j.notApplied("create", err)
	}
	o, version, err := j.entomb(ctx, f.Grave)
	if err != nil {
		return cfg, j.notApplied("create", fmt.Errorf("make sure of the tombstone: %w", err))
	}
	if o.Summary.Tombstone {
		cfg.grave = &grave{layout.NextEpoch(o.Summary.Epoch), version, o.CAS}
	}
	return cfg, nil
}

// unreadTombstone returns the tombstone of a session that could not be read: its seq and its epoch are above any that a
// delayed writer has.
func (j *Journal) unreadTombstone(highest uint64) (*checkpoint.Object, error) {
	id, now, err := j.store.LineID()
	if err != nil {
		return nil, err
	}
	st := &state.State{HeadOrd: -1}
	st.Summary = checkpoint.Summary{ID: j.cfg.Session, Tombstone: true, Updated: now}
	st.Summary.Commit, st.Summary.Seq, st.Summary.Epoch = id, ^uint64(0)>>1, highest+layout.UnreadEpochs
	return st.Object(false), nil
}
