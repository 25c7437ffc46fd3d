package program

import "github.com/spf13/pflag"

// Narrow are the flags of commands that show what they find.
type Narrow struct {
	Cwd   string
	Limit int
}

// Flags adds them; what is what the command finds.
func (n *Narrow) Flags(f *pflag.FlagSet, what string) {
	f.StringVar(&n.Cwd, "cwd", "", "only "+what+" of this working directory")
	f.IntVar(&n.Limit, "limit", 50, "at most so many; 0 = all")
}

// Check refuses what cannot be, and makes the directory whole.
func (n *Narrow) Check() (err error) {
	if n.Limit < 0 {
		return Usage("--limit %d: want 0 or more", n.Limit)
	}
	n.Cwd, err = Absolute(n.Cwd)
	return err
}

// Found ends a command that showed n things: its document, or, for people, a remark where there are more or none.
func (arr *Array) Found(n int, more bool, err error) error {
	switch {
	case arr.a.JSON:
		return arr.End(err)
	case err != nil:
		return err
	case more:
		arr.a.Note("there are more; --limit shows them")
	case n == 0:
		arr.a.Note("nothing found")
	}
	return nil
}
