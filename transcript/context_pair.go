package transcript

import (
	"strconv"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// pair matches calls and results, reports those without a counterpart, and returns the calls that wait for a
// result. A result answers the newest call before it that waits under its id: some providers number calls
// from one each turn. Where the bound cut something off, a result without a call is the rest of a cut group: it
// is left out, so that no group is ever split.
func (b *contextBuilder) pair(w *Window) []ToolCall {
	waiting := map[string][]*bool{} // by call id, the newest last; an id that was met once stays
	var answered [][]*bool          // by message and call
	kept := 0
	for i, p := range b.links {
		calls := make([]*bool, len(p.Calls))
		for k, c := range p.Calls {
			calls[k] = new(bool)
			waiting[c.ID] = append(waiting[c.ID], calls[k])
		}
		orphan, alone := answer(p.Results, waiting)
		if orphan != "" && alone && !w.Complete && p.only {
			w.OmittedEntries++
			continue
		}
		if orphan != "" {
			b.report(i, DiagOrphanResult, "a result for call "+strconv.Quote(orphan)+", which is not before it")
		}
		b.messages[kept], b.links[kept] = b.messages[i], p
		answered = append(answered, calls)
		kept++
	}
	b.truncate(kept)
	var open []ToolCall
	for i, p := range b.links {
		for k, c := range p.Calls {
			if *answered[i][k] {
				continue
			}
			b.report(i, DiagOpenCall, "call "+strconv.Quote(c.ID)+" of "+strconv.Quote(c.Name)+" has no result")
			if !failedTurn(b.messages[i]) { // the provider never ran those
				c.Entry, c.Arguments = b.messages[i].Entry, message.Arguments(c.Arguments)
				open = append(open, c)
			}
		}
	}
	return open
}

// answer marks the calls that the results answer. orphan is the id of a result that no call before it has;
// alone reports whether all of them are such.
func answer(results []string, waiting map[string][]*bool) (orphan string, alone bool) {
	alone = true
	for _, id := range results {
		calls, met := waiting[id]
		if !met {
			orphan = id
			continue
		}
		alone = false
		if n := len(calls); n > 0 {
			*calls[n-1] = true
			waiting[id] = calls[:n-1]
		}
	}
	return orphan, alone
}

func (b *contextBuilder) report(i int, kind, detail string) {
	b.diag.Add(b.messages[i].Entry, b.links[i].ordinal, kind, detail)
}

// truncate keeps the first n messages.
func (b *contextBuilder) truncate(n int) {
	b.messages, b.links = b.messages[:n], b.links[:n]
}

// failedTurn: an assistant's turn that ended in an error or was aborted.
func failedTurn(m Message) bool {
	if m.Role != "assistant" {
		return false
	}
	stop := string(rawjson.Field(m.Raw, "stopReason"))
	return stop == `"error"` || stop == `"aborted"`
}

// dropBroken leaves out answers that failed without a text or a call. An answer that failed after one stays.
func (b *contextBuilder) dropBroken() {
	kept := 0
	for i, p := range b.links {
		if p.broken {
			continue
		}
		b.messages[kept], b.links[kept] = b.messages[i], p
		kept++
	}
	b.truncate(kept)
}

// dropUnanswered takes calls without any result out of assistants' messages, as omp does. A message that is
// changed must not carry signed thinking: signatures and redacted thinking go. One that is left empty goes.
func (b *contextBuilder) dropUnanswered() {
	results := map[string]bool{}
	for _, p := range b.links {
		for _, id := range p.Results {
			results[id] = true
		}
	}
	kept := 0
	for i, m := range b.messages {
		open := false
		for _, c := range b.links[i].Calls {
			open = open || !results[c.ID]
		}
		if open && m.Role == "assistant" {
			content, n := withoutOpenCalls(rawjson.Field(m.Raw, "content"), results)
			if n == 0 {
				continue
			}
			m.Raw = rawjson.WithField(m.Raw, "content", content)
			b.links[i] = linkOf(m, b.links[i].ordinal)
		}
		b.messages[kept], b.links[kept] = m, b.links[i]
		kept++
	}
	b.truncate(kept)
}

// withoutOpenCalls returns the content without what dropUnanswered takes away, and how many blocks are left.
func withoutOpenCalls(content []byte, results map[string]bool) ([]byte, int) {
	out := []byte{'['}
	n := 0
	m := rawjson.Walk(content)
	for m.Closing == ']' && m.Next() {
		block := m.Val
		switch typ := rawjson.Text(rawjson.Field(block, "type")); {
		case typ == "toolCall" && !results[rawjson.Text(rawjson.Field(block, "id"))], typ == "redactedThinking":
			continue
		case typ == "thinking":
			block = rawjson.WithField(block, "thinkingSignature", nil)
		}
		if n > 0 {
			out = append(out, ',')
		}
		out = append(out, block...)
		n++
	}
	return append(out, ']'), n
}

// dropFailed leaves out assistants' turns that failed or were aborted, with the results of their calls, as
// omp does: replayed, they would be dead ends. A turn that a note on interrupted thinking follows stays.
func (b *contextBuilder) dropFailed() {
	gone := map[string]bool{}
	kept := 0
	for i, m := range b.messages {
		p := b.links[i]
		if failedTurn(m) && !(i+1 < len(b.messages) && interruptedNote(b.messages[i+1])) {
			for _, c := range p.Calls {
				gone[c.ID] = true
			}
			continue
		}
		if len(p.Calls) > 0 {
			for _, c := range p.Calls {
				delete(gone, c.ID)
			}
		}
		if m.Role == "toolResult" && len(p.Results) == 1 && gone[p.Results[0]] {
			continue
		}
		b.messages[kept], b.links[kept] = m, p
		kept++
	}
	b.truncate(kept)
}

func interruptedNote(m Message) bool {
	return m.Role == "custom" && string(rawjson.Field(m.Raw, "customType")) == `"interrupted-thinking"`
}
