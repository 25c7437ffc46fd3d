package term

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/transcript"
)

// ConversationOptions say how a Conversation shows entries.
type ConversationOptions struct {
	Full  bool                // whole results of tools, and what the model thought
	Short func(string) string // shortens ids; nil = not
	Label func(id string) string
}

// Conversation writes entries as text for people, in the order in which they are added.
type Conversation struct {
	s *Screen
	o ConversationOptions
}

// NewConversation returns a conversation that is written to s.
func NewConversation(s *Screen, o ConversationOptions) *Conversation {
	if o.Short == nil {
		o.Short = func(id string) string { return id }
	}
	if o.Label == nil {
		o.Label = func(string) string { return "" }
	}
	return &Conversation{s: s, o: o}
}

const (
	indent      = "  "
	resultLines = 4   // of a tool's result
	textMost    = 100 // columns: longer lines are hard to read, however wide the screen
)

// Add writes one entry.
func (v *Conversation) Add(e transcript.Entry) error {
	var b strings.Builder
	if m, ok := e.Message(); ok {
		v.message(&b, e, m)
	} else {
		v.other(&b, e)
	}
	if _, err := fmt.Fprint(v.s, b.String()); err != nil {
		return fmt.Errorf("show entry %s: %w", e.ID, err)
	}
	return nil
}

// head writes the line above a message.
func (v *Conversation) head(b *strings.Builder, e transcript.Entry, who string) {
	b.WriteByte('\n')
	b.WriteString(v.s.Paint(headStyle(who), who))
	b.WriteString(v.s.Paint(Dim, "  "+Line(v.o.Short(e.ID))+"  "+Clock(e.Time)))
	if label := v.o.Label(e.ID); label != "" {
		b.WriteString(v.s.Paint(Yellow, "  ["+Line(label)+"]"))
	}
	b.WriteByte('\n')
}

func headStyle(who string) Style {
	if who == "user" {
		return Cyan
	}
	return Bold
}

// body writes lines, indented and wrapped; most > 0 bounds them.
func (v *Conversation) body(b *strings.Builder, style Style, text string, most int, margin string) {
	columns := textMost
	if w := v.s.Width(); w == 0 {
		columns = 0
	} else {
		columns = min(columns, w-len(margin))
	}
	lines := wrap(Text(text), columns)
	more := 0
	if most > 0 && len(lines) > most+1 {
		lines, more = lines[:most], len(lines)-most
		for len(lines) > 1 && lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
	}
	for _, l := range lines {
		b.WriteString(strings.TrimRight(margin+v.s.Paint(style, l), " ") + "\n")
	}
	if more > 0 {
		b.WriteString(margin + v.s.Paint(Dim, "… "+Count(more, "more line", "more lines")) + "\n")
	}
}

func (v *Conversation) message(b *strings.Builder, e transcript.Entry, m transcript.Message) {
	shape, apart := transcript.Inspect(m.Raw), message.Parse(m.Raw)
	who := Speaker(e.Type, shape.Role)
	if len(shape.Results) > 0 && len(shape.Calls) == 0 && !speaks(apart) {
		v.result(b, e, apart, shape)
		v.attached(b, apart.Blocks)
		return
	}
	v.head(b, e, who)
	thought := apart.Thoughts("\n")
	silent := shape.Text == "" && len(shape.Calls) == 0
	if most := resultLines; thought != "" && (v.o.Full || silent) {
		if v.o.Full {
			most = 0
		}
		v.body(b, Dim, thought, most, indent)
	}
	if shape.Text != "" {
		v.body(b, Plain, shape.Text, 0, indent)
	}
	for _, c := range calls(apart, shape) {
		text := Line(c.name + " " + c.arg)
		if w := v.s.Width(); w > 0 && !v.o.Full {
			text = Cut(text, min(w, textMost)-len(indent)-2)
		}
		b.WriteString(indent + v.s.Paint(Blue, "→ "+text) + "\n")
	}
	told := v.attached(b, apart.Blocks)
	if apart.Stopped != "" {
		b.WriteString(indent + v.s.Paint(Red, "✗ "+Line(apart.Stopped)) + "\n")
		told = true
	}
	if silent && thought == "" && !told {
		v.unknown(b, m.Raw)
	}
}

