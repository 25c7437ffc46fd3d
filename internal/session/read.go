package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"slices"
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
	last *Moment
}

// Moment is the tree together with what it was made of.
type Moment struct {
	Tree    *transcript.Tree
	State   *state.State // the newest that the handle knows
	Head    journal.Place
	open    []*journal.Entry // their rows come after the acknowledged ones
	version uint64
	upto    uint64 // amendments from this ordinal on do not count; 0 = all do
	raw     bool   // none does
}

// before returns the moment as readers of an earlier commit see it: without the amendments from an ordinal on.
func (m *Moment) before(ord uint64) *Moment {
	if ord == 0 || !m.Tree.Amends() {
		return m
	}
	then := *m
	then.upto = ord
	return &then
}

// amendment returns the ordinal of the amendment of an entry that counts at the moment.
func (m *Moment) amendment(ord uint64) (uint64, bool) {
	upto := m.upto
	switch {
	case m.raw:
		return 0, false
	case upto == 0:
		upto = math.MaxUint64
	}
	return m.Tree.Amendment(ord, upto)
}

// hidden reports whether an entry is hidden at the moment.
func (m *Moment) hidden(ord uint64) bool {
	a, ok := m.amendment(ord)
	return ok && m.Tree.Hides(a)
}

// Moment returns the tree of now, reading the skeletons that are missing.
func (h *Handle) Moment(ctx context.Context) (*Moment, error) {
	h.trees.mu.Lock()
	defer h.trees.mu.Unlock()
	m := &Moment{}
	h.look(func(v *view) {
		m.State, m.open, m.Head, m.version = v.Tip, v.Open, v.View.Head, v.Version
	})
	if last := h.trees.last; last != nil && last.version == m.version {
		return last, nil
	}
	if last := h.trees.last; last != nil && last.same(m) {
		m.Tree = last.Tree
		h.trees.last = m
		return m, nil
	}
	if err := h.readTree(ctx, m.State); err != nil {
		return nil, err
	}
	b := h.trees.b
	m.Tree = b.Tree(m.Head.ID, branchesOf(m.State), m.rows(int64(b.Len())))
	h.trees.last = m
	return m, nil
}

