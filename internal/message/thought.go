package message

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Thought is what a block of a message says the model thought.
type Thought struct {
	Text      string // "" = the provider keeps it to itself, or it is redacted
	Signature []byte // what the provider wants back with it, a JSON string; nil = there is none
	Redacted  bool   // the signature replaces the text
	Item      bool   // it is an item of OpenAI's responses: the provider wants the whole of it back
}

// ThoughtOf reads a block of any provider's. false: it says something else.
func ThoughtOf(block []byte) (Thought, bool) {
	typ := rawjson.Field(block, "type")
	switch string(typ) {
	case `"thinking"`:
		return Thought{
			Text:      texts(rawjson.Field(block, "thinking"), ""),
			Signature: first(block, "thinkingSignature", "signature"),
			Redacted:  rawjson.IsTrue(rawjson.Field(block, "redacted")),
		}, true
	case `"reasoning"`:
		return reasoning(block), true
	case `"redactedThinking"`, `"redacted_thinking"`:
		return Thought{Signature: first(block, "data"), Redacted: true}, true
	}
	if (typ == nil || !rawjson.IsString(typ) || len(typ) == 2) && rawjson.IsTrue(rawjson.Field(block, "thought")) {
		return Thought{Text: rawjson.Text(rawjson.Field(block, "text")), Signature: GeminiSignature(block)}, true
	}
	inner := rawjson.Field(block, "reasoningContent") // Bedrock's
	if len(inner) == 0 || inner[0] != '{' {
		return Thought{}, false
	}
	if redacted := first(inner, "redactedContent"); redacted != nil {
		return Thought{Signature: redacted, Redacted: true}, true
	}
	said := rawjson.Field(inner, "reasoningText")
	return Thought{Text: rawjson.Text(rawjson.Field(said, "text")), Signature: first(said, "signature")}, true
}

// reasoning reads OpenAI's: an item of the responses, or a block that other libraries name so.
func reasoning(block []byte) Thought {
	t := Thought{Signature: first(block, "thinkingSignature", "signature")}
	for _, name := range []string{"summary", "content", "thinking", "text"} {
		if t.Text == "" {
			t.Text = texts(rawjson.Field(block, name), "\n\n")
		}
	}
	summary := rawjson.Field(block, "summary")
	t.Item = t.Signature == nil && len(summary) > 0 && summary[0] == '['
	return t
}

// texts returns a text, or those of a list of blocks.
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

// GeminiSignature returns what Gemini wants back with a part, a JSON string; nil = it has none.
func GeminiSignature(part []byte) []byte {
	return first(part, "thoughtSignature", "thought_signature")
}

// asides are the fields in which OpenAI's chat completions say what was thought, beside the content.
var asides = [...]string{"reasoning_content", "reasoning", "reasoning_text"}

// Aside returns what a message says was thought beside its content, and the field that says so; "" = none does.
func Aside(message []byte) (text, field string) {
	for _, name := range asides {
		if s := rawjson.Text(rawjson.Field(message, name)); s != "" {
			return s, name
		}
	}
	return "", ""
}

// Asides are the names of the fields that Aside looks at.
func Asides() []string { return asides[:] }
