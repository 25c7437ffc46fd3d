package coppice

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Context returns the messages that the model sees next, what is pending included: derived from the path
// to the head by the session's profile, unless SetContext made it explicit. It is bounded by ContextBytes
// (Window reports what was omitted; View.Context of the head returns all) and it is a copy. Only images that
// it refers to are read, in parallel; a missing one becomes a diagnostic, and its reference stays.
func (s *Session) Context(ctx context.Context) (transcript.Context, error) {
	if err := s.ready(ctx); err != nil {
		return transcript.Context{}, s.fail("context", err)
	}
	win, items, err := s.window(ctx)
	if err != nil {
		return transcript.Context{}, s.fail("context", err)
	}
	c, err := s.contextOf(ctx, nil, win, items)
	return c, s.fail("context", err)
}

// SetContext makes the context explicit: these items, and what is appended from here on. None makes it
// derived again. The next commit saves it. Together the items are at most ContextBytes long
// (backend.ErrTooLarge): an explicit context is never cut. Entries that are not in memory are read. Inline
// messages pass Hooks.BeforeAppend as drafts of messages do.
func (s *Session) SetContext(ctx context.Context, items ...transcript.Item) error {
	if err := s.writable(ctx); err != nil {
		return s.fail("set context", err)
	}
	items, err := s.screenItems(ctx, items)
	if err != nil {
		return s.fail("set context", err)
	}
	return s.fail("set context", s.setContext(ctx, items))
}

func (s *Session) setContext(ctx context.Context, items []transcript.Item) error {
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
			at, err := s.locate(ctx, it.Entry)
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
			s.j.HoldBlobs(blobs)
			stored.Message = message
		}
		list = append(list, stored)
	}
	held, err := s.j.Hold(ctx, "set context")
	if err != nil {
		return err
	}
	defer held.Release()
	if s.j.InDoubt() {
		return journal.ErrInDoubt
	}
	if err := s.carry(ctx, list); err != nil {
		return err
	}
	s.look(func(v *liveState) {
		v.items, v.unsaved, v.itemsSeen = list, true, v.State.Next
		v.itemsAt++
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
	have, err := s.readItems(ctx, nil, win, list)
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
		return layout.TooLarge("explicit context", bound, total)
	}
	return nil
}

// screenItems lets the hook see copies of inline messages, each as the draft of a message entry.
func (s *Session) screenItems(ctx context.Context, items []transcript.Item) ([]transcript.Item, error) {
	if s.store.o.Hooks.BeforeAppend == nil {
		return items, nil
	}
	out := slices.Clone(items)
	for i := range out {
		if out[i].Message == nil {
			continue
		}
		body, err := json.Marshal(map[string]json.RawMessage{"message": out[i].Message})
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		drafts, err := s.screen(ctx, []transcript.Draft{{Type: "message", Body: body}})
		if err != nil {
			return nil, err
		}
		var back struct{ Message json.RawMessage }
		if err := json.Unmarshal(drafts[0].Body, &back); err != nil {
			return nil, fmt.Errorf("item %d: the hook's draft: %w", i, err)
		}
		out[i].Message = back.Message
	}
	return out, nil
}

// asOf returns a moment of the session; nil = now.
type asOf func(ctx context.Context) (*treeView, error)

// contextOf makes the context of a window, or of the items of an explicit context if they are not nil, as of a moment;
// nil = now.
func (s *Session) contextOf(
	ctx context.Context, at asOf, win *transcript.WorkingContext, items []transcript.Item,
) (transcript.Context, error) {
	out, err := s.contextRefs(ctx, at, win, items)
	if err != nil {
		return transcript.Context{}, err
	}
	return out, s.images.putBack(ctx, s.state(), &out)
}

// openCalls returns the tool calls of the context that have no result. It reads no image: arguments that hold one
// have its reference.
func (s *Session) openCalls(ctx context.Context) ([]transcript.ToolCall, error) {
	win, items, err := s.window(ctx)
	if err != nil {
		return nil, err
	}
	out, err := s.contextRefs(ctx, nil, win, items)
	return out.OpenCalls, err
}

// contextRefs makes the context with its images as references.
func (s *Session) contextRefs(
	ctx context.Context, at asOf, win *transcript.WorkingContext, items []transcript.Item,
) (transcript.Context, error) {
	if items == nil {
		return win.Context(), nil
	}
	return s.explicit(ctx, at, win.Context(), win, items)
}

// window returns the working context at the head, and the explicit context if there is one. It reads the
// path where the window is not known.
func (s *Session) window(ctx context.Context) (win *transcript.WorkingContext, items []transcript.Item, err error) {
	for range windowTries {
		s.look(func(v *liveState) {
			if v.win == nil && v.base != nil && v.Sight.Head.Is(journal.PlaceOf(v.State)) {
				v.begin(v.base)
			}
			win, items = v.grown(), slices.Clone(v.items)
		})
		if win != nil {
			break
		}
		m, err := s.treeView(ctx)
		if err != nil {
			return nil, nil, err
		}
		profile, bound := s.rules()
		if win, err = s.windowAt(ctx, m, m.Head, profile, bound); err != nil {
			return nil, nil, err
		}
		fresh := false
		s.look(func(v *liveState) {
			if fresh = v.Version == m.version; !fresh {
				return // something was inserted meanwhile: once more
			}
			if v.setWindow(win, v.Sight.Head); len(v.Open) == 0 {
				v.base = win
			}
		})
		if fresh {
			break
		}
	}
	return win, items, nil
}

// windowTries bounds how often a window is read again because another caller inserted; then the last one is used.
const windowTries = 8

// rules are the profile and the bound of this handle's working context.
func (s *Session) rules() (p transcript.Profile, bound int) {
	s.look(func(v *liveState) { p, bound = v.profile, v.bound })
	return p, bound
}

// explicit makes a context of the items of SetContext, or of the document. derived has the settings.
func (s *Session) explicit(
	ctx context.Context, at asOf, derived transcript.Context, win *transcript.WorkingContext,
	items []transcript.Item,
) (transcript.Context, error) {
	have, err := s.readItems(ctx, at, win, items)
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

// messagesOf returns what an item puts into a context: one message, or none for an entry without one.
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
func (s *Session) readItems(
	ctx context.Context, at asOf, win *transcript.WorkingContext, items []transcript.Item,
) (map[string]transcript.Entry, error) {
	have := map[string]transcript.Entry{}
	for e := range win.All {
		have[e.ID] = e
	}
	if at == nil {
		at = s.treeView
		s.look(func(v *liveState) { v.addOpen(have) })
	}
	var m *treeView
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

// addOpen adds what is not acknowledged to entries by id, and applies its amendments to all of them.
func (v *liveState) addOpen(have map[string]transcript.Entry) {
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
