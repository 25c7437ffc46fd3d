package cli

import "github.com/spf13/cobra"

// helpCommand returns the command that prints the help of another one.
func (c *cli) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "Print the help of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			switch {
			case err != nil:
				return usageError("%w", err)
			case len(rest) > 0:
				return unknownCommand(cmd, rest[0])
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

const environmentHelp = `Variables of coppice:
  COPPICE_STORE     the store, a folder or URL; --store comes first
  COPPICE_STATE     folder of trash, pins and the session of each terminal
  COPPICE_HISTORY   file of the search index; "off" keeps it, and what lists remember, in memory
  COPPICE_AUDIT     file of the audit log of serve, and of commands that remove or restore

Variables of the system:
  XDG_DATA_HOME     the store is its folder coppice; default ~/.local/share
  XDG_STATE_HOME    trash, pins and terminals are in its folder coppice; default ~/.local/state
  XDG_CACHE_HOME    search indexes and what lists remember are in its folder coppice; default ~/.cache
  PAGER, LESS       the program that shows long output at a terminal, and its options
  NO_COLOR          without colours, as with TERM=dumb
  COLUMNS           the width of tables that no terminal shows
  AWS_*             credentials, region and profile of S3: docs/s3.md

Folders of other programs, which import reads and handoff writes to:
  Claude Code  ~/.claude/projects     or below CLAUDE_CONFIG_DIR
  Codex        ~/.codex/sessions      or below CODEX_HOME
  pi           ~/.pi/agent/sessions   or PI_CODING_AGENT_SESSION_DIR, or below PI_CODING_AGENT_DIR
  omp          ~/.omp/agent/sessions  or below PI_CONFIG_DIR`
