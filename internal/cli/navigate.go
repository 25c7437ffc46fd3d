package cli

import (
	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) navigateCommand() *cobra.Command {
	var o manager.Navigation
	var edit bool
	cmd := &cobra.Command{
		Use:   "navigate SESSION ENTRY",
		Short: "Move the head to an entry, or to before a user message, to edit it",
		Long: `Move the head to ENTRY. If ENTRY is a user message or a custom message, the head moves to the entry
before it, and its text is written to standard output, to be edited and sent again as another version.
For any other entry standard output has the id of the head. With --summary a summary of the path that
is left is appended at the new head, for the model.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withManager(ctx, args[0], func(m *manager.Manager) error {
				if edit && (o.Summary != "" || o.Label != "") {
					return usageError("--edit cannot be combined with --summary or --label")
				}
				before := m.Session().Head()
				var r manager.Moved
				var err error
				if edit {
					r, err = m.BranchForEdit(ctx, args[1])
				} else {
					r, err = m.Navigate(ctx, args[1], &o)
				}
				if err != nil {
					return err
				}
				back, err := wayBack(ctx, m.Session(), before)
				if err != nil {
					return err
				}
				return c.navigated(r, back)
			})
		},
	}
	cmd.Flags().StringVar(&o.Summary, "summary", "", "summary of the path that is left; the model receives it")
	cmd.Flags().StringVar(&o.Label, "label", "", "label for the summary, or for the entry if there is no summary")
	cmd.Flags().BoolVar(&edit, "edit", false, "ENTRY must be a user message; it may be the head")
	return cmd
}

// navigated reports a navigation. What a script reads is on the standard output: the text to edit, or for an entry
// without one the id of the head; the rest is remarks.
func (c *cli) navigated(r manager.Moved, back string) error {
	if c.json {
		return c.writeJSON(api.NavigatedOf(r))
	}
	if r.Already {
		c.notef("already %s", headText(r.Entry))
	} else {
		c.notef("seq %d: %s, branch %s", r.Seq, headText(r.Entry), term.Line(r.Branch))
	}
	if back != "" {
		c.notef("back: %s", term.Line(back))
	}
	switch {
	case r.Text != "":
		return c.textf("%s", term.Text(r.Text))
	case r.Entry != "":
		return c.textf("%s", term.Line(shortid.One(r.Entry)))
	}
	return nil
}
