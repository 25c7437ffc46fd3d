package cli

import (
	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
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
	return moved{Head: orNull(r.Entry), Branch: r.Branch, Seq: r.Seq, Kept: r.Kept}
}

// headOnly is movedTo without the branch that was kept, for documents that do not have the field.
func headOnly(r coppice.Receipt) moved {
	r.Kept = ""
	return movedTo(r)
}

// moveHead runs a command that makes one commit which moves the head.
func (c *cli) moveHead(cmd *cobra.Command, id string, do func(s *coppice.Session) (coppice.Receipt, error)) error {
	return c.withSession(cmd.Context(), id, nil, func(_ *countedStore, s *coppice.Session) error {
		before := s.Head()
		r, err := do(s)
		if err != nil {
			return err
		}
		if c.json {
			return c.writeJSON(movedTo(r))
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
		return c.textf("already %s", text)
	}
	if r.Kept != "" {
		text += "; the line that was left is branch " + term.Line(r.Kept)
	}
	return c.textf("seq %d: %s", r.Seq, text)
}

// reportCommit reports a commit about the session itself: as JSON, or as a line for people.
func (c *cli) reportCommit(r coppice.Receipt, format string, args ...any) error {
	if c.json {
		return c.writeJSON(headOnly(r))
	}
	return c.textf(format, args...)
}
