package message

import (
	"encoding/json"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// result is how the providers write the answer of a tool into a message beside other parts.
type result struct {
	Thought          bool            `json:"thought"` // Gemini's word for a text that was thought
	ToolUseID        string          `json:"tool_use_id"`
	UseID            string          `json:"toolUseId"` // Bedrock
	Content          json.RawMessage `json:"content"`
	IsError          bool            `json:"is_error"`
	Status           string          `json:"status"`
	Response         json.RawMessage `json:"response"` // Gemini
	ToolResult       *Block          `json:"toolResult"`
	FunctionResponse *Block          `json:"functionResponse"`
	JSON             json.RawMessage `json:"json"` // Bedrock: a part of a result
	URL              string          `json:"url"`  // of what a search found, which has a title too
}

// Result is the answer of a tool.
type Result struct {
	Call   string  // id of the call, or where there are none the tool's name; "" = not said
	Text   string  // what it says; of what is no text the JSON
	Failed bool    // the tool did
	Blocks []Block // its images and documents are among them
}

// Result returns the answer of a tool that a part is. false: it is none.
func (b Block) Result() (Result, bool) {
	switch {
	case b.ToolResult != nil:
		b = *b.ToolResult
	case b.FunctionResponse != nil:
		b = *b.FunctionResponse
		b.Content = b.Response
	case !strings.HasSuffix(b.Type, "tool_result"):
		return Result{}, false
	}
	r := Result{Failed: b.IsError || b.Status == "error", Blocks: list(b.Content)}
	for _, id := range []string{b.ToolUseID, b.UseID, b.ID, b.Name} {
		if r.Call == "" {
			r.Call = id
		}
	}
	r.Text = contentText(b.Content, r.Blocks)
	return r, true
}

// contentText returns the content of a result: its text, what a search found, or the JSON of anything else.
func contentText(content json.RawMessage, blocks []Block) string {
	var plain string
	if len(content) == 0 || json.Unmarshal(content, &plain) == nil {
		return plain
	}
	if len(blocks) == 0 {
		return strings.TrimSuffix(string(content), "[]") // an empty list says nothing
	}
	var lines []string
	for _, b := range blocks {
		switch {
		case b.Text != "":
			lines = append(lines, b.Text)
		case b.URL != "" && b.Title != "":
			lines = append(lines, b.Title+"\n"+b.URL)
		case len(b.JSON) > 0:
			lines = append(lines, string(b.JSON))
		}
	}
	return strings.Join(lines, "\n")
}

// FunctionResponse returns the response of a Gemini function as a JSON string: the text of its one field output, result
// or error, else the whole. It reports whether the field is error.
func FunctionResponse(val []byte) (text []byte, failed bool) {
	inner, fields := val, 0
	for m := rawjson.Walk(val); m.Closing == '}' && m.Next(); fields++ {
		switch string(m.Key) {
		case "output", "result":
			inner = m.Val
		case "error":
			inner, failed = m.Val, true
		}
	}
	if fields != 1 {
		inner, failed = val, false
	}
	if rawjson.IsString(inner) {
		return inner, failed
	}
	return rawjson.AppendString(nil, inner), failed
}
