package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/transcript"
)

func (c *cli) resumeCommand() *cobra.Command {
	var terminal, at string
	cmd := &cobra.Command{
		Use:   "resume SESSION",
		Short: "Print what an agent needs to continue: state, context, head",
		Long: `Print what an agent needs to continue: its state, the bounded working context and the head. It takes
one read whatever the length of the history (on disk also a bounded read of the end of the log), and
writes nothing to the store. If the terminal has an id, ` + "`coppice continue`" + ` prints this session in
that terminal from now on; to remember it takes a second read.

With --at it prints what was there at an earlier TARGET, with the complete context; it moves nothing. Rollback does.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") {
				return c.resumeAt(cmd.Context(), args[0], at)
			}
			if err := c.resume(cmd.Context(), args[0]); err != nil {
				return err
			}
			c.rememberInTerminal(cmd.Context(), args[0], terminal)
			return nil
		},
	}
	cmd.Flags().StringVar(&at, "at", "head", "TARGET whose state, context and head are printed")
	cmd.Flags().StringVar(&terminal, "terminal", "", "id of the terminal; none = do not remember the session")
	return cmd
}

func (c *cli) resume(ctx context.Context, id string) error {
	return c.withSession(ctx, id, readOnly(), func(st *countedStore, s *coppice.Session) error {
		out, con, err := api.Resumed(ctx, s)
		if err != nil {
			return err
		}
		return c.resumed(st, con, out, s.Info())
	})
}

func (c *cli) resumeAt(ctx context.Context, id, text string) error {
	t, err := parseTarget(text)
	if err != nil {
		return err
	}
	return c.withSession(ctx, id, readOnly(), func(st *countedStore, s *coppice.Session) error {
		v, err := at(ctx, s, t)
		if err != nil {
			return err
		}
		out, con, err := api.ResumedAt(ctx, s, v)
		if err != nil {
			return err
		}
		info := s.Info()
		info.Reason, info.Updated, info.Preview = v.Commit().Reason, v.Commit().Time, ""
		return c.resumed(st, con, out, info)
	})
}

func (c *cli) resumed(
	st *countedStore, con transcript.Context, out api.Resume, info checkpoint.Summary,
) error {
	out.IO = st.io()
	if c.json {
		return c.writeJSON(out)
	}
	return c.resumeText(con, out, info)
}

func (c *cli) resumeText(con transcript.Context, out api.Resume, info checkpoint.Summary) error {
	head := "none: the next entry becomes a root"
	if out.Head != nil {
		head = "entry " + term.Line(shortid.One(*out.Head))
		if p := term.Line(info.Preview); p != "" {
			head += "  " + term.Cut(p, 60)
		}
	}
	size := 0
	for _, m := range out.Context {
		size += len(m)
	}
	shown := term.Count(len(out.Context), "message", "messages") + ", " + term.Size(int64(size))
	if !con.Window.Complete {
		shown += fmt.Sprintf(" (the newest; %s older omitted, see `coppice context`)",
			term.Count(con.Window.OmittedEntries, "entry", "entries"))
	}
	model := con.Settings.Model
	if model == "" {
		model = "unknown"
	}
	state := "none"
	switch is := (checkpoint.Document{State: out.State}); {
	case is.StateLost():
		state = "lost, and no repair brought it back; `coppice log` marks the commits without one"
	case string(out.State) != "null":
		state = term.Size(int64(len(out.State))) + "  " + term.Cut(term.Line(string(out.State)), 100)
	}
	rows := [][2]string{
		{"session", shortid.One(out.Session) + "  " + titleOf(info)},
		{"head", head},
		{"branch", term.Line(out.Branch)},
		{"commit", fmt.Sprintf("seq %d, %s, %s", out.Seq, term.Line(info.Reason), term.Ago(c.now(), info.Updated))},
		{"model", term.Line(model) + ", thinking " + term.Line(con.Settings.ThinkingLevel)},
		{"context", shown},
		{"state", state},
		{"cost", costText(out.IO)},
	}
	if n := len(con.OpenCalls); n > 0 {
		calls := term.Count(n, "tool call", "tool calls")
		rows = append(rows, [2]string{"open", calls + " without a result: the last run was interrupted"})
	}
	return c.fields(rows)
}

// fields writes names and values, one a line.
func (c *cli) fields(rows [][2]string) error {
	for _, r := range rows {
		name, value := fmt.Sprintf("%-9s", r[0]), term.Cut(r[1], max(0, c.stdout.Width()-10))
		if err := c.textf("%s %s", c.stdout.Paint(term.Bold, name), value); err != nil {
			return err
		}
	}
	return nil
}
