package derive

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/entries"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Context is what the model sees next, and what a reader should know about it.
type Context struct {
	Messages    []entries.Message  // in order; raw messages byte for byte, summaries in pi's shape
	Window      Window             // whether the bound of a working context left something out
	Settings    entries.Settings   // in force at the end of the path
	Leaf        string             // the entry from which the conversation goes on; "" = a new root comes next
	Explicit    bool               // set by the caller of SetContext, not derived from the path
	OpenCalls   []entries.ToolCall // calls without a result: what a crash in mid-tool leaves
	Diagnostics []diag.Diagnostic  // what is odd about the messages; at most 101, the last one a count
}

// Window says how much of the context is there. OmittedEntries counts the entries whose messages belong to
// the context and were left out by the bound.
type Window struct {
	Complete       bool
	OmittedEntries int
}

// Build returns the context at the end of a path, root first, by the rules of a profile. It takes time
// linear in the path, never fails and changes nothing: a field of the wrong type counts as absent, an entry
// that should hold a message and does not is left out with a diagnostic. Messages share their bytes with
// the entries.
func Build(path []entries.Entry, p Profile) Context {
	b := Builder{Rules: RulesOf(p)}
	return b.Build(path, entries.Settings{}, 0)
}

// Builder collects the messages of one context. Links runs beside Messages.
type Builder struct {
	Rules    Rules
	edits    map[string][]byte // the replacement of the latest context_edit, by target id
	Messages []entries.Message
	Links    []Link
	diag     diag.List
}

// Link is how a message hangs together with others.
type Link struct {
	ordinal uint64
	Calls   []entries.Call
	Results []string // ids of the calls that it answers
	only    bool     // it says nothing but results
}

func linkOf(m entries.Message, ordinal uint64) Link {
	p := entries.ReadParts(m.Raw)
	return Link{ordinal: ordinal, Calls: p.Calls, Results: p.Results, only: p.OnlyResults() || m.Role == "toolResult"}
}

// Build is the function Build for a path whose beginning may be missing: base are the settings in force before
// it; omitted > 0 says that entries which belong to the context were cut off at its front.
func (b *Builder) Build(path []entries.Entry, base entries.Settings, omitted int) Context {
	path = b.Rules.Settle(path, &b.diag)
	c := Context{Settings: b.Rules.Settings(path, base), Window: Window{Complete: omitted == 0, OmittedEntries: omitted}}
	if len(path) == 0 {
		c.Diagnostics = b.diag.All()
		return c
	}
	c.Leaf = path[len(path)-1].ID
	sel := b.Rules.Choose(path)
	if sel.Missing != "" {
		if omitted > 0 {
			sel.Kept = 0 // it was kept, and cut off by the bound
		} else {
			b.diag.Add(path[sel.Boundary].ID, path[sel.Boundary].Ordinal, diag.KeptMissing,
				fmt.Sprintf("keeps from %q, which is not before it on the path: nothing is kept", sel.Missing))
		}
	}
	b.collect(path, sel)
	c.OpenCalls = b.pair(&c.Window)
	if b.Rules.healthy {
		b.dropUnanswered()
		b.dropFailed()
	}
	c.Messages = b.Messages
	c.Diagnostics = b.diag.All()
	return c
}

// collect turns the selected entries into messages.
func (b *Builder) collect(path []entries.Entry, sel Selection) {
	kept, rest := []entries.Entry(nil), path
	if sel.Boundary >= 0 {
		kept, rest = path[sel.Kept:sel.Boundary], path[sel.Boundary+1:]
	}
	if b.Rules.Edits {
		b.FindEdits(kept)
		b.FindEdits(rest)
	}
	b.Messages = make([]entries.Message, 0, len(kept)+len(rest)+2)
	b.Links = make([]Link, 0, len(kept)+len(rest)+2)
	if sel.Boundary >= 0 {
		b.boundary(path[sel.Boundary], kept)
	}
	if !b.Rules.verbatimOnly {
		for _, e := range kept {
			if !b.Rules.Edits || e.Type != "message" || string(rawjson.Field(rawjson.Field(e.Raw, "message"), "role")) != `"system"` {
				b.Entry(e)
			}
		}
	}
	for _, e := range rest {
		b.Entry(e)
	}
}

