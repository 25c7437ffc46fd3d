package cli

import (
	"context"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
)

func (c *cli) createCommand() *cobra.Command {
	var o coppice.SessionOptions
	var id string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create an empty session and print its id",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.create(cmd.Context(), id, o) },
	}
	cmd.Flags().StringVar(&o.Title, "title", "", "title of the session")
	cmd.Flags().StringVar(&o.Cwd, "cwd", "", "working directory of the session; default: the current one")
	cmd.Flags().StringVar(&o.Parent, "parent", "", "id of the session that starts this one")
	cmd.Flags().StringVar(&o.Relation, "relation", "", "what it is to its parent: agent, or a word of your own")
	cmd.Flags().StringToStringVar(&o.Meta, "meta", nil, "metadata: KEY=VALUE,..., at most 4 KiB")
	cmd.Flags().StringVar(&id, "session", "", "id of the session; default: a new id")
	return cmd
}

func (c *cli) create(ctx context.Context, id string, o coppice.SessionOptions) error {
	var err error
	if o.Cwd, err = directory(o.Cwd); err != nil {
		return err
	}
	return c.withStore(ctx, func(st *countedStore) error {
		s, err := st.Create(id, &o)
		if err != nil {
			return err
		}
		if _, err := s.Commit(ctx, coppice.Turn{Reason: "create"}); err != nil {
			return err
		}
		if c.json {
			return c.endSession(s, c.writeJSON(api.Created{Session: s.ID()}))
		}
		return c.endSession(s, c.textf("%s", st.short(ctx, s.ID())))
	})
}
