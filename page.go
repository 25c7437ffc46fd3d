package coppice

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// A Page selects the entries that Session.Page and View.Page return, and their order. The zero Page is the path to the
// head, root first. Ids may be unique prefixes.
//
//	coppice.Page{Reverse: true, Limit: 50}                  // the newest 50 of the conversation
//	coppice.Page{Reverse: true, Limit: 50, After: oldest}   // the 50 before them
//	coppice.Page{Limit: 50, After: newest}                  // the 50 that follow on the path to the head
//	coppice.Page{All: true, Limit: 50, After: id}           // the next 50 in append order, whatever their branch
type Page struct {
	All     bool   // all entries in append order, pending ones last; false = those on a path
	To      string // the entry at which the path ends; "" = the head; with Reverse and From or After, that entry
	From    string // the first entry to return; "" = the first one in this order
	After   string // the entry before the first one to return, in this order: for the next page the last one seen
	Reverse bool   // the other way round: towards the root, or backwards in append order
	Limit   int    // the most entries to return; 0 = all
}

func (p *Page) valid() error {
	switch {
	case p.All && p.To != "":
		return errors.New("a page of all entries has no path: All and To are set")
	case p.From != "" && p.After != "":
		return errors.New("a page begins at one entry: From and After are set")
	case p.Limit < 0:
		return fmt.Errorf("a page of %d entries", p.Limit)
	}
	return nil
}

// Page returns entries from any place in either direction. Its cost depends on what it returns, not on the length of
// the session: it reads a page of up to 512 entries at once, neighbours with one range read, and never more than 4 MiB
// or one entry ahead. As Path, it leaves out entries that are hidden; with All they come as in Entries. It needs the
// tree, which the first call reads. It does not where only the newest entries of the path to the head (Reverse with a
// Limit of at most 512, and no To, From or After) are wanted, which are read from the end of the log, unless an
// amendment is there, entries are pending, or the path leads further back. From or After that is not on the path is
// fs.ErrNotExist.
func (s *Session) Page(ctx context.Context, p Page) iter.Seq2[transcript.Entry, error] {
	return readOn(ctx, s, func(s *Session) iter.Seq2[transcript.Entry, error] {
		return iterate(ctx, s, "page", func(yield func(transcript.Entry, error) bool) error {
			return s.readPage(ctx, p, yield)
		})
	})
}

// Page returns a page of the path to the view's head: as Session.Page, where To "" is that head. All is an error.
func (v *View) Page(ctx context.Context, p Page) iter.Seq2[transcript.Entry, error] {
	return iterate(ctx, v.s, "page", func(yield func(transcript.Entry, error) bool) error {
		if p.All {
			return errors.New("a view has a path, but no list of all entries: All is set")
		}
		if err := p.valid(); err != nil {
			return err
		}
		m, err := v.tree(ctx)
		if err != nil {
			return err
		}
		return v.s.readPath(ctx, m, v.head, &p, yield)
	})
}

func (s *Session) readPage(ctx context.Context, p Page, yield func(transcript.Entry, error) bool) error {
	if err := p.valid(); err != nil {
		return err
	}
	if p.Reverse && !p.All && p.To == "" && p.From == "" && p.After == "" {
		last, n, done, err := s.readNewest(ctx, p.Limit, yield)
		if done || err != nil {
			return err
		}
		p.After, p.Limit = last, p.Limit-n
	}
	m, err := s.treeView(ctx)
	if err != nil {
		return err
	}
	if p.All {
		return s.readAll(ctx, m, &p, yield)
	}
	return s.readPath(ctx, m, m.Head, &p, yield)
}

// start returns the ordinal of the entry at which a page begins, or after which; given = false: neither From
// nor After is set.
func (p *Page) start(m *treeView) (ord uint64, given bool, err error) {
	id := p.From + p.After // one of them is empty
	if id == "" {
		return 0, false, nil
	}
	ord, err = m.find(id)
	return ord, true, err
}

