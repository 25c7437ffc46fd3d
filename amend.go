package coppice

import (
	"bytes"
	"cmp"
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

// Amend replaces the body of an entry, by its id or a unique prefix, with that of d, in a commit of its own ("amend").
// Not a byte of the entry changes. An amendment is an annotation, as a label is: the head stays, and it applies on
// every branch from its commit on. Context, Entry, Entries, Path, Tree and what is exported to other formats have the
// newest amendment's text under the entry's id, with AmendedBy set; views of earlier commits have the earlier text,
// and Originals has what was appended. Going back does not take an amendment back: on the branch that Rollback makes
// it applies as well.
//
// d has the type of the entry; its id, parent and time do not count. A draft without type and body takes back all
// earlier amendments, and shows an entry again that was hidden. If the entry has the body of d already, nothing is
// stored: the receipt has no entries. Of several amendments the newest counts, whichever host committed it.
//
// What can be amended: messages (results of tools too), custom messages, summaries of branches and compactions, and
// custom entries that are not coppice's own. Of a compaction the text may change, but not what it keeps. Everything
// else is transcript.ErrNotAmendable. An entry that is not committed is ErrUncommitted.
func (s *Session) Amend(
	ctx context.Context, entry string, d transcript.Draft, opts ...MoveOption,
) (Receipt, error) {
	return s.amend(ctx, "amend", opts, entry, &d)
}

// Hide leaves an entry out of contexts, paths, trees and exports to other formats, by an amendment. What grows from it
// stays. A later Amend shows it again. A call whose result is hidden has none: hide both. A compaction cannot be
// hidden.
func (s *Session) Hide(ctx context.Context, entry string, opts ...MoveOption) (Receipt, error) {
	return s.amend(ctx, "hide", opts, entry, nil)
}

// amend replaces the body of an entry, or hides it where d is nil. A draft without type and body takes every amendment
// back. Where the entry has that body already, nothing is committed.
func (s *Session) amend(
	ctx context.Context, op string, opts []MoveOption, entry string, d *transcript.Draft,
) (Receipt, error) {
	var body []byte
	if d != nil {
		own, err := s.amended(ctx, entry, *d)
		if err != nil {
			return Receipt{}, s.fail(op, err)
		}
		body = own.Body
	}
	k := optionsOf(opts, "amend", entry, string(body))
	var draft transcript.Draft
	r, err := s.note(ctx, op, k, "amend", func(ctx context.Context, on *state.State) (*journal.Step, error) {
		was, is, first, err := s.versions(ctx, on, entry)
		if err != nil {
			return nil, err
		}
		if draft, err = was.Amend(body, first); err != nil {
			return nil, err
		}
		if d == nil && is.Hidden || d != nil && !is.Hidden && hasBody(is, draft) {
			return nil, nil
		}
		step, err := s.noteStep(on, []transcript.Draft{draft})
		if err != nil {
			return nil, err
		}
		a, ok := step.Entries[0].Head.Entry(0).Amendment()
		if !ok {
			return step, nil
		}
		step.Edit = amendDocument(on, a)
		return step, s.giveWindow(ctx, on, step, []transcript.Amendment{a})
	})
	if err == nil {
		s.refreshItems(draft)
	}
	return r, err
}

// amended returns the draft of an amendment as the hook left it. The entry may be newer than what the handle knows.
func (s *Session) amended(ctx context.Context, entry string, d transcript.Draft) (transcript.Draft, error) {
	was, _, _, err := s.versions(ctx, s.j.Tip(), entry)
	if isMissing(err) {
		on, lerr := s.j.Latest(ctx)
		if lerr != nil {
			return d, lerr
		}
		was, _, _, err = s.versions(ctx, on, entry)
	}
	if err != nil {
		return d, err
	}
	return s.screenAmendment(ctx, was, d)
}

// giveWindow reads the window of a step that stores amendments, where the one in memory does not determine it.
func (s *Session) giveWindow(
	ctx context.Context, on *state.State, step *journal.Step, amends []transcript.Amendment,
) error {
	w := cmp.Or(step.Window, on.Window)
	known := w != nil
	for _, a := range amends {
		if known {
			w = w.Clone()
			_, known = w.Amend(a)
		}
	}
	if known || len(amends) == 0 {
		return nil
	}
	m, err := s.treeOn(ctx, on)
	if err != nil {
		return err
	}
	r := on.Rules()
	step.Window, err = s.windowAt(ctx, m.amended(amends), journal.PlaceOf(on), r.Profile, r.MaxBytes)
	step.Seen, step.Amended = on.Next, true
	return err
}

// amendmentsOf returns the amendments among entries, and those that are stored in place of entries that the session
// has.
func amendmentsOf(entries []*journal.Entry, known places) (list []transcript.Amendment) {
	for _, e := range entries {
		if d, ok := known.amends[e.ID]; ok && d.Type != "" {
			e = e.Instead
		}
		if a, ok := e.Head.Entry(0).Amendment(); ok {
			list = append(list, a)
		}
	}
	return list
}

// amendments returns the amendments that count at a moment of entries, by the ordinals of these.
func (s *Session) amendments(
	ctx context.Context, m *treeView, ords iter.Seq[uint64],
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
	have, err := s.lines(ctx, m, want)
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
func (s *Session) amending(ctx context.Context, m *treeView) func(transcript.Entry) (transcript.Entry, error) {
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
			if known, err = s.amendments(ctx, m, slices.Values(left[:min(len(left), amendAhead)])); err != nil {
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
func (s *Session) versions(
	ctx context.Context, on *state.State, id string,
) (was, is transcript.Entry, first bool, err error) {
	m, err := s.treeOn(ctx, on)
	if err != nil {
		return was, is, false, err
	}
	ord, err := m.find(id)
	if isMissing(err) {
		err = s.uncommittedEntry(ctx, id, err)
	}
	if err != nil {
		return was, is, false, err
	}
	asked, ok := m.Tree.Asked()
	read := func(m *treeView, e *transcript.Entry) error {
		return s.read(ctx, m, slices.Values([]uint64{ord}), func(found transcript.Entry, _ error) bool {
			*e = found
			return true
		})
	}
	return was, is, ok && asked == ord, errors.Join(read(m.stored(), &was), read(m, &is))
}

// uncommittedEntry returns ErrUncommitted if an entry is in the buffer, else what is missing.
func (s *Session) uncommittedEntry(ctx context.Context, id string, missing error) error {
	m, err := s.treeView(ctx)
	if err != nil {
		return err
	}
	if ord, err := m.find(id); err == nil && ord >= m.State.Next {
		return fmt.Errorf("entry %s: %w", id, journal.ErrUncommitted)
	}
	return missing
}

// screenAmendment checks the draft of an entry's new body. The hook sees it as a draft of the entry's type.
func (s *Session) screenAmendment(
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
	drafts, err := s.screen(ctx, []transcript.Draft{d})
	if err != nil {
		return d, err
	}
	d = drafts[0]
	if d.Body == nil {
		d.Body = json.RawMessage("{}")
	}
	return d, rawjson.CheckText("body", []byte(d.Body)) // with its offset here, not in the amendment
}

// hasBody reports whether the body of an entry is that of an amendment's draft.
func hasBody(e transcript.Entry, draft transcript.Draft) bool {
	l, err := draft.Parsed("x", "", time.Time{})
	if err != nil {
		return false
	}
	var body bytes.Buffer
	a, ok := l.Entry(0).Amendment()
	return ok && json.Compact(&body, e.Body()) == nil && bytes.Equal(body.Bytes(), a.Body)
}

// refreshItems applies an amendment to the items of an explicit context that contain the message of its entry.
func (s *Session) refreshItems(draft transcript.Draft) {
	l, err := draft.Parsed("x", "", time.Time{})
	if err != nil {
		return
	}
	a, ok := l.Entry(0).Amendment()
	if !ok {
		return
	}
	s.look(func(v *liveState) {
		if items, changed := amendItems(v.items, a); changed {
			v.items = items
			v.itemsAt++
		}
	})
}

// amendItems applies an amendment to the items that contain the message of its entry.
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

// amendUnsaved brings the items up to date that SetContext made before an amendment of a newer state, and those of a
// commit before an erasure.
func (s *Session) amendUnsaved(ctx context.Context, on *state.State) error {
	var doc checkpoint.Document
	s.look(func(v *liveState) {
		late := v.unsaved && on.Amended > v.itemsSeen && on.Next > v.itemsSeen
		if late || on.Erased > v.State.Summary.Seq {
			doc.Context = v.items
		}
	})
	if !slices.ContainsFunc(doc.Context, func(it transcript.Item) bool { return it.Entry != "" }) {
		return nil
	}
	if err := s.amendItemsOn(ctx, on, &doc); err != nil {
		return err
	}
	s.look(func(v *liveState) { v.items, v.itemsSeen = doc.Context, on.Next })
	return nil
}

func (s *Session) amendItemsOn(ctx context.Context, on *state.State, doc *checkpoint.Document) error {
	m, err := s.treeOn(ctx, on)
	if err != nil {
		return err
	}
	return s.amendItems(ctx, m, doc)
}

// messageOf returns the message that an entry puts into a context; nil = none.
func messageOf(e transcript.Entry) json.RawMessage {
	list := messagesOf(map[string]transcript.Entry{e.ID: e}, transcript.Item{Entry: e.ID})
	if len(list) != 1 {
		return nil
	}
	return list[0].Raw
}

// amendItems brings the messages up to date that the items of a document bring along.
func (s *Session) amendItems(ctx context.Context, m *treeView, doc *checkpoint.Document) error {
	if !m.Tree.Amends() && m.State.Erased == 0 {
		return nil
	}
	var at []int
	var ords []uint64
	for i, it := range doc.Context {
		if it.Entry == "" || len(it.Message) == 0 {
			continue
		}
		ord, err := m.find(it.Entry)
		if err != nil {
			continue // it is lost: its message is all that there is
		}
		if _, ok := m.amendment(ord); ok || m.State.Erased > 0 {
			at, ords = append(at, i), append(ords, ord)
		}
	}
	if len(at) == 0 {
		return nil
	}
	entries, err := s.bodies(ctx, m, ords)
	if err != nil {
		return err
	}
	doc.Context = slices.Clone(doc.Context)
	for k, i := range at {
		doc.Context[i].Message = messageOf(entries[k])
	}
	return nil
}
