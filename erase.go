package coppice

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/erase"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/repair"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/internal/transfer"
	"github.com/coppice-go/coppice/transcript"
)

// ErrNotErasable is of Erase: the entry has no content of a user, as settings, moves of the head and commits.
var ErrNotErasable = transcript.ErrNotErasable

// ErrErased is of Grow and GrowFrom, and of an import of a file that has grown: entries of its session were
// erased, which the file has. Nothing of it is imported.
var ErrErased = transfer.ErrErased

// EraseOptions of Store.Erase.
type EraseOptions struct {
	// States are JSON pointers (RFC 6901; "" = all of it), and Docs names of small documents, that go out of every
	// commit: null takes the place of a value, a document is not there any more. A list may have the value at another
	// index in other commits.
	States, Docs []string

	Reason     string // is kept with each stub and in the log; at most 256 bytes. It must not have what is erased
	DryRun     bool   // nothing is changed: the result is what it would be
	Everywhere bool   // also in all other sessions that have copies of the entries
}

// Erased is what Store.Erase did to one session.
type Erased struct {
	Session string
	Entries []string        // ids that are erased: as asked, their amendments, those of a call that was broken off
	States  []string        // of EraseOptions.States, those that led to a value in some commit
	Docs    []string        // of EraseOptions.Docs, those that some commit had
	Already []string        // ids that were erased before
	Commit  checkpoint.Head // the commit that records it, whose reason is erase; zero = there was nothing to do
	Written []string        // keys of objects that were written again, under new names or in place
	Removed []string        // keys of objects that were removed
	Bytes   int64           // written
	Images  int             // images that were removed, which nothing else showed
	// Hex SHA-256 of the imported file that is kept, before and after its lines were taken out; "" = it did not
	// change.
	OriginalBefore, OriginalAfter string
	// Sessions of the store that have some of the entries too: forks, copies by import. With Everywhere they are
	// erased there, else Commit is zero, and Entries are the ids that are left.
	Others []Erased
	IO     backend.IO // requests of the call, those for Others too; of a dry run those that it would make
}

// Erase removes the content of entries for good: their texts, images and arguments, amendments of them, and what
// quotes them in previews and titles, in every object of the session. A stub stays in the place of each, with its
// id, parent, time and role, on every branch, and one commit records who erased it and when. entries are ids or
// unique prefixes. Quotations in other entries, in the state and in documents stay: name these entries too.
//
// When it returns nil the content is in no object of the session (Prove). If it fails, or its program dies,
// nothing is half erased for readers: they see the entries or the stubs. The next Erase, also of no entries,
// Repair, GC, or the next writer completes it. Writers go on; a handle that was open before has what it had in memory
// until it is closed.
//
// Erase does not reach: copies outside of the store, older versions that an object store keeps, sessions in the
// trash, search indexes (searchindex.Index.Erase), and objects that a writer of another host had on their way.
func (s *Store) Erase(ctx context.Context, id string, entries []string, o *EraseOptions) (Erased, error) {
	if o == nil {
		o = &EraseOptions{}
	}
	h, err := s.session(id, nil)
	if err != nil {
		return Erased{}, fail("erase", id, err)
	}
	if o.DryRun {
		h.b = trace.New(repair.Scratch(s.b))
		h.cfg.Backend, h.cfg.Proof = h.b, nil
	}
	defer s.lists.Forget(ctx, layout.Escape(id))
	var others []Erased
	var unread error
	// The others come first: while the session has the content, its lines in a file that another one keeps are found.
	elsewhere := func(ctx context.Context, gone []erase.Gone, what erase.Target, reason string) (err error) {
		others, unread, err = s.eraseOthers(ctx, h, gone, what, reason)
		return err
	}
	what := erase.Target{Entries: entries, States: o.States, Docs: o.Docs, Everywhere: o.Everywhere}
	out, err := s.erase(ctx, h, what, o.Reason, elsewhere)
	err = errors.Join(err, unread)
	out.Others, out.IO = others, h.b.IO()
	return out, fail("erase", id, err)
}

// erase erases a part of one session.
func (s *Store) erase(
	ctx context.Context, h *Session, what erase.Target, reason string,
	elsewhere func(context.Context, []erase.Gone, erase.Target, string) error,
) (Erased, error) {
	var err error
	if what.Entries, err = s.entryIDs(ctx, h, what.Entries); err != nil {
		return Erased{}, err
	}
	cfg := h.cfg
	cfg.ReadOnly = false
	r, err := erase.Run(ctx, cfg, what, reason, erase.Calls{Window: s.pathWindow, Elsewhere: elsewhere})
	return Erased{
		Session: h.cfg.Session, Entries: r.Entries, Already: r.Already, Commit: r.Commit, Written: r.Written,
		States: r.States, Docs: r.Docs, Removed: r.Removed, Bytes: r.Bytes, Images: r.Images,
		OriginalBefore: r.Before, OriginalAfter: r.After,
	}, err
}

