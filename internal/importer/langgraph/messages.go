package langgraph

import (
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

var roles = map[string]string{
	"human": "user", "ai": "assistant", "tool": "toolResult", "system": "system",
	"HumanMessage": "user", "AIMessage": "assistant", "ToolMessage": "toolResult", "SystemMessage": "system",
}

// messageOf returns the message that shows a message of LangChain, as the adapter makes it; nil = the value is none
// that readers of sessions know.
func messageOf(value []byte) []byte {
	if string(rawjson.Field(value, "type")) != `"constructor"` {
		return nil
	}
	m, class := rawjson.Field(value, "kwargs"), ""
	for id := rawjson.Walk(rawjson.Field(value, "id")); id.Next(); {
		class = rawjson.Text(id.Val)
	}
	role := roles[strings.TrimSuffix(class, "Chunk")]
	if role == "" {
		role = roles[rawjson.Text(rawjson.Field(m, "type"))]
	}
	if role == "" || m == nil {
		return nil
	}
	content := texts(rawjson.Field(m, "content"))
	name := rawjson.AppendString(nil, role)
	if role == "toolResult" {
		failed := strconv.AppendBool(nil, rawjson.Text(rawjson.Field(m, "status")) == "error")
		return rawjson.Object("role", name, "toolCallId", textOf(m, "tool_call_id"), "toolName", textOf(m, "name"),
			"content", rawjson.List(content), "isError", failed)
	}
	if role != "assistant" {
		return rawjson.Object("role", name, "content", rawjson.List(content))
	}
	for call := rawjson.Walk(rawjson.Field(m, "tool_calls")); call.Next(); {
		content = append(content, rawjson.Object("type", []byte(`"toolCall"`), "id", textOf(call.Val, "id"),
			"name", textOf(call.Val, "name"), "arguments", rawjson.OrNull(rawjson.Field(call.Val, "args"))))
	}
	model := rawjson.Member(m, "response_metadata.model_name")
	if !rawjson.IsString(model) {
		model = rawjson.Member(m, "response_metadata.model")
	}
	if !rawjson.IsString(model) {
		model = nil
	}
	return rawjson.Object("role", name, "content", rawjson.List(content), "model", model, "usage", usageOf(m))
}

func texts(content []byte) (list [][]byte) {
	part := func(text []byte) []byte { return rawjson.Object("type", []byte(`"text"`), "text", text) }
	if rawjson.IsString(content) && len(content) > 2 {
		return [][]byte{part(content)}
	}
	for m := rawjson.Walk(content); m.Next(); {
		if text := rawjson.Field(m.Val, "text"); rawjson.IsString(text) &&
			rawjson.Text(rawjson.Field(m.Val, "type")) == "text" {
			list = append(list, part(text))
		}
	}
	return list
}

// textOf returns a member that is a string, else an empty one.
func textOf(object []byte, name string) []byte {
	if v := rawjson.Field(object, name); rawjson.IsString(v) {
		return v
	}
	return []byte(`""`)
}

// usageOf returns the tokens of an answer; nil = they are unknown.
func usageOf(message []byte) []byte {
	usage := rawjson.Field(message, "usage_metadata")
	if rawjson.Walk(usage).Closing != '}' {
		return nil
	}
	number := func(name string) uint64 {
		n, _ := strconv.ParseUint(string(rawjson.Field(usage, name)), 10, 62)
		return n
	}
	in, out := number("input_tokens"), number("output_tokens")
	return rawjson.Object("input", strconv.AppendUint(nil, in, 10), "output", strconv.AppendUint(nil, out, 10),
		"totalTokens", strconv.AppendUint(nil, in+out, 10))
}
