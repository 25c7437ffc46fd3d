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
		Short: "Grow at an entry next, with the state of then",
		Long: `Grow at an entry next. The agent's state becomes what it was there; nothing of the other lines is lost.
With --root instead of ENTRY a new root comes next.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if root == (len(args) == 2) {
				return usageError("give either ENTRY or --root")
			}
			entry := append(args, "")[1]
			return c.moveHead(cmd, args[0], func(s *coppice.Session) (coppice.Receipt, error) {
				return s.Branch(cmd.Context(), entry, &o)
			})
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", "", "name of the new branch; default: that of the line it is on")
	cmd.Flags().StringVar(&o.Summary, "summary", "", "what the line that is left was about: the model sees it")
	cmd.Flags().BoolVar(&root, "root", false, "begin anew: a new root comes next")
	return cmd
}
