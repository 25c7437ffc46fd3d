package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/provider"
	"github.com/coppice-go/coppice/transcript"
)

func (c *cli) contextCommand() *cobra.Command {
	var o contextOptions
	cmd := &cobra.Command{
		Use:        "context SESSION",
		SuggestFor: []string{"settings", "compact"},
		Short:      "Print the full context of the model",
		Long: `Print all messages that the model receives next, at the head or at a TARGET, by the rules of a
profile. Unlike resume, which is limited to the working context, it prints all of them.

With --provider it prints the members of a request to the API of a provider, as JSON: the messages in the form
that the API takes. What cannot be sent is named on standard error. With --settings it prints the settings in
force there instead: models, thinking, mode, service tier.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.context(cmd.Context(), args[0], o)
		},
	}
	cmd.Flags().StringVar(&o.at, "at", "head", "TARGET whose context is printed")
	cmd.Flags().StringVar(&o.profile, "profile", "",
		"rules to apply: coppice, pi, omp, atomic, operator; default: those of the session")
	cmd.Flags().StringVar(&o.api, "provider", "",
		"print the request to an API: anthropic, openai-chat, openai-responses, gemini")
	cmd.Flags().StringVar(&o.model, "model", "", "with --provider: the model; signed thinking of others is left out")
	cmd.Flags().StringVar(&o.vendor, "vendor", "",
		"with --provider: who runs the API, as messages name it; default: the company whose API it is")
	cmd.Flags().StringVar(&o.openCalls, "open-calls", "answer",
		"with --provider: calls without a result: answer (with an error) or omit")
	cmd.Flags().StringVar(&o.thinking, "thinking", "drop",
		"with --provider: thinking that the API does not take: drop or text")
	cmd.Flags().BoolVar(&o.settings, "settings", false, "print models, thinking, mode and service tier instead")
	completeFlag(cmd, "profile", "coppice", "pi", "omp", "atomic", "operator")
	completeFlag(cmd, "provider", "anthropic", "openai-chat", "openai-responses", "gemini")
	completeFlag(cmd, "open-calls", "answer", "omit")
	completeFlag(cmd, "thinking", "drop", "text")
	cmd.AddCommand(c.contextSetCommand(), c.contextCompactCommand())
	return cmd
}

// contextOptions are the flags of the command.
type contextOptions struct {
	at, profile, api, model, vendor, openCalls, thinking string
	settings                                             bool
}

// request returns the options for a request; nil = none is asked for.
func (o contextOptions) request() (*provider.Options, error) {
	p := provider.Options{Model: o.model, Provider: o.vendor}
	switch o.openCalls {
	case "answer":
	case "omit":
		p.OpenCalls = provider.Omit
	default:
		return nil, oneOf("--open-calls", o.openCalls, []string{"answer", "omit"})
	}
	switch o.thinking {
	case "drop":
	case "text":
		p.Thinking = provider.AsText
	default:
		return nil, oneOf("--thinking", o.thinking, []string{"drop", "text"})
	}
	switch {
	case o.api != "" && !slices.Contains(provider.APIs(), provider.API(o.api)):
		return nil, oneOf("provider", o.api, texts(provider.APIs()))
	case o.api != "" && o.settings:
		return nil, usageError("use one of --provider and --settings")
	case o.api == "" && (o.model+o.vendor != "" || o.openCalls != "answer" || o.thinking != "drop"):
		return nil, usageError("--model, --vendor, --open-calls and --thinking are about the request of --provider")
	case o.api == "":
		return nil, nil
	}
	return &p, nil
}

func profileOf(name string) (transcript.Profile, error) {
	if name == "coppice" {
		return transcript.Coppice, nil
	}
	if p := transcript.Profile(name); p.Valid() {
		return p, nil
	}
	return "", oneOf("profile", name, []string{"coppice", "pi", "omp", "atomic", "operator"})
}

func (c *cli) context(ctx context.Context, id string, o contextOptions) error {
	t, err := parseTarget(o.at)
	if err != nil {
		return err
	}
	asked, err := o.request()
	if err != nil {
		return err
	}
	so := readOnly()
	if so.Profile, err = profileOf(o.profile); err != nil {
		return err
	}
	return c.withSession(ctx, id, so, func(st *countedStore, s *coppice.Session) error {
		v, err := at(ctx, s, t)
		if err != nil {
			return err
		}
		if o.settings {
			return c.settings(ctx, s.ID(), v, so.Profile)
		}
		con, err := v.Context(ctx)
		if err != nil {
			return err
		}
		if asked == nil && !c.json {
			return c.contextText(con)
		}
		out := api.ContextOf(con)
		if asked != nil {
			r, err := provider.Convert(ctx, con, provider.API(o.api), asked)
			if err != nil {
				return err
			}
			if !c.json {
				return c.requestText(r)
			}
			out.SetRequest(r)
		}
		out.IO = st.io()
		return c.writeJSON(out)
	})
}

// requestText writes the body of a request, and what is not in it as remarks.
func (c *cli) requestText(r provider.Request) error {
	for _, l := range r.Lost {
		c.notef("%s: message %d %s: %s", l.Kind, l.Message+1, term.Line(l.Entry), term.Line(l.Detail))
	}
	if r.MoreLost > 0 {
		c.notef("and %d more", r.MoreLost)
	}
	return c.textf("%s", r.Body())
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
	ids := shortid.Of(entries, shortid.Alone)
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

// settings prints the settings in force at a view, by the entries of its path.
func (c *cli) settings(ctx context.Context, id string, v *coppice.View, p transcript.Profile) error {
	var path []transcript.Entry
	for e, err := range v.Path(ctx) {
		if err != nil {
			return err
		}
		path = append(path, e)
	}
	slices.Reverse(path)
	out := api.SettingsOf(id, manager.SettingsInForce(path, p))
	if c.json {
		return c.writeJSON(out)
	}
	rows := [][2]string{
		{"thinking", out.ThinkingLevel}, {"mode", out.Mode}, {"tier", out.ServiceTier}, {"title", out.Title},
	}
	for _, role := range slices.Sorted(maps.Keys(out.Models)) {
		rows = append(rows, [2]string{"model", role + "  " + out.Models[role]})
	}
	for _, r := range rows {
		if r[1] == "" {
			continue
		}
		if err := c.textf("%-9s %s", r[0], term.Line(r[1])); err != nil {
			return err
		}
	}
	return nil
}
