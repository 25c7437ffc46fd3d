package cli

import (
	"context"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

func (c *cli) amendCommand() *cobra.Command {
	var restore, hide bool
	cmd := &cobra.Command{
		Use:        "amend SESSION ENTRY < message.json",
		SuggestFor: []string{"hide"},
		Short:      "Replace the text of an entry, or hide it; its line stays as it is",
		Long: `Replace the text of an entry, on every branch, as a commit of its own. The entry's line does not change:
the new text is an amendment of its own, and earlier commits show the earlier text. Contexts, trees and
exports to other formats contain the newest text.

Standard input has one JSON object: a message, or an entry of the type of ENTRY, whose id and parent do
not count. With --hide the entry is left out of contexts, trees and exports to other formats; what grows
from it stays, earlier commits show it, tree --filter all lists it, and show --original prints it.
--restore takes back what earlier amendments and --hide did.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if hide && restore {
				return usageError("use one of --hide and --restore")
			}
			if hide {
				return c.moveHead(cmd, args[0], func(s *coppice.Session) (coppice.Receipt, error) {
					return s.Hide(cmd.Context(), args[1])
				})
			}
			d := transcript.Draft{}
			if !restore {
				var err error
				if d, err = c.oneLine(cmd.Context()); err != nil {
					return err
				}
			}
			return c.moveHead(cmd, args[0], func(s *coppice.Session) (coppice.Receipt, error) {
				return s.Amend(cmd.Context(), args[1], d)
			})
		},
	}
	cmd.Flags().BoolVar(&restore, "restore", false, "show the entry again as it was appended")
	cmd.Flags().BoolVar(&hide, "hide", false, "leave the entry out")
	return cmd
}

// oneLine reads the one entry or message of the standard input.
func (c *cli) oneLine(ctx context.Context) (transcript.Draft, error) {
	raw, err := readAll(ctx, c.stdin)
	if err != nil {
		return transcript.Draft{}, err
	}
	drafts, err := parseLines(raw)
	switch {
	case err != nil:
		return transcript.Draft{}, err
	case len(drafts) != 1:
		return transcript.Draft{}, usageError("standard input has %d lines: want one JSON object", len(drafts))
	}
	return drafts[0], nil
}
