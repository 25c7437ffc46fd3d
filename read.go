package coppice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// Tree returns the tree of this moment, pending entries included: immutable, skeletons only. The first
// call reads them; afterwards the tree grows by itself.
func (s *Session) Tree(ctx context.Context) (*transcript.Tree, error) {
	if err := s.ready(ctx); err != nil {
		return nil, s.fail("tree", err)
	}
	m, err := s.treeView(ctx)
	if err == nil {
		return m.Tree, nil
	}
	err = s.fail("tree", err)
	if rest := s.beyond(ctx, err); rest != nil {
		return rest.Tree(ctx)
	}
	return nil, err
}

// Entry returns one entry by its id, or a unique prefix of it, as amended.
func (s *Session) Entry(ctx context.Context, id string) (transcript.Entry, error) {
	for e, err := range s.Entries(ctx, id) {
		return e, err
	}
	return transcript.Entry{}, s.fail("entry", missing("entry", id))
}

// Entries returns the entries with these ids in their order; none = all, in append order. Neighbours share
// a range read. An image that is gone is fs.ErrNotExist; where a repair recorded its loss, its reference stays in the
// entry. Of an entry that is hidden the head comes alone, with Hidden set.
func (s *Session) Entries(ctx context.Context, ids ...string) iter.Seq2[transcript.Entry, error] {
	return s.list(ctx, "entries", ids, false, nil)
}

// EntriesWith returns all entries, in append order, but those of which the line shows that they have no word of a text:
// for Tree.SearchIn. What it leaves out costs a look at its bytes.
func (s *Session) EntriesWith(ctx context.Context, text string) iter.Seq2[transcript.Entry, error] {
	may := transcript.MayShow(text)
	if !strings.Contains(text, ":") {
		return s.list(ctx, "entries", nil, false, may)
	}
	// A word may be cut in two by the escape of text that looks like an image.
	return s.list(ctx, "entries", nil, false, func(line []byte) bool {
		return may(line) || bytes.Contains(line, refMark)
	})
}

// Originals is Entries without amendments: every entry as it was appended, the hidden ones too.
func (s *Session) Originals(ctx context.Context, ids ...string) iter.Seq2[transcript.Entry, error] {
	return s.list(ctx, "originals", ids, true, nil)
}

func (s *Session) list(
	ctx context.Context, op string, ids []string, asStored bool, may func(line []byte) bool,
) iter.Seq2[transcript.Entry, error] {
	return readOn(ctx, s, func(s *Session) iter.Seq2[transcript.Entry, error] {
		return iterate(ctx, s, op, func(yield func(transcript.Entry, error) bool) error {
			if len(ids) == 0 {
				return s.all(ctx, asStored, may, yield)
			}
			return s.readIDs(ctx, ids, asStored, yield)
		})
	})
}

// Path returns the entries from one (its id or a unique prefix; "" = the head) towards the root. It leaves out those
// that are hidden, and reads ahead at most 512 entries or 4 MiB. Page reads in both directions.
func (s *Session) Path(ctx context.Context, from string) iter.Seq2[transcript.Entry, error] {
	return readOn(ctx, s, func(s *Session) iter.Seq2[transcript.Entry, error] {
		return iterate(ctx, s, "path", func(yield func(transcript.Entry, error) bool) error {
			m, err := s.treeView(ctx)
			if err != nil {
				return err
			}
			ord, ok := m.ordinal(m.Head)
			if from != "" {
				ok = true
				ord, err = m.find(from)
			}
			if err != nil || !ok {
				return err
			}
			return s.read(ctx, m, m.shown(ord), yield)
		})
	})
}

// iterate makes an iterator whose error comes last and once, as the error of an operation.
func iterate[T any](
	ctx context.Context, s *Session, op string, f func(yield func(T, error) bool) error,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := s.ready(ctx)
		if err == nil {
			err = f(yield)
		}
		if err != nil && !errors.Is(err, errStop) {
			var zero T
			yield(zero, s.fail(op, err))
		}
	}
}

// forward yields what an iterator of a lower layer yields.
func forward[T any](seq iter.Seq2[T, error], yield func(T, error) bool) error {
	for v, err := range seq {
		if err != nil {
			return err
		}
		if !yield(v, nil) {
			return errStop
		}
	}
	return nil
}

// errStop ends an iteration whose consumer has had enough.
var errStop = errors.New("stop")

