package session

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/transcript"
)

// Context returns the messages that the model sees next: a copy, with its images.
func (h *Handle) Context(ctx context.Context) (transcript.Context, error) {
	win, items, err := h.window(ctx)
	if err != nil {
		return transcript.Context{}, err
	}
	return h.ContextOf(ctx, nil, win, items)
}

// asOf returns a moment of the session; nil = now.
type asOf func(ctx context.Context) (*Moment, error)

// ContextOf makes the context of a window, or of the items of an explicit context if they are not nil, as of a moment;
// nil = now.
func (h *Handle) ContextOf(
	ctx context.Context, at asOf, win *transcript.WorkingContext, items []transcript.Item,
) (transcript.Context, error) {
	out, err := h.stored(ctx, at, win, items)
	if err != nil {
		return transcript.Context{}, err
	}
	return out, h.images.PutBack(ctx, h.State(), &out)
}

// OpenCalls returns the tool calls of the context that have no result. It reads no image: arguments that hold one
// have its reference.
func (h *Handle) OpenCalls(ctx context.Context) ([]transcript.ToolCall, error) {
	win, items, err := h.window(ctx)
	if err != nil {
		return nil, err
	}
	out, err := h.stored(ctx, nil, win, items)
	return out.OpenCalls, err
}

// stored makes the context with its images as references.
func (h *Handle) stored(
	ctx context.Context, at asOf, win *transcript.WorkingContext, items []transcript.Item,
) (transcript.Context, error) {
	if items == nil {
		return win.Context(), nil
	}
	return h.explicit(ctx, at, win.Context(), win, items)
}

// window returns the working context at the head, and the explicit context if there is one. It reads the
// path where the window is not known.
func (h *Handle) window(ctx context.Context) (win *transcript.WorkingContext, items []transcript.Item, err error) {
	for range windowTries {
		h.look(func(v *view) {
			if v.win == nil && v.base != nil && v.View.Head.Is(journal.PlaceOf(v.State)) {
				v.begin(v.base)
			}
			win, items = v.grown(), slices.Clone(v.items)
		})
		if win != nil {
			break
		}
		m, err := h.Moment(ctx)
		if err != nil {
			return nil, nil, err
		}
		profile, bound := h.Rules()
		if win, err = h.WindowAt(ctx, m, m.Head, profile, bound); err != nil {
			return nil, nil, err
		}
		fresh := false
		h.look(func(v *view) {
			if fresh = v.Version == m.version; !fresh {
				return // something was inserted meanwhile: once more
			}
			if v.stand(win, v.View.Head); len(v.Open) == 0 {
				v.base = win
			}
		})
		if fresh {
			break
		}
	}
	return win, items, nil
}

// windowTries bounds how often a window is read anew while others insert; the last one is good enough.
const windowTries = 8

// Rules are the profile and the bound of this handle's working context.
func (h *Handle) Rules() (p transcript.Profile, bound int) {
	h.look(func(v *view) { p, bound = v.profile, v.bound })
	return p, bound
}

// WindowAt reads the working context at a place. It reads back to what the latest compaction keeps, and
// before that only the settings.
func (h *Handle) WindowAt(
	ctx context.Context, m *Moment, at journal.Place, p transcript.Profile, bound int,
) (*transcript.WorkingContext, error) {
	ord, ok := m.Ordinal(at)
	if !ok {
		return transcript.NewWorkingContext(p, bound), nil
	}
	path := slices.Collect(m.Up(ord))
	slices.Reverse(path)
	from, err := h.keptFrom(ctx, m, path, p)
	if err != nil {
		return nil, err
	}
	base, err := h.settingsBefore(ctx, m, path[:from], p)
	if err != nil {
		return nil, err
	}
	entries, err := h.Bodies(ctx, m, path[from:])
	if err != nil {
		return nil, err
	}
	return transcript.RestoreWorkingContext(p, bound, base, 0, entries), nil
}

// keptFrom returns the place on the path from which on entries can reach the context.
func (h *Handle) keptFrom(ctx context.Context, m *Moment, path []uint64, p transcript.Profile) (int, error) {
	if p == transcript.OMP || p == transcript.Atomic {
		return 0, nil // there the type of an entry does not determine what ends a context
	}
	for i := len(path) - 1; i >= 0; i-- {
		if typ, _ := m.Tree.Kind(path[i]); typ != "compaction" {
			continue
		}
		entries, err := h.Bodies(ctx, m, path[i:i+1])
		if err != nil {
			return 0, err
		}
		var kept struct {
			Pi       string `json:"firstKeptEntryId"`
			Operator string `json:"first_kept_entry_id"`
		}
		if json.Unmarshal(entries[0].Raw, &kept) != nil {
			return 0, nil
		}
		for k := i - 1; k >= 0; k-- {
			if id := m.Tree.ID(path[k]); id == kept.Pi || id == kept.Operator {
				return k, nil
			}
		}
		return i, nil
	}
	return 0, nil
}

