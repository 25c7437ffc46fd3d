package codex

import (
	"hash/maphash"
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

const (
	maxHeldLines = 64  // waiting events
	maxHeard     = 256 // remembered texts of items
)

// tail finds answers whose token count may still come, and events that an item may repeat.
type tail struct {
	jsonl.Holds
	seed    maphash.Seed
	heard   [maxHeard]uint64
	n       int
	counted bool  // the open answer has its count
	asked   int64 // offset of a user message whose author is still unknown, plus 1; 0 = none
	every   bool  // this version of Codex writes an event for every typed message
	since   int   // lines since asked
}

func newTail() *tail { return &tail{seed: maphash.MakeSeed()} }

// Line processes the next line.
func (c *tail) Line(line []byte, from, end int64) {
	c.Begin(from, end)
	if c.since++; c.since > maxUndecided {
		c.asked = 0
	}
	if line == nil {
		return
	}
	payload := rawjson.Field(line, "payload")
	kind := rawjson.Text(rawjson.Field(payload, "type"))
	switch rawjson.Text(rawjson.Field(line, "type")) {
	case "session_meta":
		c.every = c.every || everyMessage(rawjson.Field(payload, "cli_version"))
	case "response_item":
		c.item(kind, payload)
	case "event_msg":
		c.event(kind, payload)
	case "turn_context":
		c.Turn()
	case "compacted":
		c.Message, c.Events, c.asked = 0, nil, 0
	}
}

// Stable returns the length in bytes of the beginning of the file that no later line can change.
func (c *tail) Stable() int64 {
	n := c.Holds.Stable()
	if c.asked > 0 {
		n = min(n, c.asked-1)
	}
	return n
}

func (c *tail) item(kind string, item []byte) {
	for _, list := range []string{"content", "summary"} {
		val := rawjson.Field(item, list)
		for m := rawjson.Walk(val); m.Closing == ']' && m.Next(); {
			c.hear(rawjson.Text(rawjson.Field(m.Val, "text")))
		}
	}
	switch kind {
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output":
		if c.asked = 0; c.counted {
			c.Message = 0
		}
	case "message":
		content := rawjson.Field(item, "content")
		switch rawjson.Text(rawjson.Field(item, "role")) {
		case "assistant":
			c.answer()
		case "user":
			if inserted, _ := contextual(content, nil); !inserted {
				c.Message = 0
			}
			if c.asked == 0 && c.every {
				c.asked, c.since = c.From()+1, 0
			}
		}
	default:
		c.answer()
	}
}

// answer records an item of an answer. An item after the count begins the next answer.
func (c *tail) answer() {
	c.asked = 0
	if c.counted {
		c.Message, c.counted = 0, false
	}
	c.Open()
}

func (c *tail) event(kind string, event []byte) {
	if kind == "user_message" || textField(rawjson.Field(event, "item"), "type") == "UserMessage" || endsTurn(kind) {
		c.Message, c.asked = 0, 0
	}
	if endsTurn(kind) {
		c.Events = nil
	}
	switch kind {
	case "user_message", "agent_message":
		c.wait(rawjson.Text(rawjson.Field(event, "message")), kind == "user_message")
	case "agent_reasoning", "agent_reasoning_raw_content":
		c.wait(rawjson.Text(rawjson.Field(event, "text")), false)
	case "item_completed":
		if text := saidAgain(rawjson.Field(event, "item")); text != nil {
			c.wait(rawjson.Text(text), false)
		}
	case "token_count":
		if string(rawjson.Field(event, "info")) != "null" {
			c.counted, c.Message = true, 0
		}
	case "task_started", "turn_started":
		c.Turn()
	case "error", "stream_error":
		c.Message = 0
	}
}

func (c *tail) hear(text string) {
	sum := maphash.String(c.seed, text)
	c.heard[c.n%maxHeard] = sum
	c.n++
	for i, e := range c.Events {
		if e.Text == sum {
			c.Events = append(c.Events[:i], c.Events[i+1:]...)
			return
		}
	}
}

func (c *tail) wait(text string, user bool) {
	sum := maphash.String(c.seed, text)
	if slices.Contains(c.heard[:min(c.n, maxHeard)], sum) {
		return
	}
	if c.Events = append(c.Events, jsonl.HeldEvent{At: c.From(), Text: sum, User: user}); len(c.Events) > maxHeldLines {
		c.Events = c.Events[1:]
	}
}
