// Package cli is the command line of coppice.
//
// Its JSON, its exit codes and the codes of its errors are a contract (docs/cli-json.md): fields may be
// added, nothing goes or changes its meaning. Text is for people and may change.
package cli

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	_ "github.com/coppice-go/coppice/backend/local"  // file:
	_ "github.com/coppice-go/coppice/backend/memory" // mem:
	_ "github.com/coppice-go/coppice/backend/s3"     // s3:
	"github.com/coppice-go/coppice/internal/cli/change"
	"github.com/coppice-go/coppice/internal/cli/demo"
	"github.com/coppice-go/coppice/internal/cli/grove"
	"github.com/coppice-go/coppice/internal/cli/look"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/recall"
	"github.com/coppice-go/coppice/internal/cli/recent"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/cli/upkeep"
)

// cli is one run: what all commands share.
type cli struct {
	*program.App
	begun bool // the arguments were understood, and a command runs
}

// The groups in which help lists the commands.
const (
	groupWrite  = "write"
	groupRead   = "read"
	groupTravel = "travel"
	groupStore  = "store"
	groupMore   = "more"
)

var groups = []*cobra.Group{
	{ID: groupWrite, Title: "Bring in and continue:"},
	{ID: groupRead, Title: "Look:"},
	{ID: groupTravel, Title: "Branch and travel in time:"},
	{ID: groupStore, Title: "Look after the store:"},
	{ID: groupMore, Title: "More:"},
}

// commands are all commands, in the order of the help.
var commands = []struct {
	group string
	make  func(*program.App) *cobra.Command
}{
	{groupWrite, change.Import},
	{groupWrite, change.Create},
	{groupWrite, change.Append},
	{groupWrite, recent.Continue},
	{groupWrite, recent.Rename},
	{groupWrite, recent.Move},
	{groupWrite, recent.Compact},
	{groupRead, look.List},
	{groupRead, recent.Pick},
	{groupRead, recent.Pin},
	{groupRead, recent.Resume},
	{groupRead, look.Context},
	{groupRead, grove.Tree},
	{groupRead, look.Show},
	{groupRead, look.Log},
	{groupRead, look.Search},
	{groupRead, recall.History},
	{groupRead, recent.Labels},
	{groupRead, recent.Usage},
	{groupRead, recent.Settings},
	{groupRead, look.Export},
	{groupTravel, change.Branch},
	{groupTravel, change.Switch},
	{groupTravel, recent.Navigate},
	{groupTravel, recent.Reset},
	{groupTravel, change.Label},
	{groupTravel, change.Snapshot},
	{groupTravel, change.Snapshots},
	{groupTravel, change.Prune},
	{groupTravel, change.Rollback},
	{groupTravel, look.Diff},
	{groupTravel, recent.Fork},
	{groupStore, upkeep.Verify},
	{groupStore, upkeep.Repair},
	{groupStore, upkeep.GC},
	{groupStore, recent.Delete},
	{groupStore, recent.Trash},
	{groupStore, upkeep.Backend},
	{groupMore, demo.Command},
	{groupMore, upkeep.Version},
}

const rootHelp = `coppice keeps what an AI agent must not lose: the whole conversation as a tree, and the agent's exact
state at every turn. Go back to any point and grow another branch; nothing that stood before is lost.

Start with:
  coppice demo                                the whole story on a bundled session
  coppice import ~/.pi/agent/sessions         your own sessions (files are only read)
  coppice list, coppice tree SESSION          look around

Store: --store, else $COPPICE_STORE, else ~/.local/share/coppice. A path, file:///dir, mem:,
or s3://bucket/prefix?region=R[&endpoint=URL&path-style=true]; docs/s3.md has the rest.
SESSION and ENTRY may be shortened to a unique prefix.
TARGET: head, seq:12, commit:ID, entry:ID, snap:ID, tag:NAME, a time as 2026-03-02T09:15:00Z, or a bare
name or id: a branch, an entry, a commit, a snapshot or a tag.

With --json a command writes exactly one JSON document to its standard output; a failed one writes
{"error":{"code","message","hint"}}. docs/cli-json.md describes every document.

Exit codes:
  0  done              3  not found               6  outcome of a commit is unknown: look before repeating
  1  failed            4  conflict, or fenced   130  interrupted
  2  wrong usage       5  corrupt`

// Main runs one command and gives its exit code. An interrupt ends it cleanly; a second one at once.
func Main(args []string) int {
	cobra.EnableCommandSorting = false // help keeps the order of the table
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	context.AfterFunc(ctx, cancel) // from here on signals have their usual effect again
	c := &cli{App: &program.App{
		In: os.Stdin, Out: term.New(os.Stdout, os.Getenv), Err: term.New(os.Stderr, os.Getenv),
		Getenv: os.Getenv, Now: time.Now,
	}}
	return c.run(ctx, args)
}

func (c *cli) run(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return program.ExitDone
	}
	if !c.begun {
		if end := slices.Index(args, "--"); end >= 0 {
			args = args[:end]
		}
		c.JSON = c.JSON || slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
		err = program.Usage("%w", err)
	}
	return c.Fail(err)
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "coppice",
		Short:         "Agent sessions as trees that lose nothing",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			c.begun = true
			return nil
		},
	}
	root.PersistentFlags().StringVar(&c.URL, "store", "", "where the sessions are: a folder or a URL")
	root.PersistentFlags().BoolVar(&c.JSON, "json", false, "one JSON document on the standard output")
	root.PersistentFlags().BoolVar(&c.Alone, "single-writer", false, "keep sessions on a store that ignores conditional writes: nothing then notices a second writer")
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.AddGroup(groups...)
	for _, entry := range commands {
		cmd := entry.make(c.App)
		cmd.GroupID = entry.group
		root.AddCommand(cmd)
	}
	root.SetHelpCommandGroupID(groupMore)
	root.SetCompletionCommandGroupID(groupMore)
	return root
}