// settingsBefore returns the settings in force at the end of a path, of which it reads no more than the
// last entry of each kind that can say something.
func (h *Handle) settingsBefore(
	ctx context.Context, m *Moment, path []uint64, p transcript.Profile,
) (transcript.Settings, error) {
	var last []uint64
	seen := map[string]bool{}
	for i := len(path) - 1; i >= 0 && len(seen) < 4; i-- {
		n := m.Tree.NodeAt(path[i])
		kind := n.Type
		switch {
		case kind == "message" && n.Role == "assistant":
		case kind == "model_change", kind == "thinking_level_change", kind == "mode_change":
		default:
			continue
		}
		if !seen[kind] {
			seen[kind] = true
			last = append(last, path[i])
		}
	}
	if len(last) == 0 {
		return transcript.Settings{}, nil
	}
	slices.Reverse(last)
	entries, err := h.Bodies(ctx, m, last)
	if err != nil {
		return transcript.Settings{}, err
	}
	return transcript.RestoreWorkingContext(p, -1, transcript.Settings{}, 0, entries).Context().Settings, nil
}

// explicit makes the context that SetContext, or the document, says. derived returns the settings.
func (h *Handle) explicit(
	ctx context.Context, at asOf, derived transcript.Context, win *transcript.WorkingContext,
	items []transcript.Item,
) (transcript.Context, error) {
	have, err := h.readItems(ctx, at, win, items)
	if err != nil {
		return transcript.Context{}, err
	}
	var path []transcript.Entry
	for _, it := range items {
		for _, m := range messagesOf(have, it) {
			raw := slices.Concat([]byte(`{"type":"message","message":`), m.Raw, []byte{'}'})
			path = append(path, transcript.Entry{Ordinal: uint64(len(path)), ID: m.Entry, Type: "message", Raw: raw})
		}
	}
	out := transcript.BuildContext(path, transcript.Coppice) // no profile leaves out what was asked for
	out.Settings, out.Leaf, out.Explicit = derived.Settings, derived.Leaf, true
	return out, nil
}

// messagesOf returns what an item puts into a context: one message, none for an entry that says nothing.
func messagesOf(have map[string]transcript.Entry, it transcript.Item) []transcript.Message {
	e, ok := have[it.Entry]
	if !ok && len(it.Message) > 0 {
		e = transcript.Entry{
			ID: it.Entry, Type: "message",
			Raw: slices.Concat([]byte(`{"message":`), it.Message, []byte{'}'}),
		}
	}
	if m, ok := e.Message(); ok {
		return []transcript.Message{m}
	}
	list := transcript.BuildContext([]transcript.Entry{e}, transcript.Coppice).Messages
	for i := range list {
		list[i].Entry = e.ID
	}
	return list
}

// readItems returns the entries that items name, by id, as of a moment; nil = now. Those that are neither pending nor
// in the window, nor carried by their item, are read.
func (h *Handle) readItems(
	ctx context.Context, at asOf, win *transcript.WorkingContext, items []transcript.Item,
) (map[string]transcript.Entry, error) {
	have := map[string]transcript.Entry{}
	for e := range win.All {
		have[e.ID] = e
	}
	if at == nil {
		at = h.Moment
		h.look(func(v *view) { v.addOpen(have) })
	}
	var m *Moment
	var ords []uint64
	for _, it := range items {
		if _, ok := have[it.Entry]; ok || len(it.Message) > 0 {
			continue
		}
		if m == nil {
			var err error
			if m, err = at(ctx); err != nil {
				return nil, err
			}
		}
		ord, err := m.Find(it.Entry)
		if err != nil {
			return nil, err
		}
		ords = append(ords, ord)
	}
	if len(ords) == 0 {
		return have, nil
	}
	entries, err := h.Bodies(ctx, m, ords)
	for _, e := range entries {
		have[e.ID] = e
	}
	return have, err
}

// addOpen adds what is not acknowledged to entries by id, and applies its amendments to all of them.
func (v *view) addOpen(have map[string]transcript.Entry) {
	for _, e := range v.Open {
		own := e.Head.Entry(0)
		if _, ok := have[e.ID]; !ok {
			have[e.ID] = own
		}
		if a, ok := own.Amendment(); ok {
			if was, ok := have[a.Target]; ok {
				have[a.Target] = was.Amended(a)
			}
		}
	}
}
