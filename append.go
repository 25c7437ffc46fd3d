package coppice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Append adds entries after the head, all or none, to the buffer of the handle: in memory only. The head moves to the
// last. It returns their ids in order. The next Commit without a Base, of any caller of the handle, stores them:
// where several callers share one, use Turn.Entries. A draft with an id of its own, or with Raw, is looked for in the
// index of all ids, which the first such call reads (at most four reads): fs.ErrExist if the session has it.
// Draft.Parent may name any entry; a whole id is found in that index, a prefix of one in the tree.
//
// Append waits while another call of the handle writes. If ctx ends meanwhile, nothing was appended. A handle that
// knows that another writer moved the head returns ErrConflict or ErrFenced, one in doubt ErrInDoubt: so the caller
// learns it before it pays for another model call.
func (s *Session) Append(ctx context.Context, d ...transcript.Draft) ([]string, error) {
	ids, err := s.append(ctx, d)
	return ids, s.fail("append", err)
}

func (s *Session) append(ctx context.Context, d []transcript.Draft) ([]string, error) {
	if err := s.writable(ctx); err != nil {
		return nil, err
	}
	drafts, err := s.screen(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := unknown(drafts); err != nil {
		return nil, err
	}
	held, err := s.j.Hold(ctx, "append")
	if err != nil {
		return nil, err
	}
	defer held.Release()
	known, err := s.parents(ctx, s.j.Tip(), drafts)
	if err != nil {
		return nil, err
	}
	var ids []string
	err = held.Append(
		func(_ *state.State, at journal.Place, find func(id string) *journal.Entry) (l []*journal.Entry, err error) {
			l, ids, err = s.build(drafts, at, known, find)
			return l, err
		})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// screen lets the hook see copies of drafts.
func (s *Session) screen(ctx context.Context, d []transcript.Draft) ([]transcript.Draft, error) {
	drafts := make([]transcript.Draft, len(d))
	for i := range d {
		drafts[i] = d[i]
		drafts[i].Raw = bytes.Clone(d[i].Raw) // stored as given; without it a line is made of Body
		if hook := s.store.o.Hooks.BeforeAppend; hook != nil && d[i].Err == nil {
			drafts[i].Body = bytes.Clone(d[i].Body)
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

// mayKnow reports whether a draft may have the id of an entry of the session, which is then not stored again.
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
func (s *Session) parents(
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
			if err := s.free(ctx, on, id); err != nil {
				return known, err
			}
		}
		if own[id] && id != "" && drafts[i].OnKnownID != transcript.KnownIgnore {
			return known, exists(id)
		}
		if parent != "" && !own[parent] {
			at, err := s.locateOn(ctx, on, parent)
			if err != nil {
				return known, fmt.Errorf("parent: %w", err)
			}
			if drafts[i].Raw != nil && at.ID != parent {
				return known, fmt.Errorf("parent: %w", missing("entry", parent))
			}
			known.by[parent] = at
		}
		own[id] = true
	}
	var err error
	known.amends, err = s.amendKnown(ctx, on, drafts)
	return known, err
}

// free refuses an id that an entry or a commit of a state has.
func (s *Session) free(ctx context.Context, on *state.State, id string) error {
	known, err := s.j.Known(ctx, on, []string{id})
	if _, ok := known[id]; ok && err == nil {
		return exists(id)
	}
	return err
}

// locateOn finds an entry that the handle sees, or one of a newer state by its whole id.
func (s *Session) locateOn(ctx context.Context, on *state.State, id string) (journal.Place, error) {
	at, err := s.locate(ctx, id)
	if err == nil || !isMissing(err) || on == s.state() {
		return at, err
	}
	known, kerr := s.j.Known(ctx, on, []string{id})
	if l, ok := known[id]; ok && !l.Commit && kerr == nil {
		return journal.Place{ID: id, Ord: int64(l.Ord)}, nil
	}
	return at, errors.Join(err, kerr)
}

// build makes entries of drafts. The first grows from at, each from the one before, unless it names a parent. ids are
// those of all drafts: with KnownIgnore, a pending id gets no second entry. It runs under the journal's lock, or
// s.mu.
func (s *Session) build(
	drafts []transcript.Draft, at journal.Place, known places, find func(id string) *journal.Entry,
) (entries []*journal.Entry, ids []string, err error) {
	b := builder{
		cfg: &s.cfg, at: at, known: known.by, find: find, amends: known.amends,
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
	cfg     *journal.Config
	at      journal.Place               // where the next draft grows unless it names a parent
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
	now, e := b.cfg.Now(), &journal.Entry{Parent: b.at}
	id := d.ID
	if d.Raw == nil {
		if d.Parent != "" {
			e.Parent, e.Chosen = b.parent(d.Parent), true
		}
		if id == "" {
			var err error
			if id, err = transcript.NewID(now, b.cfg.Rand); err != nil {
				return nil, err
			}
		}
	}
	l, err := d.Parsed(id, e.Parent.ID, now)
	if err != nil {
		return nil, err
	}
	if e.Raw, e.Blobs = blob.Externalise(l.Raw); len(e.Raw) > layout.MaxEntry {
		return nil, layout.TooLarge("entry", layout.MaxEntry, len(e.Raw))
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

// exists refuses an id that is taken.
func exists(id string) error { return fmt.Errorf("entry %s: %w", id, fs.ErrExist) }

// missing returns the error for a name that nothing has: fs.ErrNotExist.
func missing(kind, name string) error { return fmt.Errorf("%s %q: %w", kind, name, fs.ErrNotExist) }

// amendment returns the draft that is stored where the session has an entry with the id of d: it amends that entry.
// nothing = true: there is nothing to amend, as the entry has the body
// of d already, or is of a type that cannot be amended.
func (b *builder) amendment(d transcript.Draft, id string) (a transcript.Draft, nothing bool, err error) {
	if a, ok := b.amends[id]; ok {
		return a, a.Type == "", nil
	}
	d, err = plain(d) // another writer may store such an entry before this commit
	if err != nil {
		return a, false, err
	}
	a, err = transcript.Entry{ID: id, Type: d.Type}.Amend(d.Body, false)
	if errors.Is(err, transcript.ErrNotAmendable) { // it is stored as an entry, unless another writer was faster
		return a, true, nil
	}
	return a, false, err
}

// plain returns a draft with type and body, also of a whole line.
func plain(d transcript.Draft) (transcript.Draft, error) {
	if d.Raw != nil {
		l, err := transcript.ParseLine(bytes.TrimSuffix(d.Raw, []byte("\n")))
		if err != nil {
			return d, err
		}
		d = transcript.Draft{Type: l.Type, ID: l.ID, Body: l.Entry(0).Body(), OnKnownID: d.OnKnownID}
	}
	if d.Body == nil {
		d.Body = json.RawMessage("{}")
	}
	return d, nil
}

// amendKnown makes the amendments of the entries with the ids of drafts that the session has. If an entry
// has the body of its draft already, its amendment has no type. If no id is known this costs their look-up, else it
// reads the entries.
func (s *Session) amendKnown(
	ctx context.Context, on *state.State, drafts []transcript.Draft,
) (map[string]transcript.Draft, error) {
	own := map[string]transcript.Draft{}
	var ids []string
	for _, d := range drafts {
		if d.OnKnownID != transcript.KnownAmend {
			continue
		}
		d, err := plain(d)
		if err != nil {
			return nil, err
		}
		if d.ID != "" {
			own[d.ID], ids = d, append(ids, d.ID)
		}
	}
	if len(ids) == 0 || on.Summary.Commit == "" {
		return nil, nil
	}
	known, err := s.j.Known(ctx, on, ids)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	amends := map[string]transcript.Draft{}
	for id, l := range known {
		if l.Commit {
			continue // the journal refuses it
		}
		was, is, first, err := s.versions(ctx, on, id)
		if err != nil {
			return nil, err
		}
		if own[id].Type != was.Type {
			return nil, fmt.Errorf("entry %s is of type %s, the draft of type %q: %w", id, was.Type, own[id].Type,
				transcript.ErrNotAmendable)
		}
		d, err := was.Amend(own[id].Body, first)
		if err != nil {
			return nil, err
		}
		if amends[id] = d; !is.Hidden && hasBody(is, d) {
			amends[id] = transcript.Draft{}
		}
	}
	return amends, nil
}

// instead makes the entry that is stored in place of a draft whose id the session has: an amendment, which is not on
// the path of the conversation. nil = none.
func (b *builder) instead(d transcript.Draft, id string) (*journal.Entry, error) {
	a, nothing, err := b.amendment(d, id)
	if err != nil || nothing {
		return nil, err
	}
	e, err := b.entry(&a)
	if err == nil {
		e.Aside = true
	}
	return e, err
}

// hasTree reports whether the tree of a state is in memory, where every entry is found without a read.
func (s *Session) hasTree(st *state.State) bool {
	s.trees.mu.Lock()
	defer s.trees.mu.Unlock()
	return s.trees.b != nil && uint64(s.trees.b.Len()) >= st.Next
}

// durable finds a durable entry by its whole id in the id index; the zero Place if there is none, or if the tree is in
// memory.
func (s *Session) durable(ctx context.Context, id string) (journal.Place, error) {
	st := s.state()
	if id == "" || s.hasTree(st) {
		return journal.Place{}, nil
	}
	known, err := s.j.Known(ctx, st, []string{id})
	if err != nil {
		return journal.Place{}, err
	}
	l, ok := known[id]
	switch {
	case !ok:
		return journal.Place{}, nil
	case l.Commit:
		return journal.Place{}, fmt.Errorf("%s is a commit, not an entry: %w", id, fs.ErrNotExist)
	}
	return journal.Place{ID: id, Ord: int64(l.Ord)}, nil
}
