package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// report is the JSON of verify, repair and gc.
type report struct {
	Sessions int        `json:"sessions"`
	Objects  int        `json:"objects"`
	Removed  *int       `json:"removed,omitempty"`
	Bytes    int64      `json:"bytes"`
	Problems []finding  `json:"problems"`
	DryRun   bool       `json:"dryRun,omitempty"`
	Deep     *bool      `json:"deep,omitempty"` // of verify: every byte was read
	IO       backend.IO `json:"io"`
}

// finding is a problem, or a note on something intact.
type finding struct {
	Session string `json:"session,omitempty"`
	Object  string `json:"object"`
	Offset  int64  `json:"offset"`
	Kind    string `json:"kind"`
	Detail  string `json:"detail"`
	Damage  bool   `json:"damage"`
	Hint    string `json:"hint,omitempty"`
}

func findingOf(p *coppice.Error) finding {
	out := finding{
		Session: p.Session, Object: p.Object, Offset: p.Offset, Kind: "other", Detail: term.Line(p.Err.Error()),
		Damage: errors.Is(p, coppice.ErrCorrupt),
	}
	if found, ok := errors.AsType[*check.Problem](p); ok {
		out.Kind, out.Detail = string(found.Kind), term.Line(found.Detail)
	}
	if out.Damage {
		out.Hint = "`coppice repair` recovers the intact data, which can still be read"
	}
	return out
}

// damaged returns the number of findings that mean a loss of data.
func (r report) damaged() int {
	n := 0
	for _, p := range r.Problems {
		if p.Damage {
			n++
		}
	}
	return n
}

func reportOf(r coppice.Report) report {
	out := report{Sessions: r.Sessions, Objects: r.Objects, Bytes: r.Bytes, Problems: []finding{}}
	for _, p := range r.Problems {
		out.Problems = append(out.Problems, findingOf(p))
	}
	return out
}

// maintenance is the work of verify, repair and gc on one session, or on all for the id "". set is
// the command's flag.
type maintenance = func(st *countedStore, ctx context.Context, id string, set bool) (coppice.Report, error)

// maintenanceCommand completes a command that does maintenance and has one flag.
func (c *cli) maintenanceCommand(
	cmd *cobra.Command, flag, usage string, run maintenance, show func(out report, set bool) error,
) *cobra.Command {
	set := cmd.Flags().Bool(flag, false, usage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var out report
		err := c.withStore(cmd.Context(), func(st *countedStore) (err error) {
			id := ""
			if len(args) > 0 {
				if id, err = st.resolve(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			r, err := run(st, cmd.Context(), id, *set)
			if err != nil && !c.json && id == "" { // what was done with other sessions
				return errors.Join(c.showFindings(reportOf(r).Problems), err)
			}
			if err != nil {
				return err
			}
			out = reportOf(r)
			out.Removed, out.IO = &r.Removed, st.io()
			return nil
		})
		if err != nil {
			return err
		}
		return show(out, *set)
	}
	return cmd
}

// showChanges reports what repair or gc did. text is the last line for people.
func (c *cli) showChanges(out report, dry bool, text string) error {
	if out.DryRun = dry; c.json {
		return c.writeJSON(out)
	}
	if err := c.showFindings(out.Problems); err != nil {
		return err
	}
	return c.textf("%s", text)
}

// showFindings lists the findings: damage, and notes on what is intact.
func (c *cli) showFindings(list []finding) error {
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
