package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/secrets"
)

type importOptions struct {
	format, session string
	again, grow     bool
	verify          bool
	watch, poll     bool
	check           bool
	redact          bool
}

const importLong = "" +
	`Import session files of pi, omp, atomic, operator, Claude Code and Codex; each becomes a session. The
format is detected from the content. Of a folder, every *.jsonl and *.jsonl.zst file below it is
imported. Transcripts of agents are imported with the session that started them. The files are only
read. Damaged lines are skipped and reported; ` + "`coppice export --format original`" + ` still returns
them, byte for byte. If a file cannot be imported, the others still are; the exit code is 1.

Without FILE or DIR, the sessions of Claude Code, Codex, pi and omp on this machine are imported:
those in ~/.claude/projects, ~/.codex/sessions, ~/.codex/archived_sessions, ~/.pi/agent/sessions and
~/.omp/agent/sessions. $CLAUDE_CONFIG_DIR replaces ~/.claude, $CODEX_HOME replaces ~/.codex,
$PI_CODING_AGENT_DIR replaces ~/.pi/agent, $PI_CODING_AGENT_SESSION_DIR its folder of sessions, and
$PI_CONFIG_DIR is a further folder of omp.

A session gets the id in the header of its file, if that is a valid id that no session has. A file
that was imported before and has not changed is skipped, so a folder can be imported again to add
what is new; --again imports it once more. Nothing is read of a file with the size and time of its
last import; of others, the first 4 KiB and the last 64 KiB of what was imported are compared, so only
--verify finds an edit in the middle. The file of a session that was deleted is skipped and reported;
--again imports it. What was added to a file since is appended to its session.
If a new line completed an entry that was imported before, as the rest of an answer does, the file
is imported again, and the earlier session is deleted. A session that was changed by other commands
stays as it is; its file then becomes a second session. With --grow=false a file that has grown
always becomes a second session.

--watch continues until it is interrupted or terminated, and imports what is added to the files
within two seconds. Lines whose meaning a later line can still change (an unfinished line, an
unfinished answer) are imported when the file has been silent for 10 seconds, and at the end.

What agent frameworks have stored is imported too, each thread with its states as a session: a folder
of Strands Agents (strands), a database of LangGraph's SqliteSaver, and rows of its PostgresSaver
(langgraph). A thread that has grown since is appended to its session, unless that was continued here.
A session of S3 is imported from a copy: aws s3 sync s3://BUCKET/PREFIX DIR. The rows are those of
the tables checkpoints, checkpoint_blobs and checkpoint_writes, one after the other in one file:
psql -qAtX -c "COPY (SELECT row_to_json(t) FROM checkpoints t) TO STDOUT
(FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')" >> rows.jsonl

--redact replaces each credential that is found by [secret: RULE] before anything is stored. The imported
file is not kept then: ` + "`coppice export --format original`" + ` returns the replaced lines. A session that was
imported so grows only by another import with --redact. It is not for what agent frameworks have stored.

--check stores nothing. It prints what an import would report of each file, line by line: the lines
that were not understood, the types of lines that are not known, each with its first line and their
number, and how many messages are on the current line and on branches.`

func (c *cli) importCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import [FILE|DIR...]",
		Short: "Import session files; each becomes a session",
		Long:  importLong,
		Example: `  coppice import
  coppice import ~/.pi/agent/sessions
  coppice import --watch ~/.claude/projects
  coppice import --session release-42 session.jsonl
  coppice import --format strands ./sessions
  coppice import checkpoints.sqlite`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.again && o.verify {
				return usageError("use --again or --verify, not both")
			}
			if o.again && o.grow && cmd.Flags().Changed("grow") {
				return usageError("use --again or --grow, not both")
			}
			o.grow = o.grow && !o.again
			return c.importFiles(cmd.Context(), args, o)
		},
	}
	importFlags(cmd, &o)
	return cmd
}

