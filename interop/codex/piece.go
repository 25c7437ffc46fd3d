package codex

import (
	"bytes"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// itemAct is what an item does to the conversation.
type itemAct uint8

// The acts.
const (
	actAside  itemAct = iota // nothing: it is kept as it is
	actUser                  // the user speaks
	actUnsaid                // the model gets what neither it nor the user said
	actAnswer                // the model speaks, thinks or calls
	actOutput                // a call has its result
)

// rolloutPiece is one object of a file and what it says.
type rolloutPiece struct {
	rolloutLine
	At     position
	Raw    []byte    // the object, or the beginning of a line that is too long
	Cut    bool      // the latter
	Size   int64     // of its line in bytes
	Offset int64     // of its line in the file
	Notes  lineNotes // what was found before it
	Act    itemAct   // of an item
	Called bool      // it is a call
	Failed bool      // it is the output of a call that failed
	Told   bool      // Codex says it by itself before a turn, and goes back with it
	User   bool      // it is a message of role user, of a person or of Codex
	Typed  bool      // of such a message: a person wrote it; of an event: it reports one that a person wrote
	Asks   bool      // an agent says it to this one, which answers it as it answers the user
	Name   string    // of a tool, or the type of what neither user nor model said
	CallID string
	Body   []byte     // content, or blocks with commas between
	Image  []byte     // content: a picture that the model drew, beside its body
	Texts  []uint64   // what is said, as hashes; of an event that an item may say too, one
	Count  tokenCount // of tokens
}

// tokenCount is what an event says of tokens.
type tokenCount struct {
	Last, Total       tokenUsage // of the last answer, and of all
	HasLast, HasTotal bool
}

// position is where an entry comes from: its file, its line, its number among the entries of the line, its time.
type position struct {
	Base, Line, N int // Base: 0 = the session's own file, 1 = the one that it continues from, ...
	Stamp         []byte
	When          time.Time
	Timed         bool // When is what Stamp says
}

// ID is the id of the entry.
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

// Kept is the same beyond the piece.
func (a position) Kept() position {
	a.Stamp = bytes.Clone(a.Stamp)
	return a
}

// lineNotes are what was found in the lines, bounded as a list of diagnostics is.
type lineNotes struct {
	List []lineNote
	More int // beyond transcript.MaxDiagnostics
	Bad  int // lines spoiled
}

// lineNote is said of a line.
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

// makePiece makes a piece of an object on a line of its own.
func makePiece(o jsonl.Object) *rolloutPiece {
	p := &rolloutPiece{At: position{Line: o.Number}, Raw: bytes.Clone(o.Raw), Cut: o.Part, Size: o.Size}
	w := pieceMaker{}
	w.work(p)
	return p
}

// makeItemPiece makes a piece of an item inside of another line.
func makeItemPiece(at position, item []byte) *rolloutPiece {
	p := &rolloutPiece{At: at, Raw: item, rolloutLine: rolloutLine{Payload: item}}
	p.Kind = p.Fields.read(item)
	w := pieceMaker{}
	w.item(p)
	return p
}

// pieceMaker is where pieces are made: room that is used again, for one goroutine.
type pieceMaker struct {
	room  []byte // bodies
	texts []uint64
	spare []byte
	begun int // where the body that is being made starts in room
	heard int // likewise in texts
}

// work makes a piece of an object.
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

// item works on one item of the conversation.
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

// event works on what happened: on texts that an item may say too, and on counts of tokens.
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

// saidAgain returns the text of a completed item that is a message, a string, as sessions with pages have it in place
// of an event for each; nil: it is another one, or has no text.
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

// hashTexts notes the texts of a content: those of its parts, and of all together.
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
