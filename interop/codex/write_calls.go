package codex

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// callKind is the kind of a call. An output has the kind of its call.
type callKind uint8

const (
	callFunction callKind = iota
	callCustom            // its input is a string
	callShell             // of the provider's own tool; its output is like that of a function
)

// conversationItem is an item of the conversation.
type conversationItem struct {
	payload      []byte
	call, output string // ID of this call, or of the call that this output answers
	raw          string // the call's ID in the session
	kind         callKind
	at           int  // place on the path
	fold         bool // part of the history of a compaction
	pad          bool // made as the output of a call without a result
	system       bool // pi's system instructions: no compaction keeps them
}

// pendingCall is a call without an output.
type pendingCall struct {
	raw, written string
	kind         callKind
}

// callTracker tracks the calls on the path so far.
type callTracker struct {
	open []pendingCall
	late []pendingCall   // calls removed by a compaction whose results follow
	used map[uint64]bool // IDs that were written
	left map[uint64]int  // number of results that follow, by call
}

// pass subtracts the results of an entry from those that follow.
func (c *callTracker) pass(answered []uint64) {
	for _, h := range answered {
		c.left[h]--
	}
}

// name returns the ID under which a call is written: unique, and accepted by OpenAI.
// asIs: id itself, as it is.
func (c *callTracker) name(entry, id string, asIs bool) string {
	if c.used == nil {
		c.used = map[uint64]bool{}
	}
	written := id
	if !asIs {
		if head, _, ok := strings.Cut(id, "|"); ok { // pi appends the item's ID
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

// takePending removes the oldest call with an ID from a list and returns it.
func takePending(list *[]pendingCall, id string) (p pendingCall, ok bool) {
	i := slices.IndexFunc(*list, func(p pendingCall) bool { return p.raw == id })
	if i < 0 {
		return p, false
	}
	p = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return p, true
}

// shut closes all calls. Those whose result follows become late.
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

// unanswered removes and returns the calls without a result on the path, or all open calls.
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

// abortUnanswered writes an output for calls that get no result, before anything but a result is written.
func (w *writer) abortUnanswered() {
	for _, p := range w.calls.unanswered(false) {
		w.abort(p)
	}
}

// answerAll writes an output for all open calls.
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

// call writes a call.
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

// kindOf returns the kind of a call in its rollout: from the original, else guessed from the arguments.
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

// result writes a tool result; if its call was not written it becomes text.
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

// belated writes a result without its call. If a compaction removed the call, the result is kept for later compactions.
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

// outputFor returns the output item of a call.
func outputFor(p pendingCall, output []byte) conversationItem {
	return conversationItem{payload: outputOf(p.kind, p.written, output), output: p.written, raw: p.raw, kind: p.kind}
}

// paired returns a history in which each output has its call, and each call its output, but for open: the calls whose
// results follow later.
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
			delete(waits, p.output) // a call has one output
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

// orphaned returns the text of an output as the content of a message.
func orphaned(payload []byte) []byte {
	output := rawjson.Field(payload, "output")
	if rawjson.IsString(output) {
		return rawjson.List([][]byte{textPart("input_text", output)})
	}
	return rawjson.OrNull(output)
}
