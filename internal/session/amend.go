package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// amendments returns the amendments that count at a moment of entries, by the ordinals of these.
func (h *Handle) amendments(
	ctx context.Context, m *Moment, ords iter.Seq[uint64],
) (map[uint64]transcript.Amendment, error) {
	if !m.Tree.Amends() {
		return nil, nil
	}
	at := map[uint64]uint64{}
	var want []uint64
	for ord := range ords {
		if a, ok := m.amendment(ord); ok {
			if _, dup := at[ord]; !dup {
				at[ord], want = a, append(want, a)
			}
		}
	}
	if len(want) == 0 {
		return nil, nil
	}
	have, err := h.lines(ctx, m, want)
	if err != nil {
		return nil, err
	}
	found := make(map[uint64]transcript.Amendment, len(at))
	for ord, a := range at {
		e, ok := have[a]
		if !ok {
			return nil, fmt.Errorf("amendment %d: %w", a, fs.ErrNotExist)
		}
		if says, ok := e.Amendment(); ok {
			found[ord] = says
		}
	}
	return found, nil
}

// amendAhead is how many amendments are read at once while every entry is read.
const amendAhead = 32

// amending returns a function that applies the amendments of a moment to entries, which come in append order.
func (h *Handle) amending(ctx context.Context, m *Moment) func(transcript.Entry) (transcript.Entry, error) {
	left := slices.Sorted(m.Tree.Amended)
	var known map[uint64]transcript.Amendment
	return func(e transcript.Entry) (transcript.Entry, error) {
		for len(left) > 0 && left[0] < e.Ordinal {
			left = left[1:]
		}
		if len(left) == 0 || left[0] != e.Ordinal {
			return e, nil
		}
		a, ok := known[e.Ordinal]
		if !ok {
			var err error
			if known, err = h.amendments(ctx, m, slices.Values(left[:min(len(left), amendAhead)])); err != nil {
				return e, err
			}
			if a, ok = known[e.Ordinal]; !ok {
				return e, nil
			}
		}
		return e.Amended(a), nil
	}
}

// versions returns an entry as it was appended and as it is in a state, images put back, and whether the session's
// summary shows it as the first that the user asked.
func (h *Handle) versions(
	ctx context.Context, on *state.State, id string,
) (was, is transcript.Entry, first bool, err error) {
	m, err := h.momentOn(ctx, on)
	if err != nil {
		return was, is, false, err
	}
	ord, err := m.Find(id)
	if isMissing(err) {
		err = h.uncommittedEntry(ctx, id, err)
	}
	if err != nil {
		return was, is, false, err
	}
	asked, ok := m.Tree.Asked()
	read := func(m *Moment, e *transcript.Entry) error {
		return h.Read(ctx, m, slices.Values([]uint64{ord}), func(found transcript.Entry, _ error) bool {
			*e = found
			return true
		})
	}
	return was, is, ok && asked == ord, errors.Join(read(m.Stored(), &was), read(m, &is))
}

// uncommittedEntry returns ErrUncommitted if an entry is in the buffer, else what is missing.
func (h *Handle) uncommittedEntry(ctx context.Context, id string, missing error) error {
	m, err := h.Moment(ctx)
	if err != nil {
		return err
	}
	if ord, err := m.Find(id); err == nil && ord >= m.State.Next {
		return fmt.Errorf("entry %s: %w", id, journal.ErrUncommitted)
	}
	return missing
}

// screenAmendment checks the draft of what an entry is to say. The hook sees it as a draft of the entry's type.
func (h *Handle) screenAmendment(
	ctx context.Context, e transcript.Entry, d transcript.Draft,
) (transcript.Draft, error) {
	switch {
	case d.Err != nil:
		return d, d.Err
	case d.Raw != nil:
		l, err := transcript.ParseLine(bytes.TrimSuffix(d.Raw, []byte("\n")))
		if err != nil {
			return d, err
		}
		d.Type, d.Body, d.Raw = l.Type, l.Entry(0).Body(), nil
	case d.Type == "" && d.Body == nil:
		d.Type, d.Body = e.Type, e.Body()
	}
	if d.Type != e.Type {
		return d, fmt.Errorf("entry %s is of type %s, the draft of type %q: %w", e.ID, e.Type, d.Type,
			transcript.ErrNotAmendable)
	}
	d.ID = e.ID
	drafts, err := h.Screen(ctx, []transcript.Draft{d})
	if err != nil {
		return d, err
	}
	d = drafts[0]
	if d.Body == nil {
		d.Body = json.RawMessage("{}")
	}
	return d, rawjson.CheckText("body", []byte(d.Body)) // with its offset here, not in the amendment
}

