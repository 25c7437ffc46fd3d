package recent

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
)

// navigated is the JSON of navigate.
type navigated struct {
	moved
	Text    *string `json:"text"`
	Summary string  `json:"summary,omitempty"`
	Already bool    `json:"already,omitempty"`
}

// Navigate is `coppice navigate`.
func Navigate(a *program.App) *cobra.Command {
	c := &cli{a}
	var o manager.Navigation
	var edit bool
	cmd := &cobra.Command{
		Use:   "navigate SESSION ENTRY",
		Short: "Go to an entry; of a user's message, to before it, with its text to edit",
		Long: `Go to an entry. Of a message of the user's, or a custom one, the head goes to before it, and its text comes back on
the standard output, to be edited and sent again as another version; of anything else it goes to the entry itself. A
--summary tells the model, at the new place, of the line that is left.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: program.Complete(c.SessionIDs, c.Places(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.managed(ctx, args[0], manager.Hooks{}, func(m *manager.Manager) error {
				if edit && (o.Summary != "" || o.Label != "") {
					return program.Usage("--edit takes neither --summary nor --label")
				}
				var r manager.Moved
				var err error
				if edit {
					r, err = m.BranchForEdit(ctx, args[1])
				} else {
					r, err = m.Navigate(ctx, args[1], &o)
				}
				if err != nil {
					return err
				}
				return c.navigated(r)
			})
		},
	}
	cmd.Flags().StringVar(&o.Summary, "summary", "", "what the line that is left was about: the model sees it")
	cmd.Flags().StringVar(&o.Label, "label", "", "names the summary, or without one the entry")
	cmd.Flags().BoolVar(&edit, "edit", false, "it must be a user's message: one at the head too")
	return cmd
}

func (c *cli) navigated(r manager.Moved) error {
	if c.JSON {
		return c.Emit(navigated{movedTo(r.Receipt), program.OrNull(r.Text), r.Summary, r.Already})
	}
	head := "before every root"
	if r.Entry != "" {
		head = "at " + term.Line(r.Entry)
	}
	if r.Already {
		return c.Text("already %s", head)
	}
	c.Note("seq %d: %s, branch %s", r.Seq, head, term.Line(r.Branch))
	if r.Text != "" {
		return c.Text("%s", term.Text(r.Text))
	}
	return nil
}

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

// Compact is `coppice compact`.
func Compact(a *program.App) *cobra.Command {
	c := &cli{a}
	var o compactOptions
	cmd := &cobra.Command{
		Use:   "compact SESSION --summary TEXT|-",
		Short: "Put a summary in the place of the older part of the context",
		Long: `Put a summary in the place of the older part of the context. What is kept is the newest part, --keep tokens of it
by estimate, or all from --from on. Nothing goes from the tree: ` + "`coppice branch`" + ` goes back to before it.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.compact(cmd.Context(), args[0], o) },
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
		raw, err := io.ReadAll(io.LimitReader(c.In, maxSummary+1))
		if err != nil {
			return fmt.Errorf("read the standard input: %w", err)
		}
		o.Summary = string(raw)
	}
	if o.Summary == "" || len(o.Summary) > maxSummary || o.Keep < 0 {
		return program.Usage("want --summary of 1 to %d bytes, and --keep of 0 or more", maxSummary)
	}
	o.FirstKept = o.from
	var cut manager.Cut
	look := manager.Hooks{BeforeCompact: func(_ context.Context, c *manager.Cut) error {
		cut = *c
		return nil
	}}
	return c.managed(ctx, id, look, func(m *manager.Manager) error {
		r, err := m.Compact(ctx, &o.Compaction)
		if err != nil {
			return err
		}
		if c.JSON {
			return c.Emit(compacted{movedTo(r.Receipt), r.ID, program.OrNull(r.FirstKept), cut.TokensBefore, len(cut.Entries)})
		}
		return c.Text("seq %d: a summary stands for %s, about %d tokens before", r.Seq,
			term.Count(len(cut.Entries), "entry", "entries"), cut.TokensBefore)
	})
}

// labelled is a label as the JSON shows it.
type labelled struct {
	Entry string    `json:"entry"`
	Label string    `json:"label"`
	Time  time.Time `json:"time"`
}

// Labels is `coppice labels`.
func Labels(a *program.App) *cobra.Command {
	c := &cli{a}
	return &cobra.Command{
		Use:               "labels SESSION",
		Short:             "List the labels of a session, with when they were set",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithSession(cmd.Context(), args[0], program.Reading(), func(_ *program.Store, s *coppice.Session) error {
				list, err := manager.Labels(cmd.Context(), s)
				if err != nil {
					return err
				}
				out := []labelled{}
				for _, l := range list {
					out = append(out, labelled{l.Entry, l.Text, l.Time})
				}
				if c.JSON {
					return c.Emit(map[string]any{"labels": out})
				}
				for _, l := range out {
					if err := c.Text("%s  %s  %s", l.Time.Format("2006-01-02 15:04:05"), term.Line(l.Entry), term.Line(l.Label)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}
