package atomic

import (
	"io"
	"iter"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/pi/emit"
	"github.com/coppice-go/coppice/interop/pi/family"
	"github.com/coppice-go/coppice/transcript"
)

var self = family.Member{Types: []string{"context_compaction", "session_summary"}, NoSystem: true, Verbatim: true}

// Write writes a session as a file that atomic loads and opens at head, "" = before the first entry. entries, pi
// v3 lines in the session's order, is walked twice and must give the same each time. The losses say what atomic
// could not be told, by kind.
func Write(w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string) (interop.Losses, error) {
	return emit.File(w, family.Header(h), h.Title, entries, head, self.Target())
}

// Append writes entries as lines that go behind a file's last one, which ends with a newline. Each hangs on an
// entry of the file, or on one before it.
func Append(w io.Writer, entries iter.Seq2[transcript.Draft, error]) (interop.Losses, error) {
	return emit.Append(w, entries, self.Target())
}
