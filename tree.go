package coppice

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// trees keeps the tree of a session once it was asked for; it grows with the session.
type trees struct {
	mu   sync.Mutex
	b    *transcript.TreeBuilder
	last *treeView

	erased uint64 // seq of the newest erasure that b has
}

// treeView is the tree together with what it was made of.
type treeView struct {
	Tree    *transcript.Tree
	State   *state.State // the newest that the handle knows
	Head    journal.Place
	open    []*journal.Entry // their rows come after the acknowledged ones
	version uint64
	upto    uint64 // amendments from this ordinal on do not count; 0 = all do
	raw     bool   // none does

	amends map[uint64]transcript.Amendment // that are about to be stored, by the ordinal of what they speak of
}

// before returns the moment as readers of an earlier commit see it: without the amendments from an ordinal on.
func (m *treeView) before(ord uint64) *treeView {
	if ord == 0 || !m.Tree.Amends() {
		return m
	}
	then := *m
	then.upto = ord
	return &then
}

// amendment returns the ordinal of the amendment of an entry that counts at the moment.
func (m *treeView) amendment(ord uint64) (uint64, bool) {
	upto := m.upto
	switch {
	case m.raw:
		return 0, false
	case upto == 0:
		upto = math.MaxUint64
	}
	return m.Tree.Amendment(ord, upto)
}

// amended returns the moment after amendments that are about to be stored.
func (m *treeView) amended(list []transcript.Amendment) *treeView {
	then := *m
	then.amends = map[uint64]transcript.Amendment{}
	for _, a := range list {
		if ord, err := m.find(a.Target); err == nil {
			then.amends[ord] = a
		}
	}
	return &then
}

// hidden reports whether an entry is hidden at the moment.
func (m *treeView) hidden(ord uint64) bool {
	if a, ok := m.amends[ord]; ok {
		return a.Body == nil
	}
	a, ok := m.amendment(ord)
	return ok && m.Tree.Hides(a)
}

// treeView returns the tree of now, reading the skeletons that are missing.
func (s *Session) treeView(ctx context.Context) (*treeView, error) {
	s.trees.mu.Lock()
	defer s.trees.mu.Unlock()
	m := &treeView{}
	s.look(func(v *liveState) {
		m.State, m.open, m.Head, m.version = v.Tip, v.Open, v.Sight.Head, v.Version
	})
	if last := s.trees.last; last != nil && last.version == m.version {
		return last, nil
	}
	if last := s.trees.last; last != nil && last.same(m) {
		m.Tree = last.Tree
		s.trees.last = m
		return m, nil
	}
	if err := s.readTree(ctx, m.State); err != nil {
		return nil, err
	}
	b := s.trees.b
	m.Tree = b.Tree(m.Head.ID, branchesOf(m.State), m.rows(int64(b.Len())))
	s.trees.last = m
	return m, nil
}

