package formats

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/claudecode"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

type (
	writer func(
		w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string,
	) (interop.Losses, error)
	// continuer writes the bytes of an original and then what was added since.
	continuer func(
		w io.Writer, original io.Reader, h interop.Header, known int, entries iter.Seq2[transcript.Draft, error],
		head string,
	) (interop.Losses, error)
	// extender writes what was added to a file since, without the file.
	extender func(
		w io.Writer, h interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head string,
	) (interop.Losses, error)
)

// ErrNoAppend is wrapped by the error for a file that has no place for more entries in its own format.
var ErrNoAppend = errors.New("nothing can be added to a file of this format")

// Write writes a session as a file of a format that opens at head, "" = before the first entry. entries, pi v3
// lines in the session's order, is walked three times, five where entries are amended, and must yield the same each
// time. The file has what the newest amendment of an entry says under the entry's id, and neither amendments nor what
// they hide. Every line is valid UTF-8 without half a surrogate pair, and images that the program's API refuses are
// named in words. The losses are what the format cannot express, by kind.
func Write(
	w io.Writer, f interop.Format, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	t, err := Of(f)
	if err != nil {
		return nil, err
	}
	entries, head, _, err = amend(entries, head, 0)
	if err != nil {
		return nil, err
	}
	c := newChecker(t, 0)
	h.Raw, _ = rawjson.Whole(h.Raw)
	losses, err := t.write(w, h, c.lines(entries), head)
	return plus(losses, c.losses), err
}

// Continue writes the bytes of an imported file as they are, and after them what was added since as
// lines of its format. entries are all of the session's in their order, the first known of which the
// file's reader gave under the header h; each further one hangs on one before it. head is the entry at
// which the format's program is to open the file, "" = before the first: where it would open it
// elsewhere, and an import did not put the head there, a last line leads to it. A last line without a
// newline gets one, else the first addition would run into it. Codex's rollouts are continued as
// package codex says. ErrNoAppend, before anything is written, for a file that has no place for more:
// one without ids, as pi's version 1 and operator's older form, and one of pi's harness with damage,
// which the harness would not load; of the harness's, original must be an io.Seeker.
// Amendments of what the file has are lines of their own where the format is pi's or one like it, and losses elsewhere.
func Continue(
	w io.Writer, f interop.Format, original io.Reader, h interop.Header,
	known int, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	t, err := Of(f)
	if err != nil {
		return nil, err
	}
	entries, head, lost, err := continued(t, entries, head, known)
	if err != nil {
		return nil, err
	}
	if t.extend == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoAppend, f)
	}
	c := newChecker(t, known)
	losses, err := t.extend(w, original, h, known, c.lines(entries), head)
	if err != nil {
		return nil, err
	}
	c.count(lostAmendment, lost)
	return plus(losses, c.losses), nil
}

// after continues files whose additions come after what they have.
func after(extend extender) continuer {
	return func(
		w io.Writer, original io.Reader, h interop.Header, known int, entries iter.Seq2[transcript.Draft, error],
		head string,
	) (interop.Losses, error) {
		in, start, err := begin(original)
		if err != nil {
			return nil, err
		}
		if !hasIDs(start) {
			return nil, fmt.Errorf("%w: its entries have no ids", ErrNoAppend)
		}
		return appendTo(w, in, func(w io.Writer) (interop.Losses, error) {
			return extend(w, h, known, entries, head)
		})
	}
}

// begin returns the beginning of an original, and what reads all of it.
func begin(original io.Reader) (in *bufio.Reader, start []byte, err error) {
	in = bufio.NewReaderSize(original, headBytes)
	start, err = in.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("read the original: %w", err)
	}
	return in, start, nil
}

// appendTo copies an original, and then what extend writes, on a line of its own.
func appendTo(
	w io.Writer, original io.Reader, extend func(w io.Writer) (interop.Losses, error),
) (interop.Losses, error) {
	end := &lastByte{w: w}
	if _, err := io.Copy(end, original); err != nil {
		return nil, fmt.Errorf("copy the original: %w", err)
	}
	return extend(&ender{w: w, need: end.any && end.last != '\n'})
}

// hasIDs reports whether a file holds a tree, and not only a sequence, by its header.
func hasIDs(head []byte) bool {
	for _, l := range jsonl.HeadLines(head) {
		switch l.Type {
		case "metadata":
			return false
		case "session", "session_header":
			v := rawjson.Field(l.Raw, "version")
			if rawjson.IsNumber(rawjson.Field(l.Raw, "timestamp")) {
				return true // operator's need not say it
			}
			n, err := strconv.ParseFloat(string(bytes.Trim(v, `"`)), 64)
			return v != nil && (err != nil || n >= 2)
		}
	}
	return true
}

// toClaude writes a file of Claude Code's, which continues at its last line: an entry that says nothing leads to
// the head where that is another.
func toClaude(
	w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	return claudecode.Write(w, h, func(yield func(transcript.Draft, error) bool) {
		last := ""
		for d, err := range entries {
			if err == nil {
				last = d.ID
				if l, err := transcript.ParseLine(bytes.TrimSuffix(d.Raw, []byte("\n"))); err == nil {
					last = l.ID
				}
			}
			if !yield(d, err) {
				return
			}
		}
		if last != head {
			yield(transcript.Draft{Raw: rawjson.Object("type", []byte(`"custom"`), "id", []byte(`"coppice-head"`),
				"parentId", piwriter.OrNull(head),
				"timestamp", []byte(`"1970-01-01T00:00:00.000Z"`), "customType", []byte(`"coppice.head"`))}, nil)
		}
	})
}

type lastByte struct {
	w    io.Writer
	last byte
	any  bool
}

func (l *lastByte) Write(p []byte) (int, error) {
	n, err := l.w.Write(p)
	if n > 0 {
		l.last, l.any = p[n-1], true
	}
	return n, err
}

// ender ends a line before the first thing that is written.
type ender struct {
	w    io.Writer
	need bool
}

func (e *ender) Write(p []byte) (int, error) {
	if e.need && len(p) > 0 {
		if _, err := e.w.Write([]byte("\n")); err != nil {
			return 0, err
		}
		e.need = false
	}
	return e.w.Write(p)
}