// speaks reports whether a message has text besides the results that it holds.
func speaks(m message.Parts) bool {
	results, words := false, false
	for _, p := range m.Blocks {
		_, is := p.Result()
		_, says := p.Speech()
		results, words = results || is, words || says
	}
	return results && words
}

// attached writes a line for each image and document, also for those in results within the message.
// It reports whether there was one.
func (v *Conversation) attached(b *strings.Builder, blocks []message.Block) (any bool) {
	for _, p := range blocks {
		if r, ok := p.Result(); ok {
			any = v.attached(b, r.Blocks) || any
			continue
		}
		f, ok := p.File()
		if !ok {
			continue
		}
		var told []string
		for _, s := range []string{f.Name, f.Mime} {
			if s != "" {
				told = append(told, Line(s))
			}
		}
		if f.Size >= 0 {
			told = append(told, Size(f.Size))
		}
		b.WriteString(indent + v.s.Paint(Dim, "attached: "+strings.Join(told, "  ")) + "\n")
		any = true
	}
	return any
}

// result writes the result of a tool: its first lines, or all with Full.
func (v *Conversation) result(b *strings.Builder, e transcript.Entry, m message.Parts, shape transcript.Shape) {
	mark, style := "← ", Dim
	if m.Failed {
		mark, style = "✗ ", Red
	}
	name := m.Tool
	if name == "" {
		name = "result"
	}
	b.WriteString(indent + v.s.Paint(style, mark+Line(name)) +
		v.s.Paint(Dim, "  "+Line(v.o.Short(e.ID))) + "\n")
	most := resultLines
	if v.o.Full {
		most = 0
	}
	if text := strings.Trim(shape.Text, "\n"); text != "" {
		v.body(b, Dim, text, most, indent+indent)
	}
}

// unknown writes a message of an unknown shape.
func (v *Conversation) unknown(b *strings.Builder, raw json.RawMessage) {
	most := 200
	text := Line(string(raw))
	if !v.o.Full {
		text = Cut(text, most)
	}
	v.body(b, Dim, text, 0, indent)
}

// fields are the fields of entries that are not messages.
type fields struct {
	Summary  string          `json:"summary"`
	Provider string          `json:"provider"`
	Model    string          `json:"modelId"`
	Thinking string          `json:"thinkingLevel"`
	Name     string          `json:"name"`
	Label    string          `json:"label"`
	Target   string          `json:"targetId"`
	Kind     string          `json:"customType"`
	Content  json.RawMessage `json:"content"`
}

// fieldsOf reads the fields of an entry; a field of an unexpected type stays empty.
func fieldsOf(e transcript.Entry) fields {
	var f fields
	if err := e.Decode(&f); err != nil {
		return f // with the fields before the odd one
	}
	return f
}

// other writes an entry that is not a message.
func (v *Conversation) other(b *strings.Builder, e transcript.Entry) {
	f := fieldsOf(e)
	switch e.Type {
	case "compaction", "branch_summary":
		v.head(b, e, Speaker(e.Type, ""))
		v.body(b, Plain, f.Summary, 0, indent)
	case "custom_message":
		v.head(b, e, "note")
		text := transcript.Inspect(message.Wrap("custom", f.Content)).Text
		v.body(b, Plain, text, 0, indent)
	case "model_change":
		v.remark(b, "model "+f.Provider+"/"+f.Model)
	case "thinking_level_change":
		v.remark(b, "thinking "+f.Thinking)
	case "session_info":
		v.remark(b, "title "+f.Name)
	case "label":
		if f.Label == "" {
			v.remark(b, "label cleared on "+v.o.Short(f.Target))
		} else {
			v.remark(b, "label ["+f.Label+"] on "+v.o.Short(f.Target))
		}
	default:
		v.remark(b, strings.TrimSpace(e.Type+" "+f.Kind))
	}
}

// remark writes a line about the session itself.
func (v *Conversation) remark(b *strings.Builder, text string) {
	b.WriteString("\n" + v.s.Paint(Dim, "── "+Line(text)) + "\n")
}
