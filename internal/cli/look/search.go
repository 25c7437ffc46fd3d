package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/history"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/recall"
	"github.com/coppice-go/coppice/internal/cli/term"
)

type searchOptions struct {
	program.Narrow
	session string
	noIndex bool
}

// Search is `coppice search`.
func Search(a *program.App) *cobra.Command {
	c := &cli{a}
	var o searchOptions
	cmd := &cobra.Command{
		Use:   "search TEXT",
		Short: "Find entries by what they say, in all sessions and branches",
		Long: `Find entries whose text holds every word of TEXT, or part of a word, whatever the case; words in quotes must stand
beside each other. re:EXPRESSION is a regular expression. What fits best comes first.

It uses an index in your cache folder ($COPPICE_HISTORY names another file), which is brought up to date first; the
first search reads all. The index knows the first 256 KiB of an entry's text: --no-index reads the transcripts from end
to end instead, the sessions with the newest activity first.`,
		Example: "  coppice search flaky timezone\n  coppice search --cwd . 'database migration'\n  coppice search 're:panic.*nil map'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.search(cmd.Context(), args, o)
		},
	}
	cmd.Flags().StringVar(&o.session, "session", "", "only this session")
	o.Flags(cmd.Flags(), "sessions")
	cmd.Flags().BoolVar(&o.noIndex, "no-index", false, "read the transcripts instead of the index")
	_ = cmd.RegisterFlagCompletionFunc("session", c.SessionIDs)
	return cmd
}

// match is an entry that was found, as the JSON shows it.
type match struct {
	Session  string    `json:"session"`
	Title    string    `json:"title"`
	Entry    string    `json:"entry"`
	Ordinal  uint64    `json:"ordinal"`
	Type     string    `json:"type"`
	Role     string    `json:"role"`
	Time     time.Time `json:"time"`
	Snippet  string    `json:"snippet"`
	Mark     [2]int    `json:"mark"`
	Branches []string  `json:"branches"`
	OnHead   bool      `json:"onHead"`
}

func (c *cli) search(ctx context.Context, args []string, o searchOptions) error {
	q, err := recall.Query(args)
	switch {
	case err != nil:
		return err
	case q.Empty():
		return program.Usage("no words to look for")
	}
	if err := o.Check(); err != nil {
		return err
	}
	return c.WithStore(ctx, func(st *program.Store) error {
		if o.noIndex {
			return c.scan(ctx, st, q, o)
		}
		if o.session != "" {
			id, err := st.Resolve(ctx, o.session)
			if err != nil {
				return err
			}
			o.session = id
		}
		return c.searchIndex(ctx, st, q, o)
	})
}

func (c *cli) searchIndex(ctx context.Context, st *program.Store, q history.Query, o searchOptions) error {
	out := c.Array("matches")
	n, more := 0, false
	err := recall.With(ctx, c.App, st, o.session, func(x *history.Index) error {
		var hits []history.Hit
		var err error
		hits, more, err = x.Search(ctx, q, &history.SearchOptions{Session: o.session, Cwd: o.Cwd, Limit: o.Limit})
		if err != nil {
			return err
		}
		n = len(hits)
		return c.showHits(out, hits)
	})
	return out.Found(n, more, err)
}

// showHits shows what was found: as it is ranked in JSON, for people below the names of the sessions.
func (c *cli) showHits(out *program.Array, hits []history.Hit) error {
	list := make([]match, 0, len(hits))
	rank := map[string]int{} // of a session: that of its best
	for i, h := range hits {
		if _, ok := rank[h.Session]; !ok {
			rank[h.Session] = i
		}
		list = append(list, match{
			h.Session, program.Title(checkpoint.Summary{Title: h.Title}), h.Entry, h.Ordinal, h.Type, h.Role, h.Time,
			h.Snippet, h.Mark, h.Branches, h.OnHead,
		})
	}
	if !c.JSON {
		slices.SortStableFunc(list, func(a, b match) int { return rank[a.Session] - rank[b.Session] })
	}
	last := ""
	for _, m := range list {
		var err error
		if c.JSON {
			err = out.Add(m)
		} else {
			err = c.matchText(m, m.Session != last)
		}
		if err != nil {
			return err
		}
		last = m.Session
	}
	return nil
}

var errEnough = errors.New("enough")

// matchText shows a match below the name of its session, which is said once.
func (c *cli) matchText(m match, first bool) error {
	if first {
		name := m.Title
		if name != "" {
			name += "  "
		}
		if err := c.Text("%s%s", c.Out.Paint(term.Bold, name), c.Out.Paint(term.Yellow, m.Session)); err != nil {
			return err
		}
	}
	head := fmt.Sprintf("  %s  %s  %-9s %s ", term.Line(m.Entry), term.Clock(m.Time), term.Speaker(m.Type, m.Role), branchesOf(m))
	text := term.Cut(m.Snippet, c.Out.Rest(head, 0))
	if from, to := m.Mark[0], m.Mark[1]; to <= len(text) && text[:to] == m.Snippet[:to] {
		text = text[:from] + c.Out.Paint(term.Bold, text[from:to]) + text[to:]
	}
	return c.Text("%s%s", c.Out.Paint(term.Dim, head), text)
}

// branchesOf says where a match is: a branch, and how many others have it too.
func branchesOf(m match) string {
	if len(m.Branches) == 0 {
		return "(no branch)"
	}
	name := term.Cut(term.Line(m.Branches[0]), 20)
	if more := len(m.Branches) - 1; more > 0 {
		name += fmt.Sprintf(" +%d", more)
	}
	return "(" + name + ")"
}
