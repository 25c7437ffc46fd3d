// Package exporter writes a session as a file: as another program's, as the file that was imported, or as a document.
//
// Guarantees: the store is only read. What a format cannot express is counted, never left out silently. A file that was
// imported comes back byte for byte, before what was added since.
package exporter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/export"
	"github.com/coppice-go/coppice/internal/parallel"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/secrets"
	"github.com/coppice-go/coppice/transcript"
)

// HasLines reports whether a format can be written of one line alone.
func HasLines(format string) bool { return format == "markdown" || format == "html" }

// Exporter writes the sessions of a store. Safe for concurrent use.
type Exporter struct {
	Store *coppice.Store
	Now   time.Time // of what has no time of its own

	// Line is an entry: of markdown and html only the path to it is written. "" = every branch.
	Line string

	Secrets Secrets // treatment of credentials; of an original they are looked for only with Redact
}

// Formats returns the names of the formats in which sessions are written.
func Formats() []string {
	var list []string
	for _, f := range formats.All() {
		list = append(list, string(f.Name))
	}
	return append(list, "original", "markdown", "html")
}

// Write writes a session in a format, and returns what the format cannot express. It needs room for the file in the
// folder for temporary files, as nothing is written before all was read; imported bytes alone need none. Of a damaged
// session it writes what a repair would leave, and returns a *DamageError.
func (x Exporter) Write(ctx context.Context, id, format string, w io.Writer) (interop.Losses, error) {
	if x.Line != "" && !HasLines(format) {
		return nil, fmt.Errorf("export to %s writes every branch: a line can be written as markdown or html", format)
	}
	if x.Secrets == Allow || HasLines(format) || format == "original" && x.Secrets != Redact {
		return x.whole(ctx, id, format, w)
	}
	return x.screened(ctx, id, format, w)
}

// whole is Write with all credentials, except in documents.
func (x Exporter) whole(ctx context.Context, id, format string, w io.Writer) (interop.Losses, error) {
	losses, damage := x.write(ctx, id, format, w)
	if !errors.Is(damage, coppice.ErrCorrupt) {
		return losses, damage
	}
	st, err := x.Store.Repaired(ctx, id)
	if err != nil {
		return losses, damage
	}
	x.Store = st
	losses, err = x.write(ctx, id, format, w)
	if err != nil {
		return losses, errors.Join(damage, err)
	}
	return losses, &DamageError{damage}
}

// DamageError is the damage of a session that was written as a repair would leave it.
type DamageError struct{ Damage error }

func (e *DamageError) Error() string { return e.Damage.Error() }

// Unwrap returns what ended the first reading.
func (e *DamageError) Unwrap() error { return e.Damage }

// write is Write without regard to damage.
func (x Exporter) write(ctx context.Context, id, format string, w io.Writer) (interop.Losses, error) {
	switch format {
	case "original":
		return x.original(ctx, id, w)
	case "markdown", "html":
		var losses interop.Losses
		err := afterAll(w, func(w io.Writer) (err error) {
			losses, err = x.document(ctx, id, format, w)
			return err
		})
		return losses, err
	default:
		return x.foreign(ctx, id, interop.Format(format), w)
	}
}

// document writes a session for people to read.
func (x Exporter) document(
	ctx context.Context, id, format string, w io.Writer,
) (losses interop.Losses, err error) {
	s, err := x.Store.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	o := &export.Options{Line: x.Line}
	write := func(w io.Writer) error { return export.Markdown(ctx, s, w, o) }
	if format == "html" {
		write = func(w io.Writer) error { return export.HTML(ctx, s, w, o) }
	}
	if x.Secrets == Allow {
		return nil, write(w)
	}
	by, err := lookThrough(ctx, s, o)
	if err != nil {
		return nil, err
	}
	if losses, err = x.asLosses(id, by); err != nil {
		return nil, err
	}
	if losses == nil {
		return nil, write(w)
	}
	o.Redact = func(raw []byte) []byte {
		raw, _ = secrets.RedactJSON(raw)
		return raw
	}
	out := secrets.NewWriter(w)
	return losses, errors.Join(write(out), out.Close())
}

