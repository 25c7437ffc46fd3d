package claudecode

import (
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// tail finds lines of a message to which later lines may belong.
type tail struct {
	jsonl.Holds
	begun   bool            // a message was read: the session's first entry is known
	message string          // ID of the newest message
	calls   map[string]bool // its calls without a result
	between bool            // a message is between the results of its calls
}

// maxOpenCalls bounds the tracked calls of one message.
const maxOpenCalls = 1024

// Line processes the next line.
func (c *tail) Line(line []byte, from, end int64) {
	c.begun = c.Begin(from, end) || c.begun
	if line == nil {
		return
	}
	switch kind := rawjson.Text(rawjson.Field(line, "type")); {
	case kind == "assistant":
		c.assistant(rawjson.Field(line, "message"))
	case kind == "user":
		c.user(rawjson.Field(rawjson.Field(line, "message"), "content"))
	case !c.begun:
		c.Open()
	case rawjson.Text(rawjson.Field(line, "subtype")) == "compact_boundary":
		c.Message = 0
		c.Open() // the summary is the next line
	case len(c.calls) > 0 && c.Message == 0:
		c.Open() // the results of the other calls precede it
		c.between = true
	}
}

func (c *tail) assistant(message []byte) {
	id := rawjson.Text(rawjson.Field(message, "id"))
	if id != c.message || !c.begun || c.calls == nil {
		c.Message, c.calls, c.between = 0, map[string]bool{}, false
	}
	c.begun, c.message = true, id
	c.Open()
	text := false
	for m := rawjson.Walk(rawjson.Field(message, "content")); m.Closing == ']' && m.Next(); {
		switch rawjson.Text(rawjson.Field(m.Val, "type")) {
		case "text":
			text = true
		case "tool_use":
			if len(c.calls) < maxOpenCalls {
				c.calls[rawjson.Text(rawjson.Field(m.Val, "id"))] = true
			}
		}
	}
	switch rawjson.Text(rawjson.Field(message, "stop_reason")) {
	case "", "tool_use": // more calls may follow
	default: // text is the last piece of a message with this stop reason
		if text && len(c.calls) == 0 {
			c.Message = 0
		}
	}
	if id == "" {
		c.Message = 0
	}
}

func (c *tail) user(content []byte) {
	c.begun = true
	results := 0
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		if rawjson.Text(rawjson.Field(m.Val, "type")) == "tool_result" {
			delete(c.calls, rawjson.Text(rawjson.Field(m.Val, "tool_use_id")))
			results++
		}
	}
	if results > 0 && c.between && len(c.calls) > 0 {
		return
	}
	c.Message, c.between = 0, false
	if results == 0 {
		c.calls = nil
	}
}
