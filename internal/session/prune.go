package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// OnlyWays returns the ids of those snapshots of a list that are the only way to their states: damage has taken the
// commit, its document or an entry of its window from the log, or a repair has put something else in their place. It
// reads each snapshot, the segment of its commit, and every entry of the windows once.
func (h *Handle) OnlyWays(ctx context.Context, list []snapshot.Info) (map[string]bool, error) {
	if len(list) == 0 {
		return nil, nil
	}
	st, err := h.j.Latest(ctx)
	if err != nil {
		return nil, err
	}
	only, checked := map[string]bool{}, map[uint64]uint32{}
	for _, info := range list {
		then, err := h.j.ReadSnapshot(ctx, info.ID)
		if lost(err) {
			continue // it is no way to any state
		}
		if err != nil {
			return nil, err
		}
		leads, err := h.leadsTo(ctx, st, then, checked)
		if err != nil {
			return nil, fmt.Errorf("snapshot %s: %w", info.ID, err)
		}
		if !leads {
			only[info.ID] = true
		}
	}
	return only, nil
}

// leadsTo reports whether the log of st has the commit, the document and the window of then. checked holds the
// checksums of entries that were compared before, by ordinal.
func (h *Handle) leadsTo(ctx context.Context, st, then *state.State, checked map[uint64]uint32) (bool, error) {
	mo, err := h.j.At(ctx, st, then.Summary.Seq)
	if lost(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	head := journal.PlaceOf(then)
	same := mo.Commit.Commit == then.Summary.Commit && bytes.Equal(mo.DocRaw, then.DocJSON) &&
		mo.Commit.Entry == head.ID && mo.Commit.HeadOrd == head.Ord
	if !same {
		return false, nil
	}
	if then.Window == nil {
		return true, nil
	}
	want := map[uint64][]byte{}
	var ords []uint64
	for e := range then.Window.All {
		if sum, known := checked[e.Ordinal]; !keptWhole(e) || known && sum == codec.CRC(e.Raw) {
			continue
		}
		want[e.Ordinal] = e.Raw
		ords = append(ords, e.Ordinal)
	}
	if len(ords) == 0 {
		return true, nil
	}
	for l, err := range h.j.Lines(ctx, st, ords) {
		if lost(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !bytes.Equal(l.Raw, want[l.Ord]) {
			return false, nil
		}
		checked[l.Ord] = codec.CRC(l.Raw)
	}
	return true, nil
}

// keptWhole reports whether a window keeps an entry's line as it is; of others it may keep the head only.
func keptWhole(e transcript.Entry) bool {
	switch e.Type {
	case "message", "compaction", "branch_summary", "custom_message":
		return true
	}
	return false
}

// lost reports whether an error says that what was asked for is damaged or gone.
func lost(err error) bool { return errors.Is(err, store.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) }
