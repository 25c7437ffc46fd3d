package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/manager"
)

type compactOptions struct {
	manager.Compaction
	from string
}

func (c *cli) contextCompactCommand() *cobra.Command {
	var o compactOptions
	cmd := &cobra.Command{
		Use:   "compact SESSION --summary TEXT|-",
		Short: "Replace the older part of the context with a summary",
		Long: `Replace the older part of the context with a summary. The newest part is kept: about --keep tokens
of it, or everything from the entry --from on. The replaced entries stay in the tree; to undo this, use
` + "`coppice branch`" + ` with an entry before the summary.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.compact(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVar(&o.Summary, "summary", "", "text of the summary; - = read it from standard input")
	cmd.Flags().StringVar(&o.from, "from", "", "first entry to keep")
	cmd.Flags().IntVar(&o.Keep, "keep", 20000, "tokens to keep, by estimate")
	return cmd
}

// maxSummary bounds a summary, in bytes.
const maxSummary = 1 << 20

func (c *cli) compact(ctx context.Context, id string, o compactOptions) error {
	if o.Summary == "-" {
		raw, err := io.ReadAll(io.LimitReader(c.stdin, maxSummary+1))
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		if err := rawjson.CheckText("summary", raw); err != nil {
			return usageError("%w", err)
		}
		o.Summary = string(raw)
	}
	if o.Summary == "" || len(o.Summary) > maxSummary || o.Keep < 1 {
		return usageError("--summary must have 1 to %d bytes, and --keep must be 1 or more", maxSummary)
	}
	o.FirstKept = o.from
	return c.withSession(ctx, id, moving(), func(_ *countedStore, s *coppice.Session) error {
		r, err := manager.Compact(ctx, s, &o.Compaction)
		if err != nil {
			return err
		}
		if c.json {
			return c.writeJSON(api.CompactedOf(r))
		}
		return c.textf("seq %d: a summary replaces %s; the context had about %d tokens", r.Seq,
			term.Count(r.Replaced, "entry", "entries"), r.TokensBefore)
	})
}
