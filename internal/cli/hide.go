package cli

import (
	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
)

func (c *cli) hideCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hide SESSION ENTRY",
		Short: "Leave an entry out of contexts, trees and exports",
		Long: `Leave an entry out of contexts, trees and exports to other formats, on every branch, as a commit of its
own. What grows from it stays, and so does its line: earlier commits show it, tree --filter all lists
it, show --original prints it, and amend --restore shows it again.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.moveHead(cmd, args[0], func(s *coppice.Session) (coppice.Receipt, error) {
				return s.Hide(cmd.Context(), args[1])
			})
		},
	}
}
