package api

import (
	"context"
	"errors"
	"iter"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
)

// TreeQuery selects which entries of a tree are shown. The zero value shows all that the default filter does.
type TreeQuery struct {
	Filter transcript.Filter
	Search string   // words that the entry's text, label, role or type contains; "" = any
	Folded []string // ids of entries whose descendants are hidden
}

// RowOptions returns what a query means for the rows of a tree, the current path first, and the ordinals of what its
// search found, parents first; nil without one. A search reads the session once. An id that the tree does not have
// is transcript.ErrNotFound.
func RowOptions(
	ctx context.Context, s *coppice.Session, t *transcript.Tree, q TreeQuery,
) (ro rows.Options, hits []uint64, err error) {
	ro = rows.Options{Order: rows.ActiveFirst, Filter: q.Filter, Search: q.Search, Folds: map[uint64]bool{}}
	if q.Search != "" {
		ro.Found, hits = make([]uint64, t.Len()/64+1), []uint64{}
		for n, err := range t.SearchIn(q.Search, intact(ctx, s, q.Search)) {
			if err != nil {
				return ro, nil, err
			}
			ro.Found[n.Ordinal/64] |= 1 << (n.Ordinal % 64)
			hits = append(hits, n.Ordinal)
		}
	}
	for _, id := range q.Folded {
		ord, err := t.Ordinal(id)
		if err != nil {
			return ro, nil, err
		}
		ro.Folds[ord] = true
	}
	return ro, hits, nil
}

// intact yields the entries of a session in which a text may be, without an error where all that is intact was read
// (SessionOptions.Intact).
func intact(ctx context.Context, s *coppice.Session, text string) iter.Seq2[transcript.Entry, error] {
	return func(yield func(transcript.Entry, error) bool) {
		for e, err := range s.EntriesWith(ctx, text) {
			if errors.Is(err, coppice.ErrCorrupt) && s.Info().Cause != "" || !yield(e, err) {
				return
			}
		}
	}
}

// RowsHead returns what comes before the rows of a tree. selected is the id of the entry that is selected, or a unique
// prefix of it; "" = the head.
func RowsHead(t *transcript.Tree, r *rows.Rows, ro rows.Options, selected string) (TreeHead, error) {
	start, some, err := startOf(t, ro, selected)
	if err != nil {
		return TreeHead{}, err
	}
	head := TreeHeadOf(t, func(ordinal uint64) bool { _, ok := r.IndexOf(ordinal); return ok })
	if on, ok := nearestRow(t, r, start, some); ok {
		head.Selected = new(t.ID(on))
	}
	return head, nil
}

// Rows yields count rows of a tree from one on. It holds one of them in memory.
func Rows(t *transcript.Tree, r *rows.Rows, from, count int) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		var at rows.Row
		for n := range t.NodesAt(func(yield func(uint64) bool) {
			for at = range r.At(from, count) {
				if !yield(at.Ordinal) {
					return
				}
			}
		}) {
			if !yield(RowOf(t, n, at)) {
				return
			}
		}
	}
}

// startOf returns the entry that is selected, whether it is shown or not: the one that was asked for, else the head. An
// empty session has none; where the head is before every root it is where a selector comes to that is opened, and then
// given filter, search and folds.
func startOf(t *transcript.Tree, o rows.Options, selected string) (start uint64, some bool, err error) {
	if selected != "" {
		start, err = t.Ordinal(selected)
		return start, err == nil, err
	}
	if start, some = t.HeadOrdinal(); some {
		return start, true, nil
	}
	stages := []rows.Options{
		{Order: o.Order},
		{Order: o.Order, Filter: o.Filter},
		{Order: o.Order, Filter: o.Filter, Found: o.Found},
		o,
	}
	for _, stage := range stages {
		r, err := rows.New(t, stage)
		if err != nil {
			return 0, false, err
		}
		if on, ok := nearestRow(t, r, start, some); ok {
			start, some = on, true
		}
	}
	return start, some, nil
}

// nearestRow returns the entry itself if it has a row, else its nearest ancestor that has one, else that of the last
// row. false: there is none.
func nearestRow(t *transcript.Tree, r *rows.Rows, ord uint64, some bool) (uint64, bool) {
	if some {
		if row, ok := RowNear(t, r, ord); ok {
			for at := range r.At(row, 1) {
				return at.Ordinal, true
			}
		}
	}
	for last := range r.At(r.Len()-1, 1) {
		return last.Ordinal, true
	}
	return 0, false
}

// RowNear returns the row of an entry, or of its nearest ancestor that has one. false: none has.
func RowNear(t *transcript.Tree, r *rows.Rows, ord uint64) (row int, ok bool) {
	for some := true; some; ord, some = t.Parent(ord) {
		if row, ok = r.IndexOf(ord); ok {
			return row, true
		}
	}
	return 0, false
}

// RowsFound returns a bit for each row whose entry contains all words of a text, as the search of a TreeQuery finds it.
// It reads the session once.
func RowsFound(
	ctx context.Context, s *coppice.Session, t *transcript.Tree, r *rows.Rows, text string,
) (found []uint64, err error) {
	found = make([]uint64, r.Len()/64+1)
	for n, err := range t.SearchIn(text, intact(ctx, s, text)) {
		if err != nil {
			return nil, err
		}
		if row, ok := r.IndexOf(n.Ordinal); ok {
			found[row/64] |= 1 << (row % 64)
		}
	}
	return found, nil
}
