package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// parseTarget parses a TARGET argument.
func parseTarget(text string) (coppice.Target, error) {
	var t coppice.Target
	if err := t.UnmarshalText([]byte(text)); err != nil {
		return t, usageError("%w", err)
	}
	return t, nil
}

// pathFlags name files and folders of this machine, whose names need not be UTF-8. Their values are not stored.
var pathFlags = []string{
	"store", "state", "output", "dir", "trash-dir", "token-file", "tls-cert", "tls-key", "follow",
}

// checkText refuses arguments and flags that are not valid UTF-8: titles, labels, names, words to search for, targets.
// Arguments of a command that takes files are paths.
func checkText(cmd *cobra.Command, args []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(pathFlags, f.Name) {
			err = errors.Join(err, rawjson.CheckText("--"+f.Name, flagText(f)))
		}
	})
	if cmd.Name() != "import" {
		for i, arg := range args {
			err = errors.Join(err, rawjson.CheckText(fmt.Sprintf("argument %d", i+1), arg))
		}
	}
	if err != nil {
		return usageError("%w", err)
	}
	return nil
}

// flagText returns the value of a flag; the values of a list end to end.
func flagText(f *pflag.Flag) string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return strings.Join(list.GetSlice(), "")
	}
	return f.Value.String()
}

// alone reports whether a flag is the only one of its command's own that was set.
func alone(cmd *cobra.Command, name string) bool {
	only := true
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { only = only && (!f.Changed || f.Name == name) })
	return only
}

// absolutePath makes a path absolute; "" stays "".
func absolutePath(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", usageError("--cwd: %w", err)
	}
	return path, nil
}

// directory returns the absolute path of a directory that a flag names, by default the working
// directory.
func directory(flag string) (string, error) {
	if flag == "" {
		return os.Getwd()
	}
	return absolutePath(flag)
}

// findFlags are the flags of commands that show what they find.
type findFlags struct {
	cwd   string
	limit int
}

// register adds the flags to a command; what names the things that it finds.
func (o *findFlags) register(f *pflag.FlagSet, what string) {
	f.StringVar(&o.cwd, "cwd", "", "only "+what+" in this working directory")
	f.IntVar(&o.limit, "limit", 50, "maximum number of results; 0 = all")
}

// check validates the flags and makes the directory absolute.
func (o *findFlags) check() (err error) {
	if o.limit < 0 {
		return usageError("--limit %d: want 0 or more", o.limit)
	}
	o.cwd, err = absolutePath(o.cwd)
	return err
}

// maxCompletions bounds what a completion offers.
const maxCompletions = 200

// completion returns the completion of a command's arguments, by their names in its usage line.
func (c *cli) completion(use string) cobra.CompletionFunc {
	var each []cobra.CompletionFunc
args:
	for _, arg := range strings.Fields(use)[1:] {
		switch strings.Trim(arg, "[]") {
		case "SESSION":
			each = append(each, c.completeSession)
		case "ENTRY", "ENTRY|BRANCH":
			each = append(each, c.completePoint(false))
		case "TARGET", "A", "B":
			each = append(each, c.completePoint(true))
		case "PROGRAM":
			each = append(each, cobra.FixedCompletions(handoffPrograms(), cobra.ShellCompDirectiveNoFileComp))
		case "ITEM":
			each = append(each, c.completeTrash)
		case "FILE|DIR...", "DIR":
			each = append(each, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
		default:
			break args
		}
	}
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if strings.HasSuffix(use, "...]") { // the last one may be repeated
			args = args[:min(len(args), len(each)-1)]
		}
		if len(args) >= len(each) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return each[len(args)](cmd, args, prefix)
	}
}

// completeTrash offers the items of the trash.
func (c *cli) completeTrash(
	cmd *cobra.Command, _ []string, prefix string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	dir, _ := cmd.Flags().GetString("dir")
	t, err := c.trash(dir)
	if err != nil {
		return nil, directive(err)
	}
	items, err := t.List()
	var out []cobra.Completion
	for _, it := range items {
		if strings.HasPrefix(it.Name, prefix) && len(out) < maxCompletions {
			out = append(out, cobra.CompletionWithDesc(it.Name, term.Cut(term.Line(it.Title), 60)))
		}
	}
	return out, directive(err)
}

// completeFlag offers fixed values for a flag.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	f := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc(flag, f) // fails only for a flag that the command does not have
}

// completeSession offers the ids of sessions, with their titles.
func (c *cli) completeSession(
	cmd *cobra.Command, _ []string, prefix string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	err := c.withStore(cmd.Context(), func(st *countedStore) error {
		for sum, err := range st.List(cmd.Context(), coppice.ListOptions{}) {
			if err != nil || len(out) == maxCompletions {
				return err
			}
			if strings.HasPrefix(sum.ID, prefix) {
				out = append(out, cobra.CompletionWithDesc(sum.ID, term.Cut(term.Line(titleOf(sum)), 60)))
			}
		}
		return nil
	})
	return out, directive(err) | cobra.ShellCompDirectiveKeepOrder
}

func directive(err error) cobra.ShellCompDirective {
	if err != nil {
		return cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
	}
	return cobra.ShellCompDirectiveNoFileComp
}

// completePoint offers the points of a session that a command can go to: its branches and labelled
// entries, and, for targets, its tagged snapshots and newest commits.
func (c *cli) completePoint(targets bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var out []cobra.Completion
		add := func(word, what string) {
			if strings.HasPrefix(word, prefix) && len(out) < maxCompletions {
				out = append(out, cobra.CompletionWithDesc(word, term.Line(what)))
			}
		}
		ctx := cmd.Context()
		err := c.withSession(ctx, args[0], readOnly(), func(_ *countedStore, s *coppice.Session) error {
			tree, err := s.Tree(ctx)
			if err != nil {
				return err
			}
			for _, b := range tree.Branches() {
				add(b.Name, "branch")
			}
			for n := range tree.Nodes("labeled-only") {
				add(n.ID, "["+n.Label+"] "+n.Preview)
			}
			if !targets {
				return nil
			}
			add("head", "the current head")
			for info, err := range s.Snapshots(ctx) {
				if err != nil {
					return err
				}
				if info.Tag != "" {
					add("tag:"+info.Tag, "snapshot of "+term.Clock(info.Time))
				}
			}
			return c.addCommits(cmd, s, add)
		})
		return out, directive(err)
	}
}

// addCommits offers the newest commits.
func (c *cli) addCommits(cmd *cobra.Command, s *coppice.Session, add func(word, what string)) error {
	left := 20
	for commit, err := range s.Log(cmd.Context(), coppice.Target{}) {
		if err != nil {
			return err
		}
		add("seq:"+itoa(commit.Seq), commit.Reason+", "+term.Ago(c.now(), commit.Time))
		if left--; left == 0 {
			break
		}
	}
	return nil
}
