package upkeep

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
	"github.com/coppice-go/coppice/internal/cli/probe"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/transcript"
)

// Backend is `coppice backend`.
func Backend(a *program.App) *cobra.Command {
	c := &cli{a}
	cmd := &cobra.Command{
		Use:   "backend",
		Short: "Check the storage below a store",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return program.Usage("backend verify is what there is") },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "verify [URL]",
		Short: "Ask a store whether it keeps the promises on which sessions stand",
		Long: `Ask a store whether it keeps the promises on which sessions stand: what was written is there, racing writers have
exactly one winner, appends compare and act as one step. It works in a folder of its own, which it takes away.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				c.URL = args[0]
			}
			return c.backendVerify(cmd.Context())
		},
	})
	return cmd
}

// probed is the JSON of backend verify.
type probed struct {
	Store    string        `json:"store"`
	OK       bool          `json:"ok"`
	Strategy string        `json:"strategy"`
	Checks   []probe.Check `json:"checks"`
}

func (c *cli) backendVerify(ctx context.Context) (err error) {
	where, err := c.StoreURL()
	if err != nil {
		return err
	}
	b, err := backend.Open(ctx, where)
	if err != nil {
		return fmt.Errorf("open store %s: %w", where, err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	id, err := transcript.NewID(c.Now(), rand.Reader)
	if err != nil {
		return err
	}
	scratch := "probe-" + id
	checks, err := probe.Run(ctx, backend.WithPrefix(b, scratch), c.Now)
	if err == nil {
		err = sweep(where, scratch)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	out := probed{Store: where, OK: probe.Passed(checks), Strategy: "replace", Checks: checks}
	if _, ok := b.(backend.Appender); ok {
		out.Strategy = "append"
	}
	return c.probeReport(out)
}

func (c *cli) probeReport(out probed) error {
	failed := 0
	for _, check := range out.Checks {
		mark, style := "ok    ", term.Green
		if !check.OK {
			mark, style = "FAILED", term.Red
			failed++
		}
		if c.JSON {
			continue
		}
		if err := c.Text("%s  %-38s %8.1f ms  %s", c.Out.Paint(style, mark), check.Name, check.Ms, term.Line(check.Detail)); err != nil {
			return err
		}
	}
	bad := &program.Failure{
		Code: "no-cas", Hint: "do not keep sessions there",
		Err: fmt.Errorf("%d of %d checks failed on %s", failed, len(out.Checks), out.Store),
	}
	if c.JSON {
		if err := c.Emit(out); err != nil || out.OK {
			return err
		}
		return program.Reported(bad)
	}
	if !out.OK {
		return bad
	}
	return c.Text("%s keeps its promises (%s strategy)", out.Store, out.Strategy)
}

// sweep takes away what the local driver leaves of the scratch folder: its folders and its lock file,
// which it never removes itself. The name is new, so nobody else has anything there.
func sweep(where, scratch string) error {
	if u, err := url.Parse(where); err == nil && len(u.Scheme) > 1 {
		if u.Scheme != "file" {
			return nil
		}
		where = u.Path
	}
	if err := os.RemoveAll(filepath.Join(where, scratch)); err != nil {
		return fmt.Errorf("take the probe's folder away: %w", err)
	}
	return nil
}
