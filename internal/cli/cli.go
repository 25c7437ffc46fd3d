// Package cli is the command line of coppice.
//
// Its JSON, its exit codes and the codes of its errors are a contract (docs/cli-json.md): fields
// may be added, nothing goes or changes its meaning. Text is for people and may change.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	_ "github.com/coppice-go/coppice/backend/local"  // file:
	_ "github.com/coppice-go/coppice/backend/memory" // mem:
	_ "github.com/coppice-go/coppice/backend/s3"     // s3:
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
)

// cli is one run of the command line: what all commands share.
type cli struct {
	stdin          io.Reader
	stdout, stderr *term.Screen
	getenv         func(string) string
	now            func() time.Time
	after          func(d time.Duration) <-chan time.Time

	storeFlag    string // --store
	json         bool   // --json
	singleWriter bool   // --single-writer
	hooks        coppice.Hooks

	command   *cobra.Command // that was called; nil = none is known
	endPager  func() error   // waits for the pager; nil = there is none
	started   bool           // the arguments were understood, and a command runs
	wroteJSON bool           // a JSON document is on stdout, or begun

	shown shortid.Seen // ids that are shown one by one
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
	{ID: groupWrite, Title: "Import, create and continue sessions:"},
	{ID: groupRead, Title: "Find, read and export:"},
	{ID: groupTravel, Title: "Branch, label, snapshot and roll back:"},
	{ID: groupStore, Title: "Maintain the store:"},
	{ID: groupMore, Title: "Other:"},
}

// commands are all commands, in the order of the help.
var commands = []struct {
	group, name string
	make        func(*cli) *cobra.Command
}{
	{groupWrite, "import", (*cli).importCommand},
	{groupWrite, "create", (*cli).createCommand},
	{groupWrite, "append", (*cli).appendCommand},
	{groupWrite, "continue", (*cli).continueCommand},
	{groupWrite, "set", (*cli).setCommand},
	{groupRead, "list", (*cli).listCommand},
	{groupRead, "pick", (*cli).pickCommand},
	{groupRead, "resume", (*cli).resumeCommand},
	{groupRead, "context", (*cli).contextCommand},
	{groupRead, "tree", (*cli).treeCommand},
	{groupRead, "tui", (*cli).tuiCommand},
	{groupRead, "show", (*cli).showCommand},
	{groupRead, "log", (*cli).logCommand},
	{groupRead, "search", (*cli).searchCommand},
	{groupRead, "usage", (*cli).usageCommand},
	{groupRead, "export", (*cli).exportCommand},
	{groupRead, "handoff", (*cli).handoffCommand},
	{groupTravel, "branch", (*cli).branchCommand},
	{groupTravel, "switch", (*cli).switchCommand},
	{groupTravel, "label", (*cli).labelCommand},
	{groupTravel, "amend", (*cli).amendCommand},
	{groupTravel, "snapshot", (*cli).snapshotCommand},
	{groupTravel, "rollback", (*cli).rollbackCommand},
	{groupTravel, "diff", (*cli).diffCommand},
	{groupTravel, "fork", (*cli).forkCommand},
	{groupStore, "verify", (*cli).verifyCommand},
	{groupStore, "repair", (*cli).repairCommand},
	{groupStore, "gc", (*cli).gcCommand},
	{groupStore, "secrets", (*cli).secretsCommand},
	{groupStore, "delete", (*cli).deleteCommand},
	{groupStore, "erase", (*cli).eraseCommand},
	{groupStore, "trash", (*cli).trashCommand},
	{groupStore, "retain", (*cli).retainCommand},
	{groupStore, "audit", (*cli).auditCommand},
	{groupStore, "backend", (*cli).backendCommand},
	{groupMore, "serve", (*cli).serveCommand},
	{groupMore, "mcp", (*cli).mcpCommand},
	{groupMore, "demo", (*cli).demoCommand},
	{groupMore, "man", (*cli).manCommand},
}

func init() { cobra.EnableCommandSorting = false } // help keeps the order of the table

const rootHelp = `coppice is a session store and checkpointer for AI agents. It stores each conversation as a tree of
entries, and the agent's exact state at every commit, on local disk or in S3. Go back to any commit
or entry and continue on a new branch; the existing branches stay as they are.

Start with:
  coppice demo                           run the main steps on a bundled session
  coppice import ~/.pi/agent/sessions    import your own sessions (the files are only read)
  coppice list                           list the sessions
  coppice tree SESSION                   draw the tree of a session

Store: --store, or $COPPICE_STORE, or ~/.local/share/coppice. A path, file:///dir, mem:,
or s3://bucket/prefix?region=R[&endpoint=URL&path-style=true]; docs/s3.md lists all parameters.
coppice help environment lists the variables and folders that are used.
SESSION and ENTRY are ids or unique prefixes of ids.
TARGET is one of head, seq:12, commit:ID, entry:ID, snap:ID, tag:NAME, a time such as
2026-03-02T09:15:00Z, or the bare name or id of a branch, an entry, a commit, a snapshot or a tag.

With --json a command writes exactly one JSON document to standard output; if it fails, the document
is {"error":{"code","message","hint"}}. docs/cli-json.md describes every document.

Exit codes:
  0  success           3  not found             6  unknown whether the commit was stored
  1  failure           4  conflict or fenced  130  interrupted
  2  usage error       5  corrupt data`

