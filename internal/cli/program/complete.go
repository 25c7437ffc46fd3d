package program

import (
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// Completer offers values for an argument.
type Completer = func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective)

// most bounds what a completion offers.
const most = 200

// Complete gives a Completer that takes one of these for each argument, in their order; the last one
// serves all that follow.
func Complete(each ...Completer) Completer {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(each) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return each[len(args)](cmd, args, prefix)
	}
}

// Words completes from a fixed list.
func Words(list ...string) Completer {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// SessionIDs completes a session's id, with its title beside it.
func (a *App) SessionIDs(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	err := a.WithStore(cmd.Context(), func(st *Store) error {
		for sum, err := range st.List(cmd.Context(), coppice.ListOptions{}) {
			if err != nil || len(out) == most {
				return err
			}
			if strings.HasPrefix(sum.ID, prefix) {
				out = append(out, cobra.CompletionWithDesc(sum.ID, term.Cut(term.Line(Title(sum)), 60)))
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

// Places completes where a session can go: its branches, its labelled entries, and, of targets, its
// snapshots, tags and newest commits.
func (a *App) Places(targets bool) Completer {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var out []cobra.Completion
		add := func(word, what string) {
			if strings.HasPrefix(word, prefix) && len(out) < most {
				out = append(out, cobra.CompletionWithDesc(word, term.Line(what)))
			}
		}
		ctx := cmd.Context()
		err := a.WithSession(ctx, args[0], Reading(), func(_ *Store, s *coppice.Session) error {
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
			add("head", "where the session stands")
			for info, err := range s.Snapshots(ctx) {
				if err != nil {
					return err
				}
				if info.Tag != "" {
					add("tag:"+info.Tag, "snapshot of "+term.Clock(info.Time))
				}
			}
			return a.recent(cmd, s, add)
		})
		return out, directive(err)
	}
}

// recent offers the newest commits.
func (a *App) recent(cmd *cobra.Command, s *coppice.Session, add func(word, what string)) error {
	left := 20
	for commit, err := range s.Log(cmd.Context(), coppice.Target{}) {
		if err != nil {
			return err
		}
		add("seq:"+Itoa(commit.Seq), commit.Reason+", "+term.Ago(a.Now(), commit.Time))
		if left--; left == 0 {
			break
		}
	}
	return nil
}
