package provider

import (
	"context"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// What pi puts around summaries when it sends them: a model that was trained or prompted on the one knows the other.
const (
	compactionHead = "The conversation history before this point was compacted into the following summary:" +
		"\n\n<summary>\n"
	compactionTail = "\n</summary>"
	branchHead     = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
	branchTail     = "</summary>"
)

// read adds the turn of a message.
func (c *converter) read(ctx context.Context, at int, m transcript.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &turn{at: at, entry: m.Entry}
	raw := m.Raw
	end, err := rawjson.ValueEnd(raw, 0, rawjson.MaxDepth)
	if start := rawjson.Space(raw, 0); err != nil || rawjson.Space(raw, end) < len(raw) || raw[start] != '{' {
		c.lose(t, LostMessage, "not a JSON object")
		return nil
	}
	raw = rawjson.AppendCompact(nil, raw)
	if rawjson.IsTrue(rawjson.Field(raw, "excludeFromContext")) {
		return nil
	}
	t.api, t.vendor = rawjson.Text(rawjson.Field(raw, "api")), rawjson.Text(rawjson.Field(raw, "provider"))
	t.model = rawjson.Text(message.Model(raw))
	c.outside(t, raw)
	if len(t.blocks) == 0 {
		c.lose(t, LostMessage, "it says nothing")
		return nil
	}
	if err := c.restore(ctx, t, t.blocks); err != nil {
		return err
	}
	t.raw = c.api.whole(t, raw)
	t.whole = t.raw != nil
	for _, b := range t.blocks {
		b.asIs = (b.raw != nil || t.whole) && c.api.own(c, t, b)
		if !b.asIs {
			t.touch()
			if b.kind == text && strings.TrimSpace(b.text) == "" && !(c.rules.onlyThinking && c.signed(t)) {
				b.mark = nil // it does not keep a text that says nothing
			}
		}
		if b.kind == result {
			of := &turn{who: user, whole: t.whole}
			for _, in := range b.result.content {
				in.asIs = in.raw != nil && c.api.own(c, of, in)
			}
		}
	}
	c.settleThinking(t)
	c.turns = append(c.turns, apart(t)...)
	return nil
}

// outside reads who speaks, and the blocks.
func (c *converter) outside(t *turn, raw []byte) {
	role := rawjson.Text(rawjson.Field(raw, "role"))
	typ := rawjson.Text(rawjson.Field(raw, "type"))
	switch {
	case role == "assistant", role == "model", role == "ai":
		t.who = model
		stop, _, _ := message.Stop(raw, false)
		t.failed = stop == "error" || stop == "aborted"
		t.blocks = answerBlocks(raw)
	case role == "" && typ != "" && typ != "message":
		c.item(t, raw, typ)
	case role == "system", role == "developer":
		t.who = system
		t.blocks = systemBlocks(raw)
	case role == "toolResult", role == "tool", role == "function" && rawjson.Field(raw, "parts") == nil:
		t.blocks = []*block{resultOf(raw, raw, t)}
	case role == "user", role == "human", role == "function", role == "custom", role == "hookMessage":
		t.blocks = contentBlocks(raw)
	case role == "bashExecution", role == "pythonExecution":
		t.blocks = []*block{said(execution(raw))}
	case role == "compactionSummary":
		t.blocks = []*block{said(compactionHead + rawjson.Text(rawjson.Field(raw, "summary")) + compactionTail)}
	case role == "branchSummary":
		t.blocks = []*block{said(branchHead + rawjson.Text(rawjson.Field(raw, "summary")) + branchTail)}
	default:
		t.blocks = contentBlocks(raw)
		if s := transcript.Inspect(raw).Text; len(t.blocks) == 0 && s != "" {
			t.blocks = []*block{said(s)}
		}
		t.blocks = append(t.blocks, mentions(rawjson.Field(raw, "files"))...)
		if len(t.blocks) > 0 {
			c.lose(t, LostRole, "role "+role+": sent as the user's")
		}
	}
	for _, b := range t.blocks {
		if b.call != nil {
			b.call.turn, b.call.block = t, b
		}
		if b.result != nil {
			b.result.turn = t
		}
	}
}

// item reads one of OpenAI's items, which has a type in place of a role.
func (c *converter) item(t *turn, raw []byte, typ string) {
	if strings.HasSuffix(typ, "_output") || strings.HasSuffix(typ, "_response") {
		t.blocks = []*block{resultOf(raw, raw, t)}
		return
	}
	t.who = model
	b := readBlock(raw)
	if b.kind == text && b.text == "" {
		b = &block{kind: other, raw: raw, typ: typ, text: words(raw)}
	}
	t.blocks = []*block{b}
	if strings.HasPrefix(typ, "input_") || typ == "text" || typ == "image" {
		t.who = user
	}
}

// answerBlocks returns the blocks of an answer of a model: of its content, and what Chat Completions have beside it.
func answerBlocks(raw []byte) []*block {
	var list []*block
	if s, field := message.Aside(raw); s != "" {
		list = append(list, &block{kind: thinking, text: s, field: field, thought: message.Thought{Text: s}})
	}
	list = append(list, contentBlocks(raw)...)
	if s := rawjson.Text(rawjson.Field(raw, "refusal")); s != "" {
		list = append(list, &block{kind: text, text: s, typ: "refusal"})
	}
	for m := rawjson.Walk(rawjson.Field(raw, "tool_calls")); m.Closing == ']' && m.Next(); {
		list = append(list, readBlock(m.Val))
	}
	if old := rawjson.Field(raw, "function_call"); len(old) > 0 && old[0] == '{' {
		list = append(list, callOf(old, old, "function"))
	}
	return list
}

// contentBlocks returns the blocks of a message's content, or of Gemini's parts.
func contentBlocks(raw []byte) []*block {
	list := blocksOf(rawjson.Field(raw, "content"))
	list = append(list, blocksOf(rawjson.Field(raw, "parts"))...)
	if list == nil {
		if s := rawjson.Field(raw, "text"); rawjson.IsString(s) {
			list = blocksOf(s)
		}
	}
	return list
}

func blocksOf(val []byte) (list []*block) {
	if s := rawjson.Text(val); s != "" {
		return []*block{said(s)}
	}
	for m := rawjson.Walk(val); m.Closing == ']' && m.Next(); {
		list = append(list, readBlock(m.Val))
	}
	return list
}

// systemBlocks returns instructions, and the sections that pi has beside them.
func systemBlocks(raw []byte) []*block {
	list := contentBlocks(raw)
	for m := rawjson.Walk(rawjson.Field(raw, "sections")); m.Closing == '}' && m.Next(); {
		if s := rawjson.Text(m.Val); s != "" {
			list = append(list, said(s))
		}
	}
	return list
}

// mentions returns the files that omp's user mentions.
func mentions(files []byte) (list []*block) {
	for m := rawjson.Walk(files); m.Closing == ']' && m.Next(); {
		s := rawjson.Text(rawjson.Field(m.Val, "path")) + "\n" + rawjson.Text(rawjson.Field(m.Val, "content"))
		list = append(list, said(s))
	}
	return list
}

// execution says in pi's words what a command of the user printed.
func execution(raw []byte) string {
	f := func(name string) []byte { return rawjson.Field(raw, name) }
	command := rawjson.Text(f("command"))
	if command == "" {
		command = rawjson.Text(f("code"))
	}
	s := "Ran `" + command + "`\n"
	if output := rawjson.Text(f("output")); output != "" {
		s += "```\n" + output + "\n```"
	} else {
		s += "(no output)"
	}
	exit := string(f("exitCode"))
	switch {
	case rawjson.IsTrue(f("cancelled")):
		s += "\n\n(command cancelled)"
	case exit != "" && exit != "null" && exit != "0":
		s += "\n\nCommand exited with code " + exit
	}
	if full := rawjson.Text(f("fullOutputPath")); full != "" && rawjson.IsTrue(f("truncated")) {
		s += "\n\n[Output truncated. Full output: " + full + "]"
	}
	return s
}

// settleThinking decides what becomes of thinking that the API does not take.
func (c *converter) settleThinking(t *turn) {
	kept := t.blocks[:0:0]
	for _, b := range t.blocks {
		if b.kind != thinking || b.asIs || c.api.takes(c, t, b) {
			kept = append(kept, b)
			continue
		}
		t.touch()
		c.unpaired = c.unpaired || b.thought.Item
		said := "left out"
		if c.opts.Thinking == AsText && strings.TrimSpace(b.thought.Text) != "" && t.who == model {
			kept = append(kept, &block{kind: text, text: b.thought.Text})
			said = "sent as text"
		}
		c.lose(t, LostThinking, said)
	}
	t.blocks = kept
}

// signed reports whether what a turn thought is this API's, and of the model that the request is for.
func (c *converter) signed(t *turn) bool {
	if t.api == "" {
		return t.vendor == c.rules.vendor && c.sameModel(t)
	}
	return strings.Contains(t.api, c.rules.signer) && c.sameModel(t)
}

// native reports whether thinking in the API's own shape, in a message that may not say which API it is of, is of the
// model that the request is for.
func (c *converter) native(t *turn) bool {
	return t.api == "" && t.vendor == "" && c.sameModel(t) || c.signed(t)
}

func (c *converter) sameModel(t *turn) bool {
	return c.opts.Model == "" || t.model == "" || t.model == c.opts.Model
}

// apart divides a message that answers calls within an answer of the model, as some programs have it: no API does.
// Calls of anyone but the model are words.
func apart(t *turn) []*turn {
	mixed := false
	for _, b := range t.blocks {
		if t.who != model && b.kind == call {
			b.kind, b.text, b.asIs, b.call = text, "["+b.call.name+"] "+string(b.call.args), false, nil
			t.touch()
		}
		mixed = mixed || t.who == model && b.kind == result
	}
	if !mixed {
		return []*turn{t}
	}
	t.touch()
	var list []*turn
	for _, b := range t.blocks {
		who := model
		if b.kind == result {
			who = user
		}
		if n := len(list); n == 0 || list[n-1].who != who {
			part := *t
			part.who, part.blocks = who, nil
			list = append(list, &part)
		}
		part := list[len(list)-1]
		part.blocks = append(part.blocks, b)
		if b.call != nil {
			b.call.turn = part
		}
		if b.result != nil {
			b.result.turn = part
		}
	}
	return list
}

// worded returns the words for a block that the API has no form for, and says so.
func (c *converter) worded(t *turn, b *block) *block {
	switch {
	case b.kind == image:
		c.lose(t, LostImage, "of type "+b.image.mime+", where the API takes none like it: named in words")
	case b.kind == other && b.raw != nil:
		c.lose(t, LostBlock, "of type "+b.typ+": named in words")
	}
	return said(b.text)
}
