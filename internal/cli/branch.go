package cli

import (
	"context"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) branchCommand() *cobra.Command {
	var o coppice.BranchOptions
	var root, remove, edit bool
	var rename string
	cmd := &cobra.Command{
		Use:        "branch SESSION ENTRY",
		SuggestFor: []string{"navigate", "edit", "reset"},
		Short:      "Continue at an earlier entry, on a branch",
		Long: `Move the head to ENTRY in a new commit: the next entry becomes a child of ENTRY. The agent's state
becomes the one that it had there. The other branches stay as they are. With --root instead of ENTRY
a new conversation begins: the next entry becomes a new root, and the model's context is empty. With --edit
ENTRY is a message of the user: the head moves to the entry before it, and the text of the message is written to
standard output, to be edited and sent again as another version.

--rename and --remove change the names of branches alone, and the head stays: instead of ENTRY they take
the name of a branch. A branch without a name keeps its entries; the session's own always has one.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if root == (len(args) == 2) {
				return usageError("use either ENTRY or --root")
			}
			entry := append(args, "")[1]
			if names := cmd.Flags().Changed("rename"); names || remove {
				if root || edit || names == remove || names && rename == "" || o.Name != "" || o.Summary != "" {
					return usageError("use one of --rename and --remove alone, with the name of a branch")
				}
				return c.renameBranch(cmd, args[0], entry, rename)
			}
			if edit {
				if root || o.Name != "" {
					return usageError("--edit cannot be combined with --root or --name")
				}
				return c.branchForEdit(cmd.Context(), args[0], entry, o.Summary)
			}
			return c.moveHead(cmd, args[0], func(s *coppice.Session) (coppice.Receipt, error) {
				return s.Branch(cmd.Context(), entry, &o)
			})
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", "",
		"name of the new branch; default: the name of the branch that ENTRY is on")
	cmd.Flags().StringVar(&o.Summary, "summary", "", "summary of the branch that is left; the model receives it")
	cmd.Flags().BoolVar(&root, "root", false, "continue at a new root instead of an entry")
	cmd.Flags().BoolVar(&edit, "edit", false, "continue before ENTRY, a message of the user, and print its text")
	cmd.Flags().StringVar(&rename, "rename", "", "new name of the branch that ENTRY names")
	cmd.Flags().BoolVar(&remove, "remove", false, "take the name of the branch that ENTRY names away")
	return cmd
}

// branchForEdit moves the head to before a message. What a script reads is on the standard output: the text to edit;
// the rest is remarks.
func (c *cli) branchForEdit(ctx context.Context, id, message, summary string) error {
	return c.withManager(ctx, id, func(m *manager.Manager) error {
		before := m.Session().Head()
		r, err := m.BranchForEdit(ctx, message, &manager.Navigation{Summary: summary})
		if err != nil {
			return err
		}
		if c.json {
			return c.writeJSON(api.NavigatedOf(r))
		}
		back, err := wayBack(ctx, m.Session(), before)
		if err != nil {
			return err
		}
		c.notef("seq %d: %s, branch %s", r.Seq, headText(r.Entry), term.Line(r.Branch))
		if back != "" {
			c.notef("back: %s", term.Line(back))
		}
		return c.textf("%s", term.Text(r.Text))
	})
}

func (c *cli) renameBranch(cmd *cobra.Command, id, name, to string) error {
	return c.withSession(cmd.Context(), id, nil, func(_ *countedStore, s *coppice.Session) error {
		r, err := s.RenameBranch(cmd.Context(), name, to)
		if err != nil {
			return err
		}
		text := "has no name any more: its entries stay"
		if to != "" {
			text = "is " + term.Line(to) + " now"
		}
		return c.reportCommit(r, "seq %d: branch %s %s", r.Seq, term.Line(name), text)
	})
}
