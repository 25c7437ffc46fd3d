package cli

import (
	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) resetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reset SESSION",
		Short: "Begin anew in a session: a new root comes next",
		Long: `Begin anew in a session: a new root comes next, and the model starts with nothing. All that was said stays in the
tree; ` + "`coppice switch`" + ` goes back to it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withManager(cmd.Context(), args[0], manager.Hooks{}, func(m *manager.Manager) error {
				r, err := m.Reset(cmd.Context())
				if err != nil {
					return err
				}
				return c.reportCommit(r, "seq %d: before every root, branch %s", r.Seq, term.Line(r.Branch))
			})
		},
	}
}
