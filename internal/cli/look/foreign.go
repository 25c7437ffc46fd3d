package look

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

// foreign writes a session in another program's format, and says what that format could not be told.
func (c *cli) foreign(ctx context.Context, st *program.Store, id string, f interop.Format, w io.Writer) (interop.Losses, error) {
	var losses interop.Losses
	err := c.asPi(ctx, st, id, func(s *coppice.Session, src interop.Source, h interop.Header) (err error) {
		losses, err = formats.Write(w, f, h, c.entries(src), s.Head().Entry)
		return err
	})
	return losses, err
}

// original writes the bytes that were imported, and behind them what was added since as lines of their format.
// Where that format has no place for more it writes the bytes alone, and says how much stayed behind.
func (c *cli) original(ctx context.Context, st *program.Store, id string, w io.Writer) (interop.Losses, error) {
	known, total, err := c.counts(ctx, st, id)
	if err != nil || known == 0 || known == total {
		if err == nil {
			err = st.Export(ctx, id, w)
		}
		return nil, err
	}
	first, err := spool(func(w io.Writer) error { return st.Export(ctx, id, w) })
	if err != nil {
		return nil, err
	}
	defer first.remove()
	f, err := formats.Told(first.source(id + ".jsonl"))
	if err != nil {
		return nil, fmt.Errorf("export %s: %w", id, err)
	}
	var losses interop.Losses
	err = c.asPi(ctx, st, id, func(_ *coppice.Session, src interop.Source, h interop.Header) error {
		in, err := os.Open(first.name)
		if err != nil {
			return err
		}
		defer in.Close()
		losses, err = formats.Continue(w, f, in, h, known, c.entries(src))
		if !errors.Is(err, formats.ErrNoAppend) {
			return err
		}
		if _, err := in.Seek(0, io.SeekStart); err != nil {
			return err
		}
		losses = interop.Losses{fmt.Sprintf("entries added since, for which %s has no place", f): total - known}
		_, err = io.Copy(w, in)
		return err
	})
	return losses, err
}

// counts tells how many entries came with the import, and how many there are. 0 = it was not imported.
func (c *cli) counts(ctx context.Context, st *program.Store, id string) (known, total int, err error) {
	s, err := st.Open(ctx, id, program.Reading())
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	imported := false
	for com, err := range s.Log(ctx, coppice.Target{}) { // newest first
		if err != nil {
			return 0, 0, err
		}
		imported = imported || com.Reason == "import"
		if total += com.Entries; imported {
			known += com.Entries
		}
	}
	if !imported {
		known = 0
	}
	return known, total, nil
}

// asPi gives a session as a pi v3 file that can be read more than once.
func (c *cli) asPi(ctx context.Context, st *program.Store, id string, use func(s *coppice.Session, src interop.Source, h interop.Header) error) (err error) {
	s, err := st.Open(ctx, id, program.Reading())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	lines, err := spool(func(w io.Writer) error { return st.ExportPi(ctx, id, w) })
	if err != nil {
		return err
	}
	defer lines.remove()
	src := lines.source(id)
	r, err := formats.Open(src, interop.Pi, interop.Options{Now: c.Now(), Rand: rand.Reader})
	if err != nil {
		return err
	}
	h, err := r.Header()
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if title := s.Info().Title; title != "" {
		h.Title = title
	}
	return use(s, src, h)
}

// entries are those of a pi v3 file of ours; the line that makes pi go on at the head is none of the session's.
func (c *cli) entries(src interop.Source) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		r, err := formats.Open(src, interop.Pi, interop.Options{Now: c.Now(), Rand: rand.Reader})
		if err != nil {
			yield(transcript.Draft{}, err)
			return
		}
		defer r.Close()
		if _, err := r.Header(); err != nil {
			yield(transcript.Draft{}, err)
			return
		}
		for {
			d, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && isHead(d.Raw) {
				continue
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// isHead tells the line that ExportPi puts behind the others.
func isHead(raw []byte) bool {
	l, err := transcript.ParseLine(raw)
	if err != nil || l.Type != "custom" {
		return false
	}
	var f struct {
		Kind string `json:"customType"`
	}
	return transcript.Entry{Type: l.Type, Raw: raw}.Decode(&f) == nil && f.Kind == "coppice.head"
}

// spooled is a file of the command's own.
type spooled struct{ name string }

func spool(write func(io.Writer) error) (s spooled, err error) {
	f, err := os.CreateTemp("", "coppice-export-")
	if err != nil {
		return s, err
	}
	s.name = f.Name()
	if err := errors.Join(write(f), f.Close()); err != nil {
		s.remove()
		return s, err
	}
	return s, nil
}

func (s spooled) source(name string) interop.Source {
	return interop.Source{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(s.name) }}
}

func (s spooled) remove() { _ = os.Remove(s.name) } // what stays of it lies in the folder for such files