// Settle follows leaf entries at the end of the path: the head is at their target. A target that is not
// on the path cannot be followed from here; the entry is then passed over.
func (r Rules) Settle(path []entries.Entry, found *diag.List) []entries.Entry {
	for r.Moves && len(path) > 0 && path[len(path)-1].Type == "leaf" {
		e := path[len(path)-1]
		target := rawjson.Text(r.Value(e.Raw, "targetId", "target_id"))
		at := len(path) - 2
		if target == "" {
			at = -1
		}
		for at >= 0 && path[at].ID != target {
			at--
		}
		if at < 0 && target != "" {
			found.Add(e.ID, e.Ordinal, diag.Orphan, fmt.Sprintf("moves the head to %q, which is not on the path", target))
			return path
		}
		path = path[:at+1]
	}
	return path
}

// Settings reads the last word of the settings entries, from the end so that messages are opened only until
// the first assistant.
func (r Rules) Settings(path []entries.Entry, base entries.Settings) entries.Settings {
	var model, explicit, level, mode string
	for i := len(path) - 1; i >= 0 && (level == "" || mode == "" || explicit == "" && (model == "" || r.Explicit)); i-- {
		switch e := path[i]; e.Type {
		case "thinking_level_change":
			if level == "" {
				if level = rawjson.Text(r.Value(e.Raw, "thinkingLevel", "thinking_level")); level == "" {
					level = "off"
				}
			}
		case "mode_change":
			if mode == "" {
				mode = rawjson.Text(rawjson.Field(e.Raw, "mode"))
			}
		case "model_change":
			if explicit == "" && (model == "" || r.Explicit) {
				explicit = r.ChangedModel(e)
			}
		case "message":
			if model == "" && explicit == "" && !r.changesOnly {
				model = spokenModel(e)
			}
		}
	}
	s := base
	if explicit != "" {
		model = explicit
	}
	s.Model, s.Mode = cmp.Or(model, s.Model), cmp.Or(mode, s.Mode)
	s.ThinkingLevel = cmp.Or(level, s.ThinkingLevel, "off")
	return s
}

// ChangedModel returns the model that a model_change sets for the default role; "" = none.
func (r Rules) ChangedModel(e entries.Entry) string {
	if r.Explicit {
		if role := rawjson.Field(e.Raw, "role"); role != nil && role[0] == '"' && string(role) != `"default"` {
			return ""
		}
		return rawjson.Text(rawjson.Field(e.Raw, "model"))
	}
	m := modelName(rawjson.Text(r.Value(e.Raw, "provider", "provider_id")), rawjson.Text(r.Value(e.Raw, "modelId", "model_id")))
	if m == "" {
		m = rawjson.Text(rawjson.Field(e.Raw, "model"))
	}
	return m
}

// A message that names a model holds one of these: a name may be written with escapes.
var modelField, escapedField = []byte(`"model"`), []byte(`\u`)

// spokenModel returns the model of an assistant's message; "" = another's message, or it names none.
func spokenModel(e entries.Entry) string {
	if !bytes.Contains(e.Raw, modelField) && !bytes.Contains(e.Raw, escapedField) {
		return ""
	}
	raw := rawjson.Field(e.Raw, "message")
	if string(rawjson.Field(raw, "role")) != `"assistant"` {
		return ""
	}
	return modelName(rawjson.Text(rawjson.Field(raw, "provider")), rawjson.Text(rawjson.Field(raw, "model")))
}

func modelName(provider, model string) string {
	if provider == "" || model == "" {
		return model
	}
	return provider + "/" + model
}
