package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/retain"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/snapshot"
)

func (c *cli) retainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "retain", Short: "Set, show and run the policy of which sessions stay", Args: cobra.NoArgs,
		Long: `Set, show and run the retention policy of the store: which sessions stay. Nothing runs it by itself.`,
		RunE: func(*cobra.Command, []string) error {
			return usageError("name a subcommand: coppice retain set, show or run")
		},
	}
	show := &cobra.Command{
		Use: "show", Short: "Show the policy", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withStore(cmd.Context(), func(st *countedStore) error {
				p, err := retain.Load(cmd.Context(), st.Store)
				if err != nil {
					return err
				}
				return c.showPolicy(p)
			})
		},
	}
	cmd.AddCommand(c.retainSet(), show, c.retainRun())
	return cmd
}

func (c *cli) retainSet() *cobra.Command {
	var p retain.Policy
	var within string
	var none bool
	cmd := &cobra.Command{
		Use: "set", Short: "Replace the policy", Args: cobra.NoArgs,
		Long: `Replace the policy of the store. A session that a keep rule keeps is never removed. All others go when
the policy is run; with --max-bytes only as many of them, those of the oldest activity first, as bring the
transcripts of the store to that size. A session stays or goes with those that it started.`,
		Example: "  coppice retain set --keep-within 90d --keep-last 5\n  coppice retain set --max-bytes 10000000000",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if within != "" {
				if p.KeepWithin, err = ageOf("keep-within", within); err != nil {
					return err
				}
			}
			switch {
			case none && !alone(cmd, "none"):
				return usageError("--none goes with no other flag of this command")
			case !none && p.Empty():
				return usageError("name a rule, such as --keep-within, --max-bytes or --snapshots-keep-last, or --none")
			}
			if _, err := p.Encode(); err != nil {
				return usageError("%w", err)
			}
			return c.withStore(cmd.Context(), func(st *countedStore) error {
				return c.setPolicy(cmd.Context(), st, p)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&within, "keep-within", "", "keep what was active within this time, such as 90d or 12h")
	flags.IntVar(&p.KeepLast, "keep-last", 0, "keep the newest N of each folder")
	flags.StringVar(&p.GroupBy, "group-by", "", "with --keep-last: of each value of this metadata key, not folder")
	flags.Int64Var(&p.MaxBytes, "max-bytes", 0, "remove only while the objects of sessions have more bytes")
	keepSnapshots(flags, "snapshots-keep-", &p.Snapshots)
	flags.BoolVar(&none, "none", false, "no rule: everything stays")
	return cmd
}

func (c *cli) setPolicy(ctx context.Context, st *countedStore, p retain.Policy) error {
	err := c.recorded(ctx, st, audit.Act{Act: "set retention"}, func() ([]string, error) {
		return nil, retain.Save(ctx, st.Store, p)
	})
	if err != nil {
		return err
	}
	return c.showPolicy(p)
}

func (c *cli) showPolicy(p retain.Policy) error {
	if c.json {
		return c.writeJSON(map[string]any{"policy": p.Rules()})
	}
	var lines []string
	if p.KeepWithin > 0 {
		lines = append(lines, "keep what was active within "+ageText(p.KeepWithin))
	}
	if p.KeepLast > 0 {
		group := "folder"
		if p.GroupBy != "" {
			group = "value of " + p.GroupBy
		}
		lines = append(lines, fmt.Sprintf("keep the newest %s of each %s", term.Number(uint64(p.KeepLast)), group))
	}
	switch {
	case p.Empty():
		lines = append(lines, "no rule: everything stays")
	case p.MaxBytes > 0:
		lines = append(lines, "of the rest, remove the oldest while there are more than "+term.Size(p.MaxBytes))
	case p.KeepWithin > 0 || p.KeepLast > 0:
		lines = append(lines, "remove the rest")
	}
	if keep := p.Rules().Snapshots; keep != nil {
		var rules []string
		for _, r := range []struct {
			n    int
			text string
		}{
			{keep.KeepLast, "the newest %s"},
			{keep.KeepDaily, "one of each of %s days"},
			{keep.KeepWeekly, "one of each of %s weeks"},
		} {
			if r.n > 0 {
				rules = append(rules, fmt.Sprintf(r.text, term.Number(uint64(r.n))))
			} else if r.n < 0 {
				rules = append(rules, fmt.Sprintf(r.text, "all"))
			}
		}
		if len(keep.KeepTags) > 0 {
			rules = append(rules, "those tagged "+term.Line(strings.Join(keep.KeepTags, ", ")))
		}
		lines = append(lines, "of the snapshots of each session, keep "+strings.Join(rules, ", "))
	}
	return c.textf("%s", strings.Join(lines, "\n"))
}

// ageText returns a duration as ageOf reads it.
func ageText(d time.Duration) string {
	const day = 24 * time.Hour
	if d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

type retainOptions struct {
	dry, permanent bool
	trashDir       string
}

func (c *cli) retainRun() *cobra.Command {
	var o retainOptions
	cmd := &cobra.Command{
		Use: "run", Short: "Remove the sessions that the policy does not keep", Args: cobra.NoArgs,
		Long: `Remove the sessions that the policy of the store does not keep: to the trash of this machine, or with
--permanent without a copy. Sessions that are held or cannot be read stay, and those that were changed since
the store was listed. Both print the same: the command, and before it --dry-run.`,
		Example: "  coppice retain run --dry-run\n  coppice retain run --permanent",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.permanent && o.trashDir != "" {
				return usageError("--permanent leaves nothing in a trash: not with --trash-dir")
			}
			return c.withStore(cmd.Context(), func(st *countedStore) error { return c.runPolicy(cmd.Context(), st, o) })
		},
	}
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "only show what would be removed")
	cmd.Flags().BoolVar(&o.permanent, "permanent", false, "keep no copy in the trash")
	cmd.Flags().StringVar(&o.trashDir, "trash-dir", "", "folder of the trash; default: trash below $COPPICE_STATE")
	return cmd
}

func (c *cli) runPolicy(ctx context.Context, st *countedStore, o retainOptions) error {
	remove, err := c.remover(st, o)
	if err != nil {
		return err
	}
	run := retain.Run{
		Store: st.Store, Now: c.now, Remove: remove, Prune: c.pruner(st), Dry: o.dry,
	}
	if !c.json { // before the first removal, so that an interrupted run has shown them too
		run.Show = c.showDecision
	}
	r, err := run.Do(ctx)
	c.forgetDeleted(ctx, st, r.Removed...)
	if c.json {
		return c.decisionJSON(r, o.dry, err)
	}
	for _, s := range r.Stayed {
		c.notef("%s stays: %s", shortid.One(s.Session), term.Line(s.Err.Error()))
	}
	return err
}

// remover returns the removal of a session as an act of the audit log.
func (c *cli) remover(
	st *countedStore, o retainOptions,
) (func(ctx context.Context, r retain.Removal) error, error) {
	t, err := c.trash(o.trashDir)
	if err != nil && !o.permanent {
		return nil, err
	}
	return func(ctx context.Context, r retain.Removal) error {
		return c.recorded(ctx, st, audit.Act{Act: "retain", Session: r.ID}, func() ([]string, error) {
			if o.permanent || r.Commit == "" { // it was deleted, and what is left of it goes
				return nil, st.DeleteAt(ctx, r.ID, r.Commit)
			}
			_, err := t.PutAt(ctx, st.Store, r.ID, r.Commit, st.url)
			return nil, err
		})
	}, nil
}

// pruner returns the removal of snapshots of a session as an act of the audit log.
func (c *cli) pruner(
	st *countedStore,
) func(ctx context.Context, id string, keep snapshot.Retention) (gone []snapshot.Info, err error) {
	return func(ctx context.Context, id string, keep snapshot.Retention) (gone []snapshot.Info, err error) {
		prune := func() ([]string, error) {
			gone, err = retain.Prune(ctx, st.Store, id, keep)
			return retain.Thinned{Snapshots: gone}.IDs(), err
		}
		if keep.DryRun {
			_, err = prune()
			return gone, err
		}
		return gone, c.recorded(ctx, st, audit.Act{Act: "prune", Session: id}, prune)
	}
}

// reasonTexts are the reasons of removals, for people.
var reasonTexts = map[retain.Reason]string{
	retain.Age: "not active within the time", retain.Count: "not one of the newest", retain.Bytes: "over the size",
	retain.Parent: "goes with the session that started it",
}

func (c *cli) showDecision(r *retain.Result) error {
	p, d := r.Policy, r.Decision
	for _, t := range r.Thinned {
		count := term.Count(len(t.Snapshots), "snapshot", "snapshots")
		if err := c.textf("%s  %s, %s", c.shown.Short(t.Session), count, term.Size(t.Freed())); err != nil {
			return err
		}
	}
	for _, r := range d.Removals {
		why := make([]string, len(r.Because))
		for i, b := range r.Because {
			why[i] = reasonTexts[b]
		}
		if err := c.textf("%s  %s  %s  %s  %s", c.shown.Short(r.ID), r.Updated.UTC().Format(time.DateOnly),
			term.Size(r.Bytes), strings.Join(why, ", "), c.stdout.Paint(term.Dim, term.Line(r.Name))); err != nil {
			return err
		}
	}
	if p.MaxBytes > 0 && d.Left > p.MaxBytes {
		c.notef("%s stay, over the limit of %s: rules and holds keep them", term.Size(d.Left), term.Size(p.MaxBytes))
	}
	return c.textf("the policy removes %d of %s, and %s of %s", len(d.Removals),
		term.Count(d.Sessions, "session", "sessions"), term.Size(d.Bytes-d.Left), term.Size(d.Bytes))
}

func (c *cli) decisionJSON(r retain.Result, dry bool, failed error) error {
	doc := api.RetainedOf(r, dry)
	out := c.array("removals")
	for _, r := range doc.Removals {
		if err := out.add(r); err != nil {
			return err
		}
	}
	out.after = map[string]any{
		"sessions": doc.Sessions, "bytes": doc.Bytes, "left": doc.Left, "thinned": doc.Thinned,
		"stayed": doc.Stayed, "dryRun": dry, "requests": doc.Requests,
	}
	return out.end(failed)
}