// all yields every entry in append order, the pending ones last: as amended, or the lines as they are stored. may
// reports whether a line that is not amended is wanted; nil = all are.
func (s *Session) all(
	ctx context.Context, asStored bool, may func(line []byte) bool, yield func(transcript.Entry, error) bool,
) error {
	var st *state.State
	var open []*journal.Entry
	wanted := func(uint64, []byte) bool { return true }
	amend := func(e transcript.Entry) (transcript.Entry, error) { return e, nil }
	if asStored {
		s.look(func(v *liveState) { st, open = v.Tip, v.Open })
	} else {
		m, err := s.treeView(ctx)
		if err != nil {
			return err
		}
		st, open, amend = m.State, m.open, s.amending(ctx, m)
		if may != nil {
			wanted = func(ord uint64, line []byte) bool {
				_, amended := m.amendment(ord)
				return amended || may(line)
			}
		}
	}
	give := func(e transcript.Entry) error {
		e, err := amend(e)
		if err != nil {
			return err
		}
		if e.Raw, err = s.images.text(ctx, st, e.Raw); err == nil && !yield(e, nil) {
			err = errStop
		}
		return err
	}
	if st.Next > 0 {
		for l, err := range s.j.Lines(ctx, st, nil) {
			if err != nil {
				return err
			}
			if l.Commit || !wanted(l.Ord, l.Raw) {
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
	for i, e := range open {
		if err := give(e.Head.Entry(st.Next + uint64(i))); err != nil {
			return err
		}
	}
	return nil
}

// stored is a durable line as an entry, images not put back.
func stored(l state.Line) (transcript.Entry, error) {
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

// readIDs yields the entries with these ids in their order: as amended, or the lines as they are stored.
func (s *Session) readIDs(
	ctx context.Context, ids []string, stored bool, yield func(transcript.Entry, error) bool,
) error {
	m, err := s.treeView(ctx)
	if err != nil {
		return err
	}
	if stored {
		m = m.stored()
	}
	ords := make([]uint64, len(ids))
	for i, id := range ids {
		if ords[i], err = m.find(id); err != nil {
			return err
		}
	}
	return s.read(ctx, m, slices.Values(ords), yield)
}

// up returns the ordinals from an entry to its root.
func (m *treeView) up(ord uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for ok := true; ok && yield(ord); {
			ord, ok = m.Tree.Parent(ord)
		}
	}
}

// shown returns Up without the entries that are hidden.
func (m *treeView) shown(ord uint64) iter.Seq[uint64] {
	if !m.Tree.Amends() {
		return m.up(ord)
	}
	return m.unhidden(m.up(ord))
}

// unhidden leaves out the entries that are hidden.
func (m *treeView) unhidden(ords iter.Seq[uint64]) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for ord := range ords {
			if !m.hidden(ord) && !yield(ord) {
				return
			}
		}
	}
}

// stored returns the moment as it is without amendments.
func (m *treeView) stored() *treeView {
	then := *m
	then.raw = true
	return &then
}

const (
	readFirst = 32      // entries that are read at first for a caller without a limit
	readMost  = 512     // and at most at once, after doubling
	readBytes = 4 << 20 // and so many bytes of lines, but for the last one
)

// read yields entries by ordinal, in the order given, images put back. It reads ahead of the caller at most readMost
// entries, or readBytes.
func (s *Session) read(
	ctx context.Context, m *treeView, ords iter.Seq[uint64], yield func(transcript.Entry, error) bool,
) error {
	return s.readAhead(ctx, m, ords, readFirst, yield)
}

// readAhead is read, of so many entries at first.
func (s *Session) readAhead(
	ctx context.Context, m *treeView, ords iter.Seq[uint64], size int, yield func(transcript.Entry, error) bool,
) error {
	bytes := 0
	chunk := make([]uint64, 0, size)
	flush := func() error {
		entries, err := s.bodies(ctx, m, chunk)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Raw, err = s.images.text(ctx, m.State, e.Raw); err != nil {
				return err
			}
			if !yield(e, nil) {
				return errStop
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

// bodies returns entries as amended, in the order of ords, which may repeat. Images are references.
func (s *Session) bodies(ctx context.Context, m *treeView, ords []uint64) ([]transcript.Entry, error) {
	amends, err := s.amendments(ctx, m, slices.Values(ords))
	if err != nil {
		return nil, err
	}
	have, err := s.lines(ctx, m, ords)
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
		if a, ok := m.amends[ord]; ok {
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
func (s *Session) lines(ctx context.Context, m *treeView, ords []uint64) (map[uint64]transcript.Entry, error) {
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
			if ok && speaks(e.Type) && e.AmendedBy == "" { // others are held by their heads only
				have[e.Ordinal], want = e, slices.Delete(want, at, at+1)
			}
		}
	}
	if len(want) == 0 {
		return have, nil
	}
	for l, err := range s.j.Lines(ctx, m.State, want) {
		if err != nil {
			return nil, err
		}
		e, err := stored(l)
		if err != nil {
			return nil, err
		}
		have[l.Ord] = e
	}
	return have, nil
}
