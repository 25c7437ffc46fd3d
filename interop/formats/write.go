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
	// continuer writes the bytes of an original, and then the entries added since.
	continuer func(
		w io.Writer, original io.Reader, h interop.Header, known int, entries iter.Seq2[transcript.Draft, error],
		head string,
	) (interop.Losses, error)
	// extender writes the entries added since, without the original.
	extender func(
		w io.Writer, h interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head string,
	) (interop.Losses, error)
)

// ErrNoAppend is wrapped by the error for a file to which no entries can be appended in its format.
var ErrNoAppend = errors.New("nothing can be added to a file of this format")

// Write writes a session as a file of a format. The file opens at head, "" = before the first entry. entries are pi v3
// lines in the session's order. Write makes three passes over them, five if there are amendments; every pass must yield
// the same lines. An amended entry is written with its newest amendment, under its own ID; amendments and hidden
// entries are not written. Every line is valid UTF-8 without half a surrogate pair. A text replaces images that the
// program's API refuses. The losses count what the format cannot express, by kind.
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

// Continue writes the unchanged bytes of an imported file, and then the entries added since as lines of its format.
// entries are all of the session's in order; the file's reader returned the first known of them, under the header h.
// The parent of each further entry precedes it. head is the entry at which the format's program must open the file, ""
// = before the first. If the program would open it elsewhere, a last line moves it to head, except where an import puts
// the head. An incomplete last line of the original gets a line feed first. Package codex documents how its rollouts
// continue.
//
// Continue returns ErrNoAppend before it writes anything if entries cannot be appended: the file has no IDs (pi's
// version 1, operator's older form), or it is a damaged file of pi's harness, which the harness would not load. The
// original of a harness file must be an io.Seeker. Amendments of entries in the original are lines of their own if the
// format is of pi's family, and losses otherwise.
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

// after returns a continuer for files whose added lines follow the original.
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

// begin returns the beginning of an original, and a reader of all of it.
func begin(original io.Reader) (in *bufio.Reader, start []byte, err error) {
	in = bufio.NewReaderSize(original, headBytes)
	start, err = in.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("read the original: %w", err)
	}
	return in, start, nil
}

// appendTo copies an original, and appends the output of extend on a new line.
func appendTo(
	w io.Writer, original io.Reader, extend func(w io.Writer) (interop.Losses, error),
) (interop.Losses, error) {
	end := &lastByte{w: w}
	if _, err := io.Copy(end, original); err != nil {
		return nil, fmt.Errorf("copy the original: %w", err)
	}
	return extend(&ender{w: w, need: end.any && end.last != '\n'})
}

// hasIDs reports whether a file is a tree and not only a sequence, by its header.
func hasIDs(head []byte) bool {
	for _, l := range jsonl.HeadLines(head) {
		switch l.Type {
		case "metadata":
			return false
		case "session", "session_header":
			v := rawjson.Field(l.Raw, "version")
			if rawjson.IsNumber(rawjson.Field(l.Raw, "timestamp")) {
				return true // operator's version field is optional
			}
			n, err := strconv.ParseFloat(string(bytes.Trim(v, `"`)), 64)
			return v != nil && (err != nil || n >= 2)
		}
	}
	return true
}

// toClaude writes a file of Claude Code, which continues from its last line. If the head is another line, an entry
// without content below the head is added.
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

// ender ends the current line before the first write.
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
