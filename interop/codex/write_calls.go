package codex

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// callKind is what a call is; an output is of its call's.
type callKind uint8

const (
	callFunction callKind = iota
	callCustom            // its input is a text
	callShell             // of the provider's own tool: it is answered as a function is
)

// conversationItem is an item of the conversation.
type conversationItem struct {
	payload      []byte
	call, output string // the id of the call that it is, or is the output of
	raw          string // the id of the call in the session
	kind         callKind
	at           int  // on the line
	fold         bool // it came as the history of a compaction
	pad          bool // made to answer a call without a result
	system       bool // pi's rules: no compaction keeps it
}

// pendingCall is a call without an output.
type pendingCall struct {
	raw, written string
	kind         callKind
}

// callTracker are those on the line so far.
type callTracker struct {
	open []pendingCall
	late []pendingCall   // calls that a compaction took out of what is open, though their results are still to come
	used map[uint64]bool // ids that were written
	left map[uint64]int  // results that are still to come, by the call that they answer
}

// pass takes the results of an entry off those that are to come.
func (c *callTracker) pass(answered []uint64) {
	for _, h := range answered {
		c.left[h]--
	}
}

// name returns the id under which a call is written: one that OpenAI takes, and that no other has.
func (c *callTracker) name(entry, id string, asIs bool) string {
	if c.used == nil {
		c.used = map[uint64]bool{}
	}
	written := id
	if !asIs {
		if head, _, ok := strings.Cut(id, "|"); ok { // pi has the item's id after it
			written = head
		}
		for written = callID(written); c.used[callHash(written)]; {
			written = derivedCallID(entry + "\x00" + written)
		}
	}
	c.used[callHash(written)] = true
	return written
}

func callID(id string) string {
	const most = 64
	if id == "" || len(id) > most || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return derivedCallID(id)
	}
	return id
}

func derivedCallID(of string) string {
	sum := sha256.Sum256([]byte(of))
	return "call_" + hex.EncodeToString(sum[:12])
}

// takePending takes the oldest call of an id out of a list.
func takePending(list *[]pendingCall, id string) (p pendingCall, ok bool) {
	i := slices.IndexFunc(*list, func(p pendingCall) bool { return p.raw == id })
	if i < 0 {
		return p, false
	}
	p = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return p, true
}

// shut closes all calls: those to which a result is still to come are late.
func (c *callTracker) shut() {
	for _, p := range c.open {
		if c.left[callHash(p.raw)] > 0 {
			c.late = append(c.late, p)
		}
	}
	c.open = nil
}

// reopen opens the calls that a compaction keeps.
func (c *callTracker) reopen(kept []pendingCall) {
	c.open = kept
	c.late = slices.DeleteFunc(c.late, func(p pendingCall) bool { return slices.Contains(kept, p) })
}

// unanswered takes the calls to which no result is to come, or all.
func (c *callTracker) unanswered(all bool) (list []pendingCall) {
	if len(c.open) == 0 {
		return nil
	}
	c.open = slices.DeleteFunc(c.open, func(p pendingCall) bool {
		if all || c.left[callHash(p.raw)] <= 0 {
			list = append(list, p)
			return true
		}
		return false
	})
	return list
}

// abortUnanswered answers the calls that get no result, before anything but a result is said.
func (w *writer) abortUnanswered() {
	for _, p := range w.calls.unanswered(false) {
		w.abort(p)
	}
}

// answerAll answers those that are still open.
func (w *writer) answerAll() {
	for _, p := range w.calls.unanswered(true) {
		w.abort(p)
	}
}

func (w *writer) abort(p pendingCall) {
	if w.lose(lostAborted); w.mute {
		w.owed = append(w.owed, p)
	}
	w.say(abortedOutput(p))
}

func abortedOutput(p pendingCall) conversationItem {
	out := outputFor(p, []byte(`"aborted"`))
	out.pad = true
	return out
}

func outputOf(k callKind, id string, output []byte) []byte {
	typ := `"function_call_output"`
	if k == callCustom {
		typ = `"custom_tool_call_output"`
	}
	return rawjson.Object("type", []byte(typ), "call_id", rawjson.AppendString(nil, id), "output", output)
}

