package cli

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
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
// too. places, unless nil, receives where in each line the match is.
func (c *cli) sessionsSaying(
	ctx context.Context, st *countedStore, query, cwd string, places map[string][2]int,
) (map[string]string, error) {
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
			c.notef("the newest messages were not searched; `coppice search` updates the index%s", why)
		}
		var err error
		hits, _, err = x.Search(ctx, q, &searchindex.SearchOptions{Cwd: cwd, Limit: maxPlaces})
		return err
	})
	if err != nil && ctx.Err() == nil {
		c.notef("messages were not searched: %s", term.Line(err.Error()))
		return nil, nil
	}
	said := map[string]string{}
	for _, h := range hits {
		if _, better := said[h.Session]; !better {
			said[h.Session] = term.Line(h.Snippet)
			if places != nil && said[h.Session] == h.Snippet {
				places[h.Session] = h.Mark
			}
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
	summaries, list bool
	pin, unpin      string // a session to pin, or whose pin to remove
}

func (c *cli) pickCommand() *cobra.Command {
	var o pickOptions
	cmd := &cobra.Command{
		Use:        "pick [QUERY]",
		SuggestFor: []string{"pin", "pins"},
		Short:      "Pick a session by title, first prompt, folder, id or content",
		Long: `Find sessions by title, first prompt, preview of the head, folder and id. QUERY is words, whose letters
must occur in their order; "phrases", which must occur literally; or re: and a regular expression. All
parts must match; case is ignored. Pinned sessions come first. --pin and --unpin change the pins and list no
sessions. Pins belong to the user, not to the store: they are kept in a file below $COPPICE_STATE, or
$XDG_STATE_HOME/coppice, or ~/.local/state/coppice; at most 1,000.

If there is an index (see ` + "`coppice search`" + `), sessions whose messages match QUERY follow, each with
the matching text. ` + "`coppice search`" + ` lists all such matches, and creates the index.

In a terminal the sessions are shown on the whole screen, with the tree of the selected one, and
narrowed as you type; Enter prints the id, as in: coppice resume $(coppice pick). With --list, --json or
without a terminal the sessions are printed.`,
		Example: "  coppice pick tide tbl\n  coppice pick --sort threaded --named\n  coppice pick 're:fix(es)? #\\d+'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if word := o.pin + o.unpin; word != "" {
				if len(args) > 0 || !alone(cmd, "pin") && !alone(cmd, "unpin") {
					return usageError("use --pin or --unpin alone")
				}
				return c.pin(cmd.Context(), word, o.unpin != "")
			}
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
	cmd.Flags().StringVar(&o.Cwd, "cwd", "", "only sessions in this working directory")
	cmd.Flags().StringVar((*string)(&o.Sort), "sort", string(manager.SortRecent), "order: recent, relevance, threaded")
	cmd.Flags().BoolVar(&o.Named, "named", false, "only sessions with a title")
	cmd.Flags().BoolVar(&o.Internal, "internal", false, "include sessions that agents started for their own purposes")
	cmd.Flags().BoolVar(&o.summaries, "summaries", false,
		"for sessions without a title show the summary that an agent wrote; one read each")
	cmd.Flags().BoolVar(&o.list, "list", false, "print the sessions, in a terminal too")
	cmd.Flags().IntVar(&o.Limit, "limit", 0, "maximum number of sessions; 0 = all")
	cmd.Flags().StringVar(&o.pin, "pin", "", "pin this session")
	cmd.Flags().StringVar(&o.unpin, "unpin", "", "remove the pin of this session")
	_ = cmd.RegisterFlagCompletionFunc("pin", c.completeSession)
	_ = cmd.RegisterFlagCompletionFunc("unpin", c.completeSession)
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
	if _, err := manager.ParseQuery(o.Query); err != nil {
		return usageError("query %q: %w", o.Query, err)
	}
	if o.Limit < 0 {
		return usageError("--limit %d: want 0 or more", o.Limit)
	}
	sorts := []manager.Sort{manager.SortRecent, manager.SortRelevance, manager.SortThreaded}
	if !slices.Contains(sorts, o.Sort) {
		return oneOf("order", string(o.Sort), texts(sorts))
	}
	if o.Cwd, err = absolutePath(o.Cwd); err != nil {
		return err
	}
	return c.withStore(ctx, func(st *countedStore) error {
		places := map[string][2]int{}
		o.Pinned = c.pinned(st)
		o.Matches = func(ctx context.Context, query string) (map[string]string, error) {
			return c.sessionsSaying(ctx, st, query, o.Cwd, places)
		}
		if t, ok := c.terminal(); ok && !c.json && !o.list {
			id, err := c.find(ctx, t, st, o)
			if err != nil {
				return err
			}
			return c.textf("%s", st.short(ctx, id))
		}
		out := c.array("sessions")
		var rows []pickedRow
		tell, end := c.listingBar()
		defer end()
		o.Progress = func(p manager.PickProgress) { tell(p.Looked, p.Total) }
		for f, err := range manager.Pick(ctx, st.Store, o.PickOptions) {
			if err != nil {
				return out.end(err)
			}
			row := pickedRow{Found: f, place: places[f.ID]}
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
				f.Internal, f.Pinned, f.MatchLine, row.summary,
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
	place   [2]int // start and end of the match in MatchLine, in bytes
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
		if f.MatchLine != "" && len(columns) == 5 {
			columns = append(columns, term.Column{Head: "SAID", Flex: true})
		}
	}
	short := shortid.Of(ids, shortid.Least).Short
	rows := make([][]term.Cell, len(found))
	for i, f := range found {
		rows[i] = []term.Cell{
			{Text: short(f.ID), Style: term.Yellow},
			{Text: term.Ago(c.now(), f.Updated)},
			{Text: term.Line(string(f.Status))},
			{Text: strings.Repeat("  ", min(f.Depth, 10)) + titled(f)},
			{Text: term.Line(term.ShortenHome(f.Cwd, c.home())), Style: term.Dim},
			{Text: term.Line(f.MatchLine), Style: term.Dim, Place: f.place},
		}[:len(columns)]
	}
	return c.stdout.Table(columns, rows)
}

// titled returns the title of a session, or what replaces it, with its marks.
func titled(f pickedRow) string {
	text := titleOf(f.Summary)
	if f.Title == "" && f.summary != "" {
		text = term.Cut(term.Line(f.summary), 60)
	}
	if f.Internal {
		text = "(internal) " + text
	}
	if f.Pinned {
		text = "(pinned) " + text
	}
	return text
}
