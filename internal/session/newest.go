package session

import (
	"context"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// newestLines bounds the lines that are read in search of the newest entries without the tree.
const newestLines = 512

// readNewest yields the first entries of a page that begins at the head and goes towards the root, from the end of the
// log alone: for the first look at a long session, whose tree takes much longer to read. It returns the last entry that
// it yielded, "" = none, and how many those are. done = the page ends here; else the tree has to say how it goes on:
// where the tree is there already, entries are pending, or the lines have an amendment or parents out of order.
func (h *Handle) readNewest(
	ctx context.Context, limit int, yield func(transcript.Entry, error) bool,
) (last string, n int, done bool, err error) {
	var st *state.State
	idle := false
	h.look(func(v *view) { st, idle = v.State, len(v.Open) == 0 && v.View.Head.Is(journal.PlaceOf(v.State)) })
	if !idle || limit <= 0 || limit > newestLines || st.HeadOrd < 0 || h.hasTree(st) {
		return "", 0, false, nil
	}
	lines := tail{h: h, st: st, from: st.Next}
	for ord := st.HeadOrd; ; {
		l, ok, err := lines.at(ctx, uint64(ord))
		if err != nil || !ok || l.Parent >= ord {
			return last, n, false, err
		}
		if !l.Commit {
			e, err := Stored(l)
			if err == nil {
				e.Raw, err = h.images.Text(ctx, st, e.Raw)
			}
			if err != nil {
				return last, n, false, err
			}
			if !yield(e, nil) {
				return last, n, false, ErrStop
			}
			if last, n = e.ID, n+1; n == limit {
				return last, n, true, nil
			}
		}
		if ord = l.Parent; ord < 0 {
			return last, n, true, nil
		}
	}
}

// tail are the last lines of a session, of which it reads ever more.
type tail struct {
	h     *Handle
	st    *state.State
	from  uint64 // the ordinal of the first of lines
	lines []state.Line
}

// at returns a line. false: it is too far from the end, or an amendment may speak of it.
func (t *tail) at(ctx context.Context, ord uint64) (l state.Line, ok bool, err error) {
	for ord < t.from {
		count := min(max(readFirst, uint64(len(t.lines))), t.from)
		if t.st.Next-ord > newestLines {
			return l, false, nil
		}
		ords := make([]uint64, count)
		for i := range ords {
			ords[i] = t.from - count + uint64(i)
		}
		more := make([]state.Line, 0, int(count)+len(t.lines))
		for l, err := range t.h.j.Lines(ctx, t.st, ords) {
			if err != nil {
				return l, false, err
			}
			if !l.Commit {
				if head, err := transcript.ParseLine(l.Raw); err != nil || amends(head, l.Ord) {
					return l, false, err
				}
			}
			more = append(more, l)
		}
		t.lines, t.from = append(more, t.lines...), t.from-count
	}
	return t.lines[ord-t.from], true, nil
}

// amends reports whether a line is an amendment.
func amends(head transcript.Line, ord uint64) bool {
	_, ok := head.Entry(ord).Amendment()
	return ok
}
