package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
)

func (c *cli) listCommand() *cobra.Command {
	var o coppice.ListOptions
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List sessions, newest activity first or in another order",
		Example: "  coppice list --cwd . --limit 20\n  coppice list --meta program=codex",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.list(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.Cwd, "cwd", "", "only sessions in this working directory")
	cmd.Flags().StringVar(&o.Parent, "parent", "", "only sessions that this session started, forks included")
	cmd.Flags().StringToStringVar(&o.Meta, "meta", nil, "only sessions with this metadata: KEY=VALUE,...")
	cmd.Flags().StringVar(&o.Order, "order", coppice.ByActivity,
		"activity, created (newest first), or id (by its stored form: B before a)")
	cmd.Flags().IntVar(&o.Limit, "limit", 0, "maximum number of sessions; 0 = all")
	cmd.Flags().BoolVar(&o.Exact, "exact", false,
		"list every session; without it the list of a large store may miss recent work of others")
	return cmd
}

func (c *cli) list(ctx context.Context, o coppice.ListOptions) error {
	if o.Limit < 0 {
		return usageError("--limit %d: want 0 or more", o.Limit)
	}
	if orders := []string{coppice.ByActivity, coppice.ByCreated, coppice.ByID}; !slices.Contains(orders, o.Order) {
		return oneOf("order", o.Order, orders)
	}
	var err error
	if o.Cwd, err = absolutePath(o.Cwd); err != nil {
		return err
	}
	return c.withStore(ctx, func(st *countedStore) (err error) {
		if o.Parent != "" {
			if o.Parent, err = st.resolve(ctx, o.Parent); err != nil {
				return err
			}
		}
		tell, end := c.listingBar()
		defer end()
		sh := &sheet{c: c, st: st, shown: end, few: o.Limit > 0 && o.Limit <= fewest}
		o.Progress = func(looked, total int) {
			if sh.widths == nil { // from then on the lines show the progress
				tell(looked, total)
			}
		}
		out := c.array("sessions")
		o.Age = func(age time.Duration) { out.after = map[string]any{"age": api.Seconds(age)} }
		for s, err := range st.List(ctx, o) {
			if s.Missing > 0 {
				c.notef("warning: %s", lostCommits(s.ID, s.Seq, s.Missing))
			}
			switch {
			case err != nil && c.json:
				return out.end(err)
			case err != nil:
				return errors.Join(sh.end(), err)
			case !c.json:
				err = sh.add(ctx, s)
			default:
				err = out.add(api.SessionOf(s))
			}
			if err != nil {
				return err
			}
		}
		if end(); c.json {
			return out.end(nil)
		}
		if len(sh.held) == 0 && sh.widths == nil {
			return c.noneListed(ctx, st, o)
		}
		return sh.end()
	})
}

// noneListed reports that no session matches a list, and how many there are without its conditions.
func (c *cli) noneListed(ctx context.Context, st *countedStore, o coppice.ListOptions) error {
	where := backend.Redacted(st.url)
	if o.Cwd+o.Parent != "" || len(o.Meta) > 0 {
		n := 0
		for _, err := range st.List(ctx, coppice.ListOptions{}) {
			if err != nil {
				return err
			}
			n++
		}
		if n > 0 {
			return c.textf("no such session; without --cwd, --parent and --meta there are %d in %s", n, where)
		}
	}
	return c.textf("no sessions in %s; add some with `coppice import`, or try `coppice demo`", where)
}

// fewest is how many sessions are held back where no more are asked for.
const fewest = 1000

// page is the number of sessions that are read before the first one is shown: they determine the
// columns.
const page = 16

// sheet is a list for people. A short list is a table. The lines of a long one are written while it
// is read, in columns as wide as its first page needs: a longer text is cut at a terminal, and
// elsewhere moves the rest of its line.
type sheet struct {
	c      *cli
	st     *countedStore
	shown  func() // called before the first line
	few    bool   // the list is a table, whatever its length
	held   []checkpoint.Summary
	widths []int // of the columns; nil = nothing is shown yet
	ids    *shortid.Set
}

// columns are the columns of the list, each with its least width in a long list, whose later lines
// are not known yet.
var columns = []struct {
	term.Column
	least int
}{
	{term.Column{Head: "SESSION"}, 0},
	{term.Column{Head: "ACTIVE"}, len("4 weeks ago")},
	{term.Column{Head: "ENTRIES", Right: true}, 0},
	{term.Column{Head: "SIZE", Right: true}, len("1.2 MiB")},
	{term.Column{Head: "STATUS"}, len("answered")},
	{term.Column{Head: "TITLE", Flex: true}, 30},
	{term.Column{Head: "FOLDER", Flex: true}, 12},
}