// says reports whether an entry has the body that the draft of an amendment gives it.
func says(e transcript.Entry, draft transcript.Draft) bool {
	l, err := draft.Parsed("x", "", time.Time{})
	if err != nil {
		return false
	}
	var body bytes.Buffer
	a, ok := l.Entry(0).Amendment()
	return ok && json.Compact(&body, e.Body()) == nil && bytes.Equal(body.Bytes(), a.Body)
}

// refreshItems puts what an amendment says into the items of an explicit context that bring the entry's message along.
func (h *Handle) refreshItems(draft transcript.Draft) {
	l, err := draft.Parsed("x", "", time.Time{})
	if err != nil {
		return
	}
	a, ok := l.Entry(0).Amendment()
	if !ok {
		return
	}
	h.look(func(v *view) {
		if items, changed := amendItems(v.items, a); changed {
			v.items = items
			v.itemsAt++
		}
	})
}

// amendItems puts what an amendment says into the items that bring the message of its entry along.
func amendItems(items []transcript.Item, a transcript.Amendment) (list []transcript.Item, changed bool) {
	for i, it := range items {
		if it.Entry != a.Target || len(it.Message) == 0 {
			continue
		}
		if !changed {
			items, changed = slices.Clone(items), true
		}
		items[i].Message = messageOf(transcript.Entry{ID: a.Target, Type: a.Type}.Amended(a))
	}
	return items, changed
}

// amendDocument returns the edit that an amendment makes in the document of a state; nil = none.
func amendDocument(on *state.State, a transcript.Amendment) func(checkpoint.Document) checkpoint.Document {
	if _, changes := amendItems(on.Doc.Context, a); !changes {
		return nil
	}
	return func(d checkpoint.Document) checkpoint.Document {
		d.Context, _ = amendItems(d.Context, a)
		return d
	}
}

// amendUnsaved brings the items up to date that SetContext made before an amendment of a newer state.
func (h *Handle) amendUnsaved(ctx context.Context, on *state.State) error {
	var doc checkpoint.Document
	h.look(func(v *view) {
		if v.unsaved && on.Amended > v.itemsSeen && on.Next > v.itemsSeen {
			doc.Context = v.items
		}
	})
	if !slices.ContainsFunc(doc.Context, func(it transcript.Item) bool { return it.Entry != "" }) {
		return nil
	}
	m, err := h.momentOn(ctx, on)
	if err != nil {
		return err
	}
	if err := h.AmendItems(ctx, m, &doc); err != nil {
		return err
	}
	h.look(func(v *view) { v.items, v.itemsSeen = doc.Context, on.Next })
	return nil
}

// messageOf returns the message that an entry puts into a context; nil = none.
func messageOf(e transcript.Entry) json.RawMessage {
	list := messagesOf(map[string]transcript.Entry{e.ID: e}, transcript.Item{Entry: e.ID})
	if len(list) != 1 {
		return nil
	}
	return list[0].Raw
}

// AmendItems brings the messages up to date that the items of a document bring along.
func (h *Handle) AmendItems(ctx context.Context, m *Moment, doc *checkpoint.Document) error {
	if !m.Tree.Amends() {
		return nil
	}
	var at []int
	var ords []uint64
	for i, it := range doc.Context {
		if it.Entry == "" || len(it.Message) == 0 {
			continue
		}
		ord, err := m.Find(it.Entry)
		if err != nil {
			continue // it is lost: its message is all that there is
		}
		if _, ok := m.amendment(ord); ok {
			at, ords = append(at, i), append(ords, ord)
		}
	}
	if len(at) == 0 {
		return nil
	}
	entries, err := h.Bodies(ctx, m, ords)
	if err != nil {
		return err
	}
	doc.Context = slices.Clone(doc.Context)
	for k, i := range at {
		doc.Context[i].Message = messageOf(entries[k])
	}
	return nil
}
