package cli

import (
	"context"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
)

func (c *cli) createCommand() *cobra.Command {
	var o coppice.SessionOptions
	var id string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create an empty session, at once",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.create(cmd.Context(), id, o) },
	}
	cmd.Flags().StringVar(&o.Title, "title", "", "what people know it by")
	cmd.Flags().StringVar(&o.Cwd, "cwd", "", "its working directory; default the present one")
	cmd.Flags().StringVar(&id, "session", "", "its id; default a new one")
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
			return c.writeJSON(map[string]string{"session": s.ID()})
		}
		return c.textf("%s", s.ID())
	})
}
