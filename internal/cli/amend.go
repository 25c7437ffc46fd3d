package cli

import (
	"context"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

func (c *cli) amendCommand() *cobra.Command {
	var restore bool
	cmd := &cobra.Command{
		Use:   "amend SESSION ENTRY < message.json",
		Short: "Replace what an entry says; the entry itself stays as it is",
		Long: `Replace what an entry says, on every branch, as a commit of its own. The entry's line does not change:
the new text is an amendment beside it, and earlier commits show the earlier text. Contexts, trees and
exports to other formats contain the newest text.

Standard input has one JSON object: a message, or an entry of the type of ENTRY, whose id and parent do
not count. --restore takes back what earlier amendments and hide said.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
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
