package pi

import (
	"io"
	"iter"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/pi/emit"
	"github.com/coppice-go/coppice/interop/pi/family"
	"github.com/coppice-go/coppice/transcript"
)

// self is pi itself, as of its version 1.5.
var self = family.Member{Types: []string{"usage", "context_edit"}}

// Write writes a session as a version 3 file that pi loads and opens at head, "" = before the first entry.
// entries, pi v3 lines in the session's order, is walked twice and must give the same each time. Lines that pi
// loads as they are go out byte for byte. The losses say what pi could not be told, by kind.
func Write(w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string) (interop.Losses, error) {
	return emit.File(w, family.Header(h), h.Title, entries, head, self.Target())
}

// Append writes entries as lines that go behind a file's last one, which ends with a newline. Each hangs on an
// entry of the file, or on one before it.
func Append(w io.Writer, entries iter.Seq2[transcript.Draft, error]) (interop.Losses, error) {
	return emit.Append(w, entries, self.Target())
}
