package pi

import (
	"io"
	"iter"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// program is pi itself, as of its version 1.5.
var program = piwriter.Program{Types: []string{"usage", "context_edit"}}

var preparer piwriter.Preparer

// Write writes a session as a version 3 file that pi loads and opens at head, "" = before the first entry.
// entries, pi v3 lines in the session's order, is walked twice and must yield the same each time. Lines that pi
// loads as they are go out byte for byte. The losses are what pi's format cannot express, by kind.
func Write(
	w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	header, lost := piwriter.KeepFields(piwriter.Header(h))
	losses, err := piwriter.WriteFile(w, header, h.Title, entries, head, preparer.Target(program.Target()))
	return piwriter.AddHeaderLoss(losses, err, lost)
}

// Extend writes what was added to a session as lines that go after the last one of the file that it came from, which
// ends with a newline. entries are all of the session's in their order, the first known of which came from the file.
// A custom entry after them leads to head, "" = before the first entry, where the last line does not.
func Extend(
	w io.Writer, _ interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	return preparer.Append(w, known, entries, head, program.Target(), piwriter.Existing{})
}
