package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/exporter"
	"github.com/coppice-go/coppice/interop"
)

type exportOptions struct {
	line         string
	format, file string
	force        bool
	secrets      exporter.Secrets
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

Nothing is written of a session with credentials until --redact replaces each by [secret: RULE], or
--allow writes them. An original is written as it was imported. ` + "`coppice help secrets`" + ` describes what is
found.

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
		"format: "+strings.Join(exporter.Formats(), ", ")+
			"; default: by the file name, html for *.html, markdown for *.md")
	cmd.Flags().StringVar(&o.line, "line", "", "entry: only the path to it, as markdown or html; default every branch")
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "file to write; an existing file is not replaced")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace an existing file, atomically")
	secretsFlags(cmd, &o.secrets)
	completeFlag(cmd, "format", exporter.Formats()...)
	return cmd
}

// secretsFlags adds the flags of a command with which a session leaves the store.
func secretsFlags(cmd *cobra.Command, to *exporter.Secrets) {
	redact := cmd.Flags().Bool("redact", false, "replace each credential by [secret: RULE]")
	allow := cmd.Flags().Bool("allow", false, "write credentials too")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch {
		case *redact && *allow:
			return usageError("use --redact or --allow, not both")
		case *redact:
			*to = exporter.Redact
		case *allow:
			*to = exporter.Allow
		}
		return nil
	}
}

func (c *cli) export(ctx context.Context, id string, o exportOptions) error {
	if !slices.Contains(exporter.Formats(), o.format) {
		return oneOf("format", o.format, exporter.Formats())
	}
	if o.line != "" && !exporter.HasLines(o.format) {
		return usageError("format %s has every branch: --line goes with markdown and html", o.format)
	}
	return c.withStore(ctx, func(st *countedStore) error {
		full, err := st.resolve(ctx, id)
		if err != nil {
			return err
		}
		s, err := st.session(ctx, full, readOnly())
		if err != nil {
			return err
		}
		gone := lost(s)
		if err := s.Close(); err != nil {
			return err
		}
		var losses interop.Losses
		x := c.exporter(st)
		x.Line, x.Secrets = o.line, o.secrets
		write := func(w io.Writer) (err error) {
			losses, err = x.Write(ctx, full, o.format, w)
			if d, ok := errors.AsType[*exporter.DamageError](err); ok { // all that a repair would leave is written
				err, gone = nil, cmp.Or(gone, error(damaged(d.Error())))
			}
			return err
		}
		if o.file == "" || o.file == "-" {
			err := write(c.stdout)
			c.noteLosses(losses)
			return cmp.Or(err, gone)
		}
		n, err := saveFile(o.file, o.force, write)
		if err != nil {
			return err
		}
		if c.json {
			err = c.writeJSON(api.Exported{Session: full, Format: o.format, File: o.file, Bytes: n, Losses: losses})
			return cmp.Or(err, gone)
		}
		c.noteLosses(losses)
		return cmp.Or(c.textf("%s  %s", o.file, term.Size(n)), gone)
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

// noteLosses reports what a format cannot express.
func (c *cli) noteLosses(losses interop.Losses) {
	for _, kind := range slices.Sorted(maps.Keys(losses)) {
		c.notef("not preserved in the file: %s (%d)", term.Line(kind), losses[kind])
	}
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

// exporter returns what writes the sessions of a store as files.
func (c *cli) exporter(st *countedStore) exporter.Exporter {
	return exporter.Exporter{Store: st.Store, Now: c.now()}
}
