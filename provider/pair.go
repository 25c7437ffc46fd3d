package provider

import (
	"fmt"
	"slices"
)

// lift takes the instructions out of the messages where the API has them apart.
func (c *converter) lift() {
	if !c.rules.noSystem {
		return
	}
	kept := c.turns[:0]
	for _, t := range c.turns {
		if t.who != system {
			kept = append(kept, t)
			continue
		}
		if len(kept) > 0 {
			c.lose(t, LostOrder, "instructions in the middle of the conversation: sent with those at its beginning")
		}
		c.system = append(c.system, t)
	}
	c.turns = kept
}

// queue are calls of one id in one answer, in order.
type queue struct {
	run   int
	calls []*toolCall
}

// match finds the call that each result answers: of those before it that wait under its id one of the newest answer,
// and of these the first. A result without one becomes the user's text.
func (c *converter) match() {
	waiting := map[string][]queue{}
	run := 0
	var last speaker
	for i, t := range c.turns {
		if i > 0 && t.who != last {
			run++
		}
		last = t.who
		for _, b := range t.blocks {
			if b.kind == call {
				k := b.call.key()
				list := waiting[k]
				if n := len(list); n == 0 || list[n-1].run != run {
					list = append(list, queue{run: run})
				}
				list[len(list)-1].calls = append(list[len(list)-1].calls, b.call)
				waiting[k] = list
			}
		}
		c.matchResults(t, waiting)
	}
}

func (c *converter) matchResults(t *turn, waiting map[string][]queue) {
	kept := t.blocks[:0:0]
	for _, b := range t.blocks {
		if b.kind != result {
			kept = append(kept, b)
			continue
		}
		k := b.result.id
		if k == "" || len(waiting[k]) == 0 {
			if n := b.result.name; n != "" && (k == "" || c.rules.maxID == 0) {
				k = n
			}
		}
		list := waiting[k]
		if len(list) == 0 {
			kept = append(kept, c.orphan(t, b)...)
			continue
		}
		kept = append(kept, b)
		q := &list[len(list)-1]
		b.result.call, q.calls[0].answer = q.calls[0], b
		if q.calls = q.calls[1:]; len(q.calls) == 0 {
			waiting[k] = list[:len(list)-1]
		}
	}
	t.blocks = kept
}

// orphan returns the words of a result that answers no call.
func (c *converter) orphan(t *turn, b *block) []*block {
	t.touch()
	c.lose(t, LostResult,
		fmt.Sprintf("a result for call %q, which does not wait for one: sent as the user's text", b.result.id))
	head := "Result of a call that is not in this context"
	if b.result.name != "" {
		head += ", of the tool " + b.result.name
	}
	return append([]*block{textBlock(head + ":")}, b.result.content...)
}

// dropFailed leaves out answers of the model that failed or were aborted, unless tools have run for them: as pi does,
// so that the model starts again from what is complete.
func (c *converter) dropFailed() {
	kept := c.turns[:0]
	for _, t := range c.turns {
		ran := false
		for _, b := range t.blocks {
			ran = ran || b.kind == call && b.call.answer != nil
		}
		if t.failed && !ran {
			c.lose(t, LostFailed, "an answer that failed or was aborted: left out")
			continue
		}
		kept = append(kept, t)
	}
	c.turns = kept
}

// closeCalls answers calls without a result, or leaves them out.
func (c *converter) closeCalls() {
	for _, t := range c.turns {
		kept := t.blocks[:0:0]
		for _, b := range t.blocks {
			if b.kind != call || b.call.answer != nil {
				kept = append(kept, b)
				continue
			}
			detail := fmt.Sprintf("call %q of %q has no result: ", b.call.id, b.call.name)
			if c.opts.OpenCalls == Omit || !answerable(b) {
				t.touch()
				c.lose(t, LostCall, detail+"left out")
				continue
			}
			text := c.opts.Interrupted
			if text == "" {
				text = Interrupted
			}
			c.lose(t, LostCall, detail+"answered with an error")
			r := &toolResult{
				id: b.call.id, name: b.call.name, failed: true, call: b.call, content: []*block{textBlock(text)},
			}
			b.call.answer = &block{kind: result, result: r}
			kept = append(kept, b)
		}
		t.blocks = kept
	}
}

// answerable reports a call whose result may be text: those of OpenAI's own tools need more.
func answerable(b *block) bool {
	switch b.typ {
	case "computer_call", "local_shell_call", "shell_call", "apply_patch_call", "tool_search_call":
		return false
	}
	return true
}

