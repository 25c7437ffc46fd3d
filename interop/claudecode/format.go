package claudecode

import (
	"io"
	"iter"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/claudecode/internal/graph"
	"github.com/coppice-go/coppice/interop/claudecode/internal/write"
	"github.com/coppice-go/coppice/transcript"
)

// Detect tells by the first bytes of a file whether it is one of Claude Code's. The last line may be torn.
func Detect(head []byte) bool { return graph.Detect(head) }

// Write writes a session as a file of Claude Code's, every branch of it; the last entry is where it goes on.
// The file is to be called SessionID(header) + ".jsonl". entries are lines of pi's format version 3 in their
// order, without the header. Losses says what the format has no words for.
func Write(w io.Writer, header interop.Header, entries iter.Seq2[transcript.Draft, error]) (interop.Losses, error) {
	return write.Append(w, header, 0, entries, nil)
}

// Append writes the lines for what was added to an imported session, to stand behind the bytes of its original
// file. entries are all of the session's entries in their order, the first known of which the reader gave:
// those are only read, for what the new ones hang on. Where the file would go on elsewhere than at the entry head,
// two lines lead there; "", before the first, is a loss.
func Append(w io.Writer, header interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head string) (interop.Losses, error) {
	return write.Append(w, header, known, entries, &head)
}

// SessionID gives the id under which Claude Code finds a session: its own if it is a UUID, else one made of it.
func SessionID(header interop.Header) string { return write.SessionID(header) }
