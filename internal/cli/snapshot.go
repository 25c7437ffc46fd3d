package cli

import (
	"slices"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/snapshot"
)

func (c *cli) snapshotCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "snapshot",
		SuggestFor: []string{"snapshots", "prune"},
		Short:      "Create, list and prune the snapshots of a session",
		Args:       cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("name a subcommand: coppice snapshot create, list or prune")
		},
	}
	cmd.AddCommand(c.snapshotCreate(), c.snapshotList(), c.snapshotPrune())
	return cmd
}

func (c *cli) snapshotCreate() *cobra.Command {
	var tag string
	cmd := &cobra.Command{
		Use:   "create SESSION [TAG]",
		Short: "Store the state of the last commit as a snapshot, which a TAG names once",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				if tag != "" && tag != args[1] {
					return usageError("give the tag once: as TAG or with --tag")
				}
				tag = args[1]
			}
			return c.withSession(cmd.Context(), args[0], nil, func(_ *countedStore, s *coppice.Session) error {
				list, err := snapshotsOf(cmd, s)
				if err != nil {
					return err
				}
				have := func(i snapshot.Info) bool { return i.Tag == tag && i.Commit == s.Head().Commit }
				if i := slices.IndexFunc(list, have); i >= 0 && tag != "" {
					return c.snapshots(list[i : i+1])
				}
				info, err := s.Snapshot(cmd.Context(), tag)
				if err != nil {
					return err
				}
				return c.snapshots([]snapshot.Info{info})
			})
		},
	}
	cmd.Flags().StringVar(&tag, "tag", "", "name of the snapshot, for TARGET tag:NAME")
	return cmd
}

func (c *cli) snapshots(list []snapshot.Info) error {
	if c.json {
		return c.writeJSON(map[string]any{"snapshots": api.SnapshotsOf(list)})
	}
	return c.snapshotText(list)
}

// snapshotID is the least length of a snapshot's id: it begins with the 20 digits of its seq.
const snapshotID = 20

func (c *cli) snapshotText(list []snapshot.Info) error {
	rows := make([][]term.Cell, len(list))
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.ID
	}
	ids := shortid.Of(names, snapshotID)
	for i, s := range list {
		rows[i] = []term.Cell{
			{Text: itoa(s.Seq), Style: term.Yellow},
			{Text: ids.Short(s.ID), Style: term.Dim},
			{Text: term.Line(s.Tag), Style: term.Green},
			{Text: term.Clock(s.Time)},
			{Text: term.Size(s.Bytes)},
			{Text: term.Line(s.Reason)},
		}
	}
	return c.stdout.Table([]term.Column{
		{Head: "SEQ", Right: true},
		{Head: "SNAPSHOT"},
		{Head: "TAG", Flex: true},
		{Head: "TIME"},
		{Head: "SIZE", Right: true},
		{Head: "REASON"},
	}, rows)
}

func (c *cli) snapshotList() *cobra.Command {
	return &cobra.Command{
		Use:   "list SESSION",
		Short: "List the snapshots of a session, newest first",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSession(cmd.Context(), args[0], readOnly(), func(_ *countedStore, s *coppice.Session) error {
				list, err := snapshotsOf(cmd, s)
				if err != nil {
					return err
				}
				if len(list) == 0 && !c.json {
					return c.textf("no snapshots; every commit can be restored without one, see `coppice log`")
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