// foreign writes a session in another program's format, and returns what that format cannot
// express.
func (x Exporter) foreign(
	ctx context.Context, id string, f interop.Format, w io.Writer,
) (losses interop.Losses, err error) {
	err = x.AsPi(ctx, id, func(s *coppice.Session, src interop.Source, h interop.Header) (err error) {
		losses, err = Write(ctx, s, w, f, h, x.Entries(src, s.Head().Entry))
		return err
	})
	return losses, err
}

// original writes the imported bytes, then what was added since as lines of the same format, and a
// line that leads to the head if the import put it elsewhere. If nothing can be appended in that
// format, it writes the imported bytes alone and returns what is missing. A session that was not
// imported is written as a pi v3 file.
func (x Exporter) original(ctx context.Context, id string, w io.Writer) (losses interop.Losses, err error) {
	is, was, damage, err := x.extents(ctx, id)
	switch {
	case damage != nil:
		return x.originalAlone(ctx, id, w, is.entries-max(was.entries, 0), damage)
	case err != nil:
		return nil, err
	case was.entries < 0:
		return nil, afterAll(w, func(w io.Writer) error { return x.Store.ExportPi(ctx, id, w) })
	case is == was:
		return nil, x.Store.Export(ctx, id, w)
	}
	first, err := spool(func(w io.Writer) error { return x.Store.Export(ctx, id, w) })
	if err != nil {
		return nil, err
	}
	defer first.remove()
	f, err := formats.Told(first.source(id + ".jsonl"))
	if err != nil {
		return nil, fmt.Errorf("export %s: %w", id, err)
	}
	err = x.AsPi(ctx, id, func(s *coppice.Session, src interop.Source, h interop.Header) error {
		in, err := os.Open(first.name)
		if err != nil {
			return err
		}
		defer in.Close()
		losses, err = formats.Continue(w, f, in, h, was.entries, x.Entries(src, s.Head().Entry), s.Head().Entry)
		if !errors.Is(err, formats.ErrNoAppend) {
			return err
		}
		losses = notAppended(f, is, was)
		return x.Store.Export(ctx, id, w)
	})
	if errors.Is(err, coppice.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) { // nothing is written yet
		return x.originalAlone(ctx, id, w, is.entries-was.entries, err)
	}
	return losses, err
}

// originalAlone writes the imported bytes of a damaged session, to which so many entries were added since.
func (x Exporter) originalAlone(
	ctx context.Context, id string, w io.Writer, added int, damage error,
) (losses interop.Losses, err error) {
	if err := x.Store.Export(ctx, id, w); err != nil {
		return nil, errors.Join(damage, err)
	}
	if added > 0 {
		const since = "entries added since the import: the session is damaged, and `coppice repair` recovers them"
		losses = interop.Losses{since: added}
	}
	return losses, nil
}

// extent is the length of a session in entries, and the ordinal of its head; -1 = before the first
// entry.
type extent struct {
	entries int
	head    int64
}

// notAppended returns the losses of a format to whose files nothing can be appended.
func notAppended(f interop.Format, is, was extent) interop.Losses {
	losses := interop.Losses{}
	if n := is.entries - was.entries; n > 0 {
		losses[fmt.Sprintf("entries added since, for which %s has no place", f)] = n
	}
	if is.head != was.head {
		losses[fmt.Sprintf("the place where the session stands: %s opens the file where it ends", f)] = 1
	}
	return losses
}

