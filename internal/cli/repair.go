package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/cli/term"
)

func (c *cli) repairCommand() *cobra.Command {
	return c.maintenanceCommand(&cobra.Command{
		Use:   "repair [SESSION]",
		Short: "Repair a damaged session, or all of them; nothing is deleted",
		Long: `Repair a damaged session, or every session of the store that is damaged. Bytes are recovered from
wherever they still are: other segments, the checkpoint, snapshots, and the imported file. Damaged bytes are moved to
torn/, and none are deleted. What is nowhere else is recorded as lost: an entry of the type coppice.lost takes its
place, and verify lists it as a note from then on.

Repair reads all of its result, as verify --deep does. The exit code is 5 if damage is left that it cannot repair.`,
		Args: cobra.MaximumNArgs(1),
	}, "dry-run", "only report what would be repaired", (*countedStore).Repair, c.showRepaired)
}

// showRepaired reports what a repair did, and what it recorded as lost.
func (c *cli) showRepaired(r coppice.Report, requests backend.IO, dry bool) error {
	out := api.RepairOf(r, dry)
	out.IO = requests
	repaired, lost, refused, left := 0, 0, 0, api.CountDamage(out.Problems)
	for _, p := range out.Problems {
		switch p.Kind {
		case string(check.Refused):
			refused++
		case string(check.Rebuilt), string(check.Salvaged):
			repaired++
		case string(check.Lost):
			lost++
		}
	}
	would := ""
	if dry { // what it found is what it would repair
		would, repaired, left = "would be ", repaired+left-refused, refused
	}
	var did []string
	if repaired > 0 {
		did = append(did, term.Count(repaired, "problem", "problems")+" "+would+"repaired")
	}
	if lost > 0 {
		did = append(did, term.Count(lost, "loss", "losses")+" "+would+"recorded")
	}
	switch {
	case repaired+lost+left == 0:
		did = []string{"nothing to repair"}
	case !dry:
		did = append(did, term.Size(out.Bytes)+" written")
	}
	if err := c.showChanges(out, strings.Join(did, ", ")); err != nil || left == 0 {
		return err
	}
	bad := &api.Failure{
		Code: "corrupt", Hint: "what is intact can still be read, and `coppice export` writes it to a file",
		Err: fmt.Errorf("%s could not be repaired", term.Count(left, "piece of damage", "pieces of damage")),
	}
	if c.json {
		return reported(bad)
	}
	return bad
}
