package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
)

type compactOptions struct {
	manager.Compaction
	from string
}

// compacted is the JSON of compact.
type compacted struct {
	moved
	Entry     string  `json:"entry"`
	FirstKept *string `json:"firstKept"`
	Tokens    int     `json:"tokensBefore"`
	Replaced  int     `json:"replaced"` // entries
}

func (c *cli) compactCommand() *cobra.Command {
	var o compactOptions
	cmd := &cobra.Command{
		Use:   "compact SESSION --summary TEXT|-",
		Short: "Put a summary in the place of the older part of the context",
		Long: `Put a summary in the place of the older part of the context. What is kept is the newest part, --keep tokens of it
by estimate, or all from --from on. Nothing goes from the tree: ` + "`coppice branch`" + ` goes back to before it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.compact(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVar(&o.Summary, "summary", "", "what stands for it; - = the standard input")
	cmd.Flags().StringVar(&o.from, "from", "", "the entry from which on all is kept")
	cmd.Flags().IntVar(&o.Keep, "keep", 0, "tokens to keep; default 20000")
	return cmd
}

// maxSummary bounds a summary, in bytes.
const maxSummary = 1 << 20

func (c *cli) compact(ctx context.Context, id string, o compactOptions) error {
	if o.Summary == "-" {
		raw, err := io.ReadAll(io.LimitReader(c.stdin, maxSummary+1))
		if err != nil {
			return fmt.Errorf("read the standard input: %w", err)
		}
		o.Summary = string(raw)
	}
	if o.Summary == "" || len(o.Summary) > maxSummary || o.Keep < 0 {
		return usageError("want --summary of 1 to %d bytes, and --keep of 0 or more", maxSummary)
	}
	o.FirstKept = o.from
	var cut manager.Cut
	look := manager.Hooks{BeforeCompact: func(_ context.Context, c *manager.Cut) error {
		cut = *c
		return nil
	}}
	return c.withManager(ctx, id, look, func(m *manager.Manager) error {
		r, err := m.Compact(ctx, &o.Compaction)
		if err != nil {
			return err
		}
		if c.json {
			return c.writeJSON(compacted{
				headOnly(r.Receipt), r.ID, orNull(r.FirstKept), cut.TokensBefore, len(cut.Entries),
			})
		}
		return c.textf("seq %d: a summary stands for %s, about %d tokens before", r.Seq,
			term.Count(len(cut.Entries), "entry", "entries"), cut.TokensBefore)
	})
}
