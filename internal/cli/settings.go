package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
)

func (c *cli) settingsCommand() *cobra.Command {
	var to, profile string
	cmd := &cobra.Command{
		Use:   "settings SESSION",
		Short: "Print the settings of a session: models, thinking, mode, service tier",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			p, err := profileOf(profile)
			if err != nil {
				return err
			}
			return c.withSession(ctx, args[0], readOnly(), func(_ *countedStore, s *coppice.Session) error {
				at, err := api.Leaf(ctx, s, to)
				if err != nil {
					return err
				}
				out, err := api.SettingsAt(ctx, s, at, p)
				if err != nil {
					return err
				}
				return c.settings(out)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "entry or branch whose settings are printed; default: the head")
	cmd.Flags().StringVar(&profile, "profile", "", "rules to apply: coppice, pi, omp, atomic, operator")
	completeFlag(cmd, "profile", "coppice", "pi", "omp", "atomic", "operator")
	return cmd
}

func (c *cli) settings(out api.Settings) error {
	if c.json {
		return c.writeJSON(out)
	}
	rows := [][2]string{
		{"thinking", out.ThinkingLevel}, {"mode", out.Mode}, {"tier", out.ServiceTier}, {"title", out.Title},
	}
	for _, role := range slices.Sorted(maps.Keys(out.Models)) {
		rows = append(rows, [2]string{"model", role + "  " + out.Models[role]})
	}
	for _, r := range rows {
		if r[1] == "" {
			continue
		}
		if err := c.textf("%-9s %s", r[0], term.Line(r[1])); err != nil {
			return err
		}
	}
	return nil
}