// readAll yields entries in append order, or backwards.
func (s *Session) readAll(
	ctx context.Context, m *treeView, p *Page, yield func(transcript.Entry, error) bool,
) error {
	at, given, err := p.start(m)
	if err != nil {
		return err
	}
	n := uint64(m.Tree.Len())
	step := uint64(1)
	if p.Reverse {
		step = ^uint64(0) // one back; from 0 to the largest number, which ends the loop
		if !given {
			at = n - 1
		}
	}
	if p.After != "" {
		at += step
	}
	return s.readSome(ctx, m, p.Limit, yield, func(yield func(uint64) bool) {
		for ord := at; ord < n; ord += step {
			if !m.Tree.IsCommit(ord) && !yield(ord) {
				return
			}
		}
	})
}

// readPath yields entries of the path to p.To; to end if p.To is "". Those that are hidden are left out.
func (s *Session) readPath(
	ctx context.Context, m *treeView, end journal.Place, p *Page, yield func(transcript.Entry, error) bool,
) error {
	at, given, err := p.start(m)
	if err != nil {
		return err
	}
	to, ok := m.ordinal(end)
	switch {
	case p.To != "":
		if to, err = m.find(p.To); err != nil {
			return err
		}
	case p.Reverse && given:
		to = at // towards the root there is one way only
	case !ok && given:
		return fmt.Errorf("entry %s is not on the path, which is empty: %w", p.From+p.After, fs.ErrNotExist)
	case !ok:
		return nil
	}
	if !given && p.Reverse {
		at = to
	}
	if given && at != to && !m.above(at, to) {
		return fmt.Errorf("entry %s is not on the path to %s: %w", m.Tree.ID(at), m.Tree.ID(to), fs.ErrNotExist)
	}
	if p.Reverse {
		if p.After != "" {
			if at, ok = m.Tree.Parent(at); !ok {
				return nil
			}
		}
		return s.readSome(ctx, m, p.Limit, yield, m.shown(at))
	}
	depth := 0
	if given {
		depth, _ = m.Tree.Depth(at)
	}
	if p.After != "" {
		depth++
	}
	return s.readSome(ctx, m, p.Limit, yield, m.unhidden(m.Tree.Down(to, depth)))
}

// above reports whether an entry is on the path to another.
func (m *treeView) above(ord, to uint64) bool {
	depth, ok := m.Tree.Depth(ord)
	if !ok {
		return false
	}
	at, ok := m.Tree.Ancestor(to, depth)
	return ok && at == ord
}

// readSome reads the first limit entries of ords, 0 = all. With a limit up to 512 are read together.
func (s *Session) readSome(
	ctx context.Context, m *treeView, limit int, yield func(transcript.Entry, error) bool, ords iter.Seq[uint64],
) error {
	if limit == 0 {
		return s.read(ctx, m, ords, yield)
	}
	return s.readAhead(ctx, m, func(yield func(uint64) bool) {
		left := limit
		for ord := range ords {
			if left--; !yield(ord) || left == 0 {
				return
			}
		}
	}, min(limit, readMost), yield)
}

// newestLines bounds the lines that are read in search of the newest entries without the tree.
const newestLines = 512

// readNewest yields the first entries of a page that begins at the head and goes towards the root, from the end of the
// log alone: for the first look at a long session, whose tree takes much longer to read. It returns the last entry that
// it yielded, "" = none, and how many those are. done = the page ends here; else the caller continues by the tree,
// because the tree is there already, entries are pending, or the lines have an amendment or parents out of order.
func (s *Session) readNewest(
	ctx context.Context, limit int, yield func(transcript.Entry, error) bool,
) (last string, n int, done bool, err error) {
	var st *state.State
	idle := false
	s.look(func(v *liveState) { st, idle = v.State, len(v.Open) == 0 && v.Sight.Head.Is(journal.PlaceOf(v.State)) })
	if !idle || limit <= 0 || limit > newestLines || st.HeadOrd < 0 || s.hasTree(st) {
		return "", 0, false, nil
	}
	lines := tail{s: s, st: st, from: st.Next}
	for ord := st.HeadOrd; ; {
		l, ok, err := lines.at(ctx, uint64(ord))
		if err != nil || !ok || l.Parent >= ord {
			return last, n, false, err
		}
		if !l.Commit {
			e, err := stored(l)
			if err == nil {
				e.Raw, err = s.images.text(ctx, st, e.Raw)
			}
			if err != nil {
				return last, n, false, err
			}
			if !yield(e, nil) {
				return last, n, false, errStop
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
	s     *Session
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
		for l, err := range t.s.j.Lines(ctx, t.st, ords) {
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
