package cli

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/searchindex"
)

const (
	catchUp   = time.Second // how long the index may take to come up to date
	maxPlaces = 1000        // places that are looked at: the best ones
)

// sessionsSaying returns the ids of the sessions in whose text a query was found, each with a line
// around the best match. It uses an existing index only. An index that cannot be updated within
// catchUp is searched as it is, and one that fails is only noted: a session is found by its title
// too.
func (c *cli) sessionsSaying(ctx context.Context, st *countedStore, query, cwd string) (map[string]string, error) {
	q, err := searchindex.Parse(query)
	if err != nil || q.Empty() {
		return nil, nil //nolint:nilerr // what is no query here is one of names
	}
	if file := c.indexFile(st.url); file == "" || !exists(file) {
		return nil, nil
	}
	var hits []searchindex.Hit
	err = c.withIndex(ctx, st, func(x *searchindex.Index, _ string) error {
		soon, cancel := context.WithTimeout(ctx, catchUp)
		defer cancel()
		o := &searchindex.UpdateOptions{Shallow: true} // opening every session would take too long
		if _, err := x.Update(soon, st.Store, o); err != nil && ctx.Err() == nil {
			why := ""
			if soon.Err() == nil {
				why = ": " + term.Line(err.Error())
			}
			c.notef("what was said last is not looked at, `coppice search` brings the index up to date%s", why)
		}
		var err error
		hits, _, err = x.Search(ctx, q, &searchindex.SearchOptions{Cwd: cwd, Limit: maxPlaces})
		return err
	})
	if err != nil && ctx.Err() == nil {
		c.notef("what was said is not looked at: %s", term.Line(err.Error()))
		return nil, nil
	}
	said := map[string]string{}
	for _, h := range hits {
		if _, better := said[h.Session]; !better {
			said[h.Session] = term.Line(h.Snippet)
		}
	}
	return said, ctx.Err()
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

type pickOptions struct {
	manager.PickOptions
	summaries bool
}

func (c *cli) pickCommand() *cobra.Command {
	var o pickOptions
	cmd := &cobra.Command{
		Use:   "pick [QUERY]",
		Short: "Look for a session by title, first words, folder and id, and by what was said",
		Long: `Look for a session by its title, what was asked first, the preview of its head, its folder and its id. QUERY is
words, of which the letters must occur in their order; "phrases" that stand there as they are; or re: and a regular
expression. All must fit; case does not matter. Pinned sessions come first (` + "`coppice pin`" + `).

Where there is an index of conversations (see ` + "`coppice history`" + `) sessions come behind those in which QUERY was said, each
with the place. ` + "`coppice search`" + ` shows every such place, and makes the index.`,
		Example: "  coppice pick tide tbl\n  coppice pick --sort threaded --named\n  coppice pick 're:fix(es)? #\\d+'",
		RunE: func(cmd *cobra.Command, args []string) error {
			for i, arg := range args { // a quoted argument is a phrase
				phrase := strings.Contains(arg, " ") && len(args) > 1
				if phrase && !strings.Contains(arg, `"`) && !strings.HasPrefix(arg, "re:") {
					args[i] = `"` + arg + `"`
				}
			}
			o.Query = strings.Join(args, " ")
			return c.pick(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Cwd, "cwd", "", "only sessions of this working directory")
	cmd.Flags().StringVar((*string)(&o.Sort), "sort", string(manager.SortRecent), "order: recent, relevance, threaded")
	cmd.Flags().BoolVar(&o.Named, "named", false, "only sessions that have a title")
	cmd.Flags().BoolVar(&o.Internal, "internal", false, "sessions that agents began for their own ends, too")
	cmd.Flags().BoolVar(&o.summaries, "summaries", false,
		"show the summary that an agent left of a session that has no title; one read each")
	cmd.Flags().IntVar(&o.Limit, "limit", 0, "at most so many; 0 = all")
	completeFlag(cmd, "sort", string(manager.SortRecent), string(manager.SortRelevance), string(manager.SortThreaded))
	return cmd
}

// picked is a session as the JSON shows it.
type picked struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	First    string `json:"first,omitempty"`
	Cwd      string `json:"cwd"`
	Preview  string `json:"preview"`
	Status   string `json:"status,omitempty"`
	Updated  string `json:"updated"`
	Entries  uint64 `json:"entries"`
	Parent   string `json:"parent,omitempty"`
	Depth    int    `json:"depth"`
	Internal bool   `json:"internal,omitempty"`
	Pinned   bool   `json:"pinned,omitempty"`
	Said     string `json:"said,omitempty"`
	Summary  string `json:"summary,omitempty"`
}

func (c *cli) pick(ctx context.Context, o pickOptions) (err error) {
	if _, err := manager.ParseQuery(o.Query); err != nil || o.Limit < 0 {
		return usageError("query %q, limit %d: %w", o.Query, o.Limit, err)
	}
	if o.Sort != manager.SortRecent && o.Sort != manager.SortRelevance && o.Sort != manager.SortThreaded {
		return usageError("unknown order %q; there are recent, relevance, threaded", o.Sort)
	}
	if o.Cwd, err = absolutePath(o.Cwd); err != nil {
		return err
	}
	return c.withStore(ctx, func(st *countedStore) error {
		out := c.array("sessions")
		var rows []pickedRow
		tell, end := c.listingBar()
		defer end()
		o.Progress = func(p manager.PickProgress) { tell(p.Looked, p.Total) }
		o.Pinned = c.pinned(st)
		o.Said = func(ctx context.Context, query string) (map[string]string, error) {
			return c.sessionsSaying(ctx, st, query, o.Cwd)
		}
		for f, err := range manager.Pick(ctx, st.Store, o.PickOptions) {
			if err != nil {
				return out.end(err)
			}
			row := pickedRow{Found: f}
			if o.summaries {
				row.summary = c.summarized(ctx, st, f.ID)
			}
			if !c.json {
				rows = append(rows, row)
				continue
			}
			at := f.Updated.UTC().Format("2006-01-02T15:04:05.999Z07:00")
			if err := out.add(picked{
				f.ID, f.Title, f.First, f.Cwd, f.Preview, string(f.Status), at, f.Entries, f.Parent, f.Depth,
				f.Internal, f.Pinned, f.Said, row.summary,
			}); err != nil {
				return err
			}
		}
		if end(); c.json {
			return out.end(nil)
		}
		return c.pickText(rows)
	})
}

// shown is a session as people see it.
type pickedRow struct {
	manager.Found
	summary string
}

// summarized returns the summary of a session on one line; "" if it has none or cannot be read.
func (c *cli) summarized(ctx context.Context, st *countedStore, id string) string {
	text, err := manager.NewestSummary(ctx, st.Store, id)
	if err != nil {
		return ""
	}
	return term.Cut(term.Line(text), 200)
}

func (c *cli) pickText(found []pickedRow) error {
	if len(found) == 0 {
		c.notef("nothing found")
		return nil
	}
	ids := make([]string, len(found))
	columns := []term.Column{
		{Head: "SESSION"},
		{Head: "ACTIVE"},
		{Head: "STATUS"},
		{Head: "TITLE", Flex: true},
		{Head: "FOLDER", Flex: true},
	}
	for i, f := range found {
		ids[i] = f.ID
		if f.Said != "" && len(columns) == 5 {
			columns = append(columns, term.Column{Head: "SAID", Flex: true})
		}
	}
	short := term.ShortIDs(ids)
	rows := make([][]term.Cell, len(found))
	for i, f := range found {
		rows[i] = []term.Cell{
			{Text: short(f.ID), Style: term.Yellow},
			{Text: term.Ago(c.now(), f.Updated)},
			{Text: term.Line(string(f.Status))},
			{Text: strings.Repeat("  ", min(f.Depth, 10)) + titled(f)},
			{Text: term.Line(term.ShortenHome(f.Cwd, c.home())), Style: term.Dim},
			{Text: term.Line(f.Said), Style: term.Dim},
		}[:len(columns)]
	}
	return c.stdout.Table(columns, rows)
}

// titled returns the title of a session, or what replaces it, with its marks.
func titled(f pickedRow) string {
	text := term.Cut(term.Line(cmp.Or(f.Title, f.summary, manager.DisplayName(f.Summary))), 60)
	if f.Internal {
		text = "(internal) " + text
	}
	if f.Pinned {
		text = "(pinned) " + text
	}
	return text
}
