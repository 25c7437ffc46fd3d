package transcript

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Context is what the model sees next, and what a reader should know about it.
type Context struct {
	Messages    []Message    // in order; raw messages byte for byte, summaries in pi's shape
	Window      Window       // whether the bound of a working context left something out
	Settings    Settings     // in force at the end of the path
	Leaf        string       // the entry that the next one follows; "" = a new root comes next
	Explicit    bool         // set by the caller of SetContext, not derived from the path
	OpenCalls   []ToolCall   // calls without a result: what a crash in mid-tool leaves
	Diagnostics []Diagnostic // what is odd about the messages; at most 101, the last one a count
}

// Window is how much of the context is there. OmittedEntries counts the entries whose messages belong to
// the context and were left out by the bound. A whole context has Beyond in place of it.
type Window struct {
	Complete       bool
	OmittedEntries int
	Beyond         Beyond
}

// Beyond is what the bound would leave out of a whole context: Count of the messages from index From up to To. What is
// among them and not counted, such as the summary of a branch, stays.
type Beyond struct{ Count, From, To int }

// BeyondOf returns what a bound leaves out of the whole context of a window, in bytes as NewWorkingContext takes it.
func (w *WorkingContext) BeyondOf(c Context, maxBytes int) (out Beyond) {
	if most := NewWorkingContext(w.profile, maxBytes).max; most < 0 || w.bytes <= most {
		return out
	}
	kept := map[string]bool{}
	for e := range RestoreWorkingContext(w.profile, maxBytes, w.base, 0, w.Entries()).All {
		kept[e.ID] = true
	}
	for i, m := range c.Messages {
		switch {
		case kept[m.Entry]:
			continue
		case out.Count == 0:
			out.From = i
		}
		out.Count, out.To = out.Count+1, i+1
	}
	return out
}

// BuildContext returns the context at the end of a path, root first, by the rules of a profile. It takes time
// linear in the path, never fails and changes nothing: a field of the wrong type counts as absent, an entry
// that should hold a message and does not is left out with a diagnostic. Messages share their bytes with
// the entries.
func BuildContext(path []Entry, p Profile) Context {
	b := contextBuilder{rules: rulesOf(p)}
	return b.build(path, Settings{}, 0)
}

// contextBuilder collects the messages of one context. links has an element for each message.
type contextBuilder struct {
	rules    rules
	edits    map[string][]byte // the replacement of the latest context_edit, by target id
	messages []Message
	links    []link
	diag     DiagnosticList
}

// link is how a message hangs together with others.
type link struct {
	ordinal uint64
	Calls   []ToolCall // with their arguments as written
	Results []string   // ids of the calls that it answers
	only    bool       // it holds nothing but results
	broken  bool       // it is an answer that failed, or was aborted, without a word or a call
}

func linkOf(m Message, ordinal uint64) link {
	p := readParts(m.Raw)
	return link{
		ordinal: ordinal, Calls: p.ToolCalls(), Results: texts(p.Results), only: p.OnlyResults(), broken: p.Broken,
	}
}

// build is BuildContext for a path whose beginning may be missing: base are the settings in force before
// it; omitted > 0 means that entries which belong to the context were cut off at its front.
func (b *contextBuilder) build(path []Entry, base Settings, omitted int) Context {
	path = b.rules.followLeaves(path, &b.diag)
	c := Context{
		Settings: b.rules.settings(path, base),
		Window:   Window{Complete: omitted == 0, OmittedEntries: omitted},
	}
	if len(path) == 0 {
		c.Diagnostics = b.diag.All()
		return c
	}
	c.Leaf = path[len(path)-1].ID
	sel := b.rules.choose(path)
	if sel.missing != "" {
		if omitted > 0 {
			sel.kept = 0 // it was kept, and cut off by the bound
		} else {
			b.diag.Add(path[sel.boundary].ID, path[sel.boundary].Ordinal, DiagKeptMissing,
				fmt.Sprintf("keeps from %q, which is not before it on the path: nothing is kept", sel.missing))
		}
	}
	b.collect(path, sel)
	c.OpenCalls = b.pair(&c.Window)
	if b.rules.unbroken {
		b.dropBroken()
	}
	if b.rules.healthy {
		b.dropUnanswered()
		b.dropFailed()
	}
	c.Messages = b.messages
	c.Diagnostics = b.diag.All()
	return c
}

