package cli

import (
	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
)

func (c *cli) repairCommand() *cobra.Command {
	return c.maintenanceCommand(&cobra.Command{
		Use:   "repair SESSION",
		Short: "Repair a damaged session; nothing is deleted",
		Args:  cobra.ExactArgs(1),
	}, "dry-run", "only report what would be repaired", (*countedStore).Repair, func(out report, dry bool) error {
		found := term.Count(len(out.Problems), "problem", "problems")
		switch {
		case len(out.Problems) == 0:
			return c.showChanges(out, dry, "nothing to repair")
		case dry:
			return c.showChanges(out, dry, found+" would be repaired")
		}
		return c.showChanges(out, dry, found+" repaired, "+term.Size(out.Bytes)+" written")
	})
}