func importFlags(cmd *cobra.Command, o *importOptions) {
	cmd.Flags().StringVar(&o.format, "format", "auto", "format of the files: "+strings.Join(importFormats(), ", "))
	cmd.Flags().StringVar(&o.session, "session", "", "id of the new session; for a single file only")
	cmd.Flags().BoolVar(&o.again, "again", false, "import files that the store has, or had, under new ids")
	cmd.Flags().BoolVar(&o.verify, "verify", false, "compare files with every byte of their last import")
	cmd.Flags().BoolVar(&o.grow, "grow", true,
		"append what was added to a file since its import to its session")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "continue to import what is added to the files")
	cmd.Flags().BoolVar(&o.poll, "poll", false,
		"with --watch: look at the files once a second, without notification by the system")
	cmd.Flags().BoolVar(&o.redact, "redact", false, "replace each credential by [secret: RULE], and keep no original")
	cmd.Flags().BoolVar(&o.check, "check", false, "store nothing, and print which lines were not understood")
	completeFlag(cmd, "format", importFormats()...)
}

// importFormats are the formats that can be read; auto detects them by the content.
func importFormats() []string {
	list := []string{"auto"}
	for _, f := range formats.All() {
		list = append(list, string(f.Name))
	}
	for _, f := range frameworks {
		list = append(list, f.name)
	}
	return list
}

func (c *cli) importFiles(ctx context.Context, paths []string, o importOptions) error {
	switch {
	case !slices.Contains(importFormats(), o.format):
		return oneOf("format", o.format, importFormats())
	case o.watch && (o.again || !o.grow || o.session != ""):
		return usageError("--watch cannot be used with --again, --grow=false or --session")
	case o.check && (o.again || o.watch || o.session != ""):
		return usageError("--check cannot be used with --again, --watch or --session")
	case o.poll && !o.watch:
		return usageError("--poll needs --watch")
	case len(paths) == 0 && slices.ContainsFunc(frameworks, func(f framework) bool { return f.name == o.format }):
		return usageError("--format %s needs a file or folder", o.format)
	}
	if o.redact {
		c.hooks.BeforeAppend = secrets.RedactDraft
	}
	run := &importRun{c: c, o: o, several: o.watch, restore: func() {}}
	if o.format != "auto" {
		run.format = interop.Format(o.format)
	}
	if len(paths) == 0 {
		var err error
		if paths, err = run.programs(ctx); err != nil {
			return err
		}
	} else {
		paths, run.saved = run.frameworksIn(paths)
		if err := run.checkFrameworks(); err != nil {
			return err
		}
	}
	var files []importer.File
	if !o.watch {
		files = importer.Find(ctx, paths)
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.session != "" && len(files) != 1 {
			return usageError("--session needs exactly one file, but there are %d", len(files))
		}
		run.several = len(files) > 1 || len(run.saved) > 0
	}
	defer func() { run.restore() }()
	with := c.withStore
	if o.check {
		with = c.withScratch
	}
	return with(ctx, func(st *countedStore) error {
		run.st = st
		if o.watch {
			return run.watch(ctx, paths)
		}
		return run.all(ctx, files)
	})
}

// importRun is one run of the command.
type importRun struct {
	c       *cli
	o       importOptions
	st      *countedStore
	format  interop.Format     // "" = detected
	found   []api.FoundProgram // nil = the files were named
	saved   []saved            // of frameworks
	several bool
	batch   importer.Batch
	deleted map[string]bool // files of deleted sessions that were reported
	out     *jsonArray
	bar     *term.Progress
	total   api.ImportTotal
	failed  []error
	bytes   int64  // that were read of files
	restore func() // sets the GOGC that was in force
}

