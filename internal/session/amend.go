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

// Amend replaces what an entry says, or hides it where d is nil. A draft without type and body takes every amendment
// back. The head stays. Where the entry says that already, nothing is committed.
func (h *Handle) Amend(ctx context.Context, entry string, d *transcript.Draft) (journal.Result, error) {
	if err := h.Writable(ctx); err != nil {
		return journal.Result{}, err
	}
	was, is, first, err := h.versions(ctx, entry)
	if err != nil {
		return journal.Result{}, err
	}
	draft, err := h.amendmentOf(ctx, was, d, first)
	if err != nil {
		return journal.Result{}, err
	}
	if d == nil && is.Hidden || d != nil && !is.Hidden && says(is, draft) {
		st := h.State()
		return journal.Result{Commit: checkpoint.Commit{Head: st.Head()}, State: st}, nil
	}
	added, err := h.insert(ctx, []transcript.Draft{draft}, true)
	if err != nil {
		return journal.Result{}, err
	}
	h.refreshItems(added[0])
	r, err := h.Commit(ctx, Commit{Reason: "amend"})
	if err != nil {
		return r, err
	}
	return r, stored(added)
}

// versions returns an entry as it was appended and as it is now, images put back, and whether the session's summary
// shows it as the first that the user asked.
func (h *Handle) versions(ctx context.Context, id string) (was, is transcript.Entry, first bool, err error) {
	m, err := h.Moment(ctx)
	if err != nil {
		return was, is, false, err
	}
	ord, err := m.Find(id)
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

// amendmentOf makes the draft of an amendment. The hook sees what the entry is to say, as a draft of its type.
func (h *Handle) amendmentOf(
	ctx context.Context, e transcript.Entry, d *transcript.Draft, first bool,
) (transcript.Draft, error) {
	if d == nil {
		return e.Amend(nil, first)
	}
	own := *d
	switch {
	case own.Err != nil:
		return own, own.Err
	case own.Raw != nil:
		l, err := transcript.ParseLine(bytes.TrimSuffix(own.Raw, []byte("\n")))
		if err != nil {
			return own, err
		}
		own.Type, own.Body, own.Raw = l.Type, l.Entry(0).Body(), nil
	case own.Type == "" && own.Body == nil:
		own.Type, own.Body = e.Type, e.Body()
	}
	if own.Type != e.Type {
		return own, fmt.Errorf("entry %s is of type %s, the draft of type %q: %w", e.ID, e.Type, own.Type,
			transcript.ErrNotAmendable)
	}
	own.ID = e.ID
	drafts, err := h.Screen(ctx, []transcript.Draft{own})
	if err != nil {
		return own, err
	}
	body := drafts[0].Body
	if body == nil {
		body = json.RawMessage("{}")
	}
	if err := rawjson.CheckText("body", []byte(body)); err != nil {
		return own, err // with its offset here, not in the amendment
	}
	return e.Amend(body, first)
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
func (h *Handle) refreshItems(added *journal.Entry) {
	a, ok := added.Head.Entry(0).Amendment()
	if !ok {
		return
	}
	h.look(func(v *view) {
		for i, it := range v.items {
			if it.Entry != a.Target || len(it.Message) == 0 {
				continue
			}
			v.items = slices.Clone(v.items)
			v.items[i].Message = messageOf(transcript.Entry{ID: a.Target, Type: a.Type}.Amended(a))
			v.unsaved = true
			v.itemsAt++
		}
	})
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
