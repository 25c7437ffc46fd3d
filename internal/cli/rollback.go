package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
)

func (c *cli) rollbackCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rollback SESSION TARGET",
		Short: "Restore the exact state, context and head of an earlier commit",
		Long: `Restore state, context and head exactly as they were at a TARGET, in a new commit on a new branch. The
path that is left is kept as a branch; ` + "`coppice switch`" + ` returns to it. What amend replaced or hid since
stays so: an amendment is about an entry, on every branch.`,
		Example: `  coppice rollback 019a seq:12
  coppice rollback 019a tag:green
  coppice rollback 019a 2026-03-02T09:15:00Z`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return c.rollback(cmd.Context(), args[0], args[1]) },
	}
}

func (c *cli) rollback(ctx context.Context, id, to string) error {
	t, err := parseTarget(to)
	if err != nil {
		return err
	}
	return c.withSession(ctx, id, nil, func(_ *countedStore, s *coppice.Session) error {
		before := s.Head()
		r, err := s.Rollback(ctx, t)
		if err != nil {
			return whatExists(ctx, s, t, err)
		}
		v, err := s.At(ctx, coppice.Target{})
		if err != nil {
			return err
		}
		state := v.Document().State
		if c.json {
			return c.writeJSON(api.RollbackOf(r, state))
		}
		back, err := wayBack(ctx, s, before)
		if err != nil {
			return err
		}
		kept, err := keptName(ctx, s, r.Kept)
		if err != nil {
			return err
		}
		if err := c.movedText(r, before.Seq, kept, back); err != nil || len(state) == 0 {
			return err
		}
		return c.textf("state: %s", term.Cut(term.Line(string(state)), 200))
	})
}

// at returns the view of a target. The error for one that does not exist names what does.
func at(ctx context.Context, s *coppice.Session, t coppice.Target) (*coppice.View, error) {
	v, err := s.At(ctx, t)
	if err != nil {
		return nil, whatExists(ctx, s, t, err)
	}
	return v, nil
}

// whatExists adds to the error of a target that does not exist what there is.
func whatExists(ctx context.Context, s *coppice.Session, t coppice.Target, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	hint := fmt.Sprintf("the commits are seq:0 to seq:%d: `coppice log %s` lists them", s.Head().Seq,
		shortid.One(s.ID()))
	switch {
	case t.Tag != "" || t.Snapshot != "":
		names, lerr := snapshotNames(ctx, s)
		if lerr != nil {
			return errors.Join(err, lerr)
		}
		hint = "there are no snapshots; " + hint
		if names != "" {
			hint = "the snapshots are " + names
		}
	case t.Entry != "":
		hint = fmt.Sprintf("`coppice tree %s` shows the entries", shortid.One(s.ID()))
	case t.Seq > 0 || t.Commit != "" || !t.Time.IsZero():
	default: // a bare word
		tree, terr := s.Tree(ctx)
		if terr != nil {
			return errors.Join(err, terr)
		}
		var names []string
		for _, b := range tree.Branches() {
			names = append(names, term.Line(b.Name))
		}
		word, _ := t.MarshalText()
		hint = "the branches are " + some(names) + "; " + hint
		if near := perhaps(string(word), names); near != "" {
			hint = strings.TrimPrefix(near, "; ") + " " + hint
		}
	}
	return &api.Failure{Code: "not-found", Hint: hint, Err: err}
}

// snapshotNames returns the tags of a session's snapshots, and the seqs of those without one; "" = there are none.
func snapshotNames(ctx context.Context, s *coppice.Session) (string, error) {
	var names []string
	for info, err := range s.Snapshots(ctx) {
		if err != nil {
			return "", err
		}
		if info.Tag != "" {
			names = append(names, "tag:"+term.Line(info.Tag))
		} else {
			names = append(names, "snap:"+shortid.Of([]string{info.ID}, snapshotID).Short(info.ID))
		}
	}
	return some(names), nil
}

// some joins the first of many names.
func some(names []string) string {
	const most = 8
	if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return strings.Join(names, ", ")
}
