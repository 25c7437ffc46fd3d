package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) moveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "move SESSION DIR",
		Short: "Move a session to another working directory",
		Long:  "Change the working directory in which a session is listed and continued. Its history stays as it is.",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := absolutePath(args[1])
			if err != nil || dir == "" {
				return errors.Join(err, usageError("DIR is empty"))
			}
			return c.withManager(cmd.Context(), args[0], func(m *manager.Manager) error {
				r, err := m.Move(cmd.Context(), dir)
				if err != nil {
					return err
				}
				return c.reportCommit(r, "seq %d: moved %s to %s", r.Seq, shortid.One(m.Session().ID()), term.Line(dir))
			})
		},
	}
}
