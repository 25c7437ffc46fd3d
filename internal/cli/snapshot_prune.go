package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/snapshot"
)

func (c *cli) snapshotPrune() *cobra.Command {
	var keep snapshot.Retention
	cmd := &cobra.Command{
		Use:   "prune SESSION --keep-last N ...",
		Short: "Remove snapshots that no rule keeps",
		Long: `Remove snapshots that no rule keeps. A snapshot stays if any rule keeps it; days and weeks are in UTC.
Commits stay: each can be restored with or without a snapshot.`,
		Example: "  coppice snapshot prune 019a --keep-last 10 --keep-daily 7 --keep-tag '*' --dry-run",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.prune(cmd, args[0], keep) },
	}
	keepSnapshots(cmd.Flags(), "keep-", &keep)
	cmd.Flags().BoolVar(&keep.DryRun, "dry-run", false, "only report what would be removed")
	return cmd
}

// keepSnapshots defines the flags of a retention of snapshots.
func keepSnapshots(f *pflag.FlagSet, prefix string, keep *snapshot.Retention) {
	f.IntVar(&keep.Last, prefix+"last", 0, "keep the newest N; -1 = all")
	f.IntVar(&keep.Daily, prefix+"daily", 0, "keep the newest of each of the last N days that have one")
	f.IntVar(&keep.Weekly, prefix+"weekly", 0, "keep the newest of each of the last N weeks that have one")
	f.StringArrayVar(&keep.Tags, prefix+"tag", nil, "keep snapshots with this tag; '*' = any tag; may be repeated")
}

func (c *cli) prune(cmd *cobra.Command, id string, keep snapshot.Retention) error {
	if keep.Last == 0 && keep.Daily == 0 && keep.Weekly == 0 && len(keep.Tags) == 0 {
		return usageError("name what to keep: --keep-last, --keep-daily, --keep-weekly or --keep-tag")
	}
	return c.withSession(cmd.Context(), id, nil, func(st *countedStore, s *coppice.Session) error {
		list, err := snapshotsOf(cmd, s)
		if err != nil {
			return err
		}
		var removed []snapshot.Info
		prune := func() (ids []string, err error) {
			removed, err = s.Prune(cmd.Context(), keep)
			for _, i := range removed {
				ids = append(ids, i.ID)
			}
			return ids, err
		}
		if keep.DryRun {
			_, err = prune()
		} else {
			err = c.recorded(cmd.Context(), st, audit.Act{Act: "prune", Session: s.ID()}, prune)
		}
		if err != nil {
			return err
		}
		among := func(in []snapshot.Info, i snapshot.Info) bool {
			return slices.ContainsFunc(in, func(r snapshot.Info) bool { return r.ID == i.ID })
		}
		_, unkept := keep.Select(list)
		left := slices.DeleteFunc(list, func(i snapshot.Info) bool { return among(removed, i) })
		for i := range left { // no rule keeps it, and it stays
			left[i].Only = among(unkept, left[i])
		}
		if c.json {
			return c.writeJSON(map[string]any{
				"snapshots": api.SnapshotsOf(left), "removed": api.SnapshotsOf(removed), "dryRun": keep.DryRun,
			})
		}
		verb := "removed"
		if keep.DryRun {
			verb = "would remove"
		}
		if len(removed) > 0 {
			if err := c.snapshotText(removed); err != nil {
				return err
			}
		}
		count := term.Count(len(removed), "snapshot", "snapshots")
		if n := len(unkept) - len(removed); n > 0 {
			kept := term.Count(n, "snapshot", "snapshots")
			if err := c.textf("kept: %s, because after damage no other copy of the state exists", kept); err != nil {
				return err
			}
		}
		return c.textf("%s %s, %s left", verb, count, term.Number(uint64(len(left))))
	})
}
