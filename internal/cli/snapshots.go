package cli

import (
	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/snapshot"
)

func (c *cli) snapshotsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "snapshots SESSION",
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
