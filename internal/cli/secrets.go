package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) secretsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "secrets [SESSION...]",
		Short: "Find credentials in sessions",
		Long: `Find credentials in sessions, or in all: keys and tokens of known services, private keys, passwords in
addresses, and values of names such as api_key. Every entry of every branch is looked at, hidden ones
too, with arguments and results of tools; so are the state and the documents of every commit, title,
directory and metadata, and the lines of imported files that became no entry. Images are not.

A credential is never shown: only its first characters, at most a quarter of it, and its length. The
exit code is 1 if there are any.

The rules are those of gitleaks, and a few more. They miss passwords that look like words, and what is
encoded, and now and then take another value for a credential. docs/secrets.md has figures.`,
		Example: "  coppice secrets\n  coppice secrets 019cadab",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withStore(ctx, func(st *countedStore) error { return c.secrets(ctx, st, args) })
		},
	}
}

func (c *cli) secrets(ctx context.Context, st *countedStore, args []string) (err error) {
	var ids []string
	for _, id := range args {
		full, err := st.resolve(ctx, id)
		if err != nil {
			return err
		}
		ids = append(ids, full)
	}
	if len(args) == 0 {
		if ids, err = st.ids(ctx); err != nil {
			return err
		}
	}
	run := secretsRun{c: c, st: st, all: len(args) == 0, out: c.array("secrets")}
	run.bar = c.stderr.Progress("looking for credentials", int64(len(ids)), false, c.now)
	defer run.bar.Close()
	for _, id := range ids {
		if err := run.session(ctx, id); err != nil {
			return err
		}
		run.bar.Add(1)
	}
	return run.end()
}

// secretsRun is one run of the command.
type secretsRun struct {
	c      *cli
	st     *countedStore
	all    bool // the store was asked, and has deleted sessions too
	out    *jsonArray
	bar    *term.Progress
	read   int // sessions
	with   int // sessions that have any
	found  int
	failed []error // of sessions that could not be read whole
}

// session looks at one session. An error is that of the answer, or the end of the run.
func (r *secretsRun) session(ctx context.Context, id string) error {
	n := 0
	var entries []string
	r.read++
	for s, err := range manager.Secrets(ctx, r.st.Store, id) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, coppice.ErrDeleted) && r.all {
			r.read--
			return nil
		}
		if err != nil {
			r.failed = append(r.failed, err)
			break
		}
		if n++; n == 1 {
			r.with++
		}
		if s.In == manager.InEntry && (len(entries) == 0 || entries[len(entries)-1] != s.Entry) {
			entries = append(entries, s.Entry)
		}
		if err := r.show(id, s); err != nil {
			return err
		}
	}
	r.found += n
	if r.c.json || len(entries) == 0 {
		return nil
	}
	return r.c.textf("  to erase: coppice erase %s %s", shellQuote(r.c.shown.Short(id)), entriesText(entries))
}

// show shows one credential.
func (r *secretsRun) show(id string, s manager.Secret) error {
	if r.c.json {
		return r.out.add(api.SecretOf(id, s))
	}
	r.bar.Close()
	where := s.In
	switch s.In {
	case manager.InEntry:
		where = "entry " + shortid.One(s.Entry)
	case manager.InDocument:
		where = "document " + s.Name
	case manager.InOriginal:
		where = fmt.Sprintf("line %d of the imported file", s.Line)
	}
	if s.In == manager.InState || s.In == manager.InDocument || s.In == manager.InContext {
		where += fmt.Sprintf(" at seq %d", s.Seq)
	}
	return r.c.textf("%s  %s  %s  %s", r.c.shown.Short(id), r.c.stdout.Paint(term.Red, s.Rule),
		term.Line(strings.TrimSpace(where+" "+s.Path)), term.Line(s.Preview))
}

// entriesText returns ids for a command line, or where they are.
func entriesText(ids []string) string {
	const most = 20
	more := ""
	if len(ids) > most {
		ids, more = ids[:most], " …"
	}
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = shellQuote(id)
	}
	return strings.Join(quoted, " ") + more
}

func (r *secretsRun) end() error {
	found := &api.Failure{
		Code: "secrets",
		Hint: "make each credential invalid where it is valid; `coppice erase` removes entries that have one",
		Err: fmt.Errorf("%s in %d of %s", term.Count(r.found, "credential", "credentials"), r.with,
			term.Count(r.read, "session", "sessions")),
	}
	r.out.after = map[string]any{"sessions": r.read, "io": r.st.io()}
	unread := errors.Join(r.failed...)
	switch {
	case r.c.json:
		if err := r.out.end(unread); err != nil || r.found == 0 {
			return err
		}
		return reported(found)
	case unread != nil:
		return errors.Join(unread, found.Err)
	case r.found > 0:
		return found
	}
	return r.c.textf("%s: no credentials found", term.Count(r.read, "session", "sessions"))
}
