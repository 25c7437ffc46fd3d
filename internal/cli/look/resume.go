package look

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/transcript"
)

// Resume is `coppice resume`.
func Resume(a *program.App) *cobra.Command {
	c := &cli{a}
	return &cobra.Command{
		Use:   "resume SESSION",
		Short: "What an agent needs to go on: state, context, head",
		Long: `What an agent needs to go on: its state, the bounded working context, the head. It costs one read (on disk and
a bounded tail of the log), whatever the length of the history, and writes nothing.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.resume(cmd.Context(), args[0]) },
	}
}

// resumed is the JSON of resume.
type resumed struct {
	Session string            `json:"session"`
	Seq     uint64            `json:"seq"`
	Commit  string            `json:"commit"`
	Head    *string           `json:"head"`
	Branch  string            `json:"branch"`
	State   json.RawMessage   `json:"state"`
	Manager json.RawMessage   `json:"manager,omitempty"`
	Context []json.RawMessage `json:"context"`
	Window  window            `json:"window"`
	IO      backend.IO        `json:"io"`
}

type window struct {
	Complete       bool `json:"complete"`
	OmittedEntries int  `json:"omittedEntries"`
}

func (c *cli) resume(ctx context.Context, id string) error {
	return c.WithSession(ctx, id, program.Reading(), func(st *program.Store, s *coppice.Session) error {
		con, err := s.Context(ctx)
		if err != nil {
			return err
		}
		v, err := s.At(ctx, coppice.Target{})
		if err != nil {
			return err
		}
		h, doc := s.Head(), v.Document()
		out := resumed{
			Session: s.ID(), Seq: h.Seq, Commit: h.Commit, Head: program.OrNull(h.Entry), Branch: h.Branch,
			State: program.OrNullJSON(doc.State), Manager: doc.Manager, Context: raws(con.Messages),
			Window: window{con.Window.Complete, con.Window.OmittedEntries}, IO: st.IO(),
		}
		if c.JSON {
			return c.Emit(out)
		}
		return c.resumeText(s, con, out)
	})
}

func raws(messages []transcript.Message) []json.RawMessage {
	out := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		out[i] = m.Raw
	}
	return out
}

func (c *cli) resumeText(s *coppice.Session, con transcript.Context, out resumed) error {
	info := s.Info()
	head := "a new root comes next"
	if out.Head != nil {
		head = "entry " + *out.Head
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
		shown += fmt.Sprintf(" (the newest; %s older are cut off, `coppice context` shows them)",
			term.Count(con.Window.OmittedEntries, "entry", "entries"))
	}
	model := con.Settings.Model
	if model == "" {
		model = "not said"
	}
	state := "none"
	if string(out.State) != "null" {
		state = term.Size(int64(len(out.State))) + "  " + term.Cut(term.Line(string(out.State)), 100)
	}
	rows := [][2]string{
		{"session", out.Session + "  " + program.Title(info)},
		{"head", head},
		{"branch", term.Line(out.Branch)},
		{"commit", fmt.Sprintf("seq %d, %s, %s", out.Seq, term.Line(info.Reason), term.Ago(c.Now(), info.Updated))},
		{"model", term.Line(model) + ", thinking " + term.Line(con.Settings.ThinkingLevel)},
		{"context", shown},
		{"state", state},
		{"cost", program.Cost(out.IO)},
	}
	if n := len(con.OpenCalls); n > 0 {
		rows = append(rows, [2]string{"open", term.Count(n, "tool call", "tool calls") + " without a result: the last run broke off there"})
	}
	return c.fields(rows)
}

// fields writes names and values, one a line.
func (c *cli) fields(rows [][2]string) error {
	for _, r := range rows {
		line := fmt.Sprintf("%-9s", r[0])
		if err := c.Text("%s %s", c.Out.Paint(term.Bold, line), term.Cut(r[1], max(0, c.Out.Width()-10))); err != nil {
			return err
		}
	}
	return nil
}

// Context is `coppice context`.
func Context(a *program.App) *cobra.Command {
	c := &cli{a}
	var at, profile string
	cmd := &cobra.Command{
		Use:   "context SESSION",
		Short: "The messages that the model sees next, whole",
		Long: `The messages that the model sees next, at the head or at a TARGET, by the rules of a profile. Unlike resume it
shows all of them, whatever the bound of the working context.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.context(cmd.Context(), args[0], at, profile)
		},
	}
	cmd.Flags().StringVar(&at, "at", "head", "TARGET: show the context of then")
	cmd.Flags().StringVar(&profile, "profile", "", "whose rules: coppice, pi, omp, atomic, operator; default the session's own")
	_ = cmd.RegisterFlagCompletionFunc("profile", program.Words("coppice", "pi", "omp", "atomic", "operator"))
	return cmd
}

