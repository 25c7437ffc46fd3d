package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/transcript"
)

func (c *cli) contextCommand() *cobra.Command {
	var at, profile string
	cmd := &cobra.Command{
		Use:   "context SESSION",
		Short: "Print the full context of the model",
		Long: `Print all messages that the model receives next, at the head or at a TARGET, by the rules of a
profile. Unlike resume, which is limited to the working context, it prints all of them.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.context(cmd.Context(), args[0], at, profile)
		},
	}
	cmd.Flags().StringVar(&at, "at", "head", "TARGET whose context is printed")
	cmd.Flags().StringVar(&profile, "profile", "",
		"rules to apply: coppice, pi, omp, atomic, operator; default: those of the session")
	completeFlag(cmd, "profile", "coppice", "pi", "omp", "atomic", "operator")
	return cmd
}

func profileOf(name string) (transcript.Profile, error) {
	if name == "coppice" {
		return transcript.Coppice, nil
	}
	if p := transcript.Profile(name); p.Valid() {
		return p, nil
	}
	return "", usageError("unknown profile %q: want coppice, pi, omp, atomic or operator", name)
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
	Entry     string          `json:"entry"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func (c *cli) context(ctx context.Context, id, at, profile string) error {
	t, err := parseTarget(at)
	if err != nil {
		return err
	}
	o := readOnly()
	if o.Profile, err = profileOf(profile); err != nil {
		return err
	}
	return c.withSession(ctx, id, o, func(st *countedStore, s *coppice.Session) error {
		v, err := s.At(ctx, t)
		if err != nil {
			return err
		}
		con, err := v.Context(ctx)
		if err != nil {
			return err
		}
		if !c.json {
			return c.contextText(con)
		}
		calls := []openCall{}
		for _, call := range con.OpenCalls {
			calls = append(calls, openCall(call))
		}
		return c.writeJSON(contextOut{
			Messages: raws(con.Messages), ThinkingLevel: con.Settings.ThinkingLevel, Model: orNull(con.Settings.Model),
			Leaf: orNull(con.Leaf), OpenCalls: calls, Diagnostics: orList(con.Diagnostics), IO: st.io(),
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
		text = term.Cut(text, c.stdout.Rest(line, 100))
		if err := c.textf("%s%s", c.stdout.Paint(term.Dim, line), text); err != nil {
			return err
		}
	}
	entries := make([]string, len(con.Diagnostics))
	for i, d := range con.Diagnostics {
		entries[i] = d.Entry
	}
	ids := shortid.Of(entries, shortid.Least)
	for _, d := range con.Diagnostics {
		c.notef("%s: %s %s", d.Kind, term.Line(ids.Short(d.Entry)), term.Line(d.Detail))
	}
	model := con.Settings.Model
	if model == "" {
		model = "unknown"
	}
	return c.textf("%s, model %s, thinking %s", term.Count(len(con.Messages), "message", "messages"),
		term.Line(model), term.Line(con.Settings.ThinkingLevel))
}