// momentOn returns the tree of a state that may be newer than the view, with its head, and without the buffer.
func (h *Handle) momentOn(ctx context.Context, on *state.State) (*Moment, error) {
	at := journal.PlaceOf(on)
	m, err := h.Moment(ctx)
	if err != nil {
		return nil, err
	}
	if m.State.Summary.Commit == on.Summary.Commit && len(m.open) == 0 && m.Head.Is(at) {
		return m, nil
	}
	h.trees.mu.Lock()
	defer h.trees.mu.Unlock()
	b := h.trees.b
	if uint64(b.Len()) > on.Next || m.State.Summary.Commit != on.Summary.Commit {
		b = transcript.NewTreeBuilder()
		for sk, err := range h.j.Skeletons(ctx, on, 0) {
			if err == nil {
				err = grow(b, sk)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return &Moment{Tree: b.Tree(at.ID, branchesOf(on), nil), State: on, Head: at}, nil
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
func (m *Moment) same(later *Moment) bool {
	return len(m.open) == 0 && len(later.open) == 0 && m.Head.ID == later.Head.ID &&
		m.State.Summary.Commit == later.State.Summary.Commit && m.State.Next == later.State.Next
}

// readTree reads the skeletons of a state that are missing; h.trees.mu is held.
func (h *Handle) readTree(ctx context.Context, st *state.State) error {
	if h.trees.b == nil {
		h.trees.b = transcript.NewTreeBuilder()
	}
	b := h.trees.b
	if st.Next <= uint64(b.Len()) {
		return nil
	}
	for sk, err := range h.j.Skeletons(ctx, st, uint64(b.Len())) {
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
func (m *Moment) rows(next int64) []codec.Row {
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

// Place is where the entry with an ordinal of the tree is.
func (m *Moment) Place(ord uint64) journal.Place {
	if ord >= m.State.Next {
		return journal.PlaceAt(m.open[ord-m.State.Next])
	}
	return journal.Place{ID: m.Tree.ID(ord), Ord: int64(ord)}
}

// Ordinal is that of a place in the tree; false = before every root.
func (m *Moment) Ordinal(p journal.Place) (uint64, bool) {
	if p.Entry != nil || p.Ord >= int64(m.State.Next) { // pending at that moment
		for i, e := range m.open {
			if e.ID == p.ID {
				return m.State.Next + uint64(i), true
			}
		}
	}
	p = p.Settled()
	return uint64(max(p.Ord, 0)), p.Ord >= 0
}

// Find returns the ordinal of an entry by its id or a unique prefix of it.
func (m *Moment) Find(id string) (uint64, error) {
	ord, err := m.Tree.Ordinal(id)
	switch {
	case errors.Is(err, transcript.ErrNotFound):
		return 0, fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	case err != nil:
		return 0, err
	}
	return ord, nil
}

// Locate finds an entry, without the tree if it is in memory.
func (h *Handle) Locate(ctx context.Context, id string) (journal.Place, error) {
	if e := h.j.Pending(id); e != nil {
		return journal.PlaceAt(e), nil
	}
	var at journal.Place
	found := false
	h.look(func(v *view) {
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
	if at, err := h.durable(ctx, id); err != nil || at.ID != "" {
		return at, err
	}
	m, err := h.Moment(ctx)
	if err != nil {
		return journal.Place{}, err
	}
	ord, err := m.Find(id)
	if err != nil {
		return journal.Place{}, err
	}
	return m.Place(ord), nil
}

// ErrStop ends an iteration whose consumer has had enough.
var ErrStop = errors.New("stop")

// All yields every entry in append order, the pending ones last: as amended, or the lines as they are stored.
func (h *Handle) All(ctx context.Context, stored bool, yield func(transcript.Entry, error) bool) error {
	var st *state.State
	var open []*journal.Entry
	amend := func(e transcript.Entry) (transcript.Entry, error) { return e, nil }
	if stored {
		h.look(func(v *view) { st, open = v.Tip, v.Open })
	} else {
		m, err := h.Moment(ctx)
		if err != nil {
			return err
		}
		st, open, amend = m.State, m.open, h.amending(ctx, m)
	}
	give := func(e transcript.Entry) error {
		e, err := amend(e)
		if err != nil {
			return err
		}
		if e.Raw, err = h.images.Text(ctx, st, e.Raw); err == nil && !yield(e, nil) {
			err = ErrStop
		}
		return err
	}
	if st.Next > 0 {
		for l, err := range h.j.Lines(ctx, st, nil) {
			if err != nil {
				return err
			}
			if l.Commit {
				continue
			}
			e, err := Stored(l)
			if err != nil {
				return err
			}
			if err := give(e); err != nil {
				return err
			}
		}
	}
	for i, e := range open {
		if err := give(e.Head.Entry(st.Next + uint64(i))); err != nil {
			return err
		}
	}
	return nil
}

// Stored is a durable line as an entry, images not put back.
func Stored(l state.Line) (transcript.Entry, error) {
	head, err := transcript.ParseLine(l.Raw)
	if err != nil {
		return transcript.Entry{}, fmt.Errorf("entry %d: %w", l.Ord, err)
	}
	e := head.Entry(l.Ord)
	if l.Parent < 0 {
		e.ParentID = ""
	}
	return e, nil
}

// ReadIDs yields the entries with these ids in their order: as amended, or the lines as they are stored.
func (h *Handle) ReadIDs(
	ctx context.Context, ids []string, stored bool, yield func(transcript.Entry, error) bool,
) error {
	m, err := h.Moment(ctx)
	if err != nil {
		return err
	}
	if stored {
		m = m.Stored()
	}
	ords := make([]uint64, len(ids))
	for i, id := range ids {
		if ords[i], err = m.Find(id); err != nil {
			return err
		}
	}
	return h.Read(ctx, m, slices.Values(ords), yield)
}

// ReadPath yields the entries from one, "" = the head, towards the root.
func (h *Handle) ReadPath(ctx context.Context, from string, yield func(transcript.Entry, error) bool) error {
	m, err := h.Moment(ctx)
	if err != nil {
		return err
	}
	ord, ok := m.Ordinal(m.Head)
	if from != "" {
		ok = true
		ord, err = m.Find(from)
	}
	if err != nil || !ok {
		return err
	}
	return h.Read(ctx, m, m.Shown(ord), yield)
}

// Up returns the ordinals from an entry to its root.
func (m *Moment) Up(ord uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for ok := true; ok && yield(ord); {
			ord, ok = m.Tree.Parent(ord)
		}
	}
}

// Shown returns Up without the entries that are hidden.
func (m *Moment) Shown(ord uint64) iter.Seq[uint64] {
	if !m.Tree.Amends() {
		return m.Up(ord)
	}
	return m.unhidden(m.Up(ord))
}

// unhidden leaves out the entries that are hidden.
func (m *Moment) unhidden(ords iter.Seq[uint64]) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for ord := range ords {
			if !m.hidden(ord) && !yield(ord) {
				return
			}
		}
	}
}

// Stored returns the moment as it is without amendments.
func (m *Moment) Stored() *Moment {
	then := *m
	then.raw = true
	return &then
}

const (
	readFirst = 32      // entries that are read at first, of a caller who does not say how many are wanted
	readMost  = 512     // and at most at once, after doubling
	readBytes = 4 << 20 // and so many bytes of lines, but for the last one
)

// Read yields entries by ordinal, in the order given, images put back. It reads ahead of the caller at most readMost
// entries, or readBytes.
func (h *Handle) Read(
	ctx context.Context, m *Moment, ords iter.Seq[uint64], yield func(transcript.Entry, error) bool,
) error {
	return h.read(ctx, m, ords, readFirst, yield)
}

// read is Read, of so many entries at first.
func (h *Handle) read(
	ctx context.Context, m *Moment, ords iter.Seq[uint64], size int, yield func(transcript.Entry, error) bool,
) error {
	bytes := 0
	chunk := make([]uint64, 0, size)
	flush := func() error {
		entries, err := h.Bodies(ctx, m, chunk)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Raw, err = h.images.Text(ctx, m.State, e.Raw); err != nil {
				return err
			}
			if !yield(e, nil) {
				return ErrStop
			}
		}
		chunk, size, bytes = chunk[:0], min(2*size, readMost), 0
		return nil
	}
	for ord := range ords {
		bytes += m.Tree.Size(ord)
		if chunk = append(chunk, ord); len(chunk) == size || bytes >= readBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// Bodies returns entries with what amendments say of them, in the order of ords, which may repeat. Images are
// references.
func (h *Handle) Bodies(ctx context.Context, m *Moment, ords []uint64) ([]transcript.Entry, error) {
	amends, err := h.amendments(ctx, m, slices.Values(ords))
	if err != nil {
		return nil, err
	}
	have, err := h.lines(ctx, m, ords)
	if err != nil {
		return nil, err
	}
	entries := make([]transcript.Entry, len(ords))
	for i, ord := range ords {
		e, ok := have[ord]
		if !ok {
			return nil, fmt.Errorf("entry %d: %w", ord, fs.ErrNotExist)
		}
		if a, ok := amends[ord]; ok {
			e = e.Amended(a)
		}
		if _, ok := m.Tree.Parent(ord); !ok {
			e.ParentID = ""
		}
		entries[i] = e
	}
	return entries, nil
}

// lines returns entries as they are stored, by ordinal.
func (h *Handle) lines(ctx context.Context, m *Moment, ords []uint64) (map[uint64]transcript.Entry, error) {
	have := make(map[uint64]transcript.Entry, len(ords))
	var want []uint64
	for _, ord := range ords {
		if ord >= m.State.Next {
			have[ord] = m.open[ord-m.State.Next].Head.Entry(ord)
		} else {
			want = append(want, ord)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if w := m.State.Window; w != nil {
		for e := range w.All {
			at, ok := slices.BinarySearch(want, e.Ordinal)
			if ok && Speaks(e.Type) && e.AmendedBy == "" { // others are held by their heads only
				have[e.Ordinal], want = e, slices.Delete(want, at, at+1)
			}
		}
	}
	if len(want) == 0 {
		return have, nil
	}
	for l, err := range h.j.Lines(ctx, m.State, want) {
		if err != nil {
			return nil, err
		}
		e, err := Stored(l)
		if err != nil {
			return nil, err
		}
		have[l.Ord] = e
	}
	return have, nil
}
