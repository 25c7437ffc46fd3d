package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// amendment returns the draft that is stored where the session has an entry with the id of d: it amends that entry.
// nothing: the entry was looked at, and says that already.
func (b *builder) amendment(d transcript.Draft, id string) (a transcript.Draft, nothing bool, err error) {
	if a, ok := b.amends[id]; ok {
		return a, a.Type == "", nil
	}
	d, err = plain(d) // another writer may store such an entry until the commit is made
	if err != nil {
		return a, false, err
	}
	a, err = transcript.Entry{ID: id, Type: d.Type}.Amend(d.Body, false)
	if errors.Is(err, transcript.ErrNotAmendable) { // it is stored as an entry, unless another writer was faster
		return a, true, nil
	}
	return a, false, err
}

// plain returns a draft with type and body, also of a whole line.
func plain(d transcript.Draft) (transcript.Draft, error) {
	if d.Raw != nil {
		l, err := transcript.ParseLine(bytes.TrimSuffix(d.Raw, []byte("\n")))
		if err != nil {
			return d, err
		}
		d = transcript.Draft{Type: l.Type, ID: l.ID, Body: l.Entry(0).Body(), OnKnownID: d.OnKnownID}
	}
	if d.Body == nil {
		d.Body = json.RawMessage("{}")
	}
	return d, nil
}

// amendKnown makes the amendments of the entries with the ids of drafts that the session has. One without a type says
// that there is nothing to store. It costs the look-up of the ids where none is known, and else reads the entries.
func (h *Handle) amendKnown(
	ctx context.Context, on *state.State, drafts []transcript.Draft,
) (map[string]transcript.Draft, error) {
	own := map[string]transcript.Draft{}
	var ids []string
	for _, d := range drafts {
		if d.OnKnownID != transcript.KnownAmend {
			continue
		}
		d, err := plain(d)
		if err != nil {
			return nil, err
		}
		if d.ID != "" {
			own[d.ID], ids = d, append(ids, d.ID)
		}
	}
	if len(ids) == 0 || on.Summary.Commit == "" {
		return nil, nil
	}
	known, err := h.j.Known(ctx, on, ids)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	amends := map[string]transcript.Draft{}
	for id, l := range known {
		if l.Commit {
			continue // the journal refuses it
		}
		was, is, first, err := h.versions(ctx, on, id)
		if err != nil {
			return nil, err
		}
		if own[id].Type != was.Type {
			return nil, fmt.Errorf("entry %s is of type %s, the draft of type %q: %w", id, was.Type, own[id].Type,
				transcript.ErrNotAmendable)
		}
		d, err := was.Amend(own[id].Body, first)
		if err != nil {
			return nil, err
		}
		if amends[id] = d; !is.Hidden && says(is, d) {
			amends[id] = transcript.Draft{}
		}
	}
	return amends, nil
}

// instead makes the entry that is stored in the place of a draft whose id the session has: an amendment, beside the
// conversation. nil = nothing is.
func (b *builder) instead(d transcript.Draft, id string) (*journal.Entry, error) {
	a, nothing, err := b.amendment(d, id)
	if err != nil || nothing {
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
