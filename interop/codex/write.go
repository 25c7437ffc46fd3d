package codex

import (
	"errors"
	"io"
	"iter"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// Write writes a session as a rollout that `codex resume` loads: the line of conversation that ends at
// head, "" = before the first entry. entries, lines of pi's format version 3 in the session's order, is
// walked twice and must yield the same each time. Codex finds the file as ~/.codex/sessions/ and
// FileName. The losses are what the format cannot express, by kind. The error wraps interop.ErrHead for
// a head that is none of the entries.
//
// What it guarantees of the file:
//
//   - Its first line is a session_meta with every field that Codex needs to load the file. Each line
//     is a JSON object with the fields that Codex needs of its kind.
//   - It is one line of conversation, that of the head; entries on other branches are counted. The
//     context that Codex makes of it is the session's: a compaction is a line with the history that
//     replaces the one before, the summary first, then what is kept.
//   - Each call is followed by one output of its kind, and each output has one call before it, in
//     the file and in what a compaction keeps. A call without a result is answered with "aborted", as
//     Codex does; a result without its call becomes text.
//   - Ids of turns are derived from those of entries: equal input makes equal bytes.
//
// Bounds (I15): about 200 bytes an entry are held, 16 more for each call and each result, the calls
// that wait for a result, and one entry's lines; of what compactions keep at most 32 MiB. A compaction
// over that keeps nothing, which is counted.
func Write(
	w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	p, losses, err := newLinePlan(entries, 0, head)
	if err != nil {
		return nil, err
	}
	out := newWriter(w, h, p, losses)
	out.meta()
	if h.Title != "" {
		losses[lostTitle]++
	}
	return losses, out.run(entries)
}

// Continue copies an imported rollout, compressed or not, and appends what was added since on the line
// of head. entries are all of the session's in their order, the first known of which the reader
// returned under the header h. Where the line leaves the one at the end of the file, an event takes
// back the user's turns that are not on it. Where nothing was added nothing is appended: a torn last
// line is ended only before another one. What is appended to a compressed file is a frame of its own.
// Nothing is appended to a file that cannot be unpacked, and that is a loss.
func Continue(
	w io.Writer, from io.Reader, h interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	end, err := copyOriginal(w, from)
	if err != nil {
		return nil, err
	}
	if end.Broken != nil {
		return lostAdditions(known, entries)
	}
	p, losses, err := newLinePlan(entries, known, head)
	if err != nil {
		return nil, err
	}
	addition := end.Appender(w)
	out := newWriter(addition, h, p, losses)
	out.end, out.ordinal, out.mute, out.known = &end, end.Next, true, known
	out.way = p.Back(losses)
	return losses, errors.Join(out.run(entries), addition.Close())
}

// lostAdditions counts the entries after the known ones.
func lostAdditions(known int, entries iter.Seq2[transcript.Draft, error]) (interop.Losses, error) {
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
	return interop.Losses{lostAdded: n - known}, nil
}