// completeErasure completes an erasure that was broken off in cfg's session, with the reach that it was to have.
func (s *Store) completeErasure(ctx context.Context, cfg journal.Config) error {
	var unread error
	elsewhere := func(ctx context.Context, gone []erase.Gone, what erase.Target, reason string) error {
		h, err := s.session(cfg.Session, nil)
		if err != nil || !what.Everywhere {
			return err
		}
		h.b = trace.New(cfg.Backend)
		h.cfg.Backend, h.cfg.Proof = h.b, cfg.Proof
		_, unread, err = s.eraseOthers(ctx, h, gone, what, reason)
		return err
	}
	_, err := erase.Run(ctx, cfg, erase.Target{}, "", erase.Calls{Window: s.pathWindow, Elsewhere: elsewhere})
	return errors.Join(err, unread)
}

// pathWindow makes the working context at the head of a state of j, of its path alone (I16).
func (s *Store) pathWindow(
	ctx context.Context, j *journal.Journal, st *state.State,
) (*transcript.WorkingContext, error) {
	h := &Session{store: s, cfg: s.cfg, b: trace.New(s.b)}
	h.begin(j)
	b := transcript.NewTreeBuilder()
	for sk, err := range j.Skeletons(ctx, st, 0) {
		if err == nil {
			err = grow(b, sk)
		}
		if err != nil {
			return nil, err
		}
	}
	at, r := journal.PlaceOf(st), st.Rules()
	m := &treeView{Tree: b.Tree(at.ID, branchesOf(st), nil), State: st, Head: at}
	return h.windowAt(ctx, m, at, r.Profile, r.MaxBytes)
}

// entryIDs returns the whole ids of entries.
func (s *Store) entryIDs(ctx context.Context, h *Session, entries []string) ([]string, error) {
	cfg := h.cfg
	cfg.ReadOnly = true
	j, err := journal.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	known, err := j.Known(ctx, j.State(), entries)
	if err != nil {
		return nil, err
	}
	ids := slices.Clone(entries)
	var view *treeView
	for i, id := range ids {
		if _, ok := known[id]; ok {
			continue
		}
		if view == nil {
			on := &Session{store: s, cfg: cfg, b: h.b}
			on.begin(j)
			if view, err = on.treeView(ctx); err != nil {
				return nil, err
			}
		}
		ord, err := view.find(id)
		if err != nil {
			return nil, fmt.Errorf("entry %s: %w", id, err)
		}
		ids[i] = view.Tree.ID(ord)
	}
	return ids, j.Close(ctx)
}

// eraseOthers looks at the relatives of a session for entries with the same ids, for lines of them in imported files
// and, in forks and in sessions that share an entry or a commit, for the same values of states, and erases them there
// if asked to. With Everywhere it looks for copies in each other session too: the session between two forks may be
// deleted. unread is of sessions that cannot be read: what they have is not known.
func (s *Store) eraseOthers(
	ctx context.Context, h *Session, gone []erase.Gone, of erase.Target, reason string,
) (all []Erased, unread, err error) {
	k, err := s.relatives(ctx, h.cfg.Session)
	if err != nil {
		return nil, nil, err
	}
	look := k.linked
	if of.Everywhere {
		look = slices.Concat(k.linked, k.rest)
	}
	forks := k.forks // whose states began as those of the session
	if len(of.States)+len(of.Docs) > 0 {
		more, err := s.sharing(ctx, h, look, true)
		if err != nil {
			return nil, nil, err
		}
		for _, id := range more {
			forks[id] = true
		}
	}
	for i, id := range look {
		on, err := s.session(id, nil)
		if err != nil {
			return all, unread, err
		}
		on.b, on.cfg.Backend, on.cfg.Proof = h.b, h.b, h.cfg.Proof // requests are counted together
		what, stubs, err := s.copies(ctx, on, gone, i < len(k.linked))
		if err != nil && ctx.Err() != nil {
			return all, unread, context.Cause(ctx)
		}
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("what session %s has is not known: %w", id, err))
			continue
		}
		if forks[id] {
			what.States, what.Docs = of.States, of.Docs
		}
		out, err := s.eraseIn(ctx, on, what, reason, of.Everywhere, stubs)
		if err != nil {
			return all, unread, fmt.Errorf("session %s: %w", id, err)
		}
		if len(out.Entries)+len(out.States)+len(out.Docs) > 0 {
			s.lists.Forget(ctx, layout.Escape(id))
			all = append(all, out)
		}
	}
	return all, unread, nil
}

