package atomic

import (
	"io"
	"iter"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

var program = piwriter.Program{Types: []string{"context_compaction", "session_summary"}, NoSystem: true, Verbatim: true}

var preparer piwriter.Preparer

// Write writes a session as a file that atomic loads and opens at head, "" = before the first entry. Its title is an
// entry. entries are pi v3 lines in the session's order; they are iterated twice, and both passes must yield the same
// lines. The losses count what atomic's format cannot express, by kind.
func Write(
	w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	header, lost := piwriter.RemoveForeignFields(piwriter.Header(h), "internal", "workflow")
	losses, err := piwriter.WriteFile(w, header, h.Title, entries, head, preparer.Target(program.Target()))
	return piwriter.AddHeaderLoss(losses, err, lost)
}

// Extend writes the entries added to a session as lines to append to its original file, which ends with a newline.
// entries are all of the session's in order; the first known of them came from the file. If the last line is not at
// head ("" = before the first entry), a custom entry below head follows.
func Extend(
	w io.Writer, _ interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	return preparer.Append(w, known, entries, head, program.Target(), piwriter.Existing{})
}
