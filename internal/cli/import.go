package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/importer"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/interop"
)

type importOptions struct {
	format, session string
	again, grow     bool
}

func (c *cli) importCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE|DIR...",
		Short: "Import session files, each as a session of its own",
		Long: `Import session files, each as a session of its own. Of a folder every *.jsonl file below it is taken,
and every *.jsonl.zst. Sessions of pi, omp, atomic, operator, Claude Code and Codex are told apart by their content.
Transcripts of agents come with the session that started them. Files are only read. What is damaged in them is
passed over and reported, and stays in the original, which ` + "`coppice export --format original`" + ` gives back byte for
byte. A file that cannot be imported does not stop the others; the exit code is 1 then.

A session keeps the id of its file's header, if that is a valid id and no session has it. A file that was imported
before, and has the same bytes still, is left alone, so that a folder can be imported again for what is new; --again
imports it once more. One that has grown since becomes a session of its own beside the earlier one. With --grow it goes
on in its session, unless more than imports was done with that one, or it does not begin as the file does by now.`,
		Example: `  coppice import ~/.pi/agent/sessions
  coppice import --grow ~/.claude/projects
  coppice import --session release-42 session.jsonl`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.importFiles(cmd.Context(), args, o) },
	}
	cmd.Flags().StringVar(&o.format, "format", "auto", "what the files are: "+strings.Join(importFormats, ", "))
	cmd.Flags().StringVar(&o.session, "session", "", "id of the new session; of a single file only")
	cmd.Flags().BoolVar(&o.again, "again", false, "import files that the store has already once more, under new ids")
	cmd.Flags().BoolVar(&o.grow, "grow", false,
		"let files that have grown since they were imported go on in their sessions")
	completeFlag(cmd, "format", importFormats...)
	return cmd
}

// importFormats are the formats that can be read; auto detects them by the content.
var importFormats = []string{"auto", "pi", "omp", "atomic", "operator", "claude-code", "codex"}

// imported is a file that became a session, or Error says why it did not.
type imported struct {
	File string `json:"file"`
	*importer.Result
	Error *problem `json:"error,omitempty"`
}

func (c *cli) importFiles(ctx context.Context, paths []string, o importOptions) error {
	if !slices.Contains(importFormats, o.format) {
		return usageError("unknown format %q; there are %s", o.format, strings.Join(importFormats, ", "))
	}
	if o.again && o.grow {
		return usageError("--again imports once more, --grow goes on: choose one")
	}
	format := interop.Format(o.format)
	if o.format == "auto" {
		format = ""
	}
	files := importer.Find(ctx, paths)
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.session != "" && len(files) != 1 {
		return usageError("--session names one session, and there are %d files", len(files))
	}
	defer collectOften()()
	return c.withStore(ctx, func(st *countedStore) error {
		var total int64
		for _, f := range files {
			total += f.Size
		}
		bar := c.stderr.Progress("importing", total, true, c.now)
		defer bar.Close()
		out := c.array("imported")
		var failed []error
		companions := importer.Companions{}
		for _, f := range files {
			if companions.Contains(f.Path) {
				bar.Add(f.Size)
				continue
			}
			res, err := c.importFile(ctx, st, f, importer.Options{
				Session: o.session, Format: format, Again: o.again, Grow: o.grow,
				Now: c.now(), Rand: rand.Reader, Read: bar.Add,
			})
			if ctx.Err() != nil {
				failed = append(failed, ctx.Err())
				break
			}
			switch {
			case f.Beside && errors.Is(err, interop.ErrNotSession):
				if len(files) == 1 {
					c.notef("%s is no session, but a list beside sessions: there is none here", term.Line(f.Path))
				}
				continue
			case err != nil:
				failed = append(failed, err)
			default:
				companions.Add(f.Path, res.Result)
			}
			if c.json {
				err = out.add(res)
			} else {
				bar.Close()
				err = c.importText(res, len(files) > 1)
			}
			if err != nil {
				return err
			}
		}
		return c.importEnd(ctx, out, failed, len(files))
	})
}

// gcPercent is the GOGC of an import. The usual 100 makes the process a third larger, and an import
// less than a tenth faster.
const gcPercent = 50

// collectOften makes the garbage collector run more often until restore is called.
func collectOften() (restore func()) {
	before := debug.SetGCPercent(gcPercent)
	if before >= 0 && before < gcPercent {
		debug.SetGCPercent(before) // the user wants even less memory
	}
	return func() { debug.SetGCPercent(before) }
}

// importEnd returns one error for those of the files.
func (c *cli) importEnd(ctx context.Context, out *jsonArray, failed []error, files int) error {
	err := fmt.Errorf("%d of %d files were not imported", len(failed), files)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case len(failed) == 0:
		err = nil
	case files == 1 && !c.json:
		err = failed[0]
	}
	if !c.json {
		return err
	}
	if ctx.Err() != nil {
		return out.end(err)
	}
	if eerr := out.end(nil); eerr != nil || err == nil {
		return eerr
	}
	return reported(err) // each file has its own error in the document
}

func (c *cli) importFile(ctx context.Context, st *countedStore, f importer.File, o importer.Options) (imported, error) {
	failed := func(err error) (imported, error) {
		p, _ := describe(err)
		return imported{File: f.Path, Error: &p}, err
	}
	if f.Err != nil {
		return failed(f.Err)
	}
	res, err := importer.Import(ctx, st.Store, importer.FromFile(f.Path), o)
	if err != nil {
		return failed(err)
	}
	return imported{File: f.Path, Result: &res}, nil
}

// importText reports one file. The error of a single file is the error of the command.
func (c *cli) importText(f imported, several bool) error {
	if f.Error != nil {
		if several {
			c.notef("%s", term.Line(f.Error.Message))
		}
		return nil
	}
	note := ""
	switch {
	case f.Unchanged:
		note = ", here already"
	case f.Grew:
		note = fmt.Sprintf(", %d of them new", f.Added)
	case f.BadLines > 0:
		note = ", " + term.Count(f.BadLines, "bad line", "bad lines") + " passed over"
	}
	if err := c.textf("%s  %s%s  %s", f.Session, term.Count(f.Entries, "entry", "entries"), note,
		c.stdout.Paint(term.Dim, term.Line(f.File))); err != nil {
		return err
	}
	return c.diagnostics(f.Diagnostics)
}

// maxDiagnostics bounds the diagnostics that are shown of one file.
const maxDiagnostics = 8

func (c *cli) diagnostics(list []importer.Diagnostic) error {
	var errs []error
	for i, d := range list {
		if i == maxDiagnostics && len(list) > maxDiagnostics+1 {
			errs = append(errs, c.textf("  … and %d more (--json shows them)", len(list)-i))
			break
		}
		where := ""
		switch {
		case d.Line > 0:
			where = fmt.Sprintf("line %d: ", d.Line)
		case d.Entry != "":
			where = "entry " + term.Line(d.Entry) + ": "
		}
		errs = append(errs, c.textf("  %s", c.stdout.Paint(term.Yellow, where+d.Kind+": ")+term.Line(d.Detail)))
	}
	return errors.Join(errs...)
}