// programs finds the folders of the programs on this machine, and shows what is in them.
func (r *importRun) programs(ctx context.Context) (folders []string, err error) {
	var looked []string
	r.found = []api.FoundProgram{}
	for _, p := range importer.Programs(r.c.env()) {
		looked = append(looked, p.Folders...)
		for _, dir := range importer.Existing(p.Folders) {
			is := api.FoundProgram{Program: p.Name, Folder: dir}
			for _, f := range importer.Find(ctx, []string{dir}) {
				if f.Err != nil || f.Beside {
					continue
				}
				if is.Bytes += f.Size; !exists(importer.OwnerOf(f.Path)) { // whose own file counts
					is.Files++
				}
			}
			if is.Files == 0 {
				continue
			}
			folders, r.found = append(folders, dir), append(r.found, is)
			if !r.c.json {
				if err := r.c.textf("%-12s %s, %s in %s", is.Program, term.Count(is.Files, "file", "files"),
					term.Size(is.Bytes), term.Line(dir)); err != nil {
					return nil, err
				}
			}
		}
	}
	if r.o.watch && len(looked) > 0 {
		return looked, ctx.Err() // those that do not exist yet may come
	}
	if len(folders) == 0 && ctx.Err() == nil {
		return nil, fmt.Errorf("no sessions of Claude Code, Codex, pi or omp in %s: %w", strings.Join(looked, ", "),
			fs.ErrNotExist)
	}
	return folders, ctx.Err()
}

// begin begins the answer.
func (r *importRun) begin() {
	r.out = r.c.array("imported")
	if r.found != nil {
		r.out = r.c.arrayAfter(map[string]any{"found": r.found}, "imported")
	}
}

// all imports files one after the other.
func (r *importRun) all(ctx context.Context, files []importer.File) error {
	var total int64
	for _, f := range files {
		total += f.Size
	}
	r.bar = r.c.stderr.Progress("importing", total, true, r.c.now)
	defer r.bar.Close()
	r.begin()
	for _, f := range files {
		if r.batch.Contains(f.Path) {
			r.bar.Add(f.Size)
			continue
		}
		_, err := r.file(ctx, f)
		if ctx.Err() != nil {
			break
		}
		if f.Beside && errors.Is(err, interop.ErrNotSession) && len(files) == 1 {
			r.c.notef("%s is a session index, not a session; skipped", term.Line(f.Path))
		}
		if stop, ok := errors.AsType[*stopError](err); ok {
			return stop.error
		}
	}
	if err := r.frameworks(ctx); err != nil {
		return err
	}
	if err := r.sum(); err != nil {
		return err
	}
	return r.end(ctx)
}

// stopError is an error after which no file is imported any more: the answer cannot be written.
type stopError struct{ error }

