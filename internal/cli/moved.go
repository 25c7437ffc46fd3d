package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/branch"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
)

// moving are the options of a session whose head a command moves: the line that is left gets a name.
func moving() *coppice.SessionOptions { return &coppice.SessionOptions{NameLeft: true} }

// moveHead runs a command that makes one commit which moves the head.
func (c *cli) moveHead(cmd *cobra.Command, id string, do func(s *coppice.Session) (coppice.Receipt, error)) error {
	return c.withSession(cmd.Context(), id, moving(), func(_ *countedStore, s *coppice.Session) error {
		before := s.Head()
		r, err := do(s)
		if err != nil {
			return err
		}
		if c.json {
			return c.writeJSON(api.MovedOf(r))
		}
		back, err := wayBack(cmd.Context(), s, before)
		if err != nil {
			return err
		}
		kept, err := keptName(cmd.Context(), s, r.Kept)
		if err != nil {
			return err
		}
		return c.movedText(r, before.Seq, kept, back)
	})
}

// keptName returns the name of a line that was left, with its title; "" = there is none.
func keptName(ctx context.Context, s *coppice.Session, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	t, err := s.Tree(ctx)
	if err != nil {
		return "", err
	}
	return cmp.Or(term.BranchName(name, branch.Titles(t)[name]), name), nil
}

// movedText reports a move, with the name of the line that was left, and on a second line the command that undoes it,
// if there is one.
func (c *cli) movedText(r coppice.Receipt, before uint64, kept, back string) error {
	text := headText(r.Entry) + ", branch " + term.Line(r.Branch)
	if r.Seq == before || r.Commit == "" {
		return c.textf("already %s", text)
	}
	if kept != "" {
		text += "; the path that was left is kept as branch " + term.Line(kept)
	}
	if err := c.textf("seq %d: %s", r.Seq, text); err != nil || back == "" {
		return err
	}
	return c.textf("back: %s", term.Line(back))
}

// headText describes where the head is.
func headText(entry string) string {
	if entry == "" {
		return "before the first entry"
	}
	return "at " + term.Line(shortid.One(entry))
}

// wayBack returns the command that goes back to where the head was before a move; "" = it is there.
func wayBack(ctx context.Context, s *coppice.Session, before checkpoint.Head) (string, error) {
	now, id := s.Head().Entry, shortid.One(s.ID())
	switch before.Entry {
	case now:
		return "", nil
	case "":
		return "coppice branch " + id + " --root", nil
	}
	t, err := s.Tree(ctx)
	if err != nil {
		return "", err
	}
	name := ""
	for _, b := range t.Branches() {
		typed := term.Line(b.Name) == b.Name // a name that a person can type, and a terminal can show
		if b.Head == before.Entry && typed && (name == "" || b.Name == before.Branch) {
			name = b.Name
		}
	}
	if name == "" { // a place on the line, which has no name
		return "coppice branch " + id + " " + shellQuote(shortid.One(before.Entry)), nil
	}
	return "coppice switch " + id + " " + shellQuote(name), nil
}

// reportCommit reports a commit about the session itself: as JSON, or as a line for people.
func (c *cli) reportCommit(r coppice.Receipt, format string, args ...any) error {
	if c.json {
		return c.writeJSON(api.Stayed(r))
	}
	return c.textf(format, args...)
}
