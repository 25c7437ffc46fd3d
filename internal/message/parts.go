package message

import (
	"encoding/json"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Parts is the outside of a message, and its parts in their order.
type Parts struct {
	Blocks  []Block
	Tool    string // of a result: the tool
	Failed  bool   // the tool did
	Stopped string // why the model broke off, where something went wrong; "" = it did not
}

// Block is a part of a message: what the providers' ways to write one have in common.
type Block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	ID           string          `json:"id"`
	CallID       string          `json:"call_id"`
	Name         string          `json:"name"`
	Arguments    json.RawMessage `json:"arguments"` // pi; OpenAI: a string that holds them
	Input        json.RawMessage `json:"input"`     // Anthropic, Bedrock
	Args         json.RawMessage `json:"args"`      // Gemini
	FunctionCall *Block          `json:"functionCall"`
	Function     *Block          `json:"function"`
	ToolUse      *Block          `json:"toolUse"`
	Thinking     string          `json:"-"`    // what the model thought, whatever the provider calls it
	Data         string          `json:"data"` // pi's images, Gemini's
	Mime         string          `json:"mimeType"`
	Source       *Source         `json:"source"` // Anthropic's
	result
	attachment
}

// Source is where the bytes of an image or a document are.
type Source struct {
	Type  string `json:"type"`
	Data  string `json:"data"`
	Bytes string `json:"bytes"` // Bedrock
	Mime  string `json:"media_type"`
	URL   string `json:"url"`
	File  string `json:"file_id"`
}

// Parse takes a message apart.
func Parse(raw json.RawMessage) Parts {
	var m struct {
		Role    string          `json:"role"`
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Parts   json.RawMessage `json:"parts"`
		Calls   json.RawMessage `json:"tool_calls"`
		Tool    string          `json:"toolName"`
		Failed  bool            `json:"isError"`
		Stop    string          `json:"stopReason"`
		Error   string          `json:"errorMessage"`
	}
	lenient(raw, &m)
	out := Parts{
		Blocks: append(append(list(m.Content), list(m.Parts)...), list(m.Calls)...), Tool: m.Tool,
		Failed: m.Failed,
	}
	// OpenAI's items are messages of one part. What one thought may be in its content too.
	if m.Role == "" && m.Type == "reasoning" || len(out.Blocks) == 0 && strings.HasSuffix(m.Type, "_call") {
		out.Blocks = []Block{partOf(raw)}
	} else if text, _ := Aside(raw); text != "" {
		out.Blocks = append([]Block{{Type: "thinking", Thinking: text}}, out.Blocks...)
	}
	if m.Stop == "error" || m.Stop == "aborted" {
		out.Stopped = m.Stop
		if m.Error != "" {
			out.Stopped = m.Error
		}
	}
	return out
}

// list reads content that is a list of parts. Plain text has none.
func list(content json.RawMessage) (blocks []Block) {
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		blocks = append(blocks, partOf(m.Val))
	}
	return blocks
}

// partOf reads a part.
func partOf(raw []byte) (b Block) {
	lenient(raw, &b)
	if t, ok := ThoughtOf(raw); ok {
		b.Thinking = t.Text
	}
	return b
}

// lenient reads what fits: encoding/json goes on after a field of another type, and says so at the end.
func lenient(raw []byte, v any) {
	if err := json.Unmarshal(raw, v); err != nil {
		return
	}
}

// Call returns the name of the tool that a part calls, and its arguments. false: it calls none, or says none.
func (b Block) Call() (name string, args json.RawMessage, ok bool) {
	for _, inner := range []*Block{b.FunctionCall, b.Function, b.ToolUse} {
		if inner != nil {
			b = *inner
		}
	}
	for _, args := range []json.RawMessage{b.Arguments, b.Input, b.Args} {
		if b.Name != "" && len(args) > 0 {
			return b.Name, args, true
		}
	}
	return "", nil, false
}

// Key is the id by which a result refers to the call that this part is; "" = it has none.
func (b Block) Key() string {
	if b.ToolUse != nil {
		b = *b.ToolUse
	}
	for _, id := range []string{b.CallID, b.ID, b.Name, b.ToolUseID} {
		if id != "" {
			return id
		}
	}
	return ""
}

// Speech returns what a part says in words. false: it is of another kind.
func (b Block) Speech() (text string, ok bool) {
	switch b.Type {
	case "text", "input_text", "output_text", "refusal", "":
		return b.Text, b.Text != "" && !b.Thought
	}
	return "", false
}

// Thoughts returns what the model thought, in any provider's shape, with a separator between the parts that say it.
func (m Parts) Thoughts(sep string) string {
	var list []string
	for _, b := range m.Blocks {
		if b.Thinking != "" {
			list = append(list, b.Thinking)
		}
	}
	return strings.Join(list, sep)
}

// Arguments returns the arguments of a call as JSON: of a string, what it holds.
func Arguments(raw json.RawMessage) json.RawMessage {
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		return json.RawMessage(inner)
	}
	return raw
}

// Wrap makes a message of bare content, as custom messages hold it; nil of none.
func Wrap(role string, content json.RawMessage) json.RawMessage {
	if len(content) == 0 {
		return nil
	}
	return append(append(json.RawMessage(`{"role":"`+role+`","content":`), content...), '}')
}