// call says a call.
func (w *writer) call(block []byte) {
	name, id := rawjson.Text(rawjson.Field(block, "name")), rawjson.Text(rawjson.Field(block, "id"))
	args := rawjson.Field(block, "arguments")
	if len(args) == 0 || args[0] != '{' {
		args = []byte("{}")
	}
	k := callFunction
	if name == "" {
		w.lose(lostCall)
		return
	}
	if w.fromCodex() {
		k = w.kindOf(id, name, args)
	}
	if fit := toolName(name); fit != name {
		w.lose(lostToolName)
		name = fit
	}
	written := w.calls.name(w.item.ID, id, w.mute)
	if written != id && !strings.HasPrefix(id, written+"|") {
		w.lose(lostCallID)
	}
	callID := rawjson.AppendString(nil, written)
	p := conversationItem{call: written, raw: id, kind: k}
	switch k {
	case callShell:
		p.payload = rawjson.Object("type", []byte(`"local_shell_call"`), "call_id", callID,
			"status", []byte(`"completed"`), "action", args)
	case callCustom:
		p.payload = rawjson.Object("type", []byte(`"custom_tool_call"`), "call_id", callID,
			"name", rawjson.AppendString(nil, name), "input", rawjson.Field(args, "input"))
	default:
		p.payload = rawjson.Object("type", []byte(`"function_call"`), "name", rawjson.AppendString(nil, name),
			"arguments", rawjson.AppendString(nil, args), "call_id", callID)
	}
	w.calls.open = append(w.calls.open, pendingCall{id, written, k})
	w.say(p)
}

// kindOf returns what a call was in a rollout: as the original has it, else by its arguments.
func (w *writer) kindOf(id, name string, args []byte) callKind {
	input, fields := rawjson.Field(args, "input"), 0
	for m := rawjson.Walk(args); m.Closing == '}' && m.Next(); {
		fields++
	}
	text := fields == 1 && rawjson.IsString(input)
	if w.mute && w.end != nil {
		text = w.end.Custom(id)
	}
	switch {
	case name == "local_shell" && string(rawjson.Field(args, "type")) == `"exec"` &&
		areTexts(rawjson.Field(args, "command")):
		return callShell
	case text:
		return callCustom
	}
	return callFunction
}

// result says a result; without its call it is text. A compaction further on may keep the call again, and has both.
func (w *writer) result(message []byte) {
	content, id := rawjson.Field(message, "content"), rawjson.Text(rawjson.Field(message, "toolCallId"))
	output := outputValue(content)
	p, ok := takePending(&w.calls.open, id)
	if !ok {
		w.lose(lostResult)
		w.belated(id, content, output)
		return
	}
	if rawjson.IsTrue(rawjson.Field(message, "isError")) && !w.fromCodex() {
		w.lose(lostFailed)
	}
	if d := rawjson.Field(message, "details"); string(rawjson.OrNull(d)) != "null" {
		w.lose(lostDetails)
	}
	w.say(outputFor(p, output))
	w.said = lastSaid{}
}

// belated says a result without its call. If a compaction took the call away, that is what is kept for
// those that come.
func (w *writer) belated(id string, content, output []byte) {
	if w.fold == nil {
		if p, ok := takePending(&w.calls.late, id); ok {
			w.keep.add(outputFor(p, output))
			on := w.keep.on
			w.keep.on = false
			defer func() { w.keep.on = on }()
		}
	}
	w.tell(conversationItem{}, "developer", content)
}

// outputFor is what a call gave.
func outputFor(p pendingCall, output []byte) conversationItem {
	return conversationItem{payload: outputOf(p.kind, p.written, output), output: p.written, raw: p.raw, kind: p.kind}
}

// paired returns a history in which each call has its output and each output its call; open are the calls to which a
// result is still to come.
func (w *writer) paired(list []conversationItem) (out []conversationItem, open []pendingCall) {
	waits, answered := map[string]bool{}, map[string]bool{}
	for _, p := range list {
		switch {
		case p.call != "":
			waits[p.call] = true
		case p.output != "" && waits[p.output]:
			delete(waits, p.output)
			answered[p.output] = true
		}
	}
	clear(waits)
	for _, p := range list {
		if p.output != "" {
			if p.pad && !waits[p.output] {
				continue
			}
			if !waits[p.output] {
				w.lose(lostResult)
				p = conversationItem{payload: messageItem("developer", orphaned(p.payload))}
			}
			delete(waits, p.output) // another one would be one too many
		}
		out = append(out, p)
		if p.call == "" {
			continue
		}
		if waits[p.call] = true; answered[p.call] {
			continue
		}
		if left := (pendingCall{p.raw, p.call, p.kind}); w.calls.left[callHash(p.raw)] > 0 {
			open = append(open, left)
		} else {
			out = append(out, abortedOutput(left))
		}
	}
	return out, open
}

// orphaned returns what an output says as the content of a message.
func orphaned(payload []byte) []byte {
	output := rawjson.Field(payload, "output")
	if rawjson.IsString(output) {
		return rawjson.List([][]byte{textPart("input_text", output)})
	}
	return rawjson.OrNull(output)
}
