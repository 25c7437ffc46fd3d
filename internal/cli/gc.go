package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
)

func (c *cli) gcCommand() *cobra.Command {
	return c.maintenanceCommand(&cobra.Command{
		Use:   "gc [SESSION]",
		Short: "Remove objects that are no longer referenced",
		Args:  cobra.MaximumNArgs(1),
	}, "dry-run", "only report what would be removed", (*countedStore).GC, func(out report, dry bool) error {
		verb := "removed"
		if dry {
			verb = "would remove"
		}
		return c.showChanges(out, dry, fmt.Sprintf("%s checked: %s %s, %s",
			term.Count(out.Sessions, "session", "sessions"), verb,
			term.Count(*out.Removed, "object", "objects"), term.Size(out.Bytes)))
	})
}
