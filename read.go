package coppice

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"sync"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/transcript"
)

// trees keeps the tree of a session once it was asked for; it grows with the session.
type trees struct {
	mu   sync.Mutex
	b    *transcript.TreeBuilder
	last *moment
}

// moment is the tree together with what it was made of.
type moment struct {
	tree    *transcript.Tree
	st      *journal.State
	open    []*pending // their rows stand behind the acknowledged ones
	head    place
	version uint64
}

// moment gives the tree of now, reading the skeletons that are missing.
func (s *Session) moment(ctx context.Context) (*moment, error) {
	s.trees.mu.Lock()
	defer s.trees.mu.Unlock()
	m := &moment{}
	s.look(func(w *work) {
		m.st, m.open, m.head, m.version = w.st, slices.Clone(w.open), w.head, w.version
	})
	if last := s.trees.last; last != nil && last.version == m.version {
		return last, nil
	}
	if s.trees.b == nil {
		s.trees.b = transcript.NewTreeBuilder()
	}
	b := s.trees.b
	if m.st.Next > uint64(b.Len()) {
		for sk, err := range s.j.Skeletons(ctx, m.st, uint64(b.Len())) {
			if err == nil {
				err = grow(b, sk)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	branches := make([]transcript.Branch, len(m.st.Branches))
	for i, br := range m.st.Branches {
		branches[i] = transcript.Branch{Name: br.Name, Head: br.Head}
	}
	m.tree = b.Tree(m.head.id, branches, m.rows(int64(b.Len())))
	s.trees.last = m
	return m, nil
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
		typ, role := sk.Kind(i)
		b.AddRow(codec.Row{
			ID: sk.ID(i), Parent: sk.Parent(i), Target: sk.Target(i), Type: typ, Role: role, Flags: sk.Flags(i),
			Size: sk.Size(i), Time: sk.Time(i), Preview: sk.Preview(i),
		})
	}
	return nil
}

// rows are those of the pending entries; the first one's ordinal is next.
func (m *moment) rows(next int64) []codec.Row {
	at := make(map[*pending]int64, len(m.open))
	rows := make([]codec.Row, len(m.open))
	for i, p := range m.open {
		at[p] = next + int64(i)
		parent, ok := at[p.at.p]
		if !ok {
			parent = p.at.settled().ord
		}
		rows[i] = transcript.Row(p.line, parent)
	}
	return rows
}

// place is where the entry with an ordinal of the tree stands.
func (m *moment) place(ord uint64) place {
	if ord >= m.st.Next {
		p := m.open[ord-m.st.Next]
		return place{id: p.line.ID, ord: -1, p: p}
	}
	return place{id: m.tree.NodeAt(ord).ID, ord: int64(ord)}
}

// ordinal is that of a place in the tree; false = before every root.
func (m *moment) ordinal(p place) (uint64, bool) {
	if i := slices.Index(m.open, p.p); p.p != nil && i >= 0 {
		return m.st.Next + uint64(i), true
	}
	p = p.settled()
	return uint64(max(p.ord, 0)), p.ord >= 0
}

// find gives the ordinal of an entry by its id or a unique prefix of it.
func (m *moment) find(id string) (uint64, error) {
	ord, err := m.tree.Ordinal(id)
	switch {
	case errors.Is(err, transcript.ErrNotFound):
		return 0, fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	case err != nil:
		return 0, err
	}
	if c, ok := m.tree.CommitOn(ord); ok && c == ord {
		return 0, fmt.Errorf("%s is a commit, not an entry: %w", id, fs.ErrNotExist)
	}
	return ord, nil
}

// locate finds an entry, without the tree if it is in memory.
func (s *Session) locate(ctx context.Context, id string) (place, error) {
	var at place
	found := false
	s.look(func(w *work) {
		if p, ok := w.ids[id]; ok {
			at, found = place{id: id, ord: -1, p: p}, true
			return
		}
		if id != "" && id == w.st.Summary.Entry {
			at, found = headOf(w.st), true
			return
		}
		if w.st.Window == nil {
			return
		}
		for _, e := range w.st.Window.Entries() {
			if e.ID == id {
				at, found = place{id: id, ord: int64(e.Ordinal)}, true
			}
		}
	})
	if found {
		return at, nil
	}
	m, err := s.moment(ctx)
	if err != nil {
		return place{}, err
	}
	ord, err := m.find(id)
	if err != nil {
		return place{}, err
	}
	return m.place(ord), nil
}

// Tree gives the tree of this moment, pending entries included: immutable, skeletons only. The first
// call reads them; afterwards the tree grows by itself.
func (s *Session) Tree(ctx context.Context) (*transcript.Tree, error) {
	if err := s.ready(ctx); err != nil {
		return nil, s.fail("tree", err)
	}
	m, err := s.moment(ctx)
	if err != nil {
		return nil, s.fail("tree", err)
	}
	return m.tree, nil
}

// Entry gives one entry by its id, or a unique prefix of it.
func (s *Session) Entry(ctx context.Context, id string) (transcript.Entry, error) {
	for e, err := range s.Entries(ctx, id) {
		return e, err
	}
	return transcript.Entry{}, s.fail("entry", missing("entry", id))
}

// Entries gives the entries with these ids in their order; none = all, in append order. Neighbours share
// a range read.
func (s *Session) Entries(ctx context.Context, ids ...string) iter.Seq2[transcript.Entry, error] {
	return s.iterate(ctx, "entries", func(yield func(transcript.Entry, error) bool) error {
		if len(ids) == 0 {
			return s.all(ctx, yield)
		}
		m, err := s.moment(ctx)
		if err != nil {
			return err
		}
		ords := make([]uint64, len(ids))
		for i, id := range ids {
			if ords[i], err = m.find(id); err != nil {
				return err
			}
		}
		return s.read(ctx, m, slices.Values(ords), yield)
	})
}

// errStop ends an iteration whose consumer has had enough.
var errStop = errors.New("stop")

// iterate makes an iterator whose error comes last and once, as the error of an operation.
func (s *Session) iterate(ctx context.Context, op string, f func(yield func(transcript.Entry, error) bool) error) iter.Seq2[transcript.Entry, error] {
	return func(yield func(transcript.Entry, error) bool) {
		err := s.ready(ctx)
		if err == nil {
			err = f(yield)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(transcript.Entry{}, s.fail(op, err))
		}
	}
}

// all yields every entry in append order, the pending ones last.
func (s *Session) all(ctx context.Context, yield func(transcript.Entry, error) bool) error {
	var st *journal.State
	var open []*pending
	s.look(func(w *work) { st, open = w.st, slices.Clone(w.open) })
	give := func(e transcript.Entry) error {
		var err error
		if e.Raw, err = s.images.line(ctx, s, st, e.Raw); err == nil && !yield(e, nil) {
			err = errStop
		}
		return err
	}
	if st.Next > 0 {
		for l, err := range s.j.Lines(ctx, st, nil) {
			if err != nil {
				return err
			}
			if l.Commit {
				continue
			}
			e, err := stored(l)
			if err != nil {
				return err
			}
			if err := give(e); err != nil {
				return err
			}
		}
	}
	for i, p := range open {
		if err := give(entryOf(p.line, st.Next+uint64(i))); err != nil {
			return err
		}
	}
	return nil
}

// stored is a durable line as an entry, images not put back.
func stored(l journal.Line) (transcript.Entry, error) {
	head, err := transcript.ParseLine(l.Raw)
	if err != nil {
		return transcript.Entry{}, fmt.Errorf("entry %d: %w", l.Ord, err)
	}
	e := entryOf(head, l.Ord)
	if l.Parent < 0 {
		e.ParentID = ""
	}
	return e, nil
}

// Path gives the entries from one (its id or a unique prefix; "" = the head) towards the root.
func (s *Session) Path(ctx context.Context, from string) iter.Seq2[transcript.Entry, error] {
	return s.iterate(ctx, "path", func(yield func(transcript.Entry, error) bool) error {
		m, err := s.moment(ctx)
		if err != nil {
			return err
		}
		ord, ok := m.ordinal(m.head)
		if from != "" {
			if ord, err = m.find(from); err != nil {
				return err
			}
			ok = true
		}
		if !ok {
			return nil
		}
		return s.read(ctx, m, m.up(ord), yield)
	})
}

// up gives the ordinals from an entry to its root.
func (m *moment) up(ord uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for ok := true; ok && yield(ord); {
			ord, ok = m.tree.Parent(ord)
		}
	}
}

const (
	readFirst = 32  // entries that are read at first
	readMost  = 512 // and at most at once, after doubling
)

// read yields entries by ordinal, in the order given, images put back.
func (s *Session) read(ctx context.Context, m *moment, ords iter.Seq[uint64], yield func(transcript.Entry, error) bool) error {
	size := readFirst
	chunk := make([]uint64, 0, size)
	flush := func() error {
		entries, err := s.bodies(ctx, m, chunk)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Raw, err = s.images.line(ctx, s, m.st, e.Raw); err != nil {
				return err
			}
			if !yield(e, nil) {
				return errStop
			}
		}
		chunk, size = chunk[:0], min(2*size, readMost)
		return nil
	}
	for ord := range ords {
		if chunk = append(chunk, ord); len(chunk) == size {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// bodies gives entries as they are stored, in the order of ords, which may repeat.
func (s *Session) bodies(ctx context.Context, m *moment, ords []uint64) ([]transcript.Entry, error) {
	have := make(map[uint64]transcript.Entry, len(ords))
	var want []uint64
	for _, ord := range ords {
		if ord >= m.st.Next {
			have[ord] = entryOf(m.open[ord-m.st.Next].line, ord)
		} else {
			want = append(want, ord)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if w := m.st.Window; w != nil {
		for _, e := range w.Entries() {
			at, ok := slices.BinarySearch(want, e.Ordinal)
			if ok && speaks(e.Type) { // others are held by their heads only
				have[e.Ordinal], want = e, slices.Delete(want, at, at+1)
			}
		}
	}
	if len(want) > 0 {
		for l, err := range s.j.Lines(ctx, m.st, want) {
			if err != nil {
				return nil, err
			}
			e, err := stored(l)
			if err != nil {
				return nil, err
			}
			have[l.Ord] = e
		}
	}
	entries := make([]transcript.Entry, len(ords))
	for i, ord := range ords {
		e, ok := have[ord]
		if !ok {
			return nil, fmt.Errorf("entry %d: %w", ord, fs.ErrNotExist)
		}
		if _, ok := m.tree.Parent(ord); !ok {
			e.ParentID = ""
		}
		entries[i] = e
	}
	return entries, nil
}