func profileOf(name string) (transcript.Profile, error) {
	if name == "coppice" {
		return transcript.Coppice, nil
	}
	if p := transcript.Profile(name); p.Valid() {
		return p, nil
	}
	return "", program.Usage("unknown profile %q; there are coppice, pi, omp, atomic, operator", name)
}

// contextOut is the JSON of context.
type contextOut struct {
	Messages      []json.RawMessage       `json:"messages"`
	ThinkingLevel string                  `json:"thinkingLevel"`
	Model         *string                 `json:"model"`
	Leaf          *string                 `json:"leaf"`
	OpenCalls     []openCall              `json:"openCalls"`
	Diagnostics   []transcript.Diagnostic `json:"diagnostics"`
	IO            backend.IO              `json:"io"`
}

type openCall struct {
	Entry string `json:"entry"`
	ID    string `json:"id"`
	Name  string `json:"name"`
}

func (c *cli) context(ctx context.Context, id, at, profile string) error {
	t, err := program.ParseTarget(at)
	if err != nil {
		return err
	}
	o := program.Reading()
	if o.Profile, err = profileOf(profile); err != nil {
		return err
	}
	return c.WithSession(ctx, id, o, func(st *program.Store, s *coppice.Session) error {
		v, err := s.At(ctx, t)
		if err != nil {
			return err
		}
		con, err := v.Context(ctx)
		if err != nil {
			return err
		}
		if !c.JSON {
			return c.contextText(con)
		}
		calls := []openCall{}
		for _, call := range con.OpenCalls {
			calls = append(calls, openCall(call))
		}
		return c.Emit(contextOut{
			Messages: raws(con.Messages), ThinkingLevel: con.Settings.ThinkingLevel, Model: program.OrNull(con.Settings.Model),
			Leaf: program.OrNull(con.Leaf), OpenCalls: calls, Diagnostics: program.OrList(con.Diagnostics), IO: st.IO(),
		})
	})
}

func (c *cli) contextText(con transcript.Context) error {
	for i, m := range con.Messages {
		shape := transcript.Inspect(m.Raw)
		parts := []string{term.Line(shape.Text)}
		for _, call := range shape.Calls {
			parts = append(parts, "→ "+term.Line(call.Name))
		}
		text := strings.TrimSpace(strings.Join(parts, " "))
		line := fmt.Sprintf("%4d  %-17s %8s  ", i+1, term.Cut(term.Line(shape.Role), 17), term.Size(int64(len(m.Raw))))
		if err := c.Text("%s%s", c.Out.Paint(term.Dim, line), term.Cut(text, c.Out.Rest(line, 100))); err != nil {
			return err
		}
	}
	for _, d := range con.Diagnostics {
		c.Note("%s: %s %s", d.Kind, term.Line(d.Entry), term.Line(d.Detail))
	}
	model := con.Settings.Model
	if model == "" {
		model = "not said"
	}
	return c.Text("%s, model %s, thinking %s", term.Count(len(con.Messages), "message", "messages"),
		term.Line(model), term.Line(con.Settings.ThinkingLevel))
}
