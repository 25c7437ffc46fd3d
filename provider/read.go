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
	raw, broken := message.Whole(rawjson.AppendCompact(nil, raw))
	if rawjson.IsTrue(rawjson.Field(raw, "excludeFromContext")) {
		return nil
	}
	t.api, t.vendor = rawjson.Text(rawjson.Field(raw, "api")), rawjson.Text(rawjson.Field(raw, "provider"))
	t.model = rawjson.Text(message.Model(raw))
	parsed := message.Decode(raw)
	c.blocks(t, &parsed)
	if broken > 0 {
		c.lose(t, LostText, "halves of surrogate pairs, or bytes that are not UTF-8: sent as U+FFFD")
	}
	c.size += len(raw)
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
				b.mark = nil // it does not keep an empty text
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

// blocks sets who speaks, and the blocks.
func (c *converter) blocks(t *turn, m *message.Message) {
	for i := range m.Blocks {
		t.blocks = append(t.blocks, blockOf(&m.Blocks[i]))
	}
	summary := rawjson.Text(rawjson.Field(m.Raw, "summary"))
	switch {
	case m.Speaker == message.Assistant:
		t.who, t.failed = model, m.Failed
	case m.Speaker == message.System:
		t.who = system
		for w := rawjson.Walk(rawjson.Field(m.Raw, "sections")); w.Closing == '}' && w.Next(); { // pi's
			if s := rawjson.Text(w.Val); s != "" {
				t.blocks = append(t.blocks, textBlock(s))
			}
		}
	case m.Role == "bashExecution", m.Role == "pythonExecution":
		t.blocks = []*block{textBlock(execution(m.Raw))}
	case m.Role == "compactionSummary":
		t.blocks = []*block{textBlock(compactionHead + summary + compactionTail)}
	case m.Role == "branchSummary":
		t.blocks = []*block{textBlock(branchHead + summary + branchTail)}
	case m.Speaker == message.Other:
		for _, text := range message.Files(m.Raw) {
			t.blocks = append(t.blocks, textBlock(text))
		}
		if len(t.blocks) > 0 {
			c.lose(t, LostRole, "role "+m.Role+": sent as the user's")
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

// execution returns, in pi's words, what a command of the user printed.
func execution(raw []byte) string {
	f := func(name string) []byte { return rawjson.Field(raw, name) }
	s := "Ran `" + rawjson.Text(first(raw, "command", "code")) + "`\n"
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

// settleThinking decides what is done with thinking that the API does not take.
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

// signed reports whether what a turn thought is of this API, and of the provider and the model of the request.
func (c *converter) signed(t *turn) bool {
	if t.api == "" && t.vendor == "" || t.api != "" && !strings.Contains(t.api, c.rules.signer) || !c.sameModel(t) {
		return false
	}
	anyone := t.vendor == "" || c.rules.unsigned && t.api != ""
	return anyone || t.vendor == c.opts.Provider ||
		c.opts.Provider == "" && strings.HasPrefix(t.vendor, c.rules.vendor)
}

// native reports whether thinking in the API's own shape, in a message that may not name its API, is of the
// model that the request is for.
func (c *converter) native(t *turn) bool {
	if t.api == "" && t.vendor == "" {
		return c.sameModel(t) && (t.model == "" || strings.Contains(strings.ToLower(t.model), c.rules.family))
	}
	return c.signed(t)
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

// worded returns the words for a block that the API has no form for, and reports the loss.
func (c *converter) worded(t *turn, b *block) *block {
	switch {
	case b.kind == image:
		c.lose(t, LostImage, "where the API takes none: named in words")
	case b.kind == other && b.raw != nil:
		c.lose(t, LostBlock, "of type "+b.typ+": named in words")
	}
	return textBlock(b.text)
}
