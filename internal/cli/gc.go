package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
)

func (c *cli) gcCommand() *cobra.Command {
	return c.maintenanceCommand(&cobra.Command{
		Use:   "gc [SESSION]",
		Short: "Remove objects that nothing can refer to any more",
		Args:  cobra.MaximumNArgs(1),
	}, "dry-run", "only say what would go", (*countedStore).GC, func(out report, dry bool) error {
		verb := "removed"
		if dry {
			verb = "would remove"
		}
		return c.showChanges(out, dry, fmt.Sprintf("%s looked at: %s %s, %s",
			term.Count(out.Sessions, "session", "sessions"), verb,
			term.Count(*out.Removed, "object", "objects"), term.Size(out.Bytes)))
	})
}
