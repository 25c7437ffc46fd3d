package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/transcript"
)

func (c *cli) backendCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backend",
		Short: "Test a storage backend",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError("name a subcommand: coppice backend verify [URL]")
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "verify [URL]",
		Short: "Test whether a backend is safe for sessions",
		Long: `Test whether a backend is safe for sessions: a write can be read back, exactly one of several
concurrent conditional writes succeeds, and an append compares and writes in one step. The tests run
in a temporary folder of the store, which is removed afterwards. One line is written for each test;
the exit code is 1 if one fails.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				c.storeFlag = args[0]
			}
			return c.backendVerify(cmd.Context())
		},
	})
	return cmd
}

// probed is the JSON of backend verify.
type probed struct {
	Store    string       `json:"store"`
	OK       bool         `json:"ok"`
	Strategy string       `json:"strategy"`
	Checks   []probeCheck `json:"checks"`
}

func (c *cli) backendVerify(ctx context.Context) (err error) {
	where, err := c.storeURL()
	if err != nil {
		return err
	}
	b, err := backend.Open(ctx, where)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	id, err := transcript.NewID(c.now(), rand.Reader)
	if err != nil {
		return err
	}
	scratch := "probe-" + id
	checks, err := probeStore(ctx, backend.WithPrefix(b, scratch), c.now)
	if err != nil {
		return err
	}
	if err := removeScratch(where, scratch); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	out := probed{Store: backend.Redacted(where), OK: allPassed(checks), Strategy: "replace", Checks: checks}
	if _, ok := b.(backend.Appender); ok {
		out.Strategy = "append"
	}
	return c.probeReport(out)
}

// probeReport reports the result of backend verify.
func (c *cli) probeReport(out probed) error {
	failed := 0
	for _, check := range out.Checks {
		mark, style := "ok    ", term.Green
		if !check.OK {
			mark, style = "FAILED", term.Red
			failed++
		}
		if c.json {
			continue
		}
		mark = c.stdout.Paint(style, mark)
		if err := c.textf("%s  %-38s %8.1f ms  %s", mark, check.Name, check.Ms, term.Line(check.Detail)); err != nil {
			return err
		}
	}
	bad := &api.Failure{
		Code: "no-cas", Hint: "do not store sessions on this backend",
		Err: fmt.Errorf("%d of %d checks failed on %s", failed, len(out.Checks), out.Store),
	}
	if c.json {
		if err := c.writeJSON(out); err != nil || out.OK {
			return err
		}
		return reported(bad)
	}
	if !out.OK {
		return bad
	}
	return c.textf("%s passed all checks (%s strategy)", out.Store, out.Strategy)
}

// removeScratch removes the folders and the lock file that the local driver leaves in the scratch
// folder. The name is new, so nothing else is in it.
func removeScratch(where, scratch string) error {
	if u, err := url.Parse(where); err == nil && len(u.Scheme) > 1 {
		if u.Scheme != "file" {
			return nil
		}
		where = u.Path
	}
	if err := os.RemoveAll(filepath.Join(where, scratch)); err != nil {
		return fmt.Errorf("remove the folder of the checks: %w", err)
	}
	return nil
}