// Main runs one command in this process and returns its exit code. The first interrupt ends the
// command cleanly, a second one kills the process.
func Main(args []string) int { return mainAt(time.Now, args) }

func mainAt(now func() time.Time, args []string) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	context.AfterFunc(ctx, cancel) // from here on signals have their usual effect again
	return Run(ctx, Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Now: now}, args)
}

// Env is what a command uses of its process. Files, the working directory and the credentials of S3
// are those of the process.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(name string) string
	Now            func() time.Time
	After          func(d time.Duration) <-chan time.Time // nil = time.After
}

// Run runs one command in an environment and returns its exit code.
func Run(ctx context.Context, env Env, args []string) int { return newCLI(env).run(ctx, args) }

func newCLI(env Env) *cli {
	if env.After == nil {
		env.After = time.After
	}
	return &cli{
		after: env.After, stdin: env.Stdin,
		stdout: term.New(env.Stdout, env.Getenv), stderr: term.New(env.Stderr, env.Getenv),
		getenv: env.Getenv, now: env.Now,
	}
}

func (c *cli) run(ctx context.Context, args []string) int {
	root := c.root(commandIn(args))
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if c.endPager != nil {
		if end := c.endPager(); err == nil || errors.Is(err, term.ErrPagerClosed) {
			err = end
		}
	}
	if err == nil {
		return api.ExitDone
	}
	if !c.started {
		if end := slices.Index(args, "--"); end >= 0 {
			args = args[:end]
		}
		c.json = c.json || slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
		if _, ok := errors.AsType[*api.Failure](err); !ok {
			err = usageError("%w", err)
		}
	}
	return c.fail(err)
}

// pagedCommands are commands and subcommands whose output can be longer than a screen: it goes through $PAGER.
var pagedCommands = []string{"list", "tree", "show", "log", "search", "label", "diff", "context"}

// commandIn returns the name of the command in args; "" for help, completions, man, and whatever is not sure to be the
// name of a command.
func commandIn(args []string) string {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--store":
			i++
		case arg == "--json", arg == "--single-writer", strings.HasPrefix(arg, "--store="):
		default:
			for _, entry := range commands {
				if entry.name == arg && arg != "man" { // man writes a page for each command
					return arg
				}
			}
			return ""
		}
	}
	return ""
}

// root returns the tree of commands: all, or, to start faster, only one.
func (c *cli) root(only string) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "coppice",
		Short: "Session store and checkpointer for AI agents",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return c.version()
			}
			return cmd.Help()
		},
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			c.started, c.command = true, cmd
			if err := checkText(cmd, args); err != nil {
				return err
			}
			if slices.Contains(pagedCommands, cmd.Name()) && !c.json {
				c.endPager = c.stdout.Page(c.getenv("PAGER"), c.getenv)
			}
			return nil
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&c.storeFlag, "store", "", "folder or URL of the store")
	flags.BoolVar(&c.json, "json", false, "write one JSON document to standard output")
	flags.BoolVar(&c.singleWriter, "single-writer", false,
		"allow a store that ignores conditional writes; a second writer is then not detected")
	root.Flags().BoolVarP(&version, "version", "v", false, "print the version of coppice")
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.AddGroup(groups...)
	root.CompletionOptions.DisableDefaultCmd = only != ""
	for _, entry := range commands {
		if only != "" && only != entry.name {
			continue
		}
		cmd := entry.make(c)
		cmd.GroupID = entry.group
		cmd.ValidArgsFunction = c.completion(cmd.Use)
		for _, sub := range cmd.Commands() {
			sub.ValidArgsFunction = c.completion(sub.Use)
		}
		root.AddCommand(cmd)
	}
	if only == "" {
		root.AddCommand(&cobra.Command{Use: "environment", Short: "Variables and folders", Long: environmentHelp})
	}
	root.SetHelpCommand(c.helpCommand(root))
	root.SetHelpCommandGroupID(groupMore)
	root.SetCompletionCommandGroupID(groupMore)
	root.InitDefaultCompletionCmd()
	for _, sub := range root.Commands() {
		if sub.Name() == "completion" { // what does nothing by itself is not asked about its arguments
			sub.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	c.strict(root)
	return root
}
