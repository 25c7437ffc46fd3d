package change

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/snapshot"
)

// snapshotOut is a snapshot as the JSON shows it.
type snapshotOut struct {
	ID     string    `json:"id"`
	Seq    uint64    `json:"seq"`
	Tag    string    `json:"tag"`
	Time   time.Time `json:"time"`
	Bytes  int64     `json:"bytes"`
	Reason string    `json:"reason"`
	Commit string    `json:"commit"`
	Only   bool      `json:"only,omitempty"`
}

func snapshotsOut(list []snapshot.Info) []snapshotOut {
	out := make([]snapshotOut, len(list))
	for i, s := range list {
		out[i] = snapshotOut{s.ID, s.Seq, s.Tag, s.Time, s.Bytes, s.Reason, s.Commit, s.Only}
	}
	return out
}

// Snapshot is `coppice snapshot`.
func Snapshot(a *program.App) *cobra.Command {
	c := &cli{a}
	var tag string
	cmd := &cobra.Command{
		Use:               "snapshot SESSION",
		Short:             "Keep the state of the last commit as an object of its own",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithSession(cmd.Context(), args[0], nil, func(_ *program.Store, s *coppice.Session) error {
				info, err := s.Snapshot(cmd.Context(), tag)
				if err != nil {
					return err
				}
				return c.snapshots([]snapshot.Info{info})
			})
		},
	}
	cmd.Flags().StringVar(&tag, "tag", "", "a name by which rollback finds it")
	return cmd
}

func (c *cli) snapshots(list []snapshot.Info) error {
	if c.JSON {
		return c.Emit(map[string]any{"snapshots": snapshotsOut(list)})
	}
	return c.snapshotText(list)
}

func (c *cli) snapshotText(list []snapshot.Info) error {
	rows := make([][]term.Cell, len(list))
	for i, s := range list {
		rows[i] = []term.Cell{
			{Text: program.Itoa(s.Seq), Style: term.Yellow},
			{Text: s.ID, Style: term.Dim},
			{Text: term.Line(s.Tag), Style: term.Green},
			{Text: term.Clock(s.Time)},
			{Text: term.Size(s.Bytes)},
			{Text: term.Line(s.Reason)},
		}
	}
	return c.Out.Table([]term.Column{
		{Head: "SEQ", Right: true}, {Head: "SNAPSHOT"}, {Head: "TAG", Flex: true}, {Head: "TIME"}, {Head: "SIZE", Right: true}, {Head: "REASON"},
	}, rows)
}

// Snapshots is `coppice snapshots`.
func Snapshots(a *program.App) *cobra.Command {
	c := &cli{a}
	return &cobra.Command{
		Use:               "snapshots SESSION",
		Short:             "List the snapshots, newest first",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithSession(cmd.Context(), args[0], program.Reading(), func(_ *program.Store, s *coppice.Session) error {
				list, err := snapshotsOf(cmd, s)
				if err != nil {
					return err
				}
				if len(list) == 0 && !c.JSON {
					return c.Text("no snapshots; every commit can be restored all the same, see `coppice log`")
				}
				return c.snapshots(list)
			})
		},
	}
}

func snapshotsOf(cmd *cobra.Command, s *coppice.Session) ([]snapshot.Info, error) {
	var list []snapshot.Info
	for info, err := range s.Snapshots(cmd.Context()) {
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

// Prune is `coppice prune`.
func Prune(a *program.App) *cobra.Command {
	c := &cli{a}
	var keep snapshot.Retention
	cmd := &cobra.Command{
		Use:   "prune SESSION --keep-last N ...",
		Short: "Remove snapshots that no rule keeps",
		Long: `Remove snapshots that no rule keeps. A snapshot stays if any rule keeps it; days and weeks are those of UTC.
Commits stay: each can be restored with or without a snapshot.`,
		Example:           "  coppice prune 019a --keep-last 10 --keep-daily 7 --keep-tag '*' --dry-run",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.prune(cmd, args[0], keep) },
	}
	cmd.Flags().IntVar(&keep.Last, "keep-last", 0, "keep the newest N; -1 = all")
	cmd.Flags().IntVar(&keep.Daily, "keep-daily", 0, "of the newest N days that have one keep the newest")
	cmd.Flags().IntVar(&keep.Weekly, "keep-weekly", 0, "of the newest N weeks that have one keep the newest")
	cmd.Flags().StringArrayVar(&keep.Tags, "keep-tag", nil, "keep those with this tag; '*' = any tag; may be repeated")
	cmd.Flags().BoolVar(&keep.DryRun, "dry-run", false, "only say what would go")
	return cmd
}

func (c *cli) prune(cmd *cobra.Command, id string, keep snapshot.Retention) error {
	if keep.Last == 0 && keep.Daily == 0 && keep.Weekly == 0 && len(keep.Tags) == 0 {
		return program.Usage("say what to keep: --keep-last, --keep-daily, --keep-weekly, --keep-tag")
	}
	return c.WithSession(cmd.Context(), id, nil, func(_ *program.Store, s *coppice.Session) error {
		list, err := snapshotsOf(cmd, s)
		if err != nil {
			return err
		}
		removed, err := s.Prune(cmd.Context(), keep)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(list, func(i snapshot.Info) bool {
			return slices.ContainsFunc(removed, func(r snapshot.Info) bool { return r.ID == i.ID })
		})
		if c.JSON {
			return c.Emit(map[string]any{
				"snapshots": snapshotsOut(left), "removed": snapshotsOut(removed), "dryRun": keep.DryRun,
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
		return c.Text("%s %s, %s left", verb, term.Count(len(removed), "snapshot", "snapshots"), strings.TrimSuffix(term.Count(len(left), "", ""), " "))
	})
}
