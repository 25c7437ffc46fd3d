package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// EntryMax bounds one entry, in bytes, beside its images.
const EntryMax = 4 << 20

// Append inserts drafts after the head: into the buffer, in memory.
func (h *Handle) Append(ctx context.Context, d []transcript.Draft) ([]string, error) {
	if err := h.Writable(ctx); err != nil {
		return nil, err
	}
	drafts, err := h.Screen(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := unknown(drafts); err != nil {
		return nil, err
	}
	held, err := h.j.Hold(ctx, "append")
	if err != nil {
		return nil, err
	}
	defer held.Release()
	known, err := h.parents(ctx, h.j.Tip(), drafts)
	if err != nil {
		return nil, err
	}
	var ids []string
	err = held.Append(
		func(_ *state.State, at journal.Place, find func(id string) *journal.Entry) (l []*journal.Entry, err error) {
			l, ids, err = h.build(drafts, at, known, find)
			return l, err
		})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// mayKnow reports whether the session may have the id of a draft: it is then not stored again.
func mayKnow(d transcript.Draft) bool { return d.OnKnownID != transcript.KnownError }

// unknown refuses drafts with a rule for known ids outside of a turn.
func unknown(drafts []transcript.Draft) error {
	if slices.ContainsFunc(drafts, mayKnow) {
		return layout.BadInput("OnKnownID is for the entries of a turn")
	}
	return nil
}

// checkKnown refuses a rule for known ids that does not exist.
func checkKnown(drafts []transcript.Draft) error {
	for i := range drafts {
		if p := drafts[i].OnKnownID; p > transcript.KnownAmend {
			return layout.BadInput("OnKnownID is %d: want KnownError, KnownIgnore or KnownAmend", p)
		}
	}
	return nil
}

// places are the places of the parents that drafts name.
type places struct {
	by     map[string]journal.Place
	amends map[string]transcript.Draft // with KnownAmend: of the ids that the session has
}

// names reports whether a draft names itself or a parent.
func names(d transcript.Draft) bool { return d.Raw != nil || d.ID != "" || d.Parent != "" }

// parents looks at everything that drafts name: their own ids must be free, unless they may be known, and their parents
// must exist.
func (h *Handle) parents(
	ctx context.Context, on *state.State, drafts []transcript.Draft,
) (places, error) {
	if !slices.ContainsFunc(drafts, names) {
		return places{}, nil
	}
	known, own := places{by: map[string]journal.Place{}}, map[string]bool{}
	for i := range drafts {
		id, parent := drafts[i].ID, drafts[i].Parent
		if err := errors.Join(rawjson.CheckText("id", id), rawjson.CheckText("parent", parent)); err != nil {
			return known, err // before it is looked for: no entry has it
		}
		if drafts[i].Raw != nil {
			l, err := transcript.ParseLine(bytes.TrimSuffix(drafts[i].Raw, []byte("\n")))
			if err != nil {
				return known, err
			}
			id, parent = l.ID, l.ParentID
		}
		if id != "" && !mayKnow(drafts[i]) {
			if err := h.free(ctx, on, id); err != nil {
				return known, err
			}
		}
		if own[id] && id != "" && drafts[i].OnKnownID != transcript.KnownIgnore {
			return known, exists(id)
		}
		if parent != "" && !own[parent] {
			at, err := h.locateOn(ctx, on, parent)
			if err != nil {
				return known, fmt.Errorf("parent: %w", err)
			}
			if drafts[i].Raw != nil && at.ID != parent {
				return known, fmt.Errorf("parent: %w", Missing("entry", parent))
			}
			known.by[parent] = at
		}
		own[id] = true
	}
	var err error
	known.amends, err = h.amendKnown(ctx, on, drafts)
	return known, err
}

// free refuses an id that an entry of a state has.
func (h *Handle) free(ctx context.Context, on *state.State, id string) error {
	known, err := h.j.Known(ctx, on, []string{id})
	if _, ok := known[id]; ok && err == nil {
		return exists(id)
	}
	return err
}

// locateOn finds an entry that the handle sees, or one of a newer state by its whole id.
func (h *Handle) locateOn(ctx context.Context, on *state.State, id string) (journal.Place, error) {
	at, err := h.Locate(ctx, id)
	if err == nil || !isMissing(err) || on == h.State() {
		return at, err
	}
	known, kerr := h.j.Known(ctx, on, []string{id})
	if l, ok := known[id]; ok && !l.Commit && kerr == nil {
		return journal.Place{ID: id, Ord: int64(l.Ord)}, nil
	}
	return at, errors.Join(err, kerr)
}

// build makes entries of drafts. The first grows from at, each from the one before, unless it says otherwise. ids are
// those of all drafts: with KnownIgnore, one that is pending has no second entry. It runs under the journal's lock, or
// h.mu.
func (h *Handle) build(
	drafts []transcript.Draft, at journal.Place, known places, find func(id string) *journal.Entry,
) (entries []*journal.Entry, ids []string, err error) {
	b := builder{
		o: &h.o, at: at, known: known.by, find: find, amends: known.amends,
		entries: make([]*journal.Entry, 0, len(drafts)),
	}
	if slices.ContainsFunc(drafts, names) {
		b.fresh = make(map[string]*journal.Entry, len(drafts))
	}
	for i := range drafts {
		if err := b.add(&drafts[i]); err != nil {
			return nil, nil, err
		}
	}
	return b.entries, b.ids, nil
}

// builder makes entries of drafts.
type builder struct {
	o       *Options
	at      journal.Place               // where the next draft grows unless it says otherwise
	known   map[string]journal.Place    // places of named parents
	amends  map[string]transcript.Draft // places.amends
	find    func(id string) *journal.Entry
	ids     []string
	fresh   map[string]*journal.Entry // drafts of this call by id; nil where none names anything
	entries []*journal.Entry
}

func (b *builder) add(d *transcript.Draft) error {
	e, err := b.entry(d)
	if err != nil {
		return err
	}
	b.ids = append(b.ids, e.ID)
	if e.Named, e.Ignore = d.Raw != nil || d.ID != "", mayKnow(*d); e.Named {
		if o := b.pending(e.ID); o != nil {
			if d.OnKnownID != transcript.KnownIgnore {
				return exists(e.ID)
			}
			b.at = journal.PlaceAt(o)
			return nil
		}
		if d.OnKnownID == transcript.KnownAmend {
			if e.Instead, err = b.instead(*d, e.ID); err != nil {
				return err
			}
		}
	}
	if b.fresh != nil {
		b.fresh[e.ID] = e
	}
	b.entries = append(b.entries, e)
	b.at = journal.PlaceAt(e)
	return nil
}

// pending returns the entry with an id that the handle has and that is not durable, a draft of the same call included.
func (b *builder) pending(id string) *journal.Entry {
	if e := b.fresh[id]; e != nil {
		return e
	}
	return b.find(id)
}

// entry makes the entry of a draft.
func (b *builder) entry(d *transcript.Draft) (*journal.Entry, error) {
	now, e := b.o.Journal.Now(), &journal.Entry{Parent: b.at}
	id := d.ID
	if d.Raw == nil {
		if d.Parent != "" {
			e.Parent, e.Chosen = b.parent(d.Parent), true
		}
		if id == "" {
			var err error
			if id, err = transcript.NewID(now, b.o.Journal.Rand); err != nil {
				return nil, err
			}
		}
	}
	l, err := d.Parsed(id, e.Parent.ID, now)
	if err != nil {
		return nil, err
	}
	if e.Raw, e.Blobs = blob.Externalise(l.Raw); len(e.Raw) > EntryMax {
		return nil, LimitError("entry", EntryMax, len(e.Raw))
	}
	if e.Head = l; !bytes.Equal(e.Raw, l.Raw) {
		if e.Head, err = transcript.ParseLine(e.Raw); err != nil {
			return nil, err
		}
	}
	if e.ID = e.Head.ID; d.Raw != nil {
		e.Chosen = true
		if e.Parent = (journal.Place{Ord: -1}); e.Head.ParentID != "" {
			e.Parent = b.parent(e.Head.ParentID)
			e.Parent.ID = e.Head.ParentID
		}
	}
	return e, nil
}

// parent returns the place of a named parent, which may be a draft of the same call.
func (b *builder) parent(id string) journal.Place {
	if e, ok := b.fresh[id]; ok {
		return journal.PlaceAt(e)
	}
	return b.known[id]
}

// SetContext makes the context explicit: these items, and what is inserted from here on. None makes it
// derived again. The next step saves it. Together the items are at most as long as the bound.
func (h *Handle) SetContext(ctx context.Context, items []transcript.Item) error {
	var list []transcript.Item
	for i, it := range items {
		if err := rawjson.CheckText(fmt.Sprintf("item %d", i), []byte(it.Message)); err != nil {
			return err
		}
		stored := transcript.Item{}
		switch {
		case (it.Entry == "") == (len(it.Message) == 0):
			return fmt.Errorf("item %d: want an entry or a message", i)
		case it.Entry != "":
			at, err := h.Locate(ctx, it.Entry)
			if err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
			stored.Entry = at.ID
		default:
			var compact bytes.Buffer
			if err := json.Compact(&compact, it.Message); err != nil || compact.Bytes()[0] != '{' {
				return fmt.Errorf("item %d: a message is one JSON object", i)
			}
			if err := checkpoint.CheckItem(compact.Bytes()); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
			message, blobs := blob.Externalise(compact.Bytes())
			h.j.HoldBlobs(blobs)
			stored.Message = message
		}
		list = append(list, stored)
	}
	held, err := h.j.Hold(ctx, "set context")
	if err != nil {
		return err
	}
	defer held.Release()
	if h.j.InDoubt() {
		return journal.ErrInDoubt
	}
	if err := h.carry(ctx, list); err != nil {
		return err
	}
	h.look(func(v *view) {
		v.items, v.unsaved, v.itemsSeen = list, true, v.State.Next
		v.itemsAt++
	})
	return nil
}

// carry puts the message of each entry into its item, so that the document can bring it along where the
// window does not, and checks the bound.
func (h *Handle) carry(ctx context.Context, list []transcript.Item) error {
	win, _, err := h.window(ctx)
	if err != nil {
		return err
	}
	_, bound := h.Rules()
	have, err := h.readItems(ctx, nil, win, list)
	if err != nil {
		return err
	}
	total := 0
	for i, it := range list {
		messages := messagesOf(have, it)
		if len(messages) != 1 {
			return fmt.Errorf("item %d: entry %s contains no message", i, it.Entry)
		}
		list[i].Message = rawjson.ValidText(messages[0].Raw)
		total += len(messages[0].Raw)
	}
	if bound >= 0 && total > bound {
		return LimitError("explicit context", bound, total)
	}
	return nil
}

// LimitError refuses what is larger than it may be.
func LimitError(what string, limit, value int) error {
	return &codec.LimitError{What: what, Limit: int64(limit), Value: int64(value)}
}

// exists refuses an id that is taken.
func exists(id string) error { return fmt.Errorf("entry %s: %w", id, fs.ErrExist) }

// Missing says that there is nothing of this name: fs.ErrNotExist.
func Missing(kind, name string) error { return fmt.Errorf("%s %q: %w", kind, name, fs.ErrNotExist) }
