package cli

import (
	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
)

func (c *cli) branchCommand() *cobra.Command {
	var o coppice.BranchOptions
	var root bool
	cmd := &cobra.Command{
		Use:   "branch SESSION ENTRY",
		Short: "Continue at an earlier entry, on a branch",
		Long: `Move the head to ENTRY in a new commit: the next entry becomes a child of ENTRY. The agent's state
becomes the one that it had there. The other branches stay as they are. With --root instead of ENTRY
the next entry becomes a new root.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if root == (len(args) == 2) {
				return usageError("use either ENTRY or --root")
			}
			entry := append(args, "")[1]
			return c.moveHead(cmd, args[0], func(s *coppice.Session) (coppice.Receipt, error) {
				return s.Branch(cmd.Context(), entry, &o)
			})
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", "",
		"name of the new branch; default: the name of the branch that ENTRY is on")
	cmd.Flags().StringVar(&o.Summary, "summary", "", "summary of the branch that is left; the model receives it")
	cmd.Flags().BoolVar(&root, "root", false, "continue at a new root instead of an entry")
	return cmd
}
