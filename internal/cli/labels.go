package cli

import (
	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) labelsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "labels SESSION",
		Short: "List the labels of a session and when they were set",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSession(cmd.Context(), args[0], readOnly(), func(_ *countedStore, s *coppice.Session) error {
				list, err := manager.Labels(cmd.Context(), s)
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
				ids := shortid.Of(entries, shortid.Least)
				for _, l := range out {
					at := l.Time.Format("2006-01-02 15:04:05")
					if err := c.textf("%s  %-*s  %s",
						at, ids.Width(), term.Line(ids.Short(l.Entry)), term.Line(l.Label)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}