// collect turns the selected entries into messages.
func (b *contextBuilder) collect(path []Entry, sel selection) {
	kept, rest := []Entry(nil), path
	if sel.boundary >= 0 {
		kept, rest = path[sel.kept:sel.boundary], path[sel.boundary+1:]
	}
	if b.rules.edits {
		b.findEdits(kept)
		b.findEdits(rest)
	}
	b.messages = make([]Message, 0, len(kept)+len(rest)+2)
	b.links = make([]link, 0, len(kept)+len(rest)+2)
	if sel.boundary >= 0 {
		b.boundary(path[sel.boundary], kept)
	}
	if !b.rules.verbatimOnly {
		for _, e := range kept {
			if !b.rules.edits || e.Type != "message" ||
				string(rawjson.Field(rawjson.Field(e.Raw, "message"), "role")) != `"system"` {
				b.entry(e)
			}
		}
	}
	for _, e := range rest {
		b.entry(e)
	}
}

// followLeaves returns the path up to the target of the leaf entries at its end, which move the head. If a target is
// not on the path, it returns the path as it is, with a diagnostic.
func (r rules) followLeaves(path []Entry, found *DiagnosticList) []Entry {
	for r.moves && len(path) > 0 && path[len(path)-1].Type == "leaf" {
		e := path[len(path)-1]
		target := rawjson.Text(r.value(e.Raw, "targetId", "target_id"))
		at := len(path) - 2
		if target == "" {
			at = -1
		}
		for at >= 0 && path[at].ID != target {
			at--
		}
		if at < 0 && target != "" {
			found.Add(e.ID, e.Ordinal, DiagOrphan,
				fmt.Sprintf("moves the head to %q, which is not on the path", target))
			return path
		}
		path = path[:at+1]
	}
	return path
}

// settings reads the last word of the settings entries, from the end so that messages are opened only until
// the first assistant.
func (r rules) settings(path []Entry, base Settings) Settings {
	var model, explicit, level, mode string
	for i := len(path) - 1; i >= 0 &&
		(level == "" || mode == "" || explicit == "" && (model == "" || r.explicit)); i-- {
		switch e := path[i]; e.Type {
		case "thinking_level_change":
			if level == "" {
				if level = rawjson.Text(r.value(e.Raw, "thinkingLevel", "thinking_level")); level == "" {
					level = "off"
				}
			}
		case "mode_change":
			if mode == "" {
				mode = rawjson.Text(rawjson.Field(e.Raw, "mode"))
			}
		case "model_change":
			if explicit == "" && (model == "" || r.explicit) {
				explicit = r.changedModel(e)
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

// changedModel returns the model that a model_change sets for the default role; "" = none.
func (r rules) changedModel(e Entry) string {
	if r.explicit {
		if role := rawjson.Field(e.Raw, "role"); role != nil && role[0] == '"' && string(role) != `"default"` {
			return ""
		}
		return rawjson.Text(rawjson.Field(e.Raw, "model"))
	}
	m := modelName(rawjson.Text(r.value(e.Raw, "provider", "provider_id")),
		rawjson.Text(r.value(e.Raw, "modelId", "model_id")))
	if m == "" {
		m = rawjson.Text(rawjson.Field(e.Raw, "model"))
	}
	return m
}

// A message that names a model holds one of these: a name may be written with escapes.
var modelField, escapedField = []byte(`"model"`), []byte(`\u`)

// spokenModel returns the model of an assistant's message; "" = another's message, or it names none.
func spokenModel(e Entry) string {
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
