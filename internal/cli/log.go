package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
)

func (c *cli) logCommand() *cobra.Command {
	var from string
	var limit int
	cmd := &cobra.Command{
		Use:   "log SESSION",
		Short: "List the commits of a session, newest first",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.log(cmd.Context(), args[0], from, limit)
		},
	}
	cmd.Flags().StringVar(&from, "from", "head", "TARGET to start from")
	cmd.Flags().IntVar(&limit, "limit", 0, "maximum number of commits; 0 = all")
	return cmd
}

// logHead is what comes before the commits of a log.
type logHead struct {
	Missing uint64 `json:"missing,omitempty"` // the newest commit that was made and is lost; 0 = none is
}

func (c *cli) log(ctx context.Context, id, from string, limit int) error {
	t, err := parseTarget(from)
	if err != nil {
		return err
	}
	if limit < 0 {
		return usageError("--limit %d: want 0 or more", limit)
	}
	return c.withSession(ctx, id, pastDamage(), func(_ *countedStore, s *coppice.Session) error {
		out := c.arrayAfter(logHead{s.Info().Missing}, "commits")
		var list []checkpoint.Commit
		n := 0
		var failed error
		for com, err := range s.Log(ctx, t) {
			if err != nil {
				failed = whatExists(ctx, s, t, err)
				break
			}
			if !c.json {
				list = append(list, com)
			} else if err := out.add(api.CommitOf(com)); err != nil {
				return err
			}
			if n++; n == limit {
				break
			}
		}
		failed = cmp.Or(failed, damageOf(s))
		if c.json {
			return out.end(failed)
		}
		if failed != nil && n == 0 {
			return failed
		}
		return cmp.Or(c.logText(list), failed)
	})
}

func (c *cli) logText(list []checkpoint.Commit) error {
	ids, heads, snaps := make([]string, len(list)), make([]string, len(list)), make([]string, len(list))
	for i, com := range list {
		ids[i], heads[i], snaps[i] = com.Commit, com.Entry, com.Snapshot
	}
	// The ids are shortened as if each stood alone: the session has more ids than the list shows.
	short, shortHead := shortid.Of(ids, shortid.Alone).Short, shortid.Of(heads, shortid.Alone).Short
	shortSnap := shortid.Of(snaps, snapshotID).Short
	rows := make([][]term.Cell, len(list))
	for i, com := range list {
		note := ""
		if com.Kept != "" {
			note = "kept " + term.Line(com.Kept)
		}
		if com.Snapshot != "" {
			note = "snapshot " + term.Line(shortSnap(com.Snapshot))
		}
		if com.StateLost {
			note = "state lost"
		}
		rows[i] = []term.Cell{
			{Text: itoa(com.Seq), Style: term.Yellow},
			{Text: short(com.Commit), Style: term.Dim},
			{Text: term.Clock(com.Time)},
			{Text: term.Line(com.Reason)},
			{Text: itoa(uint64(max(com.Entries, 0)))},
			{Text: term.Line(com.Branch)},
			{Text: term.Line(shortHead(com.Entry)), Style: term.Dim},
			{Text: note, Style: term.Green},
		}
	}
	return c.stdout.Table([]term.Column{
		{Head: "SEQ", Right: true},
		{Head: "COMMIT"},
		{Head: "TIME"},
		{Head: "REASON"},
		{Head: "ENTRIES", Right: true},
		{Head: "BRANCH", Flex: true},
		{Head: "HEAD"},
		{Head: "", Flex: true},
	}, rows)
}
