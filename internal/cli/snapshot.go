package cli

import (
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
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

func (c *cli) snapshotCommand() *cobra.Command {
	var tag string
	cmd := &cobra.Command{
		Use:   "snapshot SESSION",
		Short: "Keep the state of the last commit as an object of its own",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSession(cmd.Context(), args[0], nil, func(_ *countedStore, s *coppice.Session) error {
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
	if c.json {
		return c.writeJSON(map[string]any{"snapshots": snapshotsOut(list)})
	}
	return c.snapshotText(list)
}

func (c *cli) snapshotText(list []snapshot.Info) error {
	rows := make([][]term.Cell, len(list))
	for i, s := range list {
		rows[i] = []term.Cell{
			{Text: itoa(s.Seq), Style: term.Yellow},
			{Text: s.ID, Style: term.Dim},
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
