package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
)

func (c *cli) diffCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "diff SESSION A B",
		Short:   "Compare the messages and the state of two TARGETs",
		Example: "  coppice diff 019a seq:12 head",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.diff(cmd.Context(), args[0], args[1], args[2])
		},
	}
}

func (c *cli) diff(ctx context.Context, id, from, to string) error {
	a, err := parseTarget(from)
	if err != nil {
		return err
	}
	b, err := parseTarget(to)
	if err != nil {
		return err
	}
	return c.withSession(ctx, id, readOnly(), func(_ *countedStore, s *coppice.Session) error {
		va, err := at(ctx, s, a)
		if err != nil {
			return err
		}
		vb, err := at(ctx, s, b)
		if err != nil {
			return err
		}
		d, err := va.Diff(ctx, vb)
		if err != nil {
			return err
		}
		if c.json {
			return c.writeJSON(api.DiffOf(d))
		}
		t, err := s.Tree(ctx)
		if err != nil {
			return err
		}
		return c.diffText(va, vb, d, term.EntryIDs(t).Short)
	})
}

func (c *cli) diffText(a, b *coppice.View, d checkpoint.Diff, short func(string) string) error {
	name := func(sign string, v *coppice.View) string {
		com := v.Commit()
		return fmt.Sprintf("%s seq %d  %s  %s, branch %s",
			sign, com.Seq, term.Clock(com.Time), term.Line(com.Reason), term.Line(v.Document().Branch))
	}
	errs := []error{
		c.textf("%s", c.stdout.Paint(term.Red, name("-", a))), c.textf("%s", c.stdout.Paint(term.Green, name("+", b))),
	}
	width := 0
	for _, e := range slices.Concat(d.OnlyA, d.OnlyB) {
		width = max(width, len(short(e.ID)))
	}
	base := "nothing"
	if d.Base != "" {
		base = "all up to " + short(d.Base)
	}
	if len(d.OnlyA)+len(d.OnlyB) == 0 {
		errs = append(errs, c.textf("\nmessages: the same"))
	} else {
		errs = append(errs, c.textf("\nmessages (in common: %s)", base),
			term.DiffEntries(c.stdout, "-", d.OnlyA, short, width),
			term.DiffEntries(c.stdout, "+", d.OnlyB, short, width))
	}
	if string(d.State) == "[]" {
		return errors.Join(append(errs, c.textf("\nstate: the same"))...)
	}
	return errors.Join(append(errs, c.textf("\nstate"), term.DiffState(c.stdout, d.State, a.Document().State))...)
}
