package upkeep

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// report is the JSON of verify, repair and gc.
type report struct {
	Sessions int        `json:"sessions"`
	Objects  int        `json:"objects"`
	Removed  *int       `json:"removed,omitempty"`
	Bytes    int64      `json:"bytes"`
	Problems []problem  `json:"problems"`
	DryRun   bool       `json:"dryRun,omitempty"`
	IO       backend.IO `json:"io"`
}

type problem struct {
	Session string `json:"session,omitempty"`
	Object  string `json:"object"`
	Offset  int64  `json:"offset"`
	Kind    string `json:"kind"`
	Detail  string `json:"detail"`
	Damage  bool   `json:"damage"`
	Hint    string `json:"hint,omitempty"`
}

func problemOf(p *coppice.Error) problem {
	out := problem{
		Session: p.Session, Object: p.Object, Offset: p.Offset, Kind: "other", Detail: term.Line(p.Err.Error()),
		Damage: errors.Is(p, coppice.ErrCorrupt),
	}
	if found, ok := errors.AsType[*check.Problem](p); ok {
		out.Kind, out.Detail = string(found.Kind), term.Line(found.Detail)
	}
	if out.Damage {
		out.Hint = "`coppice repair` salvages what is intact, which can still be read"
	}
	return out
}

// damaged counts the problems that mean that something is lost.
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
	out := report{Sessions: r.Sessions, Objects: r.Objects, Bytes: r.Bytes, Problems: []problem{}}
	for _, p := range r.Problems {
		out.Problems = append(out.Problems, problemOf(p))
	}
	return out
}

// maintain runs one of the three on a session, or on all.
func (c *cli) maintain(ctx context.Context, args []string, do func(st *program.Store, id string) (coppice.Report, error)) (report, error) {
	var out report
	err := c.WithStore(ctx, func(st *program.Store) error {
		id := ""
		if len(args) > 0 {
			var err error
			if id, err = st.Resolve(ctx, args[0]); err != nil {
				return err
			}
		}
		r, err := do(st, id)
		if err != nil {
			return err
		}
		out = reportOf(r)
		removed := r.Removed
		out.Removed, out.IO = &removed, st.IO()
		return nil
	})
	return out, err
}

// problems lists what was found: damage, and notes on what is healthy.
func (c *cli) problems(list []problem) error {
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
		if err := c.Text("%s  %s: %s", c.Out.Paint(style, fmt.Sprintf("%-14s", p.Kind)), where, p.Detail); err != nil {
			return err
		}
	}
	return nil
}

