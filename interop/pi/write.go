package pi

import (
	"io"
	"iter"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/outward"
	"github.com/coppice-go/coppice/interop/pi/emit"
	"github.com/coppice-go/coppice/interop/pi/family"
	"github.com/coppice-go/coppice/transcript"
)

// self is pi itself, as of its version 1.5.
var self = family.Member{Types: []string{"usage", "context_edit"}}

var format outward.Format

// Write writes a session as a version 3 file that pi loads and opens at head, "" = before the first entry.
// entries, pi v3 lines in the session's order, is walked twice and must give the same each time. Lines that pi
// loads as they are go out byte for byte. The losses say what pi could not be told, by kind.
func Write(w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string) (interop.Losses, error) {
	header, lost := family.Only(family.Header(h))
	losses, err := emit.File(w, header, h.Title, entries, head, format.Target(self.Target()))
	return family.Counted(losses, err, lost)
}

// Extend writes what was added to a session as lines that go behind the last one of the file that it came from, which
// ends with a newline. entries are all of the session's in their order, the first known of which came from the file.
// A custom entry behind them leads to head, "" = before the first entry, where the last line does not.
func Extend(w io.Writer, _ interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head string) (interop.Losses, error) {
	return format.Append(w, known, entries, head, self.Target(), outward.File{})
}
