package coppice

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/coppice-go/coppice/transcript"
)

// window gives the working context at the head, and the explicit context if there is one. It reads the
// path where the window is not known.
func (s *Session) window(ctx context.Context) (*transcript.PathWindow, []transcript.Item, error) {
	for {
		var win *transcript.PathWindow
		var items []transcript.Item
		var version uint64
		s.look(func(w *work) {
			if w.win == nil && w.base != nil && w.head.is(headOf(w.st)) {
				w.win = w.base
			}
			win, items, version = w.win, slices.Clone(w.items), w.version
		})
		if win != nil {
			return win, items, nil
		}
		m, err := s.moment(ctx)
		if err != nil {
			return nil, nil, err
		}
		profile, bound := s.rules()
		if win, err = s.windowAt(ctx, m, m.head, profile, bound); err != nil {
			return nil, nil, err
		}
		s.look(func(w *work) {
			if w.version != m.version || w.version != version {
				win = nil // something was appended meanwhile: once more
				return
			}
			w.win = win
			if len(w.open) == 0 {
				w.base = win
			}
		})
		if win != nil {
			return win, items, nil
		}
	}
}

// rules are the profile and the bound of this handle's working context.
func (s *Session) rules() (p transcript.Profile, bound int) {
	s.look(func(w *work) { p, bound = w.profile, w.bound })
	return p, bound
}

// windowAt reads the working context at a place. It reads back to what the latest compaction keeps, and
// before that only the settings.
func (s *Session) windowAt(ctx context.Context, m *moment, at place, p transcript.Profile, bound int) (*transcript.PathWindow, error) {
	ord, ok := m.ordinal(at)
	if !ok {
		return transcript.NewPathWindow(p, bound), nil
	}
	path := slices.Collect(m.up(ord))
	slices.Reverse(path)
	from, err := s.keptFrom(ctx, m, path, p)
	if err != nil {
		return nil, err
	}
	base, err := s.settingsBefore(ctx, m, path[:from], p)
	if err != nil {
		return nil, err
	}
	entries, err := s.bodies(ctx, m, path[from:])
	if err != nil {
		return nil, err
	}
	return transcript.RestorePathWindow(p, bound, base, 0, entries), nil
}

// keptFrom gives the place on the path from which on entries can reach the context.
func (s *Session) keptFrom(ctx context.Context, m *moment, path []uint64, p transcript.Profile) (int, error) {
	if p == transcript.OMP || p == transcript.Atomic {
		return 0, nil // what ends a context there cannot be told from an entry's type
	}
	for i := len(path) - 1; i >= 0; i-- {
		if m.tree.NodeAt(path[i]).Type != "compaction" {
			continue
		}
		entries, err := s.bodies(ctx, m, path[i:i+1])
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
			if id := m.tree.NodeAt(path[k]).ID; id == kept.Pi || id == kept.Operator {
				return k, nil
			}
		}
		return i, nil
	}
	return 0, nil
}

// settingsBefore gives the settings in force at the end of a path, of which it reads no more than the
// last entry of each kind that can say something.
func (s *Session) settingsBefore(ctx context.Context, m *moment, path []uint64, p transcript.Profile) (transcript.Settings, error) {
	var last []uint64
	seen := map[string]bool{}
	for i := len(path) - 1; i >= 0 && len(seen) < 4; i-- {
		n := m.tree.NodeAt(path[i])
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
	entries, err := s.bodies(ctx, m, last)
	if err != nil {
		return transcript.Settings{}, err
	}
	return transcript.RestorePathWindow(p, -1, transcript.Settings{}, 0, entries).Context().Settings, nil
}

// explicit makes the context that SetContext, or the document, says. derived gives the settings.
func (s *Session) explicit(ctx context.Context, derived transcript.Context, win *transcript.PathWindow, items []transcript.Item) (transcript.Context, error) {
	messages, err := s.messages(ctx, win, items)
	if err != nil {
		return transcript.Context{}, err
	}
	path := make([]transcript.Entry, len(messages))
	for i, m := range messages {
		raw := slices.Concat([]byte(`{"type":"message","message":`), m.Raw, []byte{'}'})
		path[i] = transcript.Entry{Ordinal: uint64(i), ID: m.Entry, Type: "message", Raw: raw}
	}
	c := transcript.BuildContext(path, transcript.Coppice) // no profile leaves out what was asked for
	c.Settings, c.Leaf, c.Explicit = derived.Settings, derived.Leaf, true
	return c, nil
}

// messages gives the messages of a list of items, as they are stored. Entries that are neither pending
// nor in the window, nor carried by the item, are read.
func (s *Session) messages(ctx context.Context, win *transcript.PathWindow, items []transcript.Item) ([]transcript.Message, error) {
	have, err := s.readItems(ctx, win, items)
	if err != nil {
		return nil, err
	}
	var list []transcript.Message
	for _, it := range items {
		list = append(list, messagesOf(have, it)...)
	}
	return list, nil
}

// messagesOf gives what an item puts into a context: one message, none for an entry that says nothing.
func messagesOf(have map[string]transcript.Entry, it transcript.Item) []transcript.Message {
	e := have[it.Entry]
	if len(it.Message) > 0 {
		e = transcript.Entry{ID: it.Entry, Type: "message", Raw: slices.Concat([]byte(`{"message":`), it.Message, []byte{'}'})}
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

// readItems gives the entries that items name, by id, from memory where they are there.
func (s *Session) readItems(ctx context.Context, win *transcript.PathWindow, items []transcript.Item) (map[string]transcript.Entry, error) {
	have := map[string]transcript.Entry{}
	for _, e := range win.Entries() {
		have[e.ID] = e
	}
	s.look(func(w *work) {
		for id, p := range w.ids {
			have[id] = entryOf(p.line, 0)
		}
	})
	var m *moment
	var ords []uint64
	for _, it := range items {
		if _, ok := have[it.Entry]; ok || len(it.Message) > 0 {
			continue
		}
		if m == nil {
			var err error
			if m, err = s.moment(ctx); err != nil {
				return nil, err
			}
		}
		ord, err := m.find(it.Entry)
		if err != nil {
			return nil, err
		}
		ords = append(ords, ord)
	}
	if len(ords) == 0 {
		return have, nil
	}
	entries, err := s.bodies(ctx, m, ords)
	for _, e := range entries {
		have[e.ID] = e
	}
	return have, err
}
