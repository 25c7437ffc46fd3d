package entry

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Block is one block of a message's content, with pi's fields. Type is "text" (Text), "toolCall" (ID, Name, Arguments)
// or "image" (Data, MimeType); a block of any other type has the fields that are set.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Data      []byte          `json:"data,omitempty"` // base64 in JSON
	MimeType  string          `json:"mimeType,omitempty"`

	err error
}

// MarshalJSON writes all fields of the block's type, including empty ones.
func (b Block) MarshalJSON() ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	switch b.Type {
	case "text":
		return rawjson.Marshal("block", struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{b.Type, b.Text})
	case "toolCall":
		if len(b.Arguments) == 0 {
			b.Arguments = json.RawMessage("{}")
		}
		return rawjson.Marshal("block", struct {
			Type      string          `json:"type"`
			ID        string          `json:"id"`
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}{b.Type, b.ID, b.Name, b.Arguments})
	case "image":
		return rawjson.Marshal("block", struct {
			Type     string `json:"type"`
			Data     []byte `json:"data"`
			MimeType string `json:"mimeType"`
		}{b.Type, append([]byte{}, b.Data...), b.MimeType})
	}
	type plain Block
	return rawjson.Marshal("block", plain(b))
}

// Call makes the block of a tool call. args must marshal to an object; nil = no arguments.
func Call(id, tool string, args any) Block {
	b := Block{Type: "toolCall", ID: id, Name: tool}
	if args == nil {
		args = struct{}{}
	}
	if b.Arguments, b.err = object("arguments", args); b.err != nil {
		b.err = fmt.Errorf("arguments of call %s of %s: %T: %w", id, tool, args, b.err)
	}
	return b
}

// Image makes the block of an image; data is the image's bytes, not base64. The bytes are not copied until
// the block becomes part of a draft.
func Image(mimeType string, data []byte) Block {
	return Block{Type: "image", Data: data, MimeType: mimeType}
}

// User makes a user message: text, then more blocks. If text is "" and there are more blocks, only those.
func User(text string, more ...Block) transcript.Draft {
	var content any = text
	if len(more) > 0 {
		content = blocks(text, more)
	}
	return Message(struct {
		Role    string `json:"role"`
		Content any    `json:"content"`
	}{"user", content})
}

// usage is required by pi's programs in every assistant message; it is unknown here.
const usage = `{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,` +
	`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`

// Assistant makes a message of the model: text, then more blocks, including tool calls. Its stopReason is "toolUse" if
// there are any, else "stop".
func Assistant(text string, more ...Block) transcript.Draft {
	stop := "stop"
	for _, b := range more {
		if b.Type == "toolCall" {
			stop = "toolUse"
		}
	}
	return Message(struct {
		Role    string          `json:"role"`
		Content []Block         `json:"content"`
		Usage   json.RawMessage `json:"usage"`
		Stop    string          `json:"stopReason"`
	}{"assistant", blocks(text, more), json.RawMessage(usage), stop})
}

// ToolResult makes the result of one tool call: text, then more blocks. isError reports whether the tool failed; then
// text is the error.
func ToolResult(callID, tool, text string, isError bool, more ...Block) transcript.Draft {
	return Message(struct {
		Role    string  `json:"role"`
		CallID  string  `json:"toolCallId"`
		Tool    string  `json:"toolName"`
		Content []Block `json:"content"`
		IsError bool    `json:"isError"`
	}{"toolResult", callID, tool, blocks(text, more), isError})
}

// blocks returns a text block and the other blocks; no block for an empty text.
func blocks(text string, more []Block) []Block {
	all := make([]Block, 0, len(more)+1)
	if text != "" {
		all = append(all, Block{Type: "text", Text: text})
	}
	return append(all, more...)
}
