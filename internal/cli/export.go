package cli

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/export"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

type exportOptions struct {
	format, file string
	force        bool
}

func (c *cli) exportCommand() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Write a session as a session file, a Markdown document or an HTML page",
		Long: `Write a session to standard output, or to a file with -o. Formats:

  pi         every entry of every branch as a pi v3 session file; lines that pi can read are unchanged
  original   the imported bytes, unchanged, followed by the entries added since in the same format, and
             by a line that moves the head, if the file would otherwise be opened elsewhere; for a session
             that was not imported, the same as pi
  omp, atomic, operator, claude-code, codex
             a session file for that program; a Codex file contains only the current path
  markdown, html
             a document to read: the current path, then every other branch; messages are quoted in the
             Markdown document; the HTML page loads nothing and runs no script

What the format cannot express is listed on standard error, or, with --json and -o, in the JSON
document. Without -o the file is written to standard output, also with --json.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("format") {
				o.format = formatOf(o.file)
			}
			return c.export(cmd.Context(), args[0], o)
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "pi",
		"format: "+strings.Join(exportFormats, ", ")+"; default: by the file name, html for *.html, markdown for *.md")
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "file to write; an existing file is not replaced")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace an existing file, atomically")
	cmd.Flags().Bool("no-clobber", true, "fail if the file exists")
	_ = cmd.Flags().MarkHidden("no-clobber") // the default; scripts may still name it
	cmd.MarkFlagsMutuallyExclusive("force", "no-clobber")
	completeFlag(cmd, "format", exportFormats...)
	return cmd
}

func (c *cli) export(ctx context.Context, id string, o exportOptions) error {
	if !slices.Contains(exportFormats, o.format) {
		return usageError("unknown format %q: want one of %s", o.format, strings.Join(exportFormats, ", "))
	}
	return c.withStore(ctx, func(st *countedStore) error {
		full, err := st.resolve(ctx, id)
		if err != nil {
			return err
		}
		var losses interop.Losses
		write := func(w io.Writer) (err error) {
			switch o.format {
			case "original":
				losses, err = c.original(ctx, st, full, w)
			case "markdown", "html":
				err = writeDocument(ctx, st, full, o.format, w)
			default:
				losses, err = c.foreign(ctx, st, full, interop.Format(o.format), w)
			}
			return err
		}
		if o.file == "" || o.file == "-" {
			err := write(c.stdout)
			c.noteLosses(losses)
			return err
		}
		n, err := saveFile(o.file, o.force, write)
		if err != nil {
			return err
		}
		if c.json {
			return c.writeJSON(api.Exported{Session: full, Format: o.format, File: o.file, Bytes: n, Losses: losses})
		}
		c.noteLosses(losses)
		return c.textf("%s  %s", o.file, term.Size(n))
	})
}

// formatOf returns the format that the name of a file asks for.
func formatOf(file string) string {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".html", ".htm":
		return "html"
	case ".md", ".markdown":
		return "markdown"
	}
	return "pi"
}

// exportFormats are those in which sessions are written.
var exportFormats = []string{"pi", "original", "omp", "atomic", "operator", "claude-code", "codex", "markdown", "html"}

// noteLosses reports what a format cannot express.
func (c *cli) noteLosses(losses interop.Losses) {
	for _, kind := range slices.Sorted(maps.Keys(losses)) {
		c.notef("not preserved in the file: %s (%d)", term.Line(kind), losses[kind])
	}
}

// writeDocument writes a session for people to read.
func writeDocument(ctx context.Context, st *countedStore, id, format string, w io.Writer) (err error) {
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if format == "html" {
		return export.HTML(ctx, s, w, nil)
	}
	return export.Markdown(ctx, s, w, nil)
}

// saveFile writes a file under a temporary name and then renames it, so that no partial file is
// ever visible. A file that exists is replaced only with force.
func saveFile(name string, force bool, write func(io.Writer) error) (n int64, err error) {
	if _, serr := os.Lstat(name); serr == nil && !force { // nothing is written in vain
		return 0, existing(name)
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".coppice-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if rerr := os.Remove(tmp.Name()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	n, err = writeSynced(tmp, write)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return 0, err
	}
	if force {
		return n, os.Rename(tmp.Name(), name)
	}
	err = os.Link(tmp.Name(), name) // fails if the file exists
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, fs.ErrExist) { // a file system without links
		if _, serr := os.Lstat(name); serr != nil {
			return n, os.Rename(tmp.Name(), name)
		}
	}
	return 0, existing(name)
}

func existing(name string) error {
	return &api.Failure{
		Code: "exists", Hint: "--force replaces it",
		Err: fmt.Errorf("%s: %w", name, fs.ErrExist),
	}
}

// writeSynced writes a file through a buffer, syncs it, and returns its size.
func writeSynced(f *os.File, write func(io.Writer) error) (int64, error) {
	buf := bufio.NewWriterSize(f, 1<<16)
	if err := write(buf); err != nil {
		return 0, err
	}
	if err := buf.Flush(); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return f.Seek(0, io.SeekCurrent)
}

// foreign writes a session in another program's format, and returns what that format cannot
// express.
func (c *cli) foreign(
	ctx context.Context, st *countedStore, id string, f interop.Format, w io.Writer,
) (losses interop.Losses, err error) {
	err = c.asPi(ctx, st, id, func(s *coppice.Session, src interop.Source, h interop.Header) (err error) {
		losses, err = formats.Write(w, f, h, c.entries(src, s.Head().Entry), s.Head().Entry)
		return err
	})
	return losses, err
}

// original writes the imported bytes, then what was added since as lines of the same format, and a
// line that leads to the head if the import put it elsewhere. If nothing can be appended in that
// format, it writes the imported bytes alone and returns what is missing. A session that was not
// imported is written as a pi v3 file.
func (c *cli) original(
	ctx context.Context, st *countedStore, id string, w io.Writer,
) (losses interop.Losses, err error) {
	is, was, err := c.extents(ctx, st, id)
	switch {
	case errors.Is(err, coppice.ErrCorrupt) || errors.Is(err, fs.ErrNotExist):
		return c.originalAlone(ctx, st, id, w, err)
	case err != nil:
		return nil, err
	case was.entries < 0:
		return nil, st.ExportPi(ctx, id, w)
	case is == was:
		return nil, st.Export(ctx, id, w)
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
	err = c.asPi(ctx, st, id, func(s *coppice.Session, src interop.Source, h interop.Header) error {
		in, err := os.Open(first.name)
		if err != nil {
			return err
		}
		defer in.Close()
		losses, err = formats.Continue(w, f, in, h, was.entries, c.entries(src, s.Head().Entry), s.Head().Entry)
		if !errors.Is(err, formats.ErrNoAppend) {
			return err
		}
		losses = notAppended(f, is, was)
		return st.Export(ctx, id, w)
	})
	return losses, err
}

// originalAlone writes the imported bytes of a session that is damaged, so that what was added since cannot be read.
func (c *cli) originalAlone(
	ctx context.Context, st *countedStore, id string, w io.Writer, damage error,
) (interop.Losses, error) {
	if err := st.Export(ctx, id, w); err != nil {
		return nil, errors.Join(damage, err)
	}
	const since = "what was added since the import: the session is damaged, and `coppice repair` recovers it"
	return interop.Losses{since: 1}, nil
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
// was not imported.
func (c *cli) extents(ctx context.Context, st *countedStore, id string) (is, was extent, err error) {
	was.entries = -1
	s, err := st.Open(ctx, id, readOnly())
	if err != nil {
		return is, was, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	first, since := true, 0
	for com, err := range s.Log(ctx, coppice.Target{}) { // newest first
		if err != nil {
			return is, was, err
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
	return is, was, nil
}

// asPi writes a session to a temporary pi v3 file, which can be read more than once, and runs use
// on it.
func (c *cli) asPi(
	ctx context.Context, st *countedStore, id string,
	use func(s *coppice.Session, src interop.Source, h interop.Header) error,
) (err error) {
	s, err := st.Open(ctx, id, readOnly())
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
	r, err := formats.Open(src, interop.Pi, interop.Options{Now: c.now(), Rand: rand.Reader})
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

// entries yields the entries of a pi v3 file that coppice wrote. It omits a last line that only
// makes pi continue at the head: that line is not part of the session, unless it was imported with
// it.
func (c *cli) entries(src interop.Source, head string) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		r, err := formats.Open(src, interop.Pi, interop.Options{Now: c.now(), Rand: rand.Reader})
		if err != nil {
			yield(transcript.Draft{}, err)
			return
		}
		defer r.Close()
		if _, err := r.Header(); err != nil {
			yield(transcript.Draft{}, err)
			return
		}
		var held transcript.Draft // the line before
		for {
			d, err := r.Next()
			end := errors.Is(err, io.EOF)
			if held.Raw != nil && !(end && leadsTo(held.Raw, head)) && !yield(held, nil) || end {
				return
			}
			if err != nil {
				yield(transcript.Draft{}, err)
				return
			}
			if held = d; recordsLoss(d.Raw) {
				held.Raw = nil
			}
		}
	}
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

func (s spooled) source(name string) interop.Source {
	return interop.Source{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(s.name) }}
}

func (s spooled) remove() { _ = os.Remove(s.name) } // if this fails the file stays in the folder for temporary files
