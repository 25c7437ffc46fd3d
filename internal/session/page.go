package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/transcript"
)

// Page says which entries are read, and in which order: coppice.Page.
type Page struct {
	All         bool
	To          string
	From, After string
	Reverse     bool
	Limit       int
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

// ReadPage yields the entries of a page.
func (h *Handle) ReadPage(ctx context.Context, p Page, yield func(transcript.Entry, error) bool) error {
	if err := p.valid(); err != nil {
		return err
	}
	if p.Reverse && !p.All && p.To == "" && p.From == "" && p.After == "" {
		last, n, done, err := h.readNewest(ctx, p.Limit, yield)
		if done || err != nil {
			return err
		}
		p.After, p.Limit = last, p.Limit-n
	}
	m, err := h.Moment(ctx)
	if err != nil {
		return err
	}
	if p.All {
		return h.readAll(ctx, m, &p, yield)
	}
	return h.readPath(ctx, m, m.Head, &p, yield)
}

// Page yields the entries of a page of the view's path.
func (v *View) Page(ctx context.Context, p Page, yield func(transcript.Entry, error) bool) error {
	if p.All {
		return errors.New("a view has a path, but no list of all entries: All is set")
	}
	if err := p.valid(); err != nil {
		return err
	}
	m, err := v.moment(ctx)
	if err != nil {
		return err
	}
	return v.h.readPath(ctx, m, v.Head, &p, yield)
}

// start returns the ordinal of the entry at which a page begins, or after which; false = at the end.
func (p *Page) start(m *Moment) (ord uint64, given bool, err error) {
	id := p.From + p.After // one of them is empty
	if id == "" {
		return 0, false, nil
	}
	ord, err = m.Find(id)
	return ord, true, err
}

// readAll yields entries in append order, or backwards.
func (h *Handle) readAll(
	ctx context.Context, m *Moment, p *Page, yield func(transcript.Entry, error) bool,
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
	return h.readSome(ctx, m, p.Limit, yield, func(yield func(uint64) bool) {
		for ord := at; ord < n; ord += step {
			if !m.Tree.IsCommit(ord) && !yield(ord) {
				return
			}
		}
	})
}

// readPath yields entries of the path to p.To, "" = to a place. Those that are hidden are left out.
func (h *Handle) readPath(
	ctx context.Context, m *Moment, end journal.Place, p *Page, yield func(transcript.Entry, error) bool,
) error {
	at, given, err := p.start(m)
	if err != nil {
		return err
	}
	to, ok := m.Ordinal(end)
	switch {
	case p.To != "":
		if to, err = m.Find(p.To); err != nil {
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
		return h.readSome(ctx, m, p.Limit, yield, m.Shown(at))
	}
	depth := 0
	if given {
		depth, _ = m.Tree.Depth(at)
	}
	if p.After != "" {
		depth++
	}
	return h.readSome(ctx, m, p.Limit, yield, m.unhidden(m.Tree.Down(to, depth)))
}

// above reports whether an entry is on the path to another.
func (m *Moment) above(ord, to uint64) bool {
	depth, ok := m.Tree.Depth(ord)
	if !ok {
		return false
	}
	at, ok := m.Tree.Ancestor(to, depth)
	return ok && at == ord
}

// readSome reads the first limit entries of ords, 0 = all. Those of a limit are read together.
func (h *Handle) readSome(
	ctx context.Context, m *Moment, limit int, yield func(transcript.Entry, error) bool, ords iter.Seq[uint64],
) error {
	if limit == 0 {
		return h.Read(ctx, m, ords, yield)
	}
	return h.read(ctx, m, func(yield func(uint64) bool) {
		left := limit
		for ord := range ords {
			if left--; !yield(ord) || left == 0 {
				return
			}
		}
	}, min(limit, readMost), yield)
}
