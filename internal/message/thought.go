package message

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Thought is the thinking in a block.
type Thought struct {
	Text      string // "" = redacted, or withheld by the provider
	Signature []byte // must be sent back to the provider, a JSON string; nil = there is none
	Redacted  bool   // the signature replaces the text
	Item      bool   // an item of OpenAI's responses: the whole item must be sent back
}

// Thought returns the thinking in a block.
func (b *Block) Thought() Thought {
	if b.Text != nil {
		return Thought{Text: rawjson.Text(b.Text)}
	}
	switch b.Type {
	case "thinking":
		return Thought{
			Text:      texts(rawjson.Field(b.Raw, "thinking"), ""),
			Signature: First(b.Raw, "thinkingSignature", "signature"),
			Redacted:  rawjson.IsTrue(rawjson.Field(b.Raw, "redacted")),
		}
	case "reasoning":
		return reasoning(b.Raw)
	case "redactedThinking", "redacted_thinking":
		return Thought{Signature: First(b.Raw, "data"), Redacted: true}
	}
	inner := Object(b.Raw, "reasoningContent") // Bedrock
	if inner == nil {
		return Thought{Text: rawjson.Text(rawjson.Field(b.Raw, "text")), Signature: GeminiSignature(b.Raw)}
	}
	if redacted := First(inner, "redactedContent"); redacted != nil {
		return Thought{Signature: redacted, Redacted: true}
	}
	text := rawjson.Field(inner, "reasoningText")
	return Thought{Text: rawjson.Text(rawjson.Field(text, "text")), Signature: First(text, "signature")}
}

// reasoning reads OpenAI's thinking: an item of the responses, or a block to which other libraries gave that type.
func reasoning(block []byte) Thought {
	t := Thought{Signature: First(block, "thinkingSignature", "signature")}
	for _, name := range []string{"summary", "content", "thinking", "text"} {
		if t.Text == "" {
			t.Text = texts(rawjson.Field(block, name), "\n\n")
		}
	}
	summary := rawjson.Field(block, "summary")
	t.Item = t.Signature == nil && len(summary) > 0 && summary[0] == '['
	return t
}

// texts returns a text, or the texts of a list of blocks.
func texts(val []byte, sep string) string {
	if rawjson.IsString(val) {
		return rawjson.Text(val)
	}
	var list []string
	for m := rawjson.Walk(val); m.Closing == ']' && m.Next(); {
		if s := rawjson.Text(rawjson.Field(m.Val, "text")); s != "" {
			list = append(list, s)
		}
	}
	return strings.Join(list, sep)
}

// GeminiSignature returns the signature of a part that must be sent back to Gemini, a JSON string; nil = none.
func GeminiSignature(part []byte) []byte {
	return First(part, "thoughtSignature", "thought_signature")
}

// asides are the fields of OpenAI's chat completions that hold thinking, outside the content.
var asides = [...]string{"reasoning_content", "reasoning", "reasoning_text"}

// aside returns the thinking outside the content of a message, and the name of its field; nil = none.
func (f *fields) aside() (text []byte, field string) {
	for i, val := range f.asides {
		if rawjson.IsString(val) && len(val) > 2 {
			return val, asides[i]
		}
	}
	return nil, ""
}

// Asides returns the names of the fields outside the content that hold thinking.
func Asides() []string { return asides[:] }
