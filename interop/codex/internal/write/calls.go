package write

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/codex/internal/line"
	"github.com/coppice-go/coppice/interop/codex/internal/wire"
)

// kind is what a call is; an output is of its call's.
type kind uint8

const (
	function kind = iota
	custom        // its input is a text
	shell         // of the provider's own tool: it is answered as a function is
)

// piece is an item of the conversation.
type piece struct {
	payload      []byte
	call, output string // the id of the call that it is, or is the output of
	raw          string // the id of the call in the session
	kind         kind
	at           int  // on the line
	fold         bool // it came as the history of a compaction
	pad          bool // nobody gave it
	system       bool // pi's rules: nobody keeps it
}

// pending is a call without an output.
type pending struct {
	raw, written string
	kind         kind
}

// calls are those on the line so far.
type calls struct {
	open []pending
	late []pending       // calls that a compaction took out of what is open, though their results are still to come
	used map[uint64]bool // ids that were written
	left map[uint64]int  // results that are still to come, by the call that they answer
}

// pass takes the results of an entry off those that are to come.
func (c *calls) pass(answered []uint64) {
	for _, h := range answered {
		c.left[h]--
	}
}

// name gives a call the id under which it is written: one that OpenAI takes, and that no other has.
func (c *calls) name(entry, id string, asIs bool) string {
	if c.used == nil {
		c.used = map[uint64]bool{}
	}
	written := id
	if !asIs {
		if head, _, ok := strings.Cut(id, "|"); ok { // pi has the item's id behind it
			written = head
		}
		for written = callID(written); c.used[line.Hash(written)]; {
			written = madeID(entry + "\x00" + written)
		}
	}
	c.used[line.Hash(written)] = true
	return written
}

func callID(id string) string {
	const most = 64
	if id == "" || len(id) > most || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return madeID(id)
	}
	return id
}

func madeID(of string) string {
	sum := sha256.Sum256([]byte(of))
	return "call_" + hex.EncodeToString(sum[:12])
}

// answer takes the oldest call of an id out of a list.
func answer(list *[]pending, id string) (p pending, ok bool) {
	i := slices.IndexFunc(*list, func(p pending) bool { return p.raw == id })
	if i < 0 {
		return p, false
	}
	p = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return p, true
}

// shut closes all calls: those to which a result is still to come are late.
func (c *calls) shut() {
	for _, p := range c.open {
		if c.left[line.Hash(p.raw)] > 0 {
			c.late = append(c.late, p)
		}
	}
	c.open = nil
}

// reopen opens the calls that a compaction keeps.
func (c *calls) reopen(kept []pending) {
	c.open = kept
	c.late = slices.DeleteFunc(c.late, func(p pending) bool { return slices.Contains(kept, p) })
}

// unanswered takes the calls to which no result is to come, or all.
func (c *calls) unanswered(all bool) (list []pending) {
	if len(c.open) == 0 {
		return nil
	}
	c.open = slices.DeleteFunc(c.open, func(p pending) bool {
		if all || c.left[line.Hash(p.raw)] <= 0 {
			list = append(list, p)
			return true
		}
		return false
	})
	return list
}

// settle answers the calls that nobody will, before anything but a result is said.
func (w *writer) settle() {
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

func (w *writer) abort(p pending) {
	if w.lose(LostAborted); w.mute {
		w.owed = append(w.owed, p)
	}
	w.say(aborted(p))
}

func aborted(p pending) piece {
	out := outputFor(p, []byte(`"aborted"`))
	out.pad = true
	return out
}

func outputOf(k kind, id string, output []byte) []byte {
	typ := `"function_call_output"`
	if k == custom {
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
	k := function
	if name == "" {
		w.lose(LostCall)
		return
	}
	if w.fromCodex() {
		k = w.kindOf(id, name, args)
	}
	if fit := wire.ToolName(name); fit != name {
		w.lose(LostToolName)
		name = fit
	}
	written := w.calls.name(w.item.ID, id, w.mute)
	if written != id && !strings.HasPrefix(id, written+"|") {
		w.lose(LostCallID)
	}
	callID := rawjson.AppendString(nil, written)
	p := piece{call: written, raw: id, kind: k}
	switch k {
	case shell:
		p.payload = rawjson.Object("type", []byte(`"local_shell_call"`), "call_id", callID, "status", []byte(`"completed"`), "action", args)
	case custom:
		p.payload = rawjson.Object("type", []byte(`"custom_tool_call"`), "call_id", callID, "name", rawjson.AppendString(nil, name), "input", rawjson.Field(args, "input"))
	default:
		p.payload = rawjson.Object("type", []byte(`"function_call"`), "name", rawjson.AppendString(nil, name), "arguments", rawjson.AppendString(nil, args), "call_id", callID)
	}
	w.calls.open = append(w.calls.open, pending{id, written, k})
	w.say(p)
}

// kindOf tells what a call was in a rollout: as the original has it, else by its arguments.
func (w *writer) kindOf(id, name string, args []byte) kind {
	input, fields := rawjson.Field(args, "input"), 0
	for m := rawjson.Walk(args); m.Closing == '}' && m.Next(); {
		fields++
	}
	text := fields == 1 && rawjson.IsString(input)
	if w.mute && w.end != nil {
		text = w.end.Custom(id)
	}
	switch {
	case name == "local_shell" && string(rawjson.Field(args, "type")) == `"exec"` && wire.AreTexts(rawjson.Field(args, "command")):
		return shell
	case text:
		return custom
	}
	return function
}

// result says a result; without its call it is text. A compaction further on may keep the call again, and has both.
func (w *writer) result(message []byte) {
	content, id := rawjson.Field(message, "content"), rawjson.Text(rawjson.Field(message, "toolCallId"))
	output := wire.Output(content)
	p, ok := answer(&w.calls.open, id)
	if !ok {
		w.lose(LostResult)
		w.belated(id, content, output)
		return
	}
	if rawjson.IsTrue(rawjson.Field(message, "isError")) && !w.fromCodex() {
		w.lose(LostFailed)
	}
	if d := rawjson.Field(message, "details"); string(rawjson.OrNull(d)) != "null" {
		w.lose(LostDetails)
	}
	w.say(outputFor(p, output))
	w.said = said{}
}

// belated says a result without its call. If a compaction took the call away, that is what is kept for those that come.
func (w *writer) belated(id string, content, output []byte) {
	if w.fold == nil {
		if p, ok := answer(&w.calls.late, id); ok {
			w.keep.add(outputFor(p, output))
			on := w.keep.on
			w.keep.on = false
			defer func() { w.keep.on = on }()
		}
	}
	w.tell(piece{}, "developer", content)
}

// outputFor is what a call gave.
func outputFor(p pending, output []byte) piece {
	return piece{payload: outputOf(p.kind, p.written, output), output: p.written, raw: p.raw, kind: p.kind}
}

// paired gives a history in which each call has its output and each output its call; open are the calls to which a
// result is still to come.
func (w *writer) paired(list []piece) (out []piece, open []pending) {
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
				w.lose(LostResult)
				p = piece{payload: wire.Message("developer", orphaned(p.payload))}
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
		if left := (pending{p.raw, p.call, p.kind}); w.calls.left[line.Hash(p.raw)] > 0 {
			open = append(open, left)
		} else {
			out = append(out, aborted(left))
		}
	}
	return out, open
}

// orphaned gives what an output says as the content of a message.
func orphaned(payload []byte) []byte {
	output := rawjson.Field(payload, "output")
	if rawjson.IsString(output) {
		return rawjson.List([][]byte{wire.Text("input_text", output)})
	}
	return rawjson.OrNull(output)
}