// The columns that become narrower where the lines are too long.
const titleColumn, folderColumn = 5, 6

func (sh *sheet) add(ctx context.Context, s checkpoint.Summary) error {
	if sh.widths != nil {
		return sh.line(sh.row(s))
	}
	if sh.held = append(sh.held, s); sh.few || len(sh.held) <= page {
		return nil
	}
	sh.shown()
	sh.ids = census(ctx, sh.st)
	rows := sh.rows()
	sh.measure(rows)
	sh.widths[0] = max(sh.widths[0], sh.ids.Width()) // of those that are not read yet, too
	heads := make([]term.Cell, len(columns))
	for i, col := range columns {
		heads[i] = term.Cell{Text: col.Head, Style: term.Bold}
	}
	for _, row := range append([][]term.Cell{heads}, rows...) {
		if err := sh.line(row); err != nil {
			return err
		}
	}
	sh.held = nil
	return nil
}

// end writes the sessions that were held back.
func (sh *sheet) end() error {
	if len(sh.held) == 0 {
		return nil
	}
	ids := make([]string, len(sh.held))
	for i, s := range sh.held {
		ids[i] = s.ID
	}
	sh.ids = shortid.Of(ids, shortid.Least)
	var cols []term.Column
	for _, col := range columns {
		cols = append(cols, col.Column)
	}
	return sh.c.stdout.Table(cols, sh.rows())
}

func (sh *sheet) rows() [][]term.Cell {
	rows := make([][]term.Cell, len(sh.held))
	for i, s := range sh.held {
		rows[i] = sh.row(s)
	}
	return rows
}

func (sh *sheet) row(s checkpoint.Summary) []term.Cell {
	title := titleOf(s)
	if s.Internal {
		title = "(internal) " + title
	}
	status := term.Cell{Text: term.Line(s.Status)}
	if s.Missing > 0 {
		status = term.Cell{Text: "damaged", Style: term.Red}
	}
	if s.Commit == "" {
		return []term.Cell{
			{Text: sh.ids.Short(s.ID), Style: term.Yellow},
			{Text: term.Ago(sh.c.now(), s.Updated)},
			{},
			{},
			{Text: "damaged", Style: term.Red},
			{Text: term.Line(s.Cause)},
			{},
		}
	}
	return []term.Cell{
		{Text: sh.ids.Short(s.ID), Style: term.Yellow},
		{Text: term.Ago(sh.c.now(), s.Updated)},
		{Text: term.Number(s.Entries)},
		{Text: term.Size(s.Bytes)},
		status,
		{Text: title},
		{Text: term.Line(term.ShortenHome(s.Cwd, sh.c.home())), Style: term.Dim},
	}
}

// gap separates two columns.
const gap = "  "

// measure sets the widths by the first page. At a terminal the two flexible columns share the rest
// of the line: the folder takes at most two fifths, and what the title does not need.
func (sh *sheet) measure(rows [][]term.Cell) {
	sh.widths = make([]int, len(columns))
	left := sh.c.stdout.Width() - len(gap)*(len(columns)-1)
	for i, col := range columns {
		sh.widths[i] = max(col.least, term.Columns(col.Head))
		for _, row := range rows {
			sh.widths[i] = max(sh.widths[i], term.Columns(row[i].Text))
		}
		if !col.Flex {
			left -= sh.widths[i]
		}
	}
	if sh.c.stdout.Width() > 0 {
		folder := min(sh.widths[folderColumn], max(columns[folderColumn].least, left*2/5))
		sh.widths[titleColumn] = min(sh.widths[titleColumn], max(columns[folderColumn].least, left-folder))
		sh.widths[folderColumn] = max(columns[folderColumn].least, left-sh.widths[titleColumn])
	}
}

// line writes one line of a long list.
func (sh *sheet) line(row []term.Cell) error {
	var b strings.Builder
	for i, cell := range row {
		text := cell.Text
		if columns[i].Flex && sh.c.stdout.Width() > 0 {
			text = term.Cut(text, sh.widths[i])
		}
		pad := strings.Repeat(" ", max(0, sh.widths[i]-term.Columns(text)))
		if text = sh.c.stdout.Paint(cell.Style, text); columns[i].Right {
			text = pad + text
		} else if i < len(row)-1 {
			text += pad
		}
		if i > 0 {
			b.WriteString(gap)
		}
		b.WriteString(text)
	}
	return sh.c.textf("%s", strings.TrimRight(b.String(), " "))
}

// census returns prefixes by which the sessions of the store differ.
func census(ctx context.Context, st *countedStore) *shortid.Set {
	ids, err := st.ids(ctx)
	if err != nil {
		return shortid.Of(nil, shortid.Alone)
	}
	return shortid.Of(ids, shortid.Least)
}
