package cli

import (
	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
)

func (c *cli) switchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "switch SESSION ENTRY|BRANCH",
		Short: "Move the head to a branch, or to the newest leaf below an entry",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.moveHead(cmd, args[0], func(s *coppice.Session) (coppice.Receipt, error) {
				r, err := s.Switch(cmd.Context(), args[1])
				if t, bad := parseTarget(args[1]); err != nil && bad == nil {
					err = whatExists(cmd.Context(), s, t, err)
				}
				return r, err
			})
		},
	}
}
