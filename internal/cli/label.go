package cli

import (
	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
)

func (c *cli) labelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "label SESSION ENTRY [TEXT]",
		Short: "Set the label of an entry; without TEXT remove it",
		Args:  cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := append(args, "")[2]
			return c.moveHead(cmd, args[0], func(s *coppice.Session) (coppice.Receipt, error) {
				return s.Label(cmd.Context(), args[1], text)
			})
		},
	}
}