// extents returns the present extent of a session, and the one after its import: -1 entries = it
// was not imported. Those of a damaged session are the ones that a repair would leave, with the damage.
func (x Exporter) extents(ctx context.Context, id string) (is, was extent, damage, err error) {
	was.entries = -1
	s, err := x.Store.Salvage(ctx, id)
	if err != nil {
		return is, was, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	first, since := true, 0
	for com, err := range s.Log(ctx, coppice.Target{}) { // newest first
		if errors.Is(err, coppice.ErrCorrupt) {
			damage = err
			break
		}
		if err != nil {
			return is, was, nil, err
		}
		if first {
			first, is.head = false, com.HeadOrd
		}
		if com.Reason == "import" && was.entries < 0 {
			was, since = extent{head: com.HeadOrd}, is.entries
		}
		if is.entries += com.Entries; was.entries >= 0 {
			was.entries = is.entries - since
		}
	}
	if cause := s.Info().Cause; damage == nil && cause != "" {
		damage = fmt.Errorf("%w: %s", coppice.ErrCorrupt, cause)
	}
	return is, was, damage, nil
}

// AsPi writes a session to a temporary pi v3 file, which can be read more than once, and runs use
// on it.
func (x Exporter) AsPi(
	ctx context.Context, id string,
	use func(s *coppice.Session, src interop.Source, h interop.Header) error,
) (err error) {
	s, err := x.Store.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	lines, err := spool(func(w io.Writer) error { return x.Store.ExportPi(ctx, id, w) })
	if err != nil {
		return err
	}
	defer lines.remove()
	src := lines.source(id)
	r, err := formats.Open(src, interop.Pi, interop.Options{Now: x.Now})
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

// Entries yields the entries of a pi v3 file that coppice wrote. It omits a last line that only
// makes pi continue at the head: that line is not part of the session, unless it was imported with
// it.
func (x Exporter) Entries(src interop.Source, head string) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		r, err := formats.Open(src, interop.Pi, interop.Options{Now: x.Now})
		if err != nil {
			yield(transcript.Draft{}, err)
			return
		}
		defer r.Close()
		if _, err := r.Header(); err != nil {
			yield(transcript.Draft{}, err)
			return
		}
		pipe := parallel.NewPipe(1, func() ([]transcript.Draft, error) { return readAhead(r) }, without)
		defer pipe.Close()
		var held transcript.Draft // the line before
		for {
			batch, err := pipe.Next()
			for _, d := range batch {
				if held.Raw != nil && !yield(held, nil) {
					return
				}
				held = d
			}
			switch end := errors.Is(err, io.EOF); {
			case err == nil:
				continue
			case held.Raw != nil && !(end && leadsTo(held.Raw, head)) && !yield(held, nil), end:
				return
			}
			yield(transcript.Draft{}, err)
			return
		}
	}
}

// Bounds of the entries that are read ahead at once.
const (
	maxAhead      = 256
	maxAheadBytes = 256 << 10
)

// readAhead returns the next entries of a reader, or its error.
func readAhead(r interop.Reader) (list []transcript.Draft, err error) {
	for size := 0; len(list) < maxAhead && size < maxAheadBytes; {
		d, err := r.Next()
		if err != nil && len(list) > 0 { // the reader returns it again
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list, size = append(list, d), size+len(d.Raw)
	}
	return list, nil
}

// without returns entries without records of what was lost.
func without(list []transcript.Draft) []transcript.Draft {
	return slices.DeleteFunc(list, func(d transcript.Draft) bool { return recordsLoss(d.Raw) })
}

// recordsLoss reports whether a line is a repair's record of an object that was lost, which is no part of the
// conversation.
func recordsLoss(raw []byte) bool {
	return string(rawjson.Field(raw, "customType")) == `"`+segment.LostType+`"` && rawjson.Field(raw, "targetId") != nil
}

// leadsTo reports whether a line is the one that ExportPi appends to make pi continue at the head.
func leadsTo(raw []byte, head string) bool {
	l, err := transcript.ParseLine(raw)
	return err == nil && l.Type == "custom" && l.ID != head &&
		string(rawjson.Field(raw, "customType")) == `"coppice.head"`
}

// spooled is a temporary file.
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

// afterAll writes by way of a temporary file: nothing is written where an error ends it.
func afterAll(w io.Writer, write func(io.Writer) error) error {
	file, err := spool(func(f io.Writer) error {
		out := bufio.NewWriterSize(f, 64<<10)
		return errors.Join(write(out), out.Flush())
	})
	if err != nil {
		return err
	}
	defer file.remove()
	in, err := os.Open(file.name)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return errors.Join(err, in.Close())
}

func (s spooled) source(name string) interop.Source {
	return interop.Source{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(s.name) }}
}

func (s spooled) remove() { _ = os.Remove(s.name) } // if this fails the file stays in the folder for temporary files
