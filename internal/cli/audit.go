package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// recorded does an administrative act between its two lines in the audit log that $COPPICE_AUDIT names. An act that
// cannot be recorded is not done.
func (c *cli) recorded(
	ctx context.Context, st *countedStore, a audit.Act, f func() (ids []string, err error),
) error {
	file := c.getenv("COPPICE_AUDIT")
	if file == "" {
		_, err := f()
		return err
	}
	a.Who = fmt.Sprintf("uid:%d", os.Getuid())
	if st != nil {
		a.Store = backend.Redacted(st.url)
	}
	log := audit.Open(file, c.now)
	defer func() { _ = log.Close() }() // each line is synced
	end, err := log.Begin(ctx, a)
	if err != nil {
		return fmt.Errorf("%s: nothing was done: %w", a.Act, err)
	}
	ids, err := f()
	result, code := audit.Done, ""
	if err != nil {
		d := api.Describe(err)
		if result, code = audit.Failed, d.Code; d.Exit == api.ExitUnknown {
			result = audit.Unknown
		}
	}
	if eerr := end(context.WithoutCancel(ctx), result, code, ids...); eerr != nil {
		c.notef("%s was done, and its end is not recorded: %s", a.Act, term.Line(eerr.Error()))
	}
	return err
}

func (c *cli) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Check the log of administrative acts", Args: cobra.NoArgs,
		Long: `Check the log of administrative acts, which 'coppice serve --audit FILE' and, if COPPICE_AUDIT names a
file, other commands write.`,
		RunE: func(*cobra.Command, []string) error {
			return usageError("name a subcommand: coppice audit verify FILE")
		},
	}
	var anchor string
	verify := &cobra.Command{
		Use:   "verify FILE",
		Short: "Compare each line of an audit log with the hash in the next one",
		Long: `Compare each line of an audit log with the hash in the next one, and print the hash of the last line: an
anchor, if it is kept where no one can change it. Without an anchor the command cannot find that the last
lines were removed or written again; with --anchor, that line and all before it have to be as they were.
A log that was changed is exit code 5.`,
		Example: "  coppice audit verify audit.jsonl --anchor HASH",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return c.auditVerify(args[0], anchor) },
	}
	verify.Flags().StringVar(&anchor, "anchor", "", "hash of a line that has to be in the log")
	cmd.AddCommand(verify)
	return cmd
}

// auditDoc is the document of coppice audit verify.
type auditDoc struct {
	Lines int    `json:"lines"`
	Torn  int    `json:"torn"`
	Open  int    `json:"open"`
	Ends  bool   `json:"ends"`
	Head  string `json:"head"`
	OK    bool   `json:"ok"`

	Broken int    `json:"broken,omitempty"` // the first line that does not fit
	Reason string `json:"reason,omitempty"`
}

func (c *cli) auditVerify(file, anchor string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	rep, err := audit.Verify(f, anchor)
	_ = f.Close() // it was only read
	broken, is := errors.AsType[*audit.Broken](err)
	if err != nil && !is {
		return err
	}
	doc := auditDoc{Lines: rep.Lines, Torn: rep.Torn, Open: rep.Open, Ends: rep.Ends, Head: rep.Head, OK: !is}
	if is {
		doc.Broken, doc.Reason = broken.Line, broken.Reason
		err = &api.Failure{Code: "corrupt", Err: fmt.Errorf("%s: %w", file, broken)}
	}
	if c.json {
		if werr := c.writeJSON(doc); werr != nil {
			return werr
		}
		if is {
			return reported(err)
		}
		return nil
	}
	if is {
		return err
	}
	if rep.Torn > 0 {
		c.notef("%s left by crashes, each with a mark", term.Count(rep.Torn, "torn line", "torn lines"))
	}
	if rep.Open > 0 {
		c.notef("%s without an end: done, or not", term.Count(rep.Open, "act", "acts"))
	}
	if !rep.Ends {
		c.notef("the last line is torn: the next act marks it")
	}
	return c.textf("%s, unchanged; the last one is %s", term.Count(rep.Lines, "line", "lines"), rep.Head)
}
