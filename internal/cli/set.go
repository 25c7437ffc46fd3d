package cli

import (
	"context"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/internal/shortid"
)

func (c *cli) setCommand() *cobra.Command {
	var title, cwd, hold string
	var meta map[string]string
	cmd := &cobra.Command{
		Use:        "set SESSION",
		SuggestFor: []string{"rename", "move", "title"},
		Short:      "Set the title, the working directory or the metadata of a session",
		Long: `Set the title, the working directory or the metadata of a session, in one commit; the history stays as it
is. An empty --title removes the title, an empty VALUE of --meta removes that KEY; other keys stay.

While a session has a --hold, nothing removes it or a part of it: neither delete, erase and prune, nor a
server with the same store. An empty --hold ends it.`,
		Example: "  coppice set 019c --title 'flaky test'\n  coppice set 019c --cwd . --meta ticket=42,reviewer=",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var change coppice.InfoChange
			if cmd.Flags().Changed("title") {
				change.Title = &title
			}
			if cmd.Flags().Changed("cwd") {
				dir, err := absolutePath(cwd)
				if err != nil {
					return err
				}
				change.Cwd = &dir
			}
			change.Meta = metaChange(meta)
			changes := change.Title != nil || change.Cwd != nil || change.Meta != nil
			holds := cmd.Flags().Changed("hold")
			switch {
			case holds && changes:
				return usageError("--hold goes with no other flag of this command")
			case holds:
				return c.hold(cmd.Context(), args[0], hold)
			case !changes:
				return usageError("use --title, --cwd, --meta or --hold")
			}
			return c.set(cmd.Context(), args[0], change)
		},
	}
	cmd.Flags().StringVar(&title, "title", "", "title of the session")
	cmd.Flags().StringVar(&cwd, "cwd", "", "directory in which the session is listed and continued")
	cmd.Flags().StringToStringVar(&meta, "meta", nil, "metadata: KEY=VALUE,..., at most 4 KiB")
	cmd.Flags().StringVar(&hold, "hold", "", "hold the session for this reason; empty ends the hold")
	return cmd
}

// hold holds a session; without a reason it ends the hold.
func (c *cli) hold(ctx context.Context, id, reason string) error {
	return c.withSession(ctx, id, nil, func(st *countedStore, s *coppice.Session) error {
		a, done := audit.Act{Act: "release", Session: s.ID()}, "released"
		if reason != "" {
			a.Act, done = "hold", "holds"
		}
		var r coppice.Receipt
		err := c.recorded(ctx, st, a, func() (_ []string, err error) {
			r, err = s.Hold(ctx, reason)
			return nil, err
		})
		if err != nil {
			return err
		}
		return c.reportCommit(r, "seq %d: %s %s", r.Seq, done, shortid.One(s.ID()))
	})
}

// metaChange returns the change of metadata that sets the values; an empty value removes its key.
func metaChange(values map[string]string) map[string]*string {
	if values == nil {
		return nil
	}
	change := make(map[string]*string, len(values))
	for key, value := range values {
		change[key] = nil
		if value != "" {
			change[key] = &value
		}
	}
	return change
}

func (c *cli) set(ctx context.Context, id string, change coppice.InfoChange) error {
	return c.withSession(ctx, id, nil, func(_ *countedStore, s *coppice.Session) error {
		before := s.Head().Seq
		r, err := s.SetInfo(ctx, change)
		switch {
		case err != nil:
			return err
		case r.Seq == before:
			return c.reportCommit(r, "%s has these values already", shortid.One(s.ID()))
		}
		return c.reportCommit(r, "seq %d: changed %s", r.Seq, shortid.One(s.ID()))
	})
}
