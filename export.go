package coppice

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/transcript"
)

// Export writes a session as it came: the imported bytes exactly, where they were not pi v3, or the
// lines that were imported; of a session that was made here every line, as pi v3 JSONL.
func (s *Store) Export(ctx context.Context, id string, w io.Writer) error {
	return fail("export", id, s.export(ctx, id, w, (*Session).writeOriginal))
}

// ExportPi writes a session as a pi v3 file: the header and every entry, images put back. Where the head
// is not the last line a custom entry "coppice.head" behind it makes pi go on at the right place.
func (s *Store) ExportPi(ctx context.Context, id string, w io.Writer) error {
	return fail("export", id, s.export(ctx, id, w, (*Session).writePi))
}

func (s *Store) export(ctx context.Context, id string, w io.Writer, write func(*Session, context.Context, *lineWriter) error) error {
	o := s.o.Session
	o.ReadOnly = true
	h, err := s.Open(ctx, id, &o)
	if err != nil {
		return err
	}
	lw := &lineWriter{w: bufio.NewWriterSize(w, 1<<16)}
	if err = write(h, ctx, lw); err == nil {
		err = lw.w.Flush()
	}
	return errors.Join(err, h.Close())
}

// lineWriter writes lines and remembers the head of the last one.
type lineWriter struct {
	w *bufio.Writer
}

func (lw *lineWriter) line(raw []byte) error {
	if _, err := lw.w.Write(raw); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := lw.w.WriteByte('\n'); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// importReasons are those of the commits that stand among and before an import's.
var importReasons = []string{"create", "import", "roll"}

func (s *Session) writeOriginal(ctx context.Context, lw *lineWriter) error {
	st := s.j.State()
	if st.Original != "" {
		raw, err := s.j.GetOriginal(ctx, st.Original)
		if err == nil {
			_, err = lw.w.Write(raw)
		}
		return err
	}
	if err := lw.line(st.Header); err != nil {
		return err
	}
	imported := false
	var batch [][]byte // the lines since the last commit
	return s.eachLine(ctx, st, func(l journal.Line, raw []byte) error {
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
		if imported && !slices.Contains(importReasons, commit.Data.Reason) {
			return errStop // what was appended since is not of the original
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

func (s *Session) writePi(ctx context.Context, lw *lineWriter) error {
	st := s.j.State()
	if err := lw.line(st.Header); err != nil {
		return err
	}
	last := int64(-1)
	err := s.eachLine(ctx, st, func(l journal.Line, raw []byte) error {
		if l.Commit {
			return nil
		}
		last = int64(l.Ord)
		return lw.line(raw)
	})
	if err != nil || last == st.HeadOrd {
		return err
	}
	now := s.store.o.Now()
	id, err := transcript.NewID(now, s.store.rand)
	if err != nil {
		return err
	}
	head := transcript.Draft{Type: "custom", Body: json.RawMessage(`{"customType":"coppice.head"}`)}
	line, err := head.Line(id, st.Summary.Entry, now)
	if err != nil {
		return err
	}
	return lw.line(line)
}

// eachLine gives every durable line, images put back in those that are no commits; errStop ends it.
func (s *Session) eachLine(ctx context.Context, st *journal.State, f func(l journal.Line, raw []byte) error) error {
	for l, err := range s.j.Lines(ctx, st, nil) {
		if err != nil {
			return err
		}
		raw := l.Raw
		if !l.Commit {
			if raw, err = s.images.line(ctx, s, st, l.Raw); err != nil {
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
