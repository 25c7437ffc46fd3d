package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
)

func (c *cli) verifyCommand() *cobra.Command {
	return c.maintenanceCommand(&cobra.Command{
		Use:   "verify [SESSION]",
		Short: "Check the objects of a session, or of all, for damage",
		Long: `Check that every object that a session refers to exists and has the right length and checksums. With
--deep every body is read too. Nothing is changed. The exit code is 5 if there is damage.`,
		Args: cobra.MaximumNArgs(1),
	}, "deep", "also read every body", (*countedStore).Verify, func(out report, _ bool) error {
		out.Removed = nil
		return c.showVerified(out)
	})
}

// showVerified reports what a check found.
func (c *cli) showVerified(out report) error {
	damaged := out.damaged()
	bad := &failure{
		code: "corrupt",
		hint: "`coppice repair SESSION --dry-run` shows what can be repaired; intact data can still be read",
		err:  fmt.Errorf("%s found", term.Count(damaged, "piece of damage", "pieces of damage")),
	}
	if c.json {
		if err := c.writeJSON(out); err != nil || damaged == 0 {
			return err
		}
		return reported(bad)
	}
	if err := c.showFindings(out.Problems); err != nil {
		return err
	}
	if damaged > 0 {
		return bad
	}
	notes := ""
	if n := len(out.Problems); n > 0 {
		notes = ", " + term.Count(n, "note", "notes")
	}
	return c.textf("%s, %s, %s read: no damage%s", term.Count(out.Sessions, "session", "sessions"),
		term.Count(out.Objects, "object", "objects"), term.Size(out.Bytes), notes)
}
