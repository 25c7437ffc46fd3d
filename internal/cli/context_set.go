package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/transcript"
)

func (c *cli) contextSetCommand() *cobra.Command {
	var derived bool
	cmd := &cobra.Command{
		Use:   "set SESSION < items.jsonl",
		Short: "Choose the working context: what the model receives next",
		Long: `Make the working context what standard input names, in one commit, and what is appended from then on.
One JSON object per line: {"entry":ID} is an entry of the session, by its id or a unique prefix; any other
object is a message that is stored in the context alone. The transcript and the tree stay as they are.
With --derived the context follows from the transcript again, and nothing is read.`,
		Example: `  echo '{"role":"user","content":"So far: ..."}' | coppice context set 019a
  coppice context set 019a --derived`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.setContext(cmd.Context(), args[0], derived)
		},
	}
	cmd.Flags().BoolVar(&derived, "derived", false, "derive the context from the transcript again")
	return cmd
}

func (c *cli) setContext(ctx context.Context, id string, derived bool) error {
	return c.withSession(ctx, id, nil, func(_ *countedStore, s *coppice.Session) error {
		var items []transcript.Item
		if !derived {
			raw, err := readAll(ctx, c.stdin)
			if err != nil {
				return err
			}
			if items, err = parseItems(raw); err != nil {
				return err
			}
		}
		if err := s.SetContext(ctx, items...); err != nil {
			return err
		}
		r, err := s.Commit(ctx, coppice.Turn{Reason: "context"})
		if err != nil {
			return err
		}
		if derived {
			return c.reportCommit(r, "seq %d: the context is derived from the transcript", r.Seq)
		}
		return c.reportCommit(r, "seq %d: the context is %s, and what is appended from here on", r.Seq,
			term.Count(len(items), "message", "messages"))
	})
}

// parseItems reads the items of a context, one a line.
func parseItems(raw []byte) (items []transcript.Item, err error) {
	for i, line := range bytes.Split(api.TrimBOM(raw), []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(line, &fields); err != nil {
			return nil, fmt.Errorf("line %d of standard input: want a JSON object: %w; nothing was stored", i+1, err)
		}
		item := transcript.Item{Message: line}
		if entry, ok := fields["entry"]; ok && len(fields) == 1 {
			item = transcript.Item{}
			if err := json.Unmarshal(entry, &item.Entry); err != nil || item.Entry == "" {
				return nil, usageError("line %d of standard input: want the id of an entry; nothing was stored", i+1)
			}
		}
		items = append(items, item)
	}
	if len(items) == 0 {
		return nil, usageError("standard input has no messages; --derived derives the context again")
	}
	return items, nil
}
