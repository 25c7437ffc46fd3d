package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/blob"
)

// EntryMax bounds one entry, in bytes, beside its images.
const EntryMax = 4 << 20

// Insert adds drafts to the pending entries, all or none. The first hangs on at, nil = the head. Unless
// grow is set the head stays.
func (h *Handle) Insert(ctx context.Context, drafts []transcript.Draft, at *Place, grow bool) ([]*Pending, error) {
	known, err := h.parents(ctx, drafts)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, backend.ErrClosed
	}
	w := h.sync()
	b := builder{w: w, o: &h.o, at: w.head, known: known, fresh: map[string]int{}}
	if at != nil {
		b.at = *at
	}
	for i := range drafts {
		if err := b.add(&drafts[i]); err != nil {
			return nil, err
		}
	}
	added := make([]*Pending, len(b.lines))
	for i, l := range b.lines {
		hangs := b.hang[i]
		if hangs.Ord == onFresh {
			hangs = Place{ID: l.ParentID, Ord: -1, p: added[b.fresh[l.ParentID]]}
		}
		h.images.Hold(l.blobs)
		added[i] = w.add(l.Line, l.blobs, hangs, grow)
	}
	if w.given == nil && len(b.given) > 0 {
		w.given = map[string]struct{}{}
	}
	for _, id := range b.given {
		w.given[id] = struct{}{}
	}
	return added, nil
}

// parents looks at everything that drafts name: their own ids must be free, their parents must exist.
// The places of the parents that are no drafts themselves come back.
func (h *Handle) parents(ctx context.Context, drafts []transcript.Draft) (map[string]Place, error) {
	known, own := map[string]Place{}, map[string]bool{}
	for i := range drafts {
		id, parent := drafts[i].ID, drafts[i].Parent
		if drafts[i].Raw != nil {
			l, err := transcript.ParseLine(bytes.TrimSuffix(drafts[i].Raw, []byte("\n")))
			if err != nil {
				return nil, err
			}
			id, parent = l.ID, l.ParentID
		}
		if id != "" {
			if err := h.free(ctx, id); err != nil {
				return nil, err
			}
			if own[id] {
				return nil, exists(id)
			}
		}
		if parent != "" && !own[parent] {
			at, err := h.Locate(ctx, parent)
			if err != nil {
				return nil, fmt.Errorf("parent: %w", err)
			}
			if drafts[i].Raw != nil && at.ID != parent {
				return nil, fmt.Errorf("parent: %w", Missing("entry", parent))
			}
			known[parent] = at
		}
		own[id] = true
	}
	return known, nil
}

// free refuses an id that an entry has.
func (h *Handle) free(ctx context.Context, id string) error {
	m, err := h.Moment(ctx)
	if err != nil {
		return err
	}
	if n, ok := m.Tree.Node(id); ok && n.ID == id {
		return exists(id)
	}
	return nil
}

// onFresh marks a parent that is another draft of the same call.
const onFresh = -2

// builder makes lines of drafts; Session.mu is held.
type builder struct {
	w     *work
	o     *Options
	at    Place            // where the next draft hangs unless it says otherwise
	known map[string]Place // places of named parents
	fresh map[string]int   // drafts of this call by id
	given []string
	lines []builtLine
	hang  []Place
}

type builtLine struct {
	transcript.Line
	blobs []blob.Blob
}

func (b *builder) add(d *transcript.Draft) error {
	now, hangs := b.o.Journal.Now(), b.at
	id := d.ID
	if d.Raw == nil {
		if d.Parent != "" {
			hangs = b.parent(d.Parent)
		}
		if id == "" {
			var err error
			if id, err = transcript.NewID(now, b.o.Journal.Rand); err != nil {
				return err
			}
		}
	}
	raw, err := d.Line(id, hangs.ID, now)
	if err != nil {
		return err
	}
	stored, blobs := blob.Externalise(raw)
	if len(stored) > EntryMax {
		return LimitError("entry", EntryMax, len(stored))
	}
	line, err := transcript.ParseLine(stored)
	if err != nil {
		return err
	}
	if d.Raw != nil {
		if hangs = (Place{Ord: -1}); line.ParentID != "" {
			hangs = b.parent(line.ParentID)
			hangs.ID = line.ParentID
		}
	}
	if d.Raw != nil || d.ID != "" {
		if _, taken := b.w.given[line.ID]; taken {
			return exists(line.ID)
		}
		b.given = append(b.given, line.ID)
	}
	b.fresh[line.ID] = len(b.lines)
	b.lines = append(b.lines, builtLine{line, blobs})
	b.hang = append(b.hang, hangs)
	b.at = Place{ID: line.ID, Ord: onFresh}
	return nil
}

// parent gives the place of a named parent, which may be a draft of the same call.
func (b *builder) parent(id string) Place {
	if _, ok := b.fresh[id]; ok {
		return Place{ID: id, Ord: onFresh}
	}
	return b.known[id]
}

// SetContext makes the context explicit: these items, and what is inserted from here on. None makes it
// derived again. The next step saves it. Together the items are at most as long as the bound.
func (h *Handle) SetContext(ctx context.Context, items []transcript.Item) error {
	var list []transcript.Item
	for i, it := range items {
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
			message, blobs := blob.Externalise(compact.Bytes())
			h.images.Hold(blobs)
			stored.Message = message
		}
		list = append(list, stored)
	}
	if err := h.carry(ctx, list); err != nil {
		return err
	}
	h.look(func(w *work) {
		w.items, w.unsaved = list, true
		w.itemsAt++
		w.version++
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
	have, err := h.readItems(ctx, win, list)
	if err != nil {
		return err
	}
	total := 0
	for i, it := range list {
		messages := messagesOf(have, it)
		if len(messages) != 1 {
			return fmt.Errorf("item %d: entry %s holds no message", i, it.Entry)
		}
		list[i].Message = messages[0].Raw
		total += len(messages[0].Raw)
	}
	if bound >= 0 && total > bound {
		return LimitError("explicit context", bound, total)
	}
	return nil
}

// LimitError refuses what is larger than it may be.
func LimitError(what string, limit, value int) error {
	return &checkpoint.LimitError{What: what, Limit: int64(limit), Value: int64(value)}
}

// exists refuses an id that is taken.
func exists(id string) error { return fmt.Errorf("entry %s: %w", id, fs.ErrExist) }

// Missing says that there is nothing of this name: fs.ErrNotExist.
func Missing(kind, name string) error { return fmt.Errorf("%s %q: %w", kind, name, fs.ErrNotExist) }
