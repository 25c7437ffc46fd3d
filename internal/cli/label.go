package cli

import (
	"context"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) labelCommand() *cobra.Command {
	return &cobra.Command{
		Use:        "label SESSION [ENTRY [TEXT]]",
		SuggestFor: []string{"labels"},
		Short:      "List the labels of a session, or set that of an entry; without TEXT remove it",
		Args:       cobra.RangeArgs(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return c.labels(cmd.Context(), args[0])
			}
			text := append(args, "")[2]
			return c.moveHead(cmd, args[0], func(s *coppice.Session) (coppice.Receipt, error) {
				if t, err := s.Tree(cmd.Context()); err == nil {
					if at, err := t.Ordinal(args[1]); err == nil && t.NodeAt(at).Label == text {
						return coppice.Receipt{Head: s.Head()}, nil
					}
				}
				return s.Label(cmd.Context(), args[1], text)
			})
		},
	}
}

// labels lists the labels of a session and when they were set.
func (c *cli) labels(ctx context.Context, id string) error {
	return c.withSession(ctx, id, readOnly(), func(_ *countedStore, s *coppice.Session) error {
		list, err := manager.Labels(ctx, s)
		if err != nil {
			return err
		}
		out := api.LabelsOf(list)
		if c.json {
			return c.writeJSON(map[string]any{"labels": out})
		}
		entries := make([]string, len(out))
		for i, l := range out {
			entries[i] = l.Entry
		}
		ids := shortid.Of(entries, shortid.Alone)
		for _, l := range out {
			at := l.Time.Format("2006-01-02 15:04:05")
			if err := c.textf("%s  %-*s  %s",
				at, ids.Width(), term.Line(ids.Short(l.Entry)), term.Line(l.Label)); err != nil {
				return err
			}
		}
		return nil
	})
}
