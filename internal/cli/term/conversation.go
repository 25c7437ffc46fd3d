package term

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/internal/parts"
	"github.com/coppice-go/coppice/transcript"
)

// ConversationOptions say how Talk shows entries.
type ConversationOptions struct {
	Full  bool                // whole results of tools, and what the model thought
	Short func(string) string // shortens ids; nil = not
	Label func(id string) string
}

// Talk writes entries as a conversation that can be read, one after the other as they are added.
type Conversation struct {
	s *Screen
	o ConversationOptions
}

// NewConversation begins a conversation.
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
func (t *Conversation) Add(e transcript.Entry) error {
	var b strings.Builder
	if m, ok := e.Message(); ok {
		t.message(&b, e, m)
	} else {
		t.other(&b, e)
	}
	if _, err := fmt.Fprint(t.s, b.String()); err != nil {
		return fmt.Errorf("show entry %s: %w", e.ID, err)
	}
	return nil
}

// head writes the line above what somebody says.
func (t *Conversation) head(b *strings.Builder, e transcript.Entry, who string) {
	b.WriteByte('\n')
	b.WriteString(t.s.Paint(headStyle(who), who))
	b.WriteString(t.s.Paint(Dim, "  "+Line(t.o.Short(e.ID))+"  "+Clock(e.Time)))
	if label := t.o.Label(e.ID); label != "" {
		b.WriteString(t.s.Paint(Yellow, "  ["+Line(label)+"]"))
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
func (t *Conversation) body(b *strings.Builder, style Style, text string, most int, margin string) {
	columns := textMost
	if w := t.s.Width(); w == 0 {
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
		b.WriteString(strings.TrimRight(margin+t.s.Paint(style, l), " ") + "\n")
	}
	if more > 0 {
		b.WriteString(margin + t.s.Paint(Dim, "… "+Count(more, "more line", "more lines")) + "\n")
	}
}

func (t *Conversation) message(b *strings.Builder, e transcript.Entry, m transcript.Message) {
	shape, apart := transcript.Inspect(m.Raw), parts.Of(m.Raw)
	who := Speaker(e.Type, shape.Role)
	if len(shape.Results) > 0 && len(shape.Calls) == 0 && !speaks(apart) {
		t.result(b, e, apart, shape)
		t.attached(b, apart.Blocks)
		return
	}
	t.head(b, e, who)
	thought := apart.Thoughts("\n")
	silent := shape.Text == "" && len(shape.Calls) == 0
	if most := resultLines; thought != "" && (t.o.Full || silent) {
		if t.o.Full {
			most = 0
		}
		t.body(b, Dim, thought, most, indent)
	}
	if shape.Text != "" {
		t.body(b, Plain, shape.Text, 0, indent)
	}
	for _, c := range calls(apart, shape) {
		text := Line(c.name + " " + c.arg)
		if w := t.s.Width(); w > 0 && !t.o.Full {
			text = Cut(text, min(w, textMost)-len(indent)-2)
		}
		b.WriteString(indent + t.s.Paint(Blue, "→ "+text) + "\n")
	}
	told := t.attached(b, apart.Blocks)
	if apart.Stopped != "" {
		b.WriteString(indent + t.s.Paint(Red, "✗ "+Line(apart.Stopped)) + "\n")
		told = true
	}
	if silent && thought == "" && !told {
		t.unknown(b, m.Raw)
	}
}

// speaks reports that a message says something beside the results that it holds.
func speaks(m parts.Message) bool {
	results, words := false, false
	for _, p := range m.Blocks {
		_, is := p.Result()
		_, says := p.Speech()
		results, words = results || is, words || says
	}
	return results && words
}

// attached tells of what cannot be drawn: images and documents, and the results that tools at the provider's gave
// within the same message. false: there is none.
func (t *Conversation) attached(b *strings.Builder, blocks []parts.Block) (any bool) {
	for _, p := range blocks {
		if r, ok := p.Result(); ok {
			any = t.attached(b, r.Blocks) || any
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
		b.WriteString(indent + t.s.Paint(Dim, "attached: "+strings.Join(told, "  ")) + "\n")
		any = true
	}
	return any
}

// result writes what a tool answered: the first lines, unless all is wanted.
func (t *Conversation) result(b *strings.Builder, e transcript.Entry, m parts.Message, shape transcript.Shape) {
	mark, style := "← ", Dim
	if m.Failed {
		mark, style = "✗ ", Red
	}
	name := m.Tool
	if name == "" {
		name = "result"
	}
	b.WriteString(indent + t.s.Paint(style, mark+Line(name)) +
		t.s.Paint(Dim, "  "+Line(t.o.Short(e.ID))) + "\n")
	most := resultLines
	if t.o.Full {
		most = 0
	}
	if text := strings.Trim(shape.Text, "\n"); text != "" {
		t.body(b, Dim, text, most, indent+indent)
	}
}

// unknown writes a message in which nothing was understood.
func (t *Conversation) unknown(b *strings.Builder, raw json.RawMessage) {
	most := 200
	text := Line(string(raw))
	if !t.o.Full {
		text = Cut(text, most)
	}
	t.body(b, Dim, text, 0, indent)
}

// fields are those of entries that are no messages.
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

// fieldsOf reads the fields of an entry; those of another type than they should be stay empty.
func fieldsOf(e transcript.Entry) fields {
	var f fields
	if err := e.Decode(&f); err != nil {
		return f // what was read before the odd field is there
	}
	return f
}

// other writes an entry that is no message.
func (t *Conversation) other(b *strings.Builder, e transcript.Entry) {
	f := fieldsOf(e)
	switch e.Type {
	case "compaction", "branch_summary":
		t.head(b, e, Speaker(e.Type, ""))
		t.body(b, Plain, f.Summary, 0, indent)
	case "custom_message":
		t.head(b, e, "note")
		text := transcript.Inspect(parts.Wrap("custom", f.Content)).Text
		t.body(b, Plain, text, 0, indent)
	case "model_change":
		t.remark(b, "model "+f.Provider+"/"+f.Model)
	case "thinking_level_change":
		t.remark(b, "thinking "+f.Thinking)
	case "session_info":
		t.remark(b, "title "+f.Name)
	case "label":
		if f.Label == "" {
			t.remark(b, "label cleared on "+t.o.Short(f.Target))
		} else {
			t.remark(b, "label ["+f.Label+"] on "+t.o.Short(f.Target))
		}
	default:
		t.remark(b, strings.TrimSpace(e.Type+" "+f.Kind))
	}
}

// remark writes a line about the session itself.
func (t *Conversation) remark(b *strings.Builder, text string) {
	b.WriteString("\n" + t.s.Paint(Dim, "── "+Line(text)) + "\n")
}