// copies returns what another session has of entries that go, and whether it has stubs of them. Of a session that is
// not related an id alone is no proof, and its imported file is of interest only if it has one of them.
func (s *Store) copies(
	ctx context.Context, on *Session, gone []erase.Gone, related bool,
) (what erase.Target, stubs bool, err error) {
	ids := make([]string, len(gone))
	for i := range gone {
		ids[i] = gone[i].ID
	}
	is := func(i int, e *transcript.Entry, commit bool) bool {
		_, erased := e.Erased()
		same := !commit && (related || gone[i].Is(e))
		stubs = stubs || same && erased
		return same && !erased
	}
	has, imported, err := s.hasEntries(ctx, on, ids, len(ids), is)
	if err != nil {
		return what, stubs, err
	}
	if what.Entries = has; imported {
		for _, g := range gone {
			if related || slices.Contains(has, g.ID) {
				what.Imported = append(what.Imported, g)
			}
		}
	}
	return what, stubs, nil
}

// eraseIn erases in another session, or returns what it would erase. Where it has stubs an erasure may have been broken
// off, which it completes.
func (s *Store) eraseIn(
	ctx context.Context, on *Session, what erase.Target, reason string, really, stubs bool,
) (Erased, error) {
	more := len(what.States) + len(what.Docs) + len(what.Imported)
	switch {
	case really && (stubs || len(what.Entries)+more > 0):
		return s.erase(ctx, on, what, reason, nil)
	case more == 0:
		return Erased{Session: on.cfg.Session, Entries: what.Entries}, nil
	}
	on.b = trace.New(repair.Scratch(on.b))
	on.cfg.Backend, on.cfg.Proof = on.b, nil
	out, err := s.erase(ctx, on, what, reason, nil)
	return Erased{Session: out.Session, Entries: out.Entries, States: out.States, Docs: out.Docs}, err
}

// kin are the other sessions of a store, by what links them to one.
type kin struct {
	// Over any number of steps those from which it was forked, or that were forked from it, or that one of them
	// started, and those of other imports under its id; and all others.
	linked, rest []string
	forks        map[string]bool // of linked, those that are forks in each step: they began with its state
}

// relatives returns the other sessions of the store.
func (s *Store) relatives(ctx context.Context, id string) (k kin, err error) {
	parents, forked := map[string]string{}, map[string]string{}
	for sum, err := range s.List(ctx, ListOptions{Order: ByID}) {
		if err != nil {
			return k, err
		}
		parents[sum.ID] = sum.Parent
		if sum.Relation == reasonFork {
			forked[sum.ID] = sum.Parent
		}
	}
	family := map[string]bool{id: true}
	k.forks = linkedBy(forked, map[string]bool{id: true})
	for n := range layout.MaxApart {
		at := layout.Apart(id, n)
		if _, there := parents[at]; !there && n > 0 {
			break
		}
		family[at] = true
	}
	linkedBy(parents, family)
	for _, one := range slices.Sorted(maps.Keys(parents)) {
		switch {
		case one == id:
		case family[one]:
			k.linked = append(k.linked, one)
		default:
			k.rest = append(k.rest, one)
		}
	}
	return k, nil
}

// linkedBy adds to a family all that parents link to it, in either direction.
func linkedBy(parents map[string]string, family map[string]bool) map[string]bool {
	for grew := true; grew; { // each step adds a session
		grew = false
		for one, parent := range parents {
			if parent != "" && family[one] != family[parent] {
				family[one], family[parent], grew = true, true, true
			}
		}
	}
	return family
}

// hasEntries returns which ids a session has as lines for which is returns true, at most most of them, and whether it
// keeps an imported file.
func (s *Store) hasEntries(
	ctx context.Context, h *Session, ids []string, most int,
	is func(i int, e *transcript.Entry, commit bool) bool,
) (has []string, imported bool, err error) {
	cfg := h.cfg
	cfg.ReadOnly = true
	j, err := journal.Open(ctx, cfg)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil // deleted meanwhile
	}
	if err != nil {
		return nil, false, err
	}
	known, err := j.Known(ctx, j.State(), ids)
	if err != nil {
		return nil, false, err
	}
	for i, id := range ids {
		at, ok := known[id]
		if len(has) == most {
			break
		}
		if !ok {
			continue
		}
		for l, err := range j.Lines(ctx, j.State(), []uint64{at.Ord}) {
			if err != nil {
				return nil, false, err
			}
			e, err := stored(l)
			if err != nil {
				return nil, false, err
			}
			if is(i, &e, at.Commit) {
				has = append(has, id)
			}
		}
	}
	return has, j.State().Original != "", j.Close(ctx)
}

// Proof is what Store.Prove found.
type Proof struct {
	Objects int      // that were read
	Bytes   int64    // as they are stored
	Found   []string // keys of the objects that have the text
}

// Prove reads every object of the store and looks for a text of at least four bytes: as it is, as JSON and base64
// have it, and within what is compressed. It finds the text in one piece, as it was written.
func (s *Store) Prove(ctx context.Context, text string) (Proof, error) {
	p, err := erase.Prove(ctx, s.b, text)
	return Proof(p), fail("prove", "", err)
}
