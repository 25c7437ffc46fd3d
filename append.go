package coppice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/transcript"
)

// entryMax bounds one entry, in bytes, beside its images.
const entryMax = 4 << 20

// Append adds entries behind the head, all or none, in memory only (at PerTurn); the head moves to the
// last. It returns their ids in order. A draft with an id of its own, or with Raw, is checked against the
// whole tree, which the first such call reads: fs.ErrExist. Draft.Parent may name any entry. At PerAppend
// the entries are durable when it returns; if that fails they are pending, and their ids come back with
// the error.
func (s *Session) Append(ctx context.Context, d ...transcript.Draft) ([]string, error) {
	if err := s.writable(ctx); err != nil {
		return nil, s.fail("append", err)
	}
	drafts, err := s.screen(ctx, d)
	if err != nil {
		return nil, s.fail("append", err)
	}
	added, err := s.insert(ctx, drafts, nil, true)
	if err != nil || len(added) == 0 {
		return nil, s.fail("append", err)
	}
	ids := make([]string, len(added))
	for i, p := range added {
		ids[i] = p.line.ID
	}
	if s.o.Durability == PerAppend {
		_, err = s.commit(ctx, "append", commitOptions{reason: "append"})
	}
	return ids, err
}

// screen lets the hook see copies of drafts.
func (s *Session) screen(ctx context.Context, d []transcript.Draft) ([]transcript.Draft, error) {
	drafts := make([]transcript.Draft, len(d))
	for i := range d {
		drafts[i] = d[i]
		drafts[i].Body, drafts[i].Raw = bytes.Clone(d[i].Body), bytes.Clone(d[i].Raw)
		if hook := s.store.o.Hooks.BeforeAppend; hook != nil && d[i].Err == nil {
			if err := hook(ctx, &drafts[i]); err != nil {
				return nil, fmt.Errorf("hook: %w", err)
			}
		}
		if drafts[i].Err != nil {
			return nil, drafts[i].Err
		}
	}
	return drafts, nil
}

// insert adds drafts to the pending entries, all or none. The first hangs on at, nil = the head. Unless
// grow is set the head stays.
func (s *Session) insert(ctx context.Context, drafts []transcript.Draft, at *place, grow bool) ([]*pending, error) {
	known, err := s.parents(ctx, drafts)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	w := s.sync()
	b := builder{w: w, s: s, at: w.head, known: known, fresh: map[string]int{}}
	if at != nil {
		b.at = *at
	}
	for i := range drafts {
		if err := b.add(&drafts[i]); err != nil {
			return nil, err
		}
	}
	added := make([]*pending, len(b.lines))
	for i, l := range b.lines {
		hangs := b.hang[i]
		if hangs.ord == onFresh {
			hangs = place{id: l.ParentID, ord: -1, p: added[b.fresh[l.ParentID]]}
		}
		s.images.hold(l.blobs)
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
func (s *Session) parents(ctx context.Context, drafts []transcript.Draft) (map[string]place, error) {
	known, own := map[string]place{}, map[string]bool{}
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
			if err := s.free(ctx, id); err != nil || own[id] {
				return nil, errors.Join(err, existsIf(own[id], id))
			}
		}
		if parent != "" && !own[parent] {
			at, err := s.locate(ctx, parent)
			if err != nil {
				return nil, fmt.Errorf("parent: %w", err)
			}
			if drafts[i].Raw != nil && at.id != parent {
				return nil, fmt.Errorf("parent: %w", missing("entry", parent))
			}
			known[parent] = at
		}
		own[id] = true
	}
	return known, nil
}

func existsIf(taken bool, id string) error {
	if !taken {
		return nil
	}
	return exists(id)
}

// free refuses an id that an entry has.
func (s *Session) free(ctx context.Context, id string) error {
	m, err := s.moment(ctx)
	if err != nil {
		return err
	}
	if n, ok := m.tree.Node(id); ok && n.ID == id {
		return exists(id)
	}
	return nil
}

// onFresh marks a parent that is another draft of the same call.
const onFresh = -2

// builder makes lines of drafts; Session.mu is held.
type builder struct {
	w     *work
	s     *Session
	at    place            // where the next draft hangs unless it says otherwise
	known map[string]place // places of named parents
	fresh map[string]int   // drafts of this call by id
	given []string
	lines []builtLine
	hang  []place
}

type builtLine struct {
	transcript.Line
	blobs []transcript.Blob
}

func (b *builder) add(d *transcript.Draft) error {
	now, hangs := b.s.store.o.Now(), b.at
	id := d.ID
	if d.Raw == nil {
		if d.Parent != "" {
			hangs = b.parent(d.Parent)
		}
		if id == "" {
			var err error
			if id, err = transcript.NewID(now, b.s.store.rand); err != nil {
				return err
			}
		}
	}
	raw, err := d.Line(id, hangs.id, now)
	if err != nil {
		return err
	}
	stored, blobs := transcript.Externalise(raw)
	if len(stored) > entryMax {
		return limitError("entry", entryMax, len(stored))
	}
	line, err := transcript.ParseLine(stored)
	if err != nil {
		return err
	}
	if d.Raw != nil {
		if hangs = (place{ord: -1}); line.ParentID != "" {
			hangs = b.parent(line.ParentID)
			hangs.id = line.ParentID
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
	b.at = place{id: line.ID, ord: onFresh}
	return nil
}

// parent gives the place of a named parent, which may be a draft of the same call.
func (b *builder) parent(id string) place {
	if _, ok := b.fresh[id]; ok {
		return place{id: id, ord: onFresh}
	}
	return b.known[id]
}

// SetContext makes the context explicit: these items, and what is appended from here on. None makes it
// derived again. The next commit saves it. Together the items are at most ContextBytes long
// (backend.ErrTooLarge): an explicit context is never cut. Entries that are not in memory are read.
func (s *Session) SetContext(ctx context.Context, items ...transcript.Item) error {
	return s.fail("set context", s.setContext(ctx, items))
}

func (s *Session) setContext(ctx context.Context, items []transcript.Item) error {
	if err := s.writable(ctx); err != nil {
		return err
	}
	var list []transcript.Item
	for i, it := range items {
		stored := transcript.Item{}
		switch {
		case (it.Entry == "") == (len(it.Message) == 0):
			return fmt.Errorf("item %d: want an entry or a message", i)
		case it.Entry != "":
			at, err := s.locate(ctx, it.Entry)
			if err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
			stored.Entry = at.id
		default:
			var compact bytes.Buffer
			if err := json.Compact(&compact, it.Message); err != nil || compact.Bytes()[0] != '{' {
				return fmt.Errorf("item %d: a message is one JSON object", i)
			}
			message, blobs := transcript.Externalise(compact.Bytes())
			s.images.hold(blobs)
			stored.Message = message
		}
		list = append(list, stored)
	}
	if err := s.carry(ctx, list); err != nil {
		return err
	}
	s.look(func(w *work) {
		w.items, w.unsaved = list, true
		w.itemsAt++
		w.version++
	})
	return nil
}

// carry puts the message of each entry into its item, so that the document can bring it along where the
// window does not, and checks the bound.
func (s *Session) carry(ctx context.Context, list []transcript.Item) error {
	win, _, err := s.window(ctx)
	if err != nil {
		return err
	}
	_, bound := s.rules()
	have, err := s.readItems(ctx, win, list)
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
		return limitError("explicit context", bound, total)
	}
	return nil
}
