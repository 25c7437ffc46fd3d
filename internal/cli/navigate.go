package cli

import (
	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
)

// navigated is the JSON of navigate.
type navigated struct {
	moved
	Text    *string `json:"text"`
	Summary string  `json:"summary,omitempty"`
	Already bool    `json:"already,omitempty"`
}

func (c *cli) navigateCommand() *cobra.Command {
	var o manager.Navigation
	var edit bool
	cmd := &cobra.Command{
		Use:   "navigate SESSION ENTRY",
		Short: "Go to an entry; of a user's message, to before it, with its text to edit",
		Long: `Go to an entry. Of a message of the user's, or a custom one, the head goes to before it, and its text comes back on
the standard output, to be edited and sent again as another version; of anything else it goes to the entry itself. A
--summary tells the model, at the new place, of the line that is left.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withManager(ctx, args[0], manager.Hooks{}, func(m *manager.Manager) error {
				if edit && (o.Summary != "" || o.Label != "") {
					return usageError("--edit takes neither --summary nor --label")
				}
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
				return c.navigated(r)
			})
		},
	}
	cmd.Flags().StringVar(&o.Summary, "summary", "", "what the line that is left was about: the model sees it")
	cmd.Flags().StringVar(&o.Label, "label", "", "names the summary, or without one the entry")
	cmd.Flags().BoolVar(&edit, "edit", false, "it must be a user's message: one at the head too")
	return cmd
}

func (c *cli) navigated(r manager.Moved) error {
	if c.json {
		return c.writeJSON(navigated{headOnly(r.Receipt), orNull(r.Text), r.Summary, r.Already})
	}
	head := "before every root"
	if r.Entry != "" {
		head = "at " + term.Line(r.Entry)
	}
	if r.Already {
		return c.textf("already %s", head)
	}
	c.notef("seq %d: %s, branch %s", r.Seq, head, term.Line(r.Branch))
	if r.Text != "" {
		return c.textf("%s", term.Text(r.Text))
	}
	return nil
}
