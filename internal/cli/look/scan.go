package look

import (
	"context"
	"errors"
	"io/fs"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/history"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// scan is a search without the index: it reads the transcripts from end to end.
func (c *cli) scan(ctx context.Context, st *program.Store, q history.Query, o searchOptions) error {
	sums, err := c.searched(ctx, st, o)
	if err != nil {
		return err
	}
	var total int64
	for _, s := range sums {
		total += s.Bytes
	}
	bar := c.Err.Progress("searching", total, true, c.Now)
	out := c.Array("matches")
	n, last := 0, ""
	found := func(m match) error {
		bar.Close()
		if n++; n > o.Limit && o.Limit > 0 {
			return errEnough
		}
		if c.JSON {
			return out.Add(m)
		}
		first := m.Session != last
		last = m.Session
		return c.matchText(m, first)
	}
	for _, sum := range sums {
		err := scanSession(ctx, st, sum, q, bar, found)
		switch {
		case errors.Is(err, errEnough):
			bar.Close()
			return out.Found(n-1, true, nil)
		case errors.Is(err, fs.ErrNotExist): // deleted meanwhile
		case err != nil:
			bar.Close()
			return out.Found(n, false, err)
		}
	}
	bar.Close()
	return out.Found(n, false, nil)
}

// searched gives the sessions that are to be read, newest activity first.
func (c *cli) searched(ctx context.Context, st *program.Store, o searchOptions) ([]checkpoint.Summary, error) {
	if o.session != "" {
		s, err := st.Session(ctx, o.session, program.Reading())
		if err != nil {
			return nil, err
		}
		return []checkpoint.Summary{s.Info()}, s.Close()
	}
	var sums []checkpoint.Summary
	for s, err := range st.List(ctx, coppice.ListOptions{Cwd: o.Cwd}) {
		if err != nil {
			return nil, err
		}
		sums = append(sums, s)
	}
	return sums, nil
}

func scanSession(ctx context.Context, st *program.Store, sum checkpoint.Summary, q history.Query, bar *term.Progress, found func(match) error) (err error) {
	s, err := st.Open(ctx, sum.ID, program.Reading())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var lines *history.Lines
	for e, err := range s.Entries(ctx) {
		if err != nil {
			return err
		}
		bar.Add(int64(len(e.Raw)) + 1)
		text, role := history.Said(e)
		snippet, mark, ok := q.Find(text)
		if !ok || text == "" {
			continue
		}
		if lines == nil {
			tree, err := s.Tree(ctx)
			if err != nil {
				return err
			}
			lines = history.NewLines(tree)
		}
		m := match{
			Session: sum.ID, Title: program.Title(sum), Entry: e.ID, Ordinal: e.Ordinal, Type: e.Type, Role: role, Time: e.Time,
			Snippet: snippet, Mark: mark,
		}
		m.Branches, m.OnHead = lines.Reach(e.Ordinal)
		if err := found(m); err != nil {
			return err
		}
	}
	return nil
}
