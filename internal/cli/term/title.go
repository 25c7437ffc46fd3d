package term

import (
	"fmt"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/transcript"
)

// Title writes the line above a tree or a part of it: the title, id and size of the session.
func Title(s *Screen, info checkpoint.Summary, t *transcript.Tree) error {
	text := Count(info.Entries, "entry", "entries")
	if n := len(t.Branches()); n > 1 {
		text += ", " + Count(n, "branch", "branches")
	}
	title := Line(info.Title) // without the preview, which is part of the tree
	if title != "" {
		title += "  "
	}
	if _, err := fmt.Fprintf(s, "%s%s\n", s.Paint(Bold, title),
		s.Paint(Dim, Cut(shortid.One(info.ID)+"  "+text, max(0, s.Width()-Columns(title))))); err != nil {
		return fmt.Errorf("write the title: %w", err)
	}
	return nil
}
