package transfer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Images returns a stored line with its images put back.
type Images func(ctx context.Context, st *state.State, stored []byte) ([]byte, error)

// Original writes a session in its original form: the imported bytes exactly, or the imported lines; of a session that
// was not imported every line.
func Original(ctx context.Context, j *journal.Journal, images Images, w io.Writer) error {
	return write(w, func(lw *lineWriter) error { return lw.original(ctx, j, images) })
}

// Pi writes a session as a pi v3 file that continues at the head. tail makes the line of a draft below an entry.
func Pi(
	ctx context.Context, j *journal.Journal, images Images, w io.Writer,
	tail func(d transcript.Draft, parent string) ([]byte, error),
) error {
	return write(w, func(lw *lineWriter) error { return lw.pi(ctx, j, images, tail) })
}

func write(w io.Writer, f func(lw *lineWriter) error) error {
	lw := &lineWriter{w: bufio.NewWriterSize(w, 1<<16)}
	if err := f(lw); err != nil {
		return err
	}
	return lw.w.Flush()
}

type lineWriter struct{ w *bufio.Writer }

func (lw *lineWriter) line(raw []byte) error {
	if _, err := lw.w.Write(raw); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := lw.w.WriteByte('\n'); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// importReasons are the reasons of the commits of an import and of those among them.
var importReasons = []string{"create", "import", "roll"}

// amends reports whether a commit has only amendments, which stay valid for any import.
func amends(reason string, lines [][]byte) bool {
	return reason == "amend" && !slices.ContainsFunc(lines, func(raw []byte) bool {
		l, err := transcript.ParseLine(raw)
		if err != nil {
			return true
		}
		_, ok := l.Entry(0).Amendment()
		return !ok
	})
}

func (lw *lineWriter) original(ctx context.Context, j *journal.Journal, images Images) error {
	st := j.State()
	if st.Original != "" {
		return j.WriteOriginal(ctx, st.Original, lw.w)
	}
	if err := lw.line(st.Header); err != nil {
		return err
	}
	imported := false
	var batch [][]byte // the lines since the last commit
	return eachLine(ctx, j, st, images, func(l state.Line, raw []byte) error {
		if !l.Commit {
			batch = append(batch, raw)
			return nil
		}
		var commit struct {
			Data struct {
				Reason string `json:"reason"`
			} `json:"data"`
		}
		if err := json.Unmarshal(l.Raw, &commit); err != nil {
			return fmt.Errorf("commit line %d: %w", l.Ord, err)
		}
		imported = imported || commit.Data.Reason == "import"
		if imported && amends(commit.Data.Reason, batch) { // a later import may follow
			batch = batch[:0]
			return nil
		}
		if imported && !slices.Contains(importReasons, commit.Data.Reason) {
			return errStop // later entries are not part of the original
		}
		for _, raw := range batch {
			if err := lw.line(raw); err != nil {
				return err
			}
		}
		batch = batch[:0]
		return nil
	})
}

func (lw *lineWriter) pi(
	ctx context.Context, j *journal.Journal, images Images,
	tail func(d transcript.Draft, parent string) ([]byte, error),
) error {
	st := j.State()
	if err := lw.line(rawjson.ValidText(st.Header)); err != nil {
		return err
	}
	last := int64(-1)
	err := eachLine(ctx, j, st, images, func(l state.Line, raw []byte) error {
		if l.Commit {
			return nil
		}
		last = int64(l.Ord)
		return lw.line(rawjson.ValidText(raw))
	})
	if err != nil || last == st.HeadOrd {
		return err
	}
	head := transcript.Draft{Type: "custom", Body: json.RawMessage(`{"customType":"coppice.head"}`)}
	line, err := tail(head, st.Summary.Entry)
	if err != nil {
		return err
	}
	return lw.line(line)
}

// errStop ends eachLine.
var errStop = errors.New("stop")

// eachLine passes every durable line to f, with images restored except in commit lines; errStop ends it.
func eachLine(
	ctx context.Context, j *journal.Journal, st *state.State, images Images, f func(l state.Line, raw []byte) error,
) error {
	for l, err := range j.Lines(ctx, st, nil) {
		if err != nil {
			return err
		}
		raw := l.Raw
		if !l.Commit {
			if raw, err = images(ctx, st, l.Raw); err != nil {
				return err
			}
		}
		if err := f(l, raw); err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
	}
	return nil
}
