package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
)

func (c *cli) verifyCommand() *cobra.Command {
	return c.maintenanceCommand(&cobra.Command{
		Use:   "verify [SESSION]",
		Short: "Check the objects of a session, or of all, for damage",
		Long: `Check the objects of a session, or of all sessions, for damage. Nothing is changed. The exit code is 5 if
there is damage.

The quick form reads checkpoints, index objects, and segments that are not sealed yet, and compares names and
lengths of everything else. It finds what is missing or cut off. It does not read the bodies of sealed segments,
snapshots, images and imported files, so a flipped bit in one of these is found with --deep alone.

--deep reads every byte: the checksum of every object, every entry, every state, and every imported file.`,
		Args: cobra.MaximumNArgs(1),
	}, "deep", "read every byte, also of sealed segments, snapshots, images and imported files", (*countedStore).Verify,
		c.showVerified)
}

// showVerified reports what a check found, and what it did not read.
func (c *cli) showVerified(r coppice.Report, requests backend.IO, deep bool) error {
	out := api.VerifyOf(r, deep)
	out.IO = requests
	damaged := api.CountDamage(out.Problems)
	bad := &api.Failure{
		Code: "corrupt",
		Hint: "`coppice repair --dry-run SESSION` shows what can be repaired; intact data can still be read",
		Err:  fmt.Errorf("%s found", term.Count(damaged, "piece of damage", "pieces of damage")),
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
	read := "every byte read"
	if !deep {
		read = "bodies of sealed segments, snapshots, images and imported files not read: " +
			"`coppice verify --deep` reads them"
	}
	return c.textf("%s, %s, %s read: no damage found%s; %s", term.Count(out.Sessions, "session", "sessions"),
		term.Count(out.Objects, "object", "objects"), term.Size(out.Bytes), notes, read)
}
