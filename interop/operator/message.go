package operator

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// partID is the id of a further message of an entry.
func partID(id string, i int) string { return id + "." + strconv.Itoa(i) }

// roles of messages by operator's names; those of the older form as well.
var roles = map[string]string{
	"human": "user", "ai": "assistant", "tool": "toolResult",
	"branch_summary": "branchSummary", "compaction_summary": "compactionSummary",
}

// message gives pi's messages for one: more than one where it holds results of tools.
func (r *Reader) message(raw []byte) [][]byte {
	if len(raw) == 0 || raw[0] != '{' {
		return [][]byte{raw}
	}
	role := rawjson.Text(rawjson.Field(raw, "role"))
	if to, ok := roles[role]; ok {
		role = to
	}
	out := rawjson.Object("role", nonEmpty(role))
	var contents, at, id []byte
	for m := rawjson.Walk(raw); m.Closing == '}' && m.Next(); {
		switch name := string(m.Key); name {
		case "role":
		case "contents":
			contents = m.Val
		case "content":
			if contents == nil {
				contents = m.Val
			}
		case "timestamp":
			at = millis(m.Val)
		case "id":
			id = m.Val
		case "usage":
			out = add(out, name, usage(m.Val))
		case "stop_reason":
			out = stopReason(out, m.Val)
		case "error":
			if string(m.Val) != `""` && m.Val[0] == '"' {
				out = add(out, "errorMessage", m.Val)
			}
		default:
			if to, ok := camel[name]; ok {
				name = to
			}
			out = add(out, name, m.Val)
		}
	}
	parts := r.parts(role, contents)
	messages := make([][]byte, len(parts))
	for i, p := range parts {
		msg := p.result
		if msg == nil {
			msg = out
			if p.content != nil {
				msg = add(bytes.Clone(out), "content", p.content)
			}
		}
		if msg = add(msg, "timestamp", at); i == 0 {
			msg = add(msg, "id", id)
		}
		messages[i] = msg
	}
	return messages
}

// part is a run of blocks, or one result of a tool, which is a message by itself.
type part struct{ content, result []byte }

// parts cuts contents at the results in it.
func (r *Reader) parts(role string, contents []byte) []part {
	if len(contents) == 0 || contents[0] != '[' {
		return []part{{content: contents}}
	}
	var parts []part
	run := []byte("[")
	end := func() {
		if len(run) > 1 {
			parts = append(parts, part{content: append(run, ']')})
			run = []byte("[")
		}
	}
	for m := rawjson.Walk(contents); m.Next(); {
		if string(rawjson.Field(m.Val, "type")) == `"tool_result"` {
			end()
			parts = append(parts, part{result: r.result(m.Val)})
			continue
		}
		if role == "assistant" {
			r.noteCall(m.Val)
		}
		run = appendBlocks(run, m.Val)
	}
	end()
	if len(parts) == 0 {
		parts = []part{{content: []byte("[]")}}
	}
	return parts
}

// noteCall keeps the name of a called tool, which results do not say.
func (r *Reader) noteCall(block []byte) {
	if string(rawjson.Field(block, "type")) != `"tool_call"` {
		return
	}
	if len(r.called) >= maxCalled {
		clear(r.called)
	}
	if id := rawjson.Text(rawjson.Field(block, "id")); id != "" {
		r.called[id] = rawjson.Text(rawjson.Field(block, "name"))
	}
}

func (r *Reader) result(block []byte) []byte {
	out := []byte(`{"role":"toolResult"}`)
	isError := []byte("false")
	for m := rawjson.Walk(block); m.Closing == '}' && m.Next(); {
		switch name := string(m.Key); name {
		case "type":
		case "id":
			out = add(out, "toolCallId", m.Val)
			out = add(out, "toolName", rawjson.AppendString(nil, r.called[rawjson.Text(m.Val)]))
		case "content":
			out = add(out, "content", asBlocks(m.Val))
		case "is_error":
			isError = m.Val
		case "metadata":
			if string(m.Val) != "{}" && string(m.Val) != "null" {
				out = add(out, "details", m.Val)
			}
		case "terminate":
			if !bytes.Equal(m.Val, []byte("false")) {
				out = add(out, name, m.Val)
			}
		case "terminate_message":
			if m.Val[0] != 'n' {
				out = add(out, "terminateMessage", m.Val)
			}
		default:
			out = add(out, name, m.Val)
		}
	}
	return add(out, "isError", isError)
}

// asBlocks gives text as a list of one block.
func asBlocks(val []byte) []byte {
	if rawjson.IsString(val) {
		return append(append([]byte(`[{"type":"text","text":`), val...), "}]"...)
	}
	return blocksOf(val)
}

