package term

import (
	"fmt"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/transcript"
)

// Title says above a tree, or a part of it, what session it is of.
func Title(s *Screen, info checkpoint.Summary, t *transcript.Tree) error {
	text := Count(info.Entries, "entry", "entries")
	if n := len(t.Branches()); n > 1 {
		text += ", " + Count(n, "branch", "branches")
	}
	title := Line(info.Title) // the preview, which stands in for it elsewhere, is in the tree itself
	if title != "" {
		title += "  "
	}
	if _, err := fmt.Fprintf(s, "%s%s\n", s.Paint(Bold, title),
		s.Paint(Dim, Cut(info.ID+"  "+text, max(0, s.Width()-Columns(title))))); err != nil {
		return fmt.Errorf("write the title: %w", err)
	}
	return nil
}
