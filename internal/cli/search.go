package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/searchindex"
)

// scan searches without the index: it reads the transcripts from start to end.
func (c *cli) scan(ctx context.Context, st *countedStore, q searchindex.Query, o searchOptions) error {
	sums, err := c.searched(ctx, st, o)
	if err != nil {
		return err
	}
	var total int64
	for _, s := range sums {
		total += s.Bytes
	}
	bar := c.stderr.Progress("searching", total, true, c.now)
	out := c.array("matches")
	n, last := 0, ""
	show := matchIDs{session: new(shortid.Seen), entry: new(shortid.Seen), width: shortid.Alone}
	found := func(m api.Match) error {
		bar.Close()
		if n++; n > o.limit && o.limit > 0 {
			return errEnough
		}
		if c.json {
			return out.add(m)
		}
		first := m.Session != last
		last = m.Session
		return c.matchText(m, first, show)
	}
	var damage error // of the first damaged session: what is intact of it was searched, as the others are
	for _, sum := range sums {
		err := scanSession(ctx, st, sum, q, bar, found)
		switch {
		case errors.Is(err, errEnough):
			bar.Close()
			return out.found(n-1, true, nil)
		case errors.Is(err, fs.ErrNotExist): // deleted meanwhile
		case errors.Is(err, coppice.ErrCorrupt):
			damage = cmp.Or(damage, err)
		case err != nil:
			bar.Close()
			return out.found(n, false, err)
		}
	}
	bar.Close()
	return out.found(n, false, damage)
}

// searched returns the sessions to read, newest activity first.
func (c *cli) searched(ctx context.Context, st *countedStore, o searchOptions) ([]checkpoint.Summary, error) {
	if o.session != "" {
		s, err := st.session(ctx, o.session, pastDamage())
		if err != nil {
			return nil, err
		}
		return []checkpoint.Summary{s.Info()}, s.Close()
	}
	var sums []checkpoint.Summary
	for s, err := range st.List(ctx, coppice.ListOptions{Cwd: o.cwd, Exact: true}) {
		if err != nil {
			return nil, err
		}
		sums = append(sums, s)
	}
	return sums, nil
}

func scanSession(
	ctx context.Context, st *countedStore, sum checkpoint.Summary, q searchindex.Query, bar *term.Progress,
	found func(api.Match) error,
) (err error) {
	s, err := st.Salvage(ctx, sum.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for m, err := range api.Found(ctx, s, q, func(n int) { bar.Add(int64(n) + 1) }) {
		if err != nil {
			return err
		}
		m.Title = titleOf(sum)
		if err := found(m); err != nil {
			return err
		}
	}
	return cmp.Or(lost(s), damageOf(s))
}

type searchOptions struct {
	findFlags
	session                           string
	noIndex, prompts, prefix, rebuild bool
}

func (c *cli) searchCommand() *cobra.Command {
	var o searchOptions
	cmd := &cobra.Command{
		Use:        "search [TEXT]",
		SuggestFor: []string{"history", "prompts", "grep"},
		Short:      "Search the text of entries, or what users typed, in all sessions and branches",
		Long: `Find entries whose text contains every word of TEXT, also as a part of longer words. Case and accents
are ignored. Words in quotes, which the shell must not take away, are adjacent: '"like these"'. re: starts
a regular expression, which sees the text as it was written. The best matches come first.

The command uses an index in your cache folder ($COPPICE_HISTORY names another file), which it updates
first; the first search reads everything. The index covers the first 256 KiB of the text of an entry.
With --no-index the transcripts are read completely instead, sessions with the newest activity first.
Commands that commit also update the index, for at most half a second; --rebuild makes it again.

With --prompts it lists the prompts that users typed, newest first, all of them without TEXT. A prompt that was
repeated directly is listed once. With --prefix TEXT is the beginning of the prompt.`,
		Example: `  coppice search flaky timezone
  coppice search --cwd . '"database migration"'
  coppice search 're:panic.*nil map'
  coppice search --prompts --cwd .`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.prefix && !o.prompts, o.prompts && (o.session != "" || o.noIndex):
				return usageError("--prefix needs --prompts, which goes with neither --session nor --no-index")
			case o.rebuild && (len(args) > 0 || !alone(cmd, "rebuild")):
				return usageError("use --rebuild alone")
			case o.rebuild:
				return c.rebuild(cmd.Context())
			case o.prompts:
				return c.searchPrompts(cmd.Context(), args, o)
			}
			return c.search(cmd.Context(), args, o)
		},
	}
	cmd.Flags().StringVar(&o.session, "session", "", "search only this session")
	o.register(cmd.Flags(), "entries")
	cmd.Flags().BoolVar(&o.noIndex, "no-index", false, "read the transcripts instead of the index")
	cmd.Flags().BoolVar(&o.prompts, "prompts", false, "list the prompts that users typed, newest first")
	cmd.Flags().BoolVar(&o.prefix, "prefix", false, "with --prompts: TEXT is the beginning of the prompt")
	cmd.Flags().BoolVar(&o.rebuild, "rebuild", false, "rebuild the index from the store")
	_ = cmd.RegisterFlagCompletionFunc("session", c.completeSession)
	return cmd
}

