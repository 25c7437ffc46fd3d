package operator

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
)

// messageOut returns the entry of operator for a message of pi, raw: its type, and its other fields as a JSON object.
// lose is called for each part that operator cannot express, with the kind of the loss.
func messageOut(raw []byte, lose func(kind string)) (typ string, body []byte) {
	field := func(name string) []byte { return rawjson.Field(raw, name) }
	at := secondsOfMillis(field("timestamp"))
	if at == nil {
		at = []byte("0.0")
	}
	base := func(role string) []byte {
		out := rawjson.Object("role", rawjson.AppendString(nil, role))
		if id := field("id"); rawjson.IsString(id) {
			out = piwriter.AddField(out, "id", id)
		}
		return out
	}
	entry := func(message []byte) (string, []byte) {
		return "message", rawjson.Object("message", piwriter.AddField(message, "timestamp", at))
	}
	switch role := rawjson.Text(field("role")); role {
	case "user", "system":
		return entry(piwriter.AddField(base(role), "contents", blocksOut(field("content"))))
	case "assistant":
		out := piwriter.AddField(base(role), "contents", blocksOut(field("content")))
		out = piwriter.AddField(piwriter.AddField(out, "usage", usageOut(field("usage"))), "stop_reason",
			stopOut(field("stopReason"), field("rawStopReason")))
		if e := field("errorMessage"); rawjson.IsString(e) {
			out = piwriter.AddField(out, "error", e)
		}
		for _, name := range []string{"provider", "model"} {
			out = piwriter.AddField(out, name, field(name))
		}
		return entry(out)
	case "toolResult":
		contents := append(append([]byte("["), resultOut(raw, lose)...), ']')
		return entry(piwriter.AddField(base("tool"), "contents", contents))
	case "custom":
		out := piwriter.AddField(base(role), "custom_type", field("customType"))
		out = piwriter.AddField(out, "contents", blocksOut(field("content")))
		return entry(piwriter.AddField(out, "details", field("details")))
	}
	return shell(raw, lose)
}

// shell returns the entry for a command that the user ran, as text: operator has no such message. A command that the
// user excluded from the context becomes an entry of type custom.
func shell(raw []byte, lose func(kind string)) (typ string, body []byte) {
	if rawjson.IsTrue(rawjson.Field(raw, "excludeFromContext")) {
		lose(LostHidden)
		return "custom", rawjson.Object("custom_type", []byte(`"bashExecution"`), "data", raw)
	}
	lose(piwriter.LostRole)
	text := "Ran `" + rawjson.Text(rawjson.Field(raw, "command")) + "`\n"
	if out := rawjson.Text(rawjson.Field(raw, "output")); out != "" {
		text += "```\n" + out + "\n```"
	} else {
		text += "(no output)"
	}
	return "custom_message", rawjson.Object("custom_type", []byte(`"bashExecution"`),
		"content", textOut(rawjson.AppendString(nil, text)), "display", []byte("true"))
}

// textOut returns a list with one text block of operator. literal is a JSON string.
func textOut(literal []byte) []byte {
	return append(append([]byte(`[{"type":"text","content":`), literal...), "}]"...)
}

// blocksOut returns the content of a message of pi, a string or a list of blocks, as a list of operator's blocks.
func blocksOut(content []byte) []byte {
	if rawjson.IsString(content) {
		return textOut(content)
	}
	out := []byte("[")
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, blockOut(m.Val)...)
	}
	return append(out, ']')
}

// blockOut returns a block of pi as a block of operator. A block of an unknown type becomes text, "" if it has none.
func blockOut(b []byte) []byte {
	field := func(name string) []byte { return rawjson.Field(b, name) }
	switch rawjson.Text(field("type")) {
	case "thinking":
		signature := field("thinkingSignature")
		if !rawjson.IsString(signature) {
			signature = []byte(`""`)
		}
		return rawjson.Object("type", []byte(`"thinking"`), "content", field("thinking"), "signature", signature)
	case "toolCall":
		out := rawjson.Object("type", []byte(`"tool_call"`), "id", field("id"), "name", field("name"))
		if kind := field("kind"); rawjson.IsString(kind) {
			out = piwriter.AddField(out, "kind", kind)
		}
		out = piwriter.AddField(out, "args", field("arguments"))
		if meta := field("metadata"); len(meta) > 0 && meta[0] == '{' {
			out = piwriter.AddField(out, "metadata", meta)
		}
		return out
	case "image_url":
		return rawjson.Object("type", []byte(`"image"`), "images", append(append([]byte("["), urlOf(b)...), ']'))
	case "audio":
		if list := field("audio"); rawjson.Every(list, rawjson.IsString) {
			return rawjson.Object("type", []byte(`"audio"`), "audio", list)
		}
		return []byte(`{"type":"audio","audio":[]}`)
	case "image":
		return rawjson.Object("type", []byte(`"image"`), "images",
			append(append([]byte("["), imageOut(field("data"), field("mimeType"))...), ']'))
	}
	text := field("text")
	if !rawjson.IsString(text) {
		text = []byte(`""`)
	}
	return rawjson.Object("type", []byte(`"text"`), "content", text)
}

