package look

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/transcript"
)

// Diff is `coppice diff`.
func Diff(a *program.App) *cobra.Command {
	c := &cli{a}
	return &cobra.Command{
		Use:               "diff SESSION A B",
		Short:             "What lies between two TARGETs: messages and state",
		Example:           "  coppice diff 019a seq:12 head",
		Args:              cobra.ExactArgs(3),
		ValidArgsFunction: program.Complete(c.SessionIDs, c.Places(true), c.Places(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.diff(cmd.Context(), args[0], args[1], args[2])
		},
	}
}

// diffOut is the JSON of diff.
type diffOut struct {
	Base     *string         `json:"base"`
	Messages diffMessages    `json:"messages"`
	State    json.RawMessage `json:"state"`
}

type diffMessages struct {
	OnlyA []json.RawMessage `json:"onlyA"`
	OnlyB []json.RawMessage `json:"onlyB"`
}

func lines(entries []transcript.Entry) []json.RawMessage {
	out := make([]json.RawMessage, len(entries))
	for i, e := range entries {
		out[i] = e.Raw
	}
	return out
}

func (c *cli) diff(ctx context.Context, id, from, to string) error {
	a, err := program.ParseTarget(from)
	if err != nil {
		return err
	}
	b, err := program.ParseTarget(to)
	if err != nil {
		return err
	}
	return c.WithSession(ctx, id, program.Reading(), func(_ *program.Store, s *coppice.Session) error {
		va, err := s.At(ctx, a)
		if err != nil {
			return err
		}
		vb, err := s.At(ctx, b)
		if err != nil {
			return err
		}
		d, err := va.Diff(ctx, vb)
		if err != nil {
			return err
		}
		if c.JSON {
			return c.Emit(diffOut{program.OrNull(d.Base), diffMessages{lines(d.OnlyA), lines(d.OnlyB)}, d.State})
		}
		t, err := s.Tree(ctx)
		if err != nil {
			return err
		}
		return c.diffText(va, vb, d, term.ShortEntryIDs(t))
	})
}

func (c *cli) diffText(a, b *coppice.View, d checkpoint.Diff, short func(string) string) error {
	name := func(sign string, v *coppice.View) string {
		com := v.Commit()
		return sign + " seq " + program.Itoa(com.Seq) + "  " + term.Clock(com.Time) + "  " + term.Line(com.Reason) + ", branch " + term.Line(v.Document().Branch)
	}
	errs := []error{
		c.Text("%s", c.Out.Paint(term.Red, name("-", a))), c.Text("%s", c.Out.Paint(term.Green, name("+", b))),
	}
	base := "nothing"
	if d.Base != "" {
		base = "all up to " + short(d.Base)
	}
	if len(d.OnlyA)+len(d.OnlyB) == 0 {
		errs = append(errs, c.Text("\nmessages: the same"))
	} else {
		errs = append(errs, c.Text("\nmessages (in common: %s)", base),
			term.DiffEntries(c.Out, "-", d.OnlyA, short), term.DiffEntries(c.Out, "+", d.OnlyB, short))
	}
	if string(d.State) == "[]" {
		return errors.Join(append(errs, c.Text("\nstate: the same"))...)
	}
	return errors.Join(append(errs, c.Text("\nstate"), term.DiffState(c.Out, d.State, a.Document().State))...)
}