// prune removes empty blocks and turns without any; thinking alone is no answer.
func (c *converter) prune() {
	kept := c.turns[:0]
	for _, t := range c.turns {
		if t.raw == nil {
			blocks := t.blocks[:0:0]
			for _, b := range t.blocks {
				if !b.blank() {
					blocks = append(blocks, b)
				}
			}
			t.blocks = blocks
		}
		if len(t.blocks) == 0 {
			c.lose(t, LostMessage, "nothing is left of it")
			continue
		}
		kept = append(kept, t)
	}
	c.turns = kept
	c.trimThinking()
}

// place puts the results of each answer's calls directly after it, in the order of the calls, where they are not.
func (c *converter) place() {
	var out []*turn
	for i := 0; i < len(c.turns); {
		if c.turns[i].who != model {
			if len(c.turns[i].blocks) > 0 {
				out = append(out, c.turns[i])
			}
			i++
			continue
		}
		var calls []*toolCall
		for ; i < len(c.turns) && (c.turns[i].who == model || len(c.turns[i].blocks) == 0); i++ {
			if t := c.turns[i]; len(t.blocks) > 0 {
				out = append(out, t)
				for _, b := range t.blocks {
					if b.kind == call {
						calls = append(calls, b.call)
					}
				}
			}
		}
		if near := following(c.turns[i:], calls); len(near) < len(calls) || !c.rules.adjacent {
			out = append(out, c.gather(calls, near)...)
		}
	}
	c.turns = out
}

// following returns the results of these calls with which the rest begins.
func following(rest []*turn, calls []*toolCall) map[*block]bool {
	mine := make(map[*block]bool, len(calls))
	for _, k := range calls {
		mine[k.answer] = true
	}
	near := make(map[*block]bool, len(calls))
	for _, t := range rest {
		for _, b := range t.blocks {
			if len(near) == len(calls) || !mine[b] {
				return near
			}
			near[b] = true
		}
	}
	return near
}

// gather takes the results of calls from where they are; near are those that are in their place. Where the API lets
// them be anywhere after their calls, only those that were made here are placed.
func (c *converter) gather(calls []*toolCall, near map[*block]bool) (out []*turn) {
	changed := map[*turn]bool{}
	for _, k := range calls {
		b := k.answer
		from := b.result.turn
		if from != nil && !c.rules.adjacent {
			continue
		}
		moved := &turn{at: k.turn.at, entry: k.turn.entry, blocks: []*block{b}}
		if from != nil {
			moved.at, moved.entry = from.at, from.entry
			if !near[b] {
				c.lose(from, LostOrder, "a result: sent directly after its call")
			}
			if len(from.blocks) == 1 { // it goes as a whole, with its bytes
				moved.raw = from.raw
			}
			from.touch()
			changed[from] = true
		}
		b.result.turn = moved
		out = append(out, moved)
	}
	for t := range changed {
		kept := t.blocks[:0:0]
		for _, b := range t.blocks {
			if b.kind != result || b.result.turn == t {
				kept = append(kept, b)
			}
		}
		t.blocks = kept
	}
	return out
}

// trimThinking takes away thinking at the end of an answer, which broke off before any text: APIs want
// something after it.
func (c *converter) trimThinking() {
	if c.rules.onlyThinking {
		return
	}
	var kept []*turn
	after := user
	for i := len(c.turns) - 1; i >= 0; i-- {
		t := c.turns[i]
		n := len(t.blocks)
		for n > 0 && t.blocks[n-1].kind == thinking && t.who == model && after != model {
			n--
		}
		if n < len(t.blocks) && (n == 0 || c.rules.thinkingFirst) {
			t.touch()
			t.blocks = t.blocks[:n]
			c.lose(t, LostThinking, "at the end of an answer: left out")
		}
		if len(t.blocks) > 0 {
			kept = append(kept, t)
			after = t.who
		}
	}
	slices.Reverse(kept)
	c.turns = kept
}

// begin puts a turn of the user before a context that does not begin with one, where the API wants that.
func (c *converter) begin() {
	if !c.rules.userFirst || len(c.turns) == 0 || c.turns[0].who == user {
		return
	}
	c.lose(c.turns[0], LostStart, "the context does not begin with the user")
	words := textBlock("(The conversation before this point is not in this context.)")
	c.turns = append([]*turn{{at: c.turns[0].at, blocks: []*block{words}}}, c.turns...)
}