// imageOut returns an image in operator's form, a JSON string: base64 if the first bytes of the image determine its
// type, else a data URL with the type mime. data is a JSON string with base64.
func imageOut(data, mime []byte) []byte {
	if len(data) < 2 || imageType(data[1:len(data)-1]) != "" || !rawjson.IsString(mime) {
		return data
	}
	head := append([]byte(`"data:`), mime[1:len(mime)-1]...)
	return append(append(head, ";base64,"...), data[1:]...)
}

// urlOf returns the URL of an image_url block as a JSON string; `""` if it has none.
func urlOf(block []byte) []byte {
	url := rawjson.Field(block, "image_url")
	if len(url) > 0 && url[0] == '{' {
		url = rawjson.Field(url, "url")
	}
	if !rawjson.IsString(url) {
		return []byte(`""`)
	}
	return url
}

// resultOut returns the tool_result block for a message of role toolResult. Its text blocks are joined with newlines;
// other blocks are lost.
func resultOut(raw []byte, lose func(kind string)) []byte {
	var text []string
	for m := rawjson.Walk(rawjson.Field(raw, "content")); m.Closing == ']' && m.Next(); {
		if string(rawjson.Field(m.Val, "type")) == `"text"` {
			text = append(text, rawjson.Text(rawjson.Field(m.Val, "text")))
		} else {
			lose(LostImage)
		}
	}
	out := rawjson.Object("type", []byte(`"tool_result"`), "id", rawjson.Field(raw, "toolCallId"),
		"content", rawjson.AppendString(nil, strings.Join(text, "\n")),
		"is_error", rawjson.Field(raw, "isError"))
	switch details := rawjson.Field(raw, "details"); {
	case len(details) == 0, details[0] == 'n':
	case details[0] == '{':
		out = piwriter.AddField(out, "metadata", details)
	default:
		out = piwriter.AddField(out, "metadata", rawjson.Object("details", details))
	}
	if rawjson.IsTrue(rawjson.Field(raw, "terminate")) {
		out = piwriter.AddField(out, "terminate", []byte("true"))
	}
	if s := rawjson.Field(raw, "terminateMessage"); rawjson.IsString(s) {
		out = piwriter.AddField(out, "terminate_message", s)
	}
	return out
}

// stopOut returns the stop reason of operator for a stop reason of pi, val, and the provider's own one, raw.
func stopOut(val, raw []byte) []byte {
	switch rawjson.Text(val) {
	case "toolUse":
		return []byte(`"tool_calls"`)
	case "aborted":
		return []byte(`"abort"`)
	case "length":
		return val
	case "error":
		if string(raw) == `"content_filter"` {
			return raw
		}
		return val
	}
	return []byte(`"stop"`)
}

// usageOut returns the usage object of operator for that of pi. Missing counts and costs are 0.
func usageOut(val []byte) []byte {
	field := func(name string) []byte { return whole(rawjson.Field(val, name)) }
	cost := rawjson.Field(val, "cost")
	sum := func(name string) []byte {
		if v := rawjson.Field(cost, name); rawjson.IsNumber(v) {
			return v
		}
		return []byte("0.0")
	}
	return rawjson.Object("input_tokens", field("input"), "output_tokens", field("output"),
		"cache_read_tokens", field("cacheRead"), "cache_write_tokens", field("cacheWrite"),
		"cost", rawjson.Object("input", sum("input"), "output", sum("output"), "cache_read", sum("cacheRead"),
			"cache_write", sum("cacheWrite"), "total", sum("total")))
}
