package codex

import (
	"errors"
	"io"
	"iter"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// Write writes a session as a rollout that `codex resume` loads: the path from the root to head, "" = before the first
// entry. entries are lines of pi's format version 3 in the session's order; Write iterates twice, and both passes must
// yield the same lines. Codex finds the file in ~/.codex/sessions/ under FileName. The losses count what the format
// cannot express, by kind. The error wraps interop.ErrHead if head is not an entry.
//
// Guarantees:
//
//   - The first line is a session_meta with every field that Codex needs to load the file. Each line is a JSON object
//     with the required fields of its kind.
//   - The file has one path of conversation, that of the head; entries on other branches are counted. The context that
//     Codex computes from it is the session's. A compaction is a line with the new history: the summary first, then the
//     entries that it keeps.
//   - Each call is followed by one output of its kind, and each output has one call before it, in the file and in the
//     history of a compaction. The output of a call without a result is "aborted", as Codex writes it; a result without
//     its call becomes text.
//   - IDs of turns are derived from those of entries: equal input makes equal bytes.
//
// Bounds (I15): about 200 bytes per entry, 16 more for each call and each result, the calls that wait for a result, one
// entry's lines, and at most 32 MiB of history for compactions. A compaction over that keeps nothing, which is counted.
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

// Continue copies an imported rollout, compressed or not, and appends the entries that were added since on the path of
// head. entries are all entries of the session in order; the reader returned the first known of them, under the header
// h. If the path leaves the one at the end of the file, an event rolls back the user's turns that are not on it. If no
// entry was added, nothing is appended: an incomplete last line is ended only before another line. Lines appended to a
// compressed file are a frame of their own. Nothing is appended to a file whose decompression fails; the added entries
// are losses.
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
