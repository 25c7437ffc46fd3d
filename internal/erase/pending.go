package erase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// pending is an erasure that was begun, as it is stored: nothing of what is erased.
type pending struct {
	Entries []string `json:"entries"`
	States  []string `json:"states,omitempty"`
	Docs    []string `json:"docs,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	// Other sessions may have it still. Entries has those too that were erased in this one before.
	Everywhere bool `json:"everywhere,omitempty"`
	// Hex SHA-256 of imported files that have the entries, and of images that nothing else shows.
	Originals []string `json:"originals,omitempty"`
	Images    []string `json:"images,omitempty"`
}

// begin writes the pending object, with what an earlier call left in it.
func (e *eraser) begin(ctx context.Context) error {
	if original := e.j.State().Original; original != "" {
		e.before = append(e.before, original)
	}
	if err := e.put(ctx, true); err != nil || !e.resumed || !e.what.Everywhere {
		return err
	}
	known, err := e.j.Known(ctx, e.j.State(), slices.Collect(maps.Keys(e.ids)))
	if err != nil {
		return err
	}
	ords := []uint64{}
	for _, l := range known {
		ords = append(ords, l.Ord)
	}
	return e.each(ctx, ords, func(entry *transcript.Entry) error {
		if _, ok := entry.Erased(); ok {
			e.gone = append(e.gone, Gone{entry.ID, erased{id: entry.ID, time: entry.Time}})
		}
		return nil
	})
}

// entries returns the ids of the entries of an erasure.
func (e *eraser) entries() []string {
	ids := slices.Collect(maps.Keys(e.ids))
	for i := range e.gone {
		ids = append(ids, e.gone[i].ID)
	}
	return ids
}

// more reports whether a pending object has what this erasure does not know of: another call has added it.
func (e *eraser) more(now *pending) bool {
	known := e.entries()
	return len(union(now.States, e.what.States)) > len(e.what.States) ||
		len(union(now.Docs, e.what.Docs)) > len(e.what.Docs) ||
		len(union(now.Entries, known)) > len(union(known, nil))
}

// showing adds the images that nothing else shows.
func (e *eraser) showing(ctx context.Context) error {
	more := false
	for sum := range e.found.removed {
		if !e.found.images[sum] && !slices.Contains(e.shown, sum) {
			e.shown, more = append(e.shown, sum), true
		}
	}
	if !more {
		return nil
	}
	return e.put(ctx, false)
}

// put writes the pending object. first: what is there is of an earlier call.
func (e *eraser) put(ctx context.Context, first bool) error {
	key := layout.ErasureKey(e.cfg.Session, e.cfg.Since)
	for range e.cfg.Limits.OrDefaults().Attempts {
		p, info, err := e.cfg.Backend.Get(ctx, key, backend.Range{})
		cond := backend.IfMatch(info.Version)
		var was pending
		switch {
		case errors.Is(err, fs.ErrNotExist):
			cond = backend.IfAbsent()
		case err != nil:
			return err
		default:
			if err := json.Unmarshal(p, &was); err != nil {
				return store.Corrupt(key, 0, err)
			}
			if first {
				e.take(&was)
			}
		}
		if first && !e.pends() {
			return nil
		}
		now := pending{
			Entries: union(was.Entries, e.entries()), Reason: e.reason,
			Everywhere: e.what.Everywhere || was.Everywhere && e.more(&was),
			States:     union(was.States, e.what.States), Docs: union(was.Docs, e.what.Docs),
			Originals: union(was.Originals, e.before), Images: union(was.Images, e.shown),
		}
		body, err := json.Marshal(now)
		if err != nil {
			return err
		}
		if _, err = e.cfg.Backend.Put(ctx, key, body, cond); !errors.Is(err, backend.ErrPrecondition) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", key, errChanges)
}

// take makes what an earlier call began a part of this one.
func (e *eraser) take(was *pending) {
	e.resumed = true
	for _, id := range was.Entries {
		e.ids[id] = true
	}
	if e.reason == "" {
		e.reason = was.Reason
	}
	for _, at := range was.States {
		e.states[at] = true
	}
	for _, name := range was.Docs {
		e.docs[name] = true
	}
	e.what.Everywhere = e.what.Everywhere || was.Everywhere
	e.what.States, e.what.Docs = union(e.what.States, was.States), union(e.what.Docs, was.Docs)
	e.before, e.shown = union(e.before, was.Originals), union(e.shown, was.Images)
}

// union returns the texts of both lists, each once, in order.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// end removes the pending object, unless another call has added entries to it meanwhile: that call removes it.
func (e *eraser) end(ctx context.Context) error {
	key := layout.ErasureKey(e.cfg.Session, e.cfg.Since)
	p, _, err := e.cfg.Backend.Get(ctx, key, backend.Range{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var now pending
	if err := json.Unmarshal(p, &now); err != nil {
		return store.Corrupt(key, 0, err)
	}
	if now.Everywhere || e.more(&now) { // the first: this caller does not erase elsewhere
		return nil
	}
	return e.cfg.Backend.Delete(ctx, key)
}
