package coppice

import (
	"context"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// ErrHeld is the error of a deletion, an erasure, a removal of snapshots or a retention if the session is held. Nothing
// was removed.
var ErrHeld = journal.ErrHeld

// Hold holds a session for a reason of at most 1 KiB; "" ends the hold. Nothing removes a held session or a part of it
// (ErrHeld). Commits of its writers are stored as before. The reason is its metadata checkpoint.MetaHold, which SetInfo
// and SessionOptions.Meta refuse; a fork or an import of the session is not held by it. Hold is an annotation, as
// SetInfo is; on a session that is held it replaces the reason.
func (s *Session) Hold(ctx context.Context, reason string, opts ...MoveOption) (Receipt, error) {
	err := rawjson.CheckText("reason of the hold", reason)
	if err == nil && len(reason) > checkpoint.MaxHold {
		err = layout.TooLarge("reason of the hold", checkpoint.MaxHold, len(reason))
	}
	if err != nil {
		return Receipt{}, s.fail("hold", err)
	}
	change := checkpoint.MetaChange{checkpoint.MetaHold: nil}
	if reason != "" {
		change[checkpoint.MetaHold] = &reason
	}
	return s.note(ctx, "hold", optionsOf(opts, "hold", reason), state.ReasonHold,
		func(_ context.Context, on *state.State) (*journal.Step, error) {
			if on.Summary.Meta[checkpoint.MetaHold] == reason {
				return nil, nil
			}
			return s.noteStep(on, []transcript.Draft{entry.Custom(transcript.MetaKind, change)})
		})
}
