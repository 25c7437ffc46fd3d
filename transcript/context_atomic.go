package transcript

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// verbatimPreface is before the text of a verbatim compaction: part of what the peer sends.
const verbatimPreface = "The earlier conversation was compacted. " +
	"Below is the verbatim transcript of the retained lines; " +
	`elided spans are marked "(filtered N lines)".` + "\n\n"

// flattened returns the one message of a verbatim-lines compaction: its text, and after it the kept entries
// as text too, for a tail that starts in mid-turn would be refused by providers. Images stay images.
func flattened(e Entry, kept []Entry) Message {
	summary := rawjson.Text(rawjson.Field(e.Raw, "summary"))
	var t tape
	t.text(verbatimPreface + summary)
	first := true
	for _, k := range kept {
		m, ok := keptMessage(k)
		if !ok {
			continue
		}
		for _, s := range sections(m) {
			if !first || summary != "" {
				t.text("\n\n")
			}
			first = false
			t.text(s.header)
			for _, block := range s.blocks {
				t.block(block)
			}
		}
	}
	t.flush()
	tokens := rawjson.Field(e.Raw, "tokensBefore")
	if !rawjson.IsNumber(tokens) {
		tokens = []byte("0")
	}
	details := rawjson.Field(e.Raw, "details")
	if rawjson.Field(details, "tokensBefore") == nil {
		details = rawjson.WithField(details, "tokensBefore", tokens)
	}
	return Message{
		Role: "custom",
		Raw: rawjson.Object("role", []byte(`"custom"`), "customType", []byte(`"compaction"`),
			"content", append(append([]byte{'['}, bytes.Join(t.blocks, []byte{','})...), ']'),
			"display", []byte("true"), "details", details, "timestamp", millis(e.Time)),
	}
}

// tape writes text and blocks in turn; text that meets text is one block.
type tape struct {
	blocks [][]byte
	buf    strings.Builder
}

func (t *tape) text(s string) { t.buf.WriteString(s) }

func (t *tape) block(b []byte) {
	if string(rawjson.Field(b, "type")) == `"text"` {
		t.text(rawjson.Text(rawjson.Field(b, "text")))
		return
	}
	t.flush()
	t.blocks = append(t.blocks, b)
}

func (t *tape) flush() {
	if t.buf.Len() > 0 {
		t.blocks = append(t.blocks, textBlock(t.buf.String()))
		t.buf.Reset()
	}
}

func textBlock(s string) []byte {
	return append(rawjson.AppendString([]byte(`{"type":"text","text":`), s), '}')
}

func keptMessage(e Entry) (Message, bool) {
	b := contextBuilder{rules: rulesOf(Atomic)}
	b.entry(e)
	if len(b.messages) == 0 {
		return Message{}, false
	}
	return b.messages[0], true
}

type section struct {
	header string
	blocks [][]byte
}

// sections writes a message in the peer's own transcript grammar: a header for each speaker, then the text.
func sections(m Message) []section {
	content := rawjson.Field(m.Raw, "content")
	switch m.Role {
	case "user", "custom":
		return spoken("[User]: ", content)
	case "toolResult":
		return spoken("[Tool result]: ", content)
	case "bashExecution":
		run := "Ran `" + rawjson.Text(rawjson.Field(m.Raw, "command")) + "`\n"
		if out := rawjson.Text(rawjson.Field(m.Raw, "output")); out != "" {
			run += "```\n" + out + "\n```"
		} else {
			run += "(no output)"
		}
		return []section{{"[User]: ", [][]byte{textBlock(run)}}}
	case "branchSummary":
		const preface = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
		summary := preface + rawjson.Text(rawjson.Field(m.Raw, "summary")) + "</summary>"
		return []section{{"[User]: ", [][]byte{textBlock(summary)}}}
	case "assistant":
		return assistantSections(content)
	}
	return nil
}

// spoken returns one section of text and images; none if there is neither.
func spoken(header string, content []byte) []section {
	s := section{header: header}
	if rawjson.IsString(content) && len(content) > 2 {
		s.blocks = append(s.blocks, textBlock(rawjson.Text(content)))
	}
	m := rawjson.Walk(content)
	for m.Closing == ']' && m.Next() {
		switch string(rawjson.Field(m.Val, "type")) {
		case `"text"`, `"image"`:
			s.blocks = append(s.blocks, m.Val)
		}
	}
	if len(s.blocks) == 0 {
		return nil
	}
	return []section{s}
}

func assistantSections(content []byte) []section {
	var thinking, said, calls []string
	m := rawjson.Walk(content)
	for m.Closing == ']' && m.Next() {
		switch string(rawjson.Field(m.Val, "type")) {
		case `"text"`:
			said = append(said, rawjson.Text(rawjson.Field(m.Val, "text")))
		case `"thinking"`:
			thinking = append(thinking, rawjson.Text(rawjson.Field(m.Val, "thinking")))
		case `"toolCall"`:
			calls = append(calls,
				rawjson.Text(rawjson.Field(m.Val, "name"))+"("+arguments(rawjson.Field(m.Val, "arguments"))+")")
		}
	}
	var out []section
	for _, s := range []struct {
		header, sep string
		lines       []string
	}{
		{"[Assistant thinking]: ", "\n", thinking},
		{"[Assistant]: ", "\n", said},
		{"[Assistant tool calls]: ", "; ", calls},
	} {
		if joined := strings.Join(s.lines, s.sep); joined != "" {
			out = append(out, section{s.header, [][]byte{textBlock(joined)}})
		}
	}
	return out
}

// arguments writes a call's arguments as name=value pairs.
func arguments(args []byte) string {
	var pairs []string
	m := rawjson.Walk(args)
	for m.Closing == '}' && m.Next() {
		var val bytes.Buffer
		if json.Compact(&val, m.Val) != nil {
			continue
		}
		pairs = append(pairs, string(m.Key)+"="+val.String())
	}
	return strings.Join(pairs, ", ")
}