// Verify is `coppice verify`.
func Verify(a *program.App) *cobra.Command {
	c := &cli{a}
	var deep bool
	cmd := &cobra.Command{
		Use:   "verify [SESSION]",
		Short: "Check every checksum; change nothing",
		Long: `Check that everything the sessions name is there, with its length and its checksums. With --deep every body is
read too. Nothing is changed. Exit code 5 if something is wrong.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := c.maintain(cmd.Context(), args, func(st *program.Store, id string) (coppice.Report, error) {
				return st.Verify(cmd.Context(), id, deep)
			})
			if err != nil {
				return err
			}
			out.Removed = nil
			return c.verified(out)
		},
	}
	cmd.Flags().BoolVar(&deep, "deep", false, "read every body too")
	return cmd
}

// verified tells what a check found.
func (c *cli) verified(out report) error {
	damaged := out.damaged()
	bad := &program.Failure{
		Code: "corrupt", Hint: "`coppice repair SESSION --dry-run` says what can be done; what is intact can still be read",
		Err: fmt.Errorf("%s found", term.Count(damaged, "piece of damage", "pieces of damage")),
	}
	if c.JSON {
		if err := c.Emit(out); err != nil || damaged == 0 {
			return err
		}
		return program.Reported(bad)
	}
	if err := c.problems(out.Problems); err != nil {
		return err
	}
	if damaged > 0 {
		return bad
	}
	notes := ""
	if n := len(out.Problems); n > 0 {
		notes = ", " + term.Count(n, "note", "notes")
	}
	return c.Text("%s, %s, %s read: all is well%s", term.Count(out.Sessions, "session", "sessions"),
		term.Count(out.Objects, "object", "objects"), term.Size(out.Bytes), notes)
}

// Repair is `coppice repair`.
func Repair(a *program.App) *cobra.Command {
	c := &cli{a}
	cmd := c.mending((*program.Store).Repair, "only say what would be done", func(out report) error {
		if len(out.Problems) == 0 {
			return c.Text("nothing to repair")
		}
		found := term.Count(len(out.Problems), "problem", "problems")
		if out.DryRun {
			return c.Text("%s would be repaired", found)
		}
		return c.Text("%s repaired, %s written", found, term.Size(out.Bytes))
	})
	cmd.Use, cmd.Short, cmd.Args = "repair SESSION", "Salvage a damaged session; destroy nothing", cobra.ExactArgs(1)
	return cmd
}

// GC is `coppice gc`.
func GC(a *program.App) *cobra.Command {
	c := &cli{a}
	cmd := c.mending((*program.Store).GC, "only say what would go", func(out report) error {
		verb := "removed"
		if out.DryRun {
			verb = "would remove"
		}
		return c.Text("%s looked at: %s %s, %s", term.Count(out.Sessions, "session", "sessions"), verb,
			term.Count(*out.Removed, "object", "objects"), term.Size(out.Bytes))
	})
	cmd.Use, cmd.Short, cmd.Args = "gc [SESSION]", "Remove objects that nothing can refer to any more", cobra.MaximumNArgs(1)
	return cmd
}

// mending is a command that changes sessions, or says what it would change, and tells people so by say.
func (c *cli) mending(run func(st *program.Store, ctx context.Context, id string, dry bool) (coppice.Report, error), dryHelp string, say func(report) error) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := c.maintain(cmd.Context(), args, func(st *program.Store, id string) (coppice.Report, error) {
				return run(st, cmd.Context(), id, dry)
			})
			if err != nil {
				return err
			}
			if out.DryRun = dry; c.JSON {
				return c.Emit(out)
			}
			if err := c.problems(out.Problems); err != nil {
				return err
			}
			return say(out)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, dryHelp)
	return cmd
}

// Delete is `coppice delete`.
func Delete(a *program.App) *cobra.Command {
	c := &cli{a}
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete SESSION",
		Short: "Delete a session for good",
		Long: `Delete a session for good: all its branches, snapshots and images. Its id is never used again. On a terminal it
asks first.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.delete(cmd.Context(), args[0], yes) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (c *cli) delete(ctx context.Context, id string, yes bool) error {
	return c.WithStore(ctx, func(st *program.Store) error {
		full, err := st.Resolve(ctx, id)
		if err != nil {
			return err
		}
		if f, ok := c.In.(*os.File); ok && !yes && !c.JSON && term.IsTerminal(f) && c.Err.Terminal() {
			sure, err := c.confirm(ctx, fmt.Sprintf("delete session %s for good? [y/N] ", full))
			if err != nil {
				return err
			}
			if !sure {
				return errors.New("nothing was deleted")
			}
		}
		if err := st.Delete(ctx, full); err != nil {
			return err
		}
		if c.JSON {
			return c.Emit(map[string]any{"session": full, "deleted": true})
		}
		return c.Text("deleted %s", full)
	})
}

// confirm asks the person at the terminal.
func (c *cli) confirm(ctx context.Context, question string) (bool, error) {
	if _, err := fmt.Fprint(c.Err, question); err != nil {
		return false, err
	}
	answer := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(c.In).ReadString('\n')
		if err != nil {
			line = ""
		}
		answer <- line
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case a := <-answer:
		a = strings.ToLower(strings.TrimSpace(a))
		return a == "y" || a == "yes", nil
	}
}
