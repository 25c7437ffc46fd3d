package change

import (
	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// moved is the JSON of a command that moves the head.
type moved struct {
	Head   *string `json:"head"`
	Branch string  `json:"branch"`
	Seq    uint64  `json:"seq"`
	Kept   string  `json:"kept,omitempty"`
}

func movedTo(r coppice.Receipt) moved {
	return moved{Head: program.OrNull(r.Entry), Branch: r.Branch, Seq: r.Seq, Kept: r.Kept}
}

// Branch is `coppice branch`.
func Branch(a *program.App) *cobra.Command {
	c := &cli{a}
	var o coppice.BranchOptions
	var root bool
	cmd := &cobra.Command{
		Use:   "branch SESSION ENTRY",
		Short: "Grow at an entry next, with the state of then",
		Long: `Grow at an entry next. The agent's state becomes what it was there; nothing of the other lines is lost.
With --root instead of ENTRY a new root comes next.`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: program.Complete(c.SessionIDs, c.Places(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if root == (len(args) == 2) {
				return program.Usage("give either ENTRY or --root")
			}
			entry := append(args, "")[1]
			return c.move(cmd, args[0], func(s *coppice.Session) (coppice.Receipt, error) {
				return s.Branch(cmd.Context(), entry, &o)
			})
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", "", "name of the new branch; default: that of the line it is on")
	cmd.Flags().StringVar(&o.Summary, "summary", "", "what the line that is left was about: the model sees it")
	cmd.Flags().BoolVar(&root, "root", false, "begin anew: a new root comes next")
	return cmd
}

// Switch is `coppice switch`.
func Switch(a *program.App) *cobra.Command {
	c := &cli{a}
	return &cobra.Command{
		Use:               "switch SESSION ENTRY|BRANCH",
		Short:             "Go to a branch, or to the newest leaf below an entry",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: program.Complete(c.SessionIDs, c.Places(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.move(cmd, args[0], func(s *coppice.Session) (coppice.Receipt, error) {
				return s.Switch(cmd.Context(), args[1])
			})
		},
	}
}

// Label is `coppice label`.
func Label(a *program.App) *cobra.Command {
	c := &cli{a}
	return &cobra.Command{
		Use:               "label SESSION ENTRY [TEXT]",
		Short:             "Name an entry for people; without TEXT take its name away",
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: program.Complete(c.SessionIDs, c.Places(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := append(args, "")[2]
			return c.move(cmd, args[0], func(s *coppice.Session) (coppice.Receipt, error) {
				return s.Label(cmd.Context(), args[1], text)
			})
		},
	}
}

// move runs a command that is one commit and leaves the session somewhere.
func (c *cli) move(cmd *cobra.Command, id string, do func(s *coppice.Session) (coppice.Receipt, error)) error {
	return c.WithSession(cmd.Context(), id, nil, func(_ *program.Store, s *coppice.Session) error {
		before := s.Head()
		r, err := do(s)
		if err != nil {
			return err
		}
		if c.JSON {
			return c.Emit(movedTo(r))
		}
		return c.movedText(r, before.Seq)
	})
}

func (c *cli) movedText(r coppice.Receipt, before uint64) error {
	head := "before every root"
	if r.Entry != "" {
		head = "at " + term.Line(r.Entry)
	}
	text := head + ", branch " + term.Line(r.Branch)
	if r.Seq == before || r.Commit == "" {
		return c.Text("already %s", text)
	}
	if r.Kept != "" {
		text += "; the line that was left is branch " + term.Line(r.Kept)
	}
	return c.Text("seq %d: %s", r.Seq, text)
}
