package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/mcp"
)

func (c *cli) mcpCommand() *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Let a model search and read the store: a server of the Model Context Protocol",
		Long: `Answer a client of the Model Context Protocol, such as Claude Code or Codex, on standard input and
output, until it closes them. The tools search the history, list and read sessions, entries, branches, commits and
states, and report what changed. Sessions are resources. Nothing is written without --write, which adds
tools that label entries and begin branches. Long results come in pieces.

Over HTTP the same is served by "coppice serve" at /mcp, and with the tools that write at /mcp?write=true.`,
		Example: `  claude mcp add coppice -- coppice mcp
  codex mcp add coppice -- coppice mcp
  claude mcp add --transport http coppice http://127.0.0.1:7070/mcp`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.mcp(cmd.Context(), write) },
	}
	cmd.Flags().BoolVar(&write, "write", false, "offer the tools that write")
	return cmd
}

func (c *cli) mcp(ctx context.Context, write bool) error {
	if c.json {
		return usageError("mcp has no JSON document: its messages are JSON")
	}
	return c.withStore(ctx, func(st *countedStore) error {
		const host = "localhost"
		o := serveOptions{addr: host + ":0", readOnly: !write}
		s := &service{c: c, o: o, st: st, log: slog.New(slog.DiscardHandler)}
		if err := s.prepare(ctx); err != nil {
			return err
		}
		m := &mcp.Server{API: s.handler, Host: host, Write: write}
		return errors.Join(m.Serve(ctx, c.stdin, c.stdout), s.handler.Close())
	})
}
