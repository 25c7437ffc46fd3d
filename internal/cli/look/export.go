package look

import (
	"bufio"
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

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/export"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/interop"
)

type exportOptions struct {
	format, file string
	noClobber    bool
}

// Export is `coppice export`.
func Export(a *program.App) *cobra.Command {
	c := &cli{a}
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Write a session as a file: pi v3, or the bytes that were imported",
		Long: `Write a session as a file. Format pi: every entry of every branch as a pi v3 session file; lines that pi reads are
as they came. Format original: the bytes that were imported, exactly, and behind them what was added since, in their
format, and where it stands elsewhere than the file would be opened, what leads there; of a session that was made here,
all its lines. Formats omp, atomic, operator, claude-code and codex are for those programs; a file of codex's has one
line of conversation, that of the head. What a program cannot be told is listed. Formats markdown and html are for people:
the current line first, with every other branch and its name; the page needs nothing else, runs no script, and shows
Markdown as it was written; in the Markdown document what was said is a quotation, so that nothing in it reaches beyond it.

Without -o the file goes to the standard output, with --json too.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.export(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVar(&o.format, "format", "pi", strings.Join(exportFormats, ", "))
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "the file to write; one that is there is replaced as a whole")
	cmd.Flags().BoolVar(&o.noClobber, "no-clobber", false, "refuse to replace a file that is there")
	_ = cmd.RegisterFlagCompletionFunc("format", program.Words(exportFormats...))
	return cmd
}

func (c *cli) export(ctx context.Context, id string, o exportOptions) error {
	if !slices.Contains(exportFormats, o.format) {
		return program.Usage("unknown format %q; there are %s", o.format, strings.Join(exportFormats, ", "))
	}
	return c.WithStore(ctx, func(st *program.Store) error {
		full, err := st.Resolve(ctx, id)
		if err != nil {
			return err
		}
		var losses interop.Losses
		write := func(w io.Writer) (err error) {
			switch o.format {
			case "original":
				losses, err = c.original(ctx, st, full, w)
			case "markdown", "html":
				err = people(ctx, st, full, o.format, w)
			default:
				losses, err = c.foreign(ctx, st, full, interop.Format(o.format), w)
			}
			return err
		}
		if o.file == "" || o.file == "-" {
			err := write(c.Out)
			c.lost(losses)
			return err
		}
		n, err := saveFile(o.file, o.noClobber, write)
		if err != nil {
			return err
		}
		if c.JSON {
			return c.Emit(exported{full, o.format, o.file, n, losses})
		}
		c.lost(losses)
		return c.Text("%s  %s", o.file, term.Size(n))
	})
}

// exportFormats are those in which sessions are written.
var exportFormats = []string{"pi", "original", "omp", "atomic", "operator", "claude-code", "codex", "markdown", "html"}

// exported is the JSON of an export to a file. Losses are what the format could not be told, by kind.
type exported struct {
	Session string         `json:"session"`
	Format  string         `json:"format"`
	File    string         `json:"file"`
	Bytes   int64          `json:"bytes"`
	Losses  interop.Losses `json:"losses,omitempty"`
}

// lost tells people what a format could not be told.
func (c *cli) lost(losses interop.Losses) {
	for _, kind := range slices.Sorted(maps.Keys(losses)) {
		c.Note("not in the file as it was: %s (%d)", term.Line(kind), losses[kind])
	}
}

// people writes a session for people to read.
func people(ctx context.Context, st *program.Store, id, format string, w io.Writer) (err error) {
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

// saveFile writes a file beside its place and then puts it there, so that no half of one is ever seen.
func saveFile(name string, noClobber bool, write func(io.Writer) error) (n int64, err error) {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".coppice-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if rerr := os.Remove(tmp.Name()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	buf := bufio.NewWriterSize(tmp, 1<<16)
	err = write(buf)
	if err == nil {
		err = buf.Flush()
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err == nil {
		n, err = tmp.Seek(0, io.SeekCurrent)
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return 0, err
	}
	if !noClobber {
		return n, os.Rename(tmp.Name(), name)
	}
	err = os.Link(tmp.Name(), name) // fails where there is one
	switch {
	case errors.Is(err, fs.ErrExist):
		return 0, &program.Failure{Code: "exists", Hint: "without --no-clobber it is replaced", Err: fmt.Errorf("%s is there already: %w", name, fs.ErrExist)}
	case err != nil: // a file system without links
		if _, serr := os.Lstat(name); serr == nil {
			return 0, &program.Failure{Code: "exists", Hint: "without --no-clobber it is replaced", Err: fmt.Errorf("%s is there already: %w", name, fs.ErrExist)}
		}
		return n, os.Rename(tmp.Name(), name)
	}
	return n, nil
}
