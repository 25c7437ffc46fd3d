package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// maintenance is the work of verify, repair and gc on one session, or on all for the id "". set is
// the command's flag.
type maintenance = func(st *countedStore, ctx context.Context, id string, set bool) (coppice.Report, error)

// maintenanceCommand completes a command that does maintenance and has one flag.
func (c *cli) maintenanceCommand(
	cmd *cobra.Command, flag, usage string, run maintenance, show func(r coppice.Report, io backend.IO, set bool) error,
) *cobra.Command {
	set := cmd.Flags().Bool(flag, false, usage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var r coppice.Report
		var requests backend.IO
		err := c.withStore(cmd.Context(), func(st *countedStore) (err error) {
			id := ""
			if len(args) > 0 {
				if id, err = st.resolve(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			r, err = run(st, cmd.Context(), id, *set)
			if err != nil && !c.json && id == "" { // what was done with other sessions
				return errors.Join(c.showFindings(api.RepairOf(r, false).Problems), err)
			}
			requests = st.io()
			return err
		})
		if err != nil {
			return err
		}
		return show(r, requests, *set)
	}
	return cmd
}

// showChanges reports what repair or gc did. text is the last line for people.
func (c *cli) showChanges(out api.Repair, text string) error {
	if c.json {
		return c.writeJSON(out)
	}
	if err := c.showFindings(out.Problems); err != nil {
		return err
	}
	return c.textf("%s", text)
}

// showFindings lists the findings: damage, and notes on what is intact.
func (c *cli) showFindings(list []api.Damage) error {
	for _, p := range list {
		where := p.Object
		if p.Offset > 0 {
			where += fmt.Sprintf(" at byte %d", p.Offset)
		}
		if where == "" {
			where = "session " + p.Session
		}
		style := term.Yellow
		if p.Damage {
			style = term.Red
		}
		kind := c.stdout.Paint(style, fmt.Sprintf("%-14s", p.Kind))
		if err := c.textf("%s  %s: %s", kind, where, p.Detail); err != nil {
			return err
		}
	}
	return nil
}
