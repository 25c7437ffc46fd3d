package term

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// ConversationOptions define how a Conversation shows entries.
type ConversationOptions struct {
	Full  bool                // whole results of tools and notes of programs, and the model's thinking
	Data  bool                // also the entries without words: see HasWords
	Short func(string) string // shortens ids; nil = ids are not shortened
	Label func(id string) string
}

// Conversation writes entries as text for people, in the order in which they are added.
type Conversation struct {
	s *Screen
	o ConversationOptions
}

// NewConversation returns a conversation that writes to s.
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

// HasWords reports whether an entry is for people: a message, a summary, or a change of settings, title or label. Other
// entries are data of programs.
func HasWords(e transcript.Entry) bool {
	switch e.Type {
	case "message", "compaction", "branch_summary", "custom_message", "model_change", "thinking_level_change",
		"session_info", "label":
		return true
	}
	return false
}

// Add writes one entry.
func (v *Conversation) Add(e transcript.Entry) error {
	var b strings.Builder
	if m, ok := e.Message(); ok {
		v.message(&b, e, m)
	} else if v.o.Data || HasWords(e) {
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

// most returns how many lines are shown of a text that is not part of the conversation; 0 = all.
func (v *Conversation) most() int {
	if v.o.Full {
		return 0
	}
	return resultLines
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

// words writes the texts of a user message; texts that a program inserted are dim.
func (v *Conversation) words(b *strings.Builder, m *message.Message) {
	for i := range m.Blocks {
		if m.Blocks[i].Kind != message.Text {
			continue
		}
		for _, p := range m.Pieces(m.Blocks[i].Text) {
			style, most := Plain, 0
			if p.Inserted {
				style, most = Dim, v.most()
			}
			v.body(b, style, strings.Trim(p.Text, "\n"), most, indent)
		}
	}
}

func (v *Conversation) message(b *strings.Builder, e transcript.Entry, raw transcript.Message) {
	shape, m := transcript.Inspect(raw.Raw), message.Decode(raw.Raw)
	var kinds [message.Command + 1]int
	for _, block := range m.Blocks {
		kinds[block.Kind]++
	}
	if kinds[message.Result] > 0 && kinds[message.Call]+kinds[message.Text] == 0 {
		v.result(b, e, &m, shape.Text)
		v.attached(b, m.Blocks)
		return
	}
	who := Speaker(e.Type, shape.Role)
	if m.Speaker == message.Program {
		who = "note"
	}
	v.head(b, e, who)
	thought := thoughts(m.Blocks)
	silent := shape.Text == "" && len(shape.Calls) == 0
	if thought != "" && (v.o.Full || silent) {
		v.body(b, Dim, thought, v.most(), indent)
	}
	switch {
	case who == "note":
		v.body(b, Plain, shape.Text, v.most(), indent)
	case m.Speaker == message.User && kinds[message.Text] > 0:
		v.words(b, &m)
	case shape.Text != "":
		v.body(b, Plain, shape.Text, 0, indent)
	}
	for i := range m.Blocks {
		name := m.Blocks[i].Called()
		if name == "" {
			continue
		}
		text := Line(name + " " + argument(m.Blocks[i].ArgumentText()))
		if w := v.s.Width(); w > 0 && !v.o.Full {
			text = Cut(text, min(w, textMost)-len(indent)-2)
		}
		b.WriteString(indent + v.s.Paint(Blue, "→ "+text) + "\n")
	}
	shown := v.attached(b, m.Blocks)
	if stopped := rawjson.Text(m.Stopped()); stopped != "" {
		b.WriteString(indent + v.s.Paint(Red, "✗ "+Line(stopped)) + "\n")
		shown = true
	}
	if silent && thought == "" && !shown {
		v.unknown(b, m.Raw)
	}
}

// thoughts returns the thinking of a model.
func thoughts(blocks []message.Block) string {
	var list []string
	for i := range blocks {
		if b := &blocks[i]; b.Kind == message.Thinking && b.Thought().Text != "" {
			list = append(list, b.Thought().Text)
		}
	}
	return strings.Join(list, "\n")
}

// attached writes a line for each image and document, also for those in results within the message. It reports whether
// there was one.
func (v *Conversation) attached(b *strings.Builder, blocks []message.Block) (any bool) {
	for i := range blocks {
		block := &blocks[i]
		if block.Kind == message.Attached {
			v.attachment(b, block.Media())
			any = true
		}
		for c := block.Content(); block.Kind == message.Result && c.Next(); {
			if c.Block.Kind == message.Attached {
				v.attachment(b, c.Block.Media())
				any = true
			}
		}
	}
	return any
}

func (v *Conversation) attachment(b *strings.Builder, m message.Media) {
	var words []string
	for _, s := range []string{m.Name, m.Mime} {
		if s != "" {
			words = append(words, Line(s))
		}
	}
	if m.Size >= 0 {
		words = append(words, Size(m.Size))
	}
	b.WriteString(indent + v.s.Paint(Dim, "attached: "+strings.Join(words, "  ")) + "\n")
}

// result writes the result of a tool: its first lines, or all with Full.
func (v *Conversation) result(b *strings.Builder, e transcript.Entry, m *message.Message, text string) {
	mark, style, name := "← ", Dim, ""
	for _, block := range m.Blocks {
		if block.Failed {
			mark, style = "✗ ", Red
		}
		if name == "" {
			name = rawjson.Text(block.Name)
		}
	}
	if name == "" {
		name = "result"
	}
	b.WriteString(indent + v.s.Paint(style, mark+Line(name)) +
		v.s.Paint(Dim, "  "+Line(v.o.Short(e.ID))) + "\n")
	if !v.o.Full {
		text = printed(text)
	}
	if text = strings.Trim(text, "\n"); text != "" {
		v.body(b, Dim, text, v.most(), indent+indent)
	}
}

// printed returns the output of a command, without the lines that Codex puts before it, except an exit code other than
// 0.
func printed(text string) string {
	const before = 5 // maximum number of lines
	head, out, _ := strings.Cut(text, "\nOutput:\n")
	if strings.TrimSpace(out) == "" || !strings.Contains(head, "Wall time") || strings.Count(head, "\n") >= before {
		return text
	}
	for line := range strings.SplitSeq(head, "\n") {
		if strings.Contains(line, " code") && !strings.HasSuffix(line, " 0") {
			return line + "\n" + out
		}
	}
	return out
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
	Named    string          `json:"model"` // "provider/id", by omp
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
		return f // with the fields before the malformed one
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
		who, most := "note", v.most()
		if message.UserSent(e.Raw) != nil {
			who, most = "user", 0
		}
		v.head(b, e, who)
		v.body(b, Plain, strings.Trim(message.ContentText(f.Content), "\n"), most, indent)
	case "model_change":
		name := cmp.Or(f.Model, f.Named)
		if f.Provider != "" {
			name = f.Provider + "/" + name
		}
		v.remark(b, "model "+name)
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
