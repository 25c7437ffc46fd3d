package codex

import (
	"bytes"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// itemAct is the effect of an item on the conversation.
type itemAct uint8

// The effects.
const (
	actAside  itemAct = iota // none: the item is kept unchanged
	actUser                  // user message
	actUnsaid                // message to the model that neither user nor model wrote
	actAnswer                // text, reasoning or call of the model
	actOutput                // result of a call
)

// rolloutPiece is one parsed object of a file.
type rolloutPiece struct {
	rolloutLine
	At     position
	Raw    []byte    // the object, or the first part of a line that is too long
	Cut    bool      // Raw is the first part
	Size   int64     // of the line, in bytes
	Offset int64     // of the line in the file
	Notes  lineNotes // findings before the object
	Act    itemAct   // of an item
	Called bool      // it is a call
	Failed bool      // it is the output of a failed call
	Told   bool      // Codex writes it before a turn, and a rollback removes it with the turn
	User   bool      // a message of role user, by a person or by Codex
	Typed  bool      // of a user message: a person wrote it; of an event: it reports a message that a person wrote
	Asks   bool      // a message of another agent, which this agent answers like one of the user
	Name   string    // tool name, or type of a message that neither user nor model wrote
	CallID string
	Body   []byte     // content, or blocks separated by commas
	Image  []byte     // content: an image that the model drew, not part of Body
	Texts  []uint64   // hashes of the texts; of an event that an item may repeat, one
	Count  tokenCount // of tokens
}

// tokenCount is the token count of an event.
type tokenCount struct {
	Last, Total       tokenUsage // of the last answer and of the session
	HasLast, HasTotal bool
}

// position is the origin of an entry: file, line, number among the entries of the line, and time.
type position struct {
	Base, Line, N int // Base: 0 = the session's own file, 1 = its base, ...
	Stamp         []byte
	When          time.Time
	Timed         bool // When was parsed from Stamp
}

// ID returns the entry's ID.
func (a position) ID() string {
	id := append(make([]byte, 0, 32), "cx-"...)
	if a.Base > 0 {
		id = append(strconv.AppendInt(append(id, 'b'), int64(a.Base), 10), '-')
	}
	if id = strconv.AppendInt(id, int64(a.Line), 10); a.N > 0 {
		id = strconv.AppendInt(append(id, '.'), int64(a.N), 10)
	}
	return string(id)
}

// Kept returns a copy that stays valid after the piece.
func (a position) Kept() position {
	a.Stamp = bytes.Clone(a.Stamp)
	return a
}

// lineNotes are findings in the lines, bounded like a list of diagnostics.
type lineNotes struct {
	List []lineNote
	More int // findings beyond transcript.MaxDiagnostics
	Bad  int // damaged lines
}

// lineNote is a finding in a line.
type lineNote struct {
	Line         int
	Kind, Detail string
}

func (n *lineNotes) add(number int, kind, detail string, bad int) {
	if n.Bad += bad; len(n.List) < transcript.MaxDiagnostics {
		n.List = append(n.List, lineNote{number, kind, detail})
	} else {
		n.More++
	}
}

func (n *lineNotes) any() bool { return len(n.List) > 0 }

// makePiece parses one object.
func makePiece(o jsonl.Object) *rolloutPiece {
	p := &rolloutPiece{At: position{Line: o.Number}, Raw: bytes.Clone(o.Raw), Cut: o.Part, Size: o.Size}
	w := pieceMaker{}
	w.work(p)
	return p
}

// makeItemPiece parses an item that is part of another line.
func makeItemPiece(at position, item []byte) *rolloutPiece {
	p := &rolloutPiece{At: at, Raw: item, rolloutLine: rolloutLine{Payload: item}}
	p.Kind = p.Fields.read(item)
	w := pieceMaker{}
	w.item(p)
	return p
}

// pieceMaker parses objects. It reuses its buffers, and serves one goroutine.
type pieceMaker struct {
	room  []byte // bodies
	texts []uint64
	spare []byte
	begun int // start of the current body in room
	heard int // start of the current texts in texts
}

// work parses an object.
func (w *pieceMaker) work(p *rolloutPiece) {
	if p.Cut {
		return
	}
	p.rolloutLine = readRolloutLine(p.Raw)
	p.At.Stamp = p.Stamp
	p.At.When, p.At.Timed = jsonl.Stamp(p.Stamp)
	switch string(p.Type) {
	case `"response_item"`:
		w.item(p)
	case `"event_msg"`:
		w.event(p)
	case `"inter_agent_communication"`:
		w.begin()
		w.letter(p, p.Payload)
	}
}

func (w *pieceMaker) begin() { w.begun, w.heard = len(w.room), len(w.texts) }

func (w *pieceMaker) end(p *rolloutPiece, a itemAct) {
	p.Act, p.Body, p.Texts = a, w.room[w.begun:len(w.room):len(w.room)], w.texts[w.heard:len(w.texts):len(w.texts)]
}

// item parses one item of the conversation.
func (w *pieceMaker) item(p *rolloutPiece) {
	w.begin()
	switch p.Kind {
	case "message":
		w.message(p)
	case "reasoning":
		w.reasoning(p)
	case "function_call", "custom_tool_call", "local_shell_call", "tool_search_call":
		w.call(p)
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output":
		w.output(p)
	case "web_search_call", "image_generation_call":
		w.hosted(p)
	case "agent_message":
		if isContent(p.Fields.content) {
			w.room = appendContent(w.room, p.Fields.content)
			w.told(p)
		}
	}
}

func (w *pieceMaker) message(p *rolloutPiece) {
	content := p.Fields.content
	if !isContent(content) {
		return
	}
	role := nameOf(p.Fields.role)
	w.hashTexts(content)
	if inner := letterIn(content); inner != nil {
		w.letter(p, inner)
		return
	}
	if role == "assistant" {
		w.said(content, p.Fields.id)
		w.end(p, actAnswer)
		return
	}
	w.room = appendContent(w.room, content)
	if role != "user" {
		p.Name, p.Told = "codex."+role, role == "developer" && isPrelude(content)
		w.end(p, actUnsaid)
		return
	}
	p.User = true
	kinds := rawjson.Field(p.Payload, "internal_chat_message_metadata_passthrough")
	inserted, typed := contextual(content, rawjson.Field(kinds, "content_item_kinds"))
	if p.Typed = typed; inserted {
		p.Name, p.Told = "codex.context", true
		w.end(p, actUnsaid)
		return
	}
	w.end(p, actUser)
}

func isContent(val []byte) bool { return len(val) > 0 && (val[0] == '[' || val[0] == '"') }

// event parses the events that matter: texts that an item may repeat, and token counts.
func (w *pieceMaker) event(p *rolloutPiece) {
	w.begin()
	var text []byte
	switch p.Kind {
	case "user_message", "agent_message":
		text = p.Fields.message
	case "agent_reasoning", "agent_reasoning_raw_content":
		text = p.Fields.text
	case "item_completed":
		if text = saidAgain(rawjson.Field(p.Payload, "item")); text == nil {
			return
		}
	case "mcp_tool_call_end":
		p.CallID, p.Failed = rawjson.Text(p.Fields.CallID), failedResult(rawjson.Field(p.Payload, "result"))
		return
	case "token_count":
		for m := rawjson.Walk(p.Fields.info); m.Closing == '}' && m.Next(); {
			switch is := len(m.Val) > 0 && m.Val[0] == '{'; string(m.Key) {
			case "last_token_usage":
				p.Count.Last, p.Count.HasLast = readTokenUsage(m.Val), is
			case "total_token_usage":
				p.Count.Total, p.Count.HasTotal = readTokenUsage(m.Val), is
			}
		}
		return
	default:
		return
	}
	p.Typed = p.Kind == "user_message" || textField(rawjson.Field(p.Payload, "item"), "type") == "UserMessage"
	w.texts = append(w.texts, textHash(text))
	w.end(p, actAside)
}

// failedResult reports whether the result of a call over MCP is an error, of the connection or of the tool.
func failedResult(result []byte) bool {
	ok := rawjson.Field(result, "Ok")
	return rawjson.Field(result, "Err") != nil || rawjson.IsTrue(rawjson.Field(ok, "isError")) ||
		rawjson.IsTrue(rawjson.Field(ok, "is_error"))
}

// saidAgain returns the text of a completed item that is a message, as a JSON string. Paginated sessions have such
// items instead of an event for each message. It returns nil for other items.
func saidAgain(item []byte) []byte {
	if typ := textField(item, "type"); typ != "UserMessage" && typ != "AgentMessage" {
		return nil
	}
	content := rawjson.Field(item, "content")
	var texts [][]byte
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		if text := rawjson.Field(m.Val, "text"); rawjson.IsString(text) {
			texts = append(texts, text)
		}
	}
	switch len(texts) {
	case 0:
		return nil
	case 1:
		return texts[0]
	}
	return rawjson.AppendString(nil, []byte(plainText(content)))
}

// hashTexts adds the hashes of a content's parts, and of the whole text.
func (w *pieceMaker) hashTexts(content []byte) {
	if rawjson.IsString(content) {
		w.hash(content)
		return
	}
	parts := 0
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); parts++ {
		w.hash(rawjson.Field(m.Val, "text"))
	}
	if parts > 1 {
		all := []byte(plainText(content))
		w.hash(rawjson.AppendString(nil, all))
		w.hash(rawjson.AppendString(nil, bytes.ReplaceAll(all, []byte("\n"), nil)))
	}
}

func (w *pieceMaker) hash(text []byte) {
	if rawjson.IsString(text) {
		w.texts = append(w.texts, textHash(text))
	}
}