// treeOn returns the tree of a state that may be newer than the view, with its head, and without the buffer.
func (s *Session) treeOn(ctx context.Context, on *state.State) (*treeView, error) {
	at := journal.PlaceOf(on)
	m, err := s.treeView(ctx)
	if err != nil {
		return nil, err
	}
	if m.State.Summary.Commit == on.Summary.Commit && len(m.open) == 0 && m.Head.Is(at) {
		return m, nil
	}
	s.trees.mu.Lock()
	defer s.trees.mu.Unlock()
	b := s.trees.b
	if uint64(b.Len()) > on.Next || s.trees.erased != on.Erased || m.State.Summary.Commit != on.Summary.Commit {
		b = transcript.NewTreeBuilder()
		for sk, err := range s.j.Skeletons(ctx, on, 0) {
			if err == nil {
				err = grow(b, sk)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return &treeView{Tree: b.Tree(at.ID, branchesOf(on), nil), State: on, Head: at}, nil
}

// branchesOf returns the named branches of a state for its tree.
func branchesOf(st *state.State) []transcript.Branch {
	branches := make([]transcript.Branch, len(st.Branches))
	for i, b := range st.Branches {
		branches[i] = transcript.Branch{Name: b.Name, Head: b.Head}
	}
	return branches
}

// same reports whether a later moment has the same entries and heads, as after a Reload that found nothing new: then
// the tree, and what it has worked out, is kept. Where its entries are stored may have changed.
func (m *treeView) same(later *treeView) bool {
	return len(m.open) == 0 && len(later.open) == 0 && m.Head.ID == later.Head.ID &&
		m.State.Summary.Commit == later.State.Summary.Commit && m.State.Erased == later.State.Erased &&
		m.State.Next == later.State.Next
}

// readTree reads the skeletons of a state that are missing; s.trees.mu is held.
func (s *Session) readTree(ctx context.Context, st *state.State) error {
	if s.trees.b == nil || s.trees.erased != st.Erased { // the rows of what was erased have its words
		s.trees.b, s.trees.erased = transcript.NewTreeBuilder(), st.Erased
	}
	b := s.trees.b
	if st.Next <= uint64(b.Len()) {
		return nil
	}
	for sk, err := range s.j.Skeletons(ctx, st, uint64(b.Len())) {
		if err != nil {
			return err
		}
		if err := grow(b, sk); err != nil {
			return err
		}
	}
	return nil
}

// grow adds what b does not have yet of a skeleton that may begin before its end.
func grow(b *transcript.TreeBuilder, sk *codec.Skeleton) error {
	if sk.First() == uint64(b.Len()) {
		return b.AddSkeleton(sk)
	}
	if sk.First() > uint64(b.Len()) {
		return fmt.Errorf("skeleton begins at ordinal %d, the tree ends at %d", sk.First(), b.Len())
	}
	for i := b.Len() - int(sk.First()); i < sk.Len(); i++ {
		b.AddRow(sk.Row(i))
	}
	return nil
}

// rows are those of the pending entries; the first one's ordinal is next.
func (m *treeView) rows(next int64) []codec.Row {
	at := make(map[string]int64, len(m.open))
	rows := make([]codec.Row, len(m.open))
	for i, e := range m.open {
		at[e.ID] = next + int64(i)
		place := e.At()
		parent, ok := at[place.ID] // it may have become durable since
		if !ok || place.ID == "" {
			parent = place.Ord
		}
		rows[i] = transcript.RowOf(e.Head, parent)
	}
	return rows
}

// place is where the entry with an ordinal of the tree is.
func (m *treeView) place(ord uint64) journal.Place {
	if ord >= m.State.Next {
		return journal.PlaceAt(m.open[ord-m.State.Next])
	}
	return journal.Place{ID: m.Tree.ID(ord), Ord: int64(ord)}
}

// ordinal is that of a place in the tree; false = before every root.
func (m *treeView) ordinal(p journal.Place) (uint64, bool) {
	if p.Entry != nil || p.Ord >= int64(m.State.Next) { // pending at that moment
		for i, e := range m.open {
			if e.ID == p.ID {
				return m.State.Next + uint64(i), true
			}
		}
	}
	p = p.ByOrdinal()
	return uint64(max(p.Ord, 0)), p.Ord >= 0
}

// find returns the ordinal of an entry by its id or a unique prefix of it.
func (m *treeView) find(id string) (uint64, error) {
	ord, err := m.Tree.Ordinal(id)
	switch {
	case errors.Is(err, transcript.ErrNotFound):
		return 0, fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	case err != nil:
		return 0, err
	}
	return ord, nil
}

// locate finds an entry, without the tree if it is in memory.
func (s *Session) locate(ctx context.Context, id string) (journal.Place, error) {
	if e := s.j.Pending(id); e != nil {
		return journal.PlaceAt(e), nil
	}
	var at journal.Place
	found := false
	s.look(func(v *liveState) {
		if id != "" && id == v.State.Summary.Entry {
			at, found = journal.PlaceOf(v.State), true
			return
		}
		if v.State.Window == nil {
			return
		}
		for e := range v.State.Window.All {
			if e.ID == id {
				at, found = journal.Place{ID: id, Ord: int64(e.Ordinal)}, true
			}
		}
	})
	if found {
		return at, nil
	}
	if at, err := s.durable(ctx, id); err != nil || at.ID != "" {
		return at, err
	}
	m, err := s.treeView(ctx)
	if err != nil {
		return journal.Place{}, err
	}
	ord, err := m.find(id)
	if err != nil {
		return journal.Place{}, err
	}
	return m.place(ord), nil
}
