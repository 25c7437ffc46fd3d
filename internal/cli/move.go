package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) moveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "move SESSION DIR",
		Short: "Move a session to another working directory",
		Long:  "Move a session to another working directory: it is listed and continued there. Its history stays as it is.",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := absolutePath(args[1])
			if err != nil || dir == "" {
				return errors.Join(err, usageError("DIR is empty"))
			}
			return c.withManager(cmd.Context(), args[0], manager.Hooks{}, func(m *manager.Manager) error {
				r, err := m.Move(cmd.Context(), dir)
				if err != nil {
					return err
				}
				return c.reportCommit(r, "seq %d: %s is in %s", r.Seq, m.Session().ID(), term.Line(dir))
			})
		},
	}
}
