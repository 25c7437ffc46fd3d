package cli

import (
	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) resetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reset SESSION",
		Short: "Start a new conversation in a session, at a new root",
		Long: `Start a new conversation in a session: the next entry becomes a new root, and the model's context is
empty. All entries stay in the tree; ` + "`coppice switch`" + ` returns to them.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withManager(ctx, args[0], func(m *manager.Manager) error {
				before := m.Session().Head()
				r, err := m.Reset(ctx)
				if err != nil {
					return err
				}
				if c.json {
					return c.writeJSON(api.MovedOf(r))
				}
				back, err := wayBack(ctx, m.Session(), before)
				if err != nil {
					return err
				}
				return c.movedText(r, before.Seq, back)
			})
		},
	}
}