// blocksOf gives a list of blocks in pi's shapes; what is no list comes back as it is.
func blocksOf(val []byte) []byte {
	if len(val) == 0 || val[0] != '[' {
		return val
	}
	out := []byte("[")
	for m := rawjson.Walk(val); m.Next(); {
		out = appendBlocks(out, m.Val)
	}
	return append(out, ']')
}

// appendBlocks appends pi's blocks for one of operator's to an open list.
func appendBlocks(list, block []byte) []byte {
	put := func(b []byte) {
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, b...)
	}
	switch string(rawjson.Field(block, "type")) {
	case `"text"`:
		put(renamed(block, map[string]string{"content": "text"}))
	case `"thinking"`:
		if string(rawjson.Field(block, "signature")) == `""` {
			block = rawjson.WithField(block, "signature", nil)
		}
		put(renamed(block, map[string]string{"content": "thinking", "signature": "thinkingSignature"}))
	case `"tool_call"`:
		put(rawjson.WithField(renamed(dropEmpty(block, "kind", "metadata"), map[string]string{"args": "arguments"}), "type", []byte(`"toolCall"`)))
	case `"image"`:
		images := rawjson.Field(block, "images")
		if len(images) == 0 || images[0] != '[' {
			put(block)
			break
		}
		for m := rawjson.Walk(images); m.Next(); {
			put(image(m.Val))
		}
	default:
		put(block)
	}
	return list
}

// dropEmpty leaves out fields that are null or an empty object: what a default looks like when it is written.
func dropEmpty(block []byte, names ...string) []byte {
	for _, name := range names {
		if v := string(rawjson.Field(block, name)); v == "null" || v == "{}" {
			block = rawjson.WithField(block, name, nil)
		}
	}
	return block
}

func renamed(object []byte, names map[string]string) []byte {
	out := []byte("{}")
	for m := rawjson.Walk(object); m.Closing == '}' && m.Next(); {
		name := string(m.Key)
		if to, ok := names[name]; ok {
			name = to
		}
		out = add(out, name, m.Val)
	}
	return out
}

// image gives a block for one image: base64 text, or where it is found.
func image(val []byte) []byte {
	s := rawjson.Text(val)
	mime := ""
	switch {
	case strings.HasPrefix(s, "data:"):
		if head, data, ok := strings.Cut(s, ";base64,"); ok {
			return imageBlock(data, strings.TrimPrefix(head, "data:"))
		}
	case strings.HasPrefix(s, "iVBOR"):
		mime = "image/png"
	case strings.HasPrefix(s, "/9j/"):
		mime = "image/jpeg"
	case strings.HasPrefix(s, "R0lG"):
		mime = "image/gif"
	case strings.HasPrefix(s, "UklG"):
		mime = "image/webp"
	}
	if mime == "" {
		return rawjson.Object("type", []byte(`"image_url"`), "image_url", rawjson.Object("url", val))
	}
	return imageBlock(s, mime)
}

func imageBlock(data, mime string) []byte {
	return rawjson.Object("type", []byte(`"image"`), "data", rawjson.AppendString(nil, data), "mimeType", rawjson.AppendString(nil, mime))
}

// stopReasons are pi's words by operator's.
var stopReasons = map[string]string{"tool_calls": "toolUse", "abort": "aborted", "content_filter": "error"}

func stopReason(out, val []byte) []byte {
	to, ok := stopReasons[rawjson.Text(val)]
	if !ok {
		return add(out, "stopReason", val)
	}
	if out = add(out, "stopReason", rawjson.AppendString(nil, to)); to == "error" {
		out = add(out, "rawStopReason", val)
	}
	return out
}

// usage gives counts of tokens under pi's names, and their sum.
func usage(val []byte) []byte {
	if len(val) == 0 || val[0] != '{' {
		return val
	}
	out := renamed(val, map[string]string{
		"input_tokens": "input", "output_tokens": "output", "cache_read_tokens": "cacheRead", "cache_write_tokens": "cacheWrite",
	})
	total := int64(0)
	for _, name := range []string{"input", "output", "cacheRead", "cacheWrite"} {
		n, err := strconv.ParseInt(string(rawjson.Field(out, name)), 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			n = 0
		}
		total += n
	}
	if cost := rawjson.Field(out, "cost"); cost != nil {
		out = rawjson.WithField(out, "cost", renamed(cost, map[string]string{"cache_read": "cacheRead", "cache_write": "cacheWrite"}))
	}
	return rawjson.WithField(out, "totalTokens", strconv.AppendInt(nil, total, 10))
}
