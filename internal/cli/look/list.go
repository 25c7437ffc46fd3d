package look

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/cli/draw"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/screen"
)

// List is `coppice list`.
func List(a *program.App) *cobra.Command {
	c := &cli{a}
	var o coppice.ListOptions
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List sessions, newest activity first",
		Example: "  coppice list --cwd . --limit 20",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.list(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.Cwd, "cwd", "", "only sessions of this working directory")
	cmd.Flags().IntVar(&o.Limit, "limit", 0, "at most so many; 0 = all")
	return cmd
}

// listed is a session as the JSON shows it.
type listed struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Cwd     string    `json:"cwd"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Entries uint64    `json:"entries"`
	Bytes   int64     `json:"bytes"`
	Seq     uint64    `json:"seq"`
	Branch  string    `json:"branch"`
	Parent  string    `json:"parent,omitempty"`
	Preview string    `json:"preview"`
}

func (c *cli) list(ctx context.Context, o coppice.ListOptions) error {
	if o.Limit < 0 {
		return program.Usage("--limit %d: want 0 or more", o.Limit)
	}
	var err error
	if o.Cwd, err = program.Absolute(o.Cwd); err != nil {
		return err
	}
	return c.WithStore(ctx, func(st *program.Store) error {
		var sums []checkpoint.Summary
		var end func()
		o.Progress, end = c.Listing()
		defer end()
		out := c.Array("sessions")
		for s, err := range st.List(ctx, o) {
			if err != nil {
				return out.End(err)
			}
			if !c.JSON {
				sums = append(sums, s)
				continue
			}
			if err := out.Add(listed{
				s.ID, s.Title, s.Cwd, s.Created, s.Updated, s.Entries, s.Bytes, s.Seq, s.Branch, s.Parent, s.Preview,
			}); err != nil {
				return err
			}
		}
		if end(); c.JSON {
			return out.End(nil)
		}
		return c.listText(st, sums)
	})
}

func (c *cli) listText(st *program.Store, sums []checkpoint.Summary) error {
	if len(sums) == 0 {
		return c.Text("no sessions in %s; `coppice import` brings some in, `coppice demo` shows one", st.URL)
	}
	ids := make([]string, len(sums))
	for i, s := range sums {
		ids[i] = s.ID
	}
	short := draw.Short(ids)
	rows := make([][]screen.Cell, len(sums))
	for i, s := range sums {
		rows[i] = []screen.Cell{
			{Text: short(s.ID), Style: screen.Yellow},
			{Text: screen.Ago(c.Now(), s.Updated)},
			{Text: screen.Number(s.Entries)},
			{Text: screen.Size(s.Bytes)},
			{Text: program.Title(s)},
			{Text: screen.Line(screen.Home(s.Cwd, c.Home())), Style: screen.Dim},
		}
	}
	return c.Out.Table([]screen.Column{
		{Head: "SESSION"},
		{Head: "ACTIVE"},
		{Head: "ENTRIES", Right: true},
		{Head: "SIZE", Right: true},
		{Head: "TITLE", Flex: true},
		{Head: "FOLDER", Flex: true},
	}, rows)
}
