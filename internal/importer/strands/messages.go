package strands

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// isMessage reports whether a value is a message.
func isMessage(v []byte) bool {
	role := rawjson.Text(rawjson.Field(v, "role"))
	return (role == "user" || role == "assistant") && rawjson.Walk(rawjson.Field(v, "content")).Closing == ']'
}

// drafts returns the entries of a message below parent. The last one has the message itself, as original. Their ids are
// made of the messages up to this one, so that a message has the same entry in each import.
func drafts(parent string, message []byte, at time.Time) (list []transcript.Draft) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\x00", parent)
	_, _ = h.Write(message)
	id := "strands-" + hex.EncodeToString(h.Sum(nil)[:16])
	all := shown(message)
	for n, m := range all {
		d := transcript.Draft{Type: "message", ID: fmt.Sprintf("%s.%d", id, n), Time: at}
		original := []byte(nil)
		if n == len(all)-1 {
			d.ID, original = id, message
		}
		if len(m)+len(original) > maxEntry {
			original = nil
		}
		d.Body = rawjson.Object("message", m, "original", original)
		list = append(list, d)
	}
	return list
}

// shown returns the messages that show a message: one, or, of the results of several calls, one for each. These are the
// messages that the adapter makes.
func shown(message []byte) [][]byte {
	var results, parts [][]byte
	for m := rawjson.Walk(rawjson.Field(message, "content")); m.Next(); {
		if result := rawjson.Field(m.Val, "toolResult"); result != nil {
			results = append(results, resultOf(result))
		} else if part := partOf(m.Val); part != nil {
			parts = append(parts, part)
		}
	}
	if len(results) > 0 && len(parts) == 0 {
		return results
	}
	role := rawjson.Field(message, "role")
	return append(results, rawjson.Object("role", role, "content", rawjson.List(parts), "usage", usageOf(message)))
}

func resultOf(result []byte) []byte {
	var content [][]byte
	for m := rawjson.Walk(rawjson.Field(result, "content")); m.Next(); {
		text := rawjson.Field(m.Val, "text")
		if !rawjson.IsString(text) {
			text = rawjson.AppendString(nil, rawjson.OrNull(rawjson.Field(m.Val, "json")))
		}
		content = append(content, rawjson.Object("type", []byte(`"text"`), "text", text))
	}
	failed := []byte("false")
	if rawjson.Text(rawjson.Field(result, "status")) == "error" {
		failed = []byte("true")
	}
	return rawjson.Object("role", []byte(`"toolResult"`),
		"toolCallId", textOf(result, "toolUseId"), "toolName", []byte(`""`), "isError", failed,
		"content", rawjson.List(content))
}

// partOf returns a part of a message; nil = it is shown as none. TypeScript's snapshots have the text of a reasoning in
// reasoning, Python's messages have it in reasoningContent.
func partOf(block []byte) []byte {
	if text := rawjson.Field(block, "text"); rawjson.IsString(text) {
		return rawjson.Object("type", []byte(`"text"`), "text", text)
	}
	thinking := rawjson.Field(rawjson.Field(block, "reasoning"), "text")
	if thinking == nil {
		thinking = rawjson.Member(block, "reasoningContent.reasoningText.text")
	}
	if rawjson.IsString(thinking) {
		return rawjson.Object("type", []byte(`"thinking"`), "thinking", thinking)
	}
	if call := rawjson.Field(block, "toolUse"); call != nil {
		return rawjson.Object("type", []byte(`"toolCall"`),
			"id", textOf(call, "toolUseId"), "name", textOf(call, "name"),
			"arguments", rawjson.OrNull(rawjson.Field(call, "input")))
	}
	return nil
}

// textOf returns a member that is a string, else an empty one.
func textOf(object []byte, name string) []byte {
	if v := rawjson.Field(object, name); rawjson.IsString(v) {
		return v
	}
	return []byte(`""`)
}

// usageOf returns the tokens of an answer; nil = they are unknown.
func usageOf(message []byte) []byte {
	usage := rawjson.Member(message, "metadata.usage")
	if rawjson.Text(rawjson.Field(message, "role")) != "assistant" || usage == nil {
		return nil
	}
	number := func(name string) []byte {
		if v := rawjson.Field(usage, name); len(v) > 0 && v[0] >= '0' && v[0] <= '9' {
			return v
		}
		return []byte("0")
	}
	return rawjson.Object("input", number("inputTokens"), "output", number("outputTokens"),
		"totalTokens", number("totalTokens"))
}

// line is a conversation that is stored message by message: those that the session has are passed over.
type line struct {
	t     *importer.Thread
	at    string             // entry of the last message; "" = before the first
	next  []transcript.Draft // that are to be committed after at
	from  string             // what they grow from
	bytes int
	time  time.Time
}

// add takes the next message, and stores those before it when they are many.
func (l *line) add(message []byte, at time.Time, commit func() error) error {
	if len(message) > maxEntry {
		l.t.Bad("too-large", fmt.Sprintf("a message of %d bytes: at most %d are stored", len(message), maxEntry))
		return nil
	}
	list := drafts(l.at, message, at)
	parent := l.at
	l.at = list[len(list)-1].ID
	if !at.IsZero() {
		l.time = at
	}
	if len(l.next) == 0 {
		if l.t.Has(l.at) {
			return nil
		}
		l.from = parent
	}
	l.next = append(l.next, list...)
	if l.bytes += len(message); len(l.next) < chunk && l.bytes < chunkBytes {
		return nil
	}
	return commit()
}

// step returns the step of the messages that are not stored yet.
func (l *line) step() importer.Step {
	s := importer.Step{Entries: l.next, Time: l.time}
	from := l.at
	if len(l.next) > 0 {
		from = l.from
	}
	if from != l.t.Head() {
		s.From = &from
	}
	l.next, l.bytes = nil, 0
	return s
}