func (c *cli) search(ctx context.Context, args []string, o searchOptions) error {
	q, err := parseQuery(args)
	switch {
	case err != nil:
		return err
	case q.Empty():
		return usageError("TEXT has no words to search for")
	}
	if err := o.check(); err != nil {
		return err
	}
	return c.withStore(ctx, func(st *countedStore) error {
		if o.noIndex {
			return c.scan(ctx, st, q, o)
		}
		if o.session != "" {
			id, err := st.resolve(ctx, o.session)
			if err != nil {
				return err
			}
			o.session = id
		}
		return c.searchIndex(ctx, st, q, o)
	})
}

func (c *cli) searchIndex(ctx context.Context, st *countedStore, q searchindex.Query, o searchOptions) error {
	out := c.array("matches")
	n, more := 0, false
	err := c.withCurrentIndex(ctx, st, o.session, func(x *searchindex.Index) error {
		var hits []searchindex.Hit
		var err error
		hits, more, err = x.Search(ctx, q, &searchindex.SearchOptions{Session: o.session, Cwd: o.cwd, Limit: o.limit})
		if err != nil {
			return err
		}
		n = len(hits)
		return c.showHits(out, hits)
	})
	return out.found(n, more, err)
}

// showHits writes the matches: in the order of their rank as JSON, grouped by session for people.
func (c *cli) showHits(out *jsonArray, hits []searchindex.Hit) error {
	list := make([]api.Match, 0, len(hits))
	rank := map[string]int{} // of a session: the rank of its best match
	for i, h := range hits {
		if _, ok := rank[h.Session]; !ok {
			rank[h.Session] = i
		}
		m := api.MatchOf(h)
		m.Title = titleOf(checkpoint.Summary{Title: h.Title})
		list = append(list, m)
	}
	if !c.json {
		slices.SortStableFunc(list, func(a, b api.Match) int { return rank[a.Session] - rank[b.Session] })
	}
	sessions, entries := make([]string, len(list)), make([]string, len(list))
	for i, m := range list {
		sessions[i], entries[i] = m.Session, m.Entry
	}
	set := shortid.Of(entries, shortid.Alone)
	show := matchIDs{session: shortid.Of(sessions, shortid.Least), entry: set, width: set.Width()}
	last := ""
	for _, m := range list {
		var err error
		if c.json {
			err = out.add(m)
		} else {
			err = c.matchText(m, m.Session != last, show)
		}
		if err != nil {
			return err
		}
		last = m.Session
	}
	return nil
}

var errEnough = errors.New("enough")

// shortener shortens ids.
type shortener interface{ Short(id string) string }

// matchIDs shorten the ids of matches; width is that of the entries' column.
type matchIDs struct {
	session, entry shortener
	width          int
}

// matchText writes a match for people; the first of a session below the name of the session.
func (c *cli) matchText(m api.Match, first bool, ids matchIDs) error {
	if first {
		name := m.Title
		if name != "" {
			name += "  "
		}
		if err := c.textf("%s%s", c.stdout.Paint(term.Bold, name),
			c.stdout.Paint(term.Yellow, ids.session.Short(m.Session))); err != nil {
			return err
		}
	}
	head := fmt.Sprintf("  %-*s  %s  %-9s %s ",
		ids.width, term.Line(ids.entry.Short(m.Entry)), term.Clock(m.Time), term.Speaker(m.Type, m.Role), branchesOf(m))
	text, mark := term.Excerpt(m.Snippet, m.Mark, c.stdout.Rest(head, 0))
	text = text[:mark[0]] + c.stdout.Paint(term.Bold, text[mark[0]:mark[1]]) + text[mark[1]:]
	return c.textf("%s%s", c.stdout.Paint(term.Dim, head), text)
}

// branchesOf returns the branch of a match, and the number of others that contain it.
func branchesOf(m api.Match) string {
	if len(m.Branches) == 0 {
		return "(no branch)"
	}
	name := term.Cut(term.Line(m.Branches[0]), 20)
	if more := len(m.Branches) - 1; more > 0 {
		name += fmt.Sprintf(" +%d", more)
	}
	return "(" + name + ")"
}
