package formats

import (
	"bufio"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
)

// Settled returns how many bytes at the beginning of a file keep their meaning when the file grows: an import of them
// makes entries that an import of the longer file makes too, at the same places. It leaves out a line without a line
// feed; of Claude Code the lines of a message of which more may come; of Codex an answer whose count of tokens may
// still come, and events that an item may repeat. It is a judgement by how these programs write: what follows may still
// change what was settled, and only an import of the longer file tells. It reads the file once, and holds a line of at
// most maxSettled bytes; a longer line is settled.
func Settled(f interop.Format, src interop.Source) (n int64, err error) {
	in, err := src.Open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	look := func([]byte, *holds) {}
	switch f {
	case interop.ClaudeCode:
		look = new(claudeTail).look
	case interop.Codex:
		look = newCodexTail().look
	case interop.Pi, interop.Omp, interop.Atomic, interop.Operator: // an entry is a line
	}
	h, r := &holds{}, bufio.NewReaderSize(in, headBytes)
	var line []byte
	for size := int64(0); ; {
		part, err := r.ReadSlice('\n')
		size += int64(len(part))
		if len(line) <= maxSettled {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return h.settled(), nil
		case err != nil:
			return 0, fmt.Errorf("read %s: %w", src.Name, err)
		}
		h.from, h.end = h.end, size
		if len(line) <= maxSettled {
			look(line, h)
		}
		line = line[:0]
	}
}

const (
	maxSettled   = 16 << 20 // bytes of a line that is looked at
	maxHeldLines = 64       // events that are waited for
	maxHeard     = 256      // texts of items that are remembered
)

// holds are the beginnings of what is not settled.
type holds struct {
	from, end int64 // of the line that is looked at
	message   int64 // where an open message begins, plus 1; 0 = none is open
	events    []heldEvent
}

// heldEvent is an event that waits for its item.
type heldEvent struct {
	at   int64
	text uint64
	user bool
}

func (h *holds) open() {
	if h.message == 0 {
		h.message = h.from + 1
	}
}

func (h *holds) settled() int64 {
	n := h.end
	if h.message > 0 {
		n = min(n, h.message-1)
	}
	for _, e := range h.events {
		n = min(n, e.at)
	}
	return n
}

// claudeTail follows the messages of a Claude Code file.
type claudeTail struct {
	begun   bool            // something was said: the session's first entry is known
	message string          // the newest message
	calls   map[string]bool // of it, without a result
	between bool            // something was said between the results of its calls
}

// maxOpenCalls bounds the calls of one message that are followed.
const maxOpenCalls = 1024

func (c *claudeTail) look(line []byte, h *holds) {
	switch kind := rawjson.Text(rawjson.Field(line, "type")); {
	case kind == "assistant":
		c.assistant(rawjson.Field(line, "message"), h)
	case kind == "user":
		c.user(rawjson.Field(rawjson.Field(line, "message"), "content"), h)
	case !c.begun:
		h.open()
	case rawjson.Text(rawjson.Field(line, "subtype")) == "compact_boundary":
		h.message = 0
		h.open() // its summary is the next line
	case len(c.calls) > 0 && h.message == 0:
		h.open() // the results of the other calls come before it
		c.between = true
	}
}

func (c *claudeTail) assistant(message []byte, h *holds) {
	id := rawjson.Text(rawjson.Field(message, "id"))
	if id != c.message || !c.begun || c.calls == nil {
		h.message, c.calls, c.between = 0, map[string]bool{}, false
	}
	c.begun, c.message = true, id
	h.open()
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
	case "", "tool_use": // more calls may come
	default: // the text is the last of a message that ends so
		if text && len(c.calls) == 0 {
			h.message = 0
		}
	}
	if id == "" {
		h.message = 0
	}
}

func (c *claudeTail) user(content []byte, h *holds) {
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
	h.message, c.between = 0, false
	if results == 0 {
		c.calls = nil
	}
}

// codexTail follows the answers, counts and events of a rollout.
type codexTail struct {
	seed    maphash.Seed
	heard   [maxHeard]uint64
	n       int
	counted bool // the count of the open answer came
}

func newCodexTail() *codexTail { return &codexTail{seed: maphash.MakeSeed()} }

func (c *codexTail) look(line []byte, h *holds) {
	payload := rawjson.Field(line, "payload")
	kind := rawjson.Text(rawjson.Field(payload, "type"))
	switch rawjson.Text(rawjson.Field(line, "type")) {
	case "response_item":
		c.item(kind, payload, h)
	case "event_msg":
		c.event(kind, payload, h)
	case "turn_context":
		h.begun()
	case "compacted":
		h.message, h.events = 0, nil
	}
}

func (c *codexTail) item(kind string, item []byte, h *holds) {
	for _, list := range []string{"content", "summary"} {
		val := rawjson.Field(item, list)
		for m := rawjson.Walk(val); m.Closing == ']' && m.Next(); {
			c.hear(rawjson.Text(rawjson.Field(m.Val, "text")), h)
		}
	}
	switch kind {
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output":
		if c.counted {
			h.message = 0
		}
	case "message":
		if rawjson.Text(rawjson.Field(item, "role")) != "assistant" {
			h.message = 0
			return
		}
		c.answer(h)
	default:
		c.answer(h)
	}
}

// answer notes an item of an answer; one that comes after the count begins the next answer.
func (c *codexTail) answer(h *holds) {
	if c.counted {
		h.message, c.counted = 0, false
	}
	h.open()
}

func (c *codexTail) event(kind string, event []byte, h *holds) {
	switch kind {
	case "user_message", "agent_message":
		c.wait(rawjson.Text(rawjson.Field(event, "message")), kind == "user_message", h)
	case "agent_reasoning", "agent_reasoning_raw_content":
		c.wait(rawjson.Text(rawjson.Field(event, "text")), false, h)
	case "token_count":
		if string(rawjson.Field(event, "info")) != "null" {
			c.counted, h.message = true, 0
		}
	case "task_started", "turn_started":
		h.begun()
	case "task_complete", "turn_complete", "turn_aborted", "thread_rolled_back":
		h.message, h.events = 0, nil
	}
}

// begun forgets the events of the turn before.
func (h *holds) begun() {
	var stay []heldEvent
	for _, e := range h.events {
		if e.user {
			stay = append(stay, e)
		}
	}
	h.events = stay
}

func (c *codexTail) hear(text string, h *holds) {
	sum := maphash.String(c.seed, text)
	c.heard[c.n%maxHeard] = sum
	c.n++
	for i, e := range h.events {
		if e.text == sum {
			h.events = append(h.events[:i], h.events[i+1:]...)
			return
		}
	}
}

func (c *codexTail) wait(text string, user bool, h *holds) {
	sum := maphash.String(c.seed, text)
	if slices.Contains(c.heard[:min(c.n, maxHeard)], sum) {
		return
	}
	if h.events = append(h.events, heldEvent{at: h.from, text: sum, user: user}); len(h.events) > maxHeldLines {
		h.events = h.events[1:]
	}
}
