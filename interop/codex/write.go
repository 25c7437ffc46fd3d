package codex

import (
	"errors"
	"io"
	"iter"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/codex/internal/original"
	"github.com/coppice-go/coppice/interop/codex/internal/write"
	"github.com/coppice-go/coppice/transcript"
)

// Write writes a session as a rollout that `codex resume` loads: the line of conversation that ends at head, "" =
// nothing was said yet. entries, lines of pi's format version 3 in the session's order, is walked twice and must give
// the same each time. Codex finds the file as ~/.codex/sessions/ and FileName. The losses say what it could not be
// told, by kind. The error wraps interop.ErrHead for a head that is none of the entries.
func Write(w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string) (interop.Losses, error) {
	return write.File(w, h, entries, head)
}

// Continue writes the bytes of an imported rollout, which from gives, as they are, compressed or not, and behind them what was added
// since on the line of head. entries are all of the session's in their order, the first known of which the reader gave
// under the header h. Where the line leaves the one at the end of the file, an event takes back the user's turns that
// are not on it. Nothing added, nothing written: a line that is torn at the end is ended only before another one. Behind
// a compressed file stands a frame of its own; where the file cannot be unpacked nothing does, and that is a loss.
func Continue(w io.Writer, from io.Reader, h interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head string) (interop.Losses, error) {
	end, err := original.Copy(w, from)
	if err != nil {
		return nil, err
	}
	if end.Broken != nil {
		return lost(known, entries)
	}
	behind := end.Behind(w)
	losses, err := write.Append(behind, h, known, entries, head, end)
	return losses, errors.Join(err, behind.Close())
}

// lost counts what stands behind the known entries.
func lost(known int, entries iter.Seq2[transcript.Draft, error]) (interop.Losses, error) {
	n := 0
	for _, err := range entries {
		if err != nil {
			return nil, err
		}
		n++
	}
	if n <= known {
		return interop.Losses{}, nil
	}
	return interop.Losses{write.LostAdded: n - known}, nil
}

// FileName gives the name under which Codex finds a session's file, in its folder of sessions: YYYY/MM/DD/rollout-*.
func FileName(h interop.Header) string { return write.Name(h) }

// SessionID gives the id under which Codex finds a session: its own if it is a UUID, else one made of it.
func SessionID(h interop.Header) string { return write.SessionID(h) }
