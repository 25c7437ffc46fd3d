package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/internal/cli/term"
)

func (c *cli) gcCommand() *cobra.Command {
	return c.maintenanceCommand(&cobra.Command{
		Use:   "gc [SESSION]",
		Short: "Remove objects that are no longer referenced",
		Args:  cobra.MaximumNArgs(1),
	}, "dry-run", "only report what would be removed", collect(c), c.showCollected)
}

// collect returns the removal of what is not referenced any more, as an act of the audit log.
func collect(c *cli) maintenance {
	return func(st *countedStore, ctx context.Context, id string, dry bool) (r coppice.Report, err error) {
		if dry {
			return st.GC(ctx, id, true)
		}
		err = c.recorded(ctx, st, audit.Act{Act: "gc", Session: id}, func() ([]string, error) {
			r, err = st.GC(ctx, id, false)
			return nil, err
		})
		return r, err
	}
}

// showCollected reports what a removal of objects did.
func (c *cli) showCollected(r coppice.Report, requests backend.IO, dry bool) error {
	out := api.RepairOf(r, dry)
	out.IO = requests
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	return c.showChanges(out, fmt.Sprintf("%s checked: %s %s, %s", term.Count(out.Sessions, "session", "sessions"),
		verb, term.Count(out.Removed, "object", "objects"), term.Size(out.Bytes)))
}