// file imports one file and prints the outcome. The error is that of the file, which is printed, or a stopError.
func (r *importRun) file(ctx context.Context, f importer.File) (*importer.Result, error) {
	o := importer.Options{
		Session: r.o.session, Format: r.format, Again: r.o.again, Grow: r.o.grow, Verify: r.o.verify,
		Now: r.c.now(), Closed: r.c.untidy, Read: r.read,
		Redact: r.o.redact,
	}
	res, err := r.batch.Import(ctx, r.st.Store, f, o)
	if err == nil && r.o.check {
		err = f.Unknown(&res)
	}
	if errors.Is(err, interop.ErrNotSession) && (f.Beside || r.o.watch || r.found != nil && f.Size == 0) &&
		ctx.Err() == nil {
		return nil, err // programs keep lists with their sessions, and files that have no content yet
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return r.report(f.Path, res, err)
}

// report adds what was done with a file to the answer. The error is that of the file, and was reported, or a stopError.
func (r *importRun) report(file string, res importer.Result, err error) (*importer.Result, error) {
	switch {
	case err != nil:
		if !r.o.watch { // a failure there may be over with the next line
			r.failed = append(r.failed, err)
		}
		r.total.Fail()
	case !res.Deleted.IsZero() && r.deleted[file]:
		return &res, nil // it changed while it is watched
	default:
		r.total.Add(res)
	}
	if !res.Deleted.IsZero() {
		if r.deleted == nil {
			r.deleted = map[string]bool{}
		}
		r.deleted[file] = true
	}
	said := error(nil)
	switch {
	case err == nil && r.o.watch && res.Unchanged:
	case r.c.json:
		said = r.out.add(importedFile(file, res, err))
	case err == nil && res.Unchanged && r.found != nil:
	default:
		if r.bar != nil {
			r.bar.Close()
		}
		said = r.c.importText(file, res, err, r.several, r.o.check)
	}
	if said != nil {
		return nil, &stopError{said}
	}
	if err != nil {
		return nil, err
	}
	return &res, nil
}

// sum prints the outcome of all files.
func (r *importRun) sum() error {
	r.out.after = map[string]any{"total": r.total}
	if r.c.json {
		return nil
	}
	t := r.total
	if r.several || r.found != nil {
		failed := ""
		if t.Deleted > 0 {
			failed = fmt.Sprintf(", %d deleted here before", t.Deleted)
		}
		if t.Failed > 0 {
			failed += fmt.Sprintf(", %d failed", t.Failed)
		}
		if err := r.c.textf("total: %s: %d new, %d grown, %d unchanged%s; %s added",
			term.Count(t.Files, "file", "files"), t.New,
			t.Grown, t.Unchanged, failed, term.Count(t.Entries, "entry", "entries")); err != nil {
			return err
		}
	}
	if t.Sessions == 0 {
		return nil
	}
	return r.c.textf("%s: %s on the current lines, %s on branches, %s", term.Count(t.Sessions, "session", "sessions"),
		term.Count(t.Messages, "message", "messages"), term.Number(uint64(t.Branches)),
		term.Count(t.Diagnostics, "diagnostic", "diagnostics"))
}

const (
	// gcPercent is the GOGC of an import of more than gcBytes. The usual 100 makes the process a third larger, and an
	// import less than a tenth faster.
	gcPercent = 50
	gcBytes   = 16 << 20
)

// read counts bytes that were read of files. Once they are many, the garbage collector runs more often.
func (r *importRun) read(n int64) {
	r.bar.Add(n)
	if r.bytes += n; r.bytes < gcBytes || r.bytes-n >= gcBytes {
		return
	}
	before := debug.SetGCPercent(gcPercent)
	if before >= 0 && before < gcPercent {
		debug.SetGCPercent(before) // the user wants even less memory
	}
	r.restore = func() { debug.SetGCPercent(before) }
}

// end ends the answer, and returns one error for the files that failed.
func (r *importRun) end(ctx context.Context) error {
	were := "were"
	if len(r.failed) == 1 {
		were = "was"
	}
	err := fmt.Errorf("%d of %s %s not imported", r.total.Failed, term.Count(r.total.Files, "file", "files"), were)
	switch {
	case ctx.Err() != nil:
		return r.ended(ctx.Err())
	case len(r.failed) == 0:
		return r.ended(nil)
	case !r.several && !r.c.json:
		return r.failed[0]
	}
	if eerr := r.ended(nil); eerr != nil || !r.c.json {
		return cmp.Or(eerr, err)
	}
	if !r.several {
		err = r.failed[0] // for its exit code
	}
	return reported(err) // each file has its own error in the document
}

// ended ends the document, where there is one, with an error.
func (r *importRun) ended(err error) error {
	if r.c.json {
		return r.out.end(err)
	}
	return err
}

// importedFile returns the part of the document about one file.
func importedFile(path string, res importer.Result, err error) api.Imported {
	if err != nil {
		return api.Imported{File: path, Error: new(api.Describe(err).Problem())}
	}
	return api.ImportedOf(path, res)
}

// importText reports one file. The error of a single file is the error of the command.
func (c *cli) importText(path string, f importer.Result, err error, several, check bool) error {
	if err != nil {
		if several {
			c.failed(api.Describe(err).Message)
		}
		return nil
	}
	note := ""
	switch {
	case !f.Deleted.IsZero():
		return c.textf("%s  deleted on %s, not imported again (--again imports it)  %s", c.shown.Short(f.Session),
			f.Deleted.Local().Format(time.DateOnly), c.stdout.Paint(term.Dim, term.Line(path)))
	case f.Unchanged:
		note = ", already imported"
	case f.Grew:
		note = fmt.Sprintf(", %d of them new", f.Added)
	case len(f.Replaced) > 0:
		note = ", in place of " + strings.Join(f.Replaced, ", ")
	case f.BadLines > 0:
		note = ", " + term.Count(f.BadLines, "bad line", "bad lines") + " skipped"
	}
	width := 0
	if several {
		width = shortid.Alone
	}
	if err := c.textf("%-*s  %s%s  %s", width, c.shown.Short(f.Session), term.Count(f.Entries, "entry", "entries"),
		note,
		c.stdout.Paint(term.Dim, term.Line(path))); err != nil {
		return err
	}
	if !check {
		return c.diagnostics(f.Diagnostics)
	}
	for i := range f.Diagnostics {
		if err := c.diagnostics(f.Diagnostics[i : i+1]); err != nil {
			return err
		}
	}
	if !several {
		return nil // the summary counts its messages
	}
	return c.textf("  %s on the current lines, %s on branches", term.Count(f.Messages, "message", "messages"),
		term.Number(uint64(f.Branches)))
}

// maxDiagnostics bounds the kinds of diagnostics that are shown of one file.
const maxDiagnostics = 8

// diagnostics reports what is remarkable about a file, one line for each kind.
func (c *cli) diagnostics(list []importer.Diagnostic) error {
	var kinds []string
	byKind := map[string][]importer.Diagnostic{}
	for _, d := range list {
		if byKind[d.Kind] == nil {
			kinds = append(kinds, d.Kind)
		}
		byKind[d.Kind] = append(byKind[d.Kind], d)
	}
	var errs []error
	for i, kind := range kinds {
		if i == maxDiagnostics && len(kinds) > maxDiagnostics+1 {
			errs = append(errs, c.textf("  … and %d more kinds (--json shows them)", len(kinds)-i))
			break
		}
		same := byKind[kind]
		head, at := kind, places(same)
		switch {
		case len(same) > 1 && at != "":
			head = fmt.Sprintf("%s × %s, %s", term.Number(uint64(len(same))), kind, at)
		case len(same) > 1:
			head = fmt.Sprintf("%s × %s", term.Number(uint64(len(same))), kind)
		case at != "":
			head = at + ": " + kind
		}
		errs = append(errs, c.textf("  %s", c.stdout.Paint(term.Yellow, head+": ")+details(same)))
	}
	return errors.Join(errs...)
}

// places returns where remarks of one kind are: the first lines, or else the first entries.
func places(list []importer.Diagnostic) string {
	const most = 5
	var lines, entries []string
	for _, d := range list {
		switch {
		case d.Line > 0:
			lines = append(lines, itoa(d.Line))
		case d.Entry != "":
			entries = append(entries, term.Line(shortid.One(d.Entry)))
		}
	}
	one, many, at := "line ", "lines ", slices.Compact(lines)
	if len(at) == 0 {
		one, many, at = "entry ", "entries ", slices.Compact(entries)
	}
	switch {
	case len(at) == 0:
		return ""
	case len(at) == 1:
		return one + at[0]
	case len(at) > most:
		return many + strings.Join(at[:most], ", ") + ", …"
	}
	return many + strings.Join(at, ", ")
}

// details returns the first two different texts of remarks of one kind.
func details(list []importer.Diagnostic) string {
	var texts []string
	for _, d := range list {
		if text := term.Line(d.Detail); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) > 2 {
		texts = append(texts[:2], "…")
	}
	return strings.Join(texts, "; ")
}
