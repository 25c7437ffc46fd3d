package cli

import (
	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) renameCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "rename SESSION [TITLE]",
		Aliases: []string{"title"},
		Short:   "Set the title of a session; without TITLE remove it",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			title := append(args, "")[1]
			return c.withManager(cmd.Context(), args[0], func(m *manager.Manager) error {
				r, err := m.Rename(cmd.Context(), title)
				if err != nil {
					return err
				}
				if title == "" {
					return c.reportCommit(r, "seq %d: removed the title of %s", r.Seq, shortid.One(m.Session().ID()))
				}
				return c.reportCommit(r, "seq %d: renamed %s to %s", r.Seq, shortid.One(m.Session().ID()),
					term.Line(title))
			})
		},
	}
}
