package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// OnKnown says what becomes of a draft with an id of its own that the session has.
type OnKnown uint8

// What becomes of such a draft.
const (
	KnownError  OnKnown = iota // the turn is fs.ErrExist
	KnownIgnore                // it is not stored again
	KnownAmend                 // an amendment of the entry is stored
)

// amendment returns the draft that is stored where the session has an entry with the id of d: it amends that entry.
//
//nolint:unparam // there are no amendments yet
func amendment(transcript.Draft, string) (transcript.Draft, error) {
	return transcript.Draft{}, fmt.Errorf("amend an entry: %w", errors.ErrUnsupported)
}

// instead makes the entry that is stored in the place of a draft whose id the session has: an amendment, beside the
// conversation.
func (b *builder) instead(d transcript.Draft, id string) (*journal.Entry, error) {
	a, err := amendment(d, id)
	if err != nil {
		return nil, err
	}
	e, err := b.entry(&a)
	if err == nil {
		e.Aside = true
	}
	return e, err
}

// hasTree reports whether the tree of a state is in memory, where every entry is found without a read.
func (h *Handle) hasTree(st *state.State) bool {
	h.trees.mu.Lock()
	defer h.trees.mu.Unlock()
	return h.trees.b != nil && uint64(h.trees.b.Len()) >= st.Next
}

// durable finds a durable entry by its whole id in the id index; the zero Place if there is none, or if the tree is in
// memory.
func (h *Handle) durable(ctx context.Context, id string) (journal.Place, error) {
	st := h.State()
	if id == "" || h.hasTree(st) {
		return journal.Place{}, nil
	}
	known, err := h.j.Known(ctx, st, []string{id})
	if err != nil {
		return journal.Place{}, err
	}
	l, ok := known[id]
	switch {
	case !ok:
		return journal.Place{}, nil
	case l.Commit:
		return journal.Place{}, fmt.Errorf("%s is a commit, not an entry: %w", id, fs.ErrNotExist)
	}
	return journal.Place{ID: id, Ord: int64(l.Ord)}, nil
}
