package provider

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// ErrReply is wrapped by the errors of ReadReply about a body that is no response of the API.
var ErrReply = errors.New("provider: not a response of this API")

// StopReason is why the model stopped, in pi's words.
type StopReason string

// The reasons.
const (
	StopEnd     StopReason = "stop"    // it was done
	StopLength  StopReason = "length"  // at a limit of tokens
	StopTools   StopReason = "toolUse" // it waits for results of tools
	StopError   StopReason = "error"   // an error, or it refused, or a filter held the answer back
	StopAborted StopReason = "aborted" // by the caller; no API reports it, messages of pi's family do
)

// Usage is what was counted for an answer, in tokens; what the API does not report is 0.
type Usage struct {
	Input      int64 // without what was read from a cache or written to one
	Output     int64 // with what was thought
	CacheRead  int64
	CacheWrite int64
	CacheHour  int64 // of CacheWrite: what is kept for an hour
	Reasoning  int64 // of Output: what was thought
	Total      int64
}

// Reply is a response of an API.
type Reply struct {
	// Messages are what to append to the session, each as one entry (entry.Message), in order; never none. Each is the
	// provider's own object, byte for byte but for white space, with fields at its end for where it is from and
	// what it cost: docs/format/provider-message.md. Convert leaves these fields out again.
	Messages []json.RawMessage
	Calls    []transcript.ToolCall // of all messages; Entry is ""
	Usage    Usage
	Stop     StopReason
	RawStop  string // the API's word for it; "" = it sent none
	ID       string // of the response; "" = the API sent none
	Model    string // as the response names it; "" = it does not
}

// ReadReply reads the body of a response of an API, one that is not streamed. vendor names who runs the API, as in
// "openrouter"; "" is the API's own. Errors wrap ErrAPI or ErrReply; an error that the API itself reports is ErrReply
// with its text.
func ReadReply(from API, vendor string, body json.RawMessage) (Reply, error) {
	d := dialectOf(from)
	if d == nil {
		return Reply{}, fmt.Errorf("%w: %q: want one of %q", ErrAPI, from, APIs())
	}
	if vendor == "" {
		vendor = d.rules().vendor
	}
	const depth = rawjson.MaxDepth - 16 // it becomes part of a line
	end, err := rawjson.ValueEnd(body, 0, depth)
	if err != nil || rawjson.Space(body, end) < len(body) || body[rawjson.Space(body, 0)] != '{' {
		return Reply{}, fmt.Errorf("%w: %s: not one JSON object: nothing was read", ErrReply, from)
	}
	body = rawjson.AppendCompact(nil, body)
	if fault := message.Object(body, "error"); fault != nil {
		said := rawjson.Text(rawjson.Field(fault, "message"))
		return Reply{}, fmt.Errorf("%w: %s: it reports an error: %s", ErrReply, from, said)
	}
	r := Reply{ID: rawjson.Text(first(body, "id", "responseId")), Model: rawjson.Text(message.Model(body))}
	r.Messages = messagesIn(from, body, vendor)
	if len(r.Messages) == 0 {
		return Reply{}, fmt.Errorf("%w: %s: there is no message in it: nothing was read", ErrReply, from)
	}
	for _, m := range r.Messages {
		r.Calls = append(r.Calls, transcript.Inspect(m).Calls...)
	}
	last := r.Messages[len(r.Messages)-1]
	r.Usage, _ = UsageOf(last)
	r.Stop, r.RawStop = stopOf(last, len(r.Calls) > 0)
	return r, nil
}

// messagesIn returns the messages of a response, with the fields that are stored with them.
func messagesIn(from API, body []byte, vendor string) []json.RawMessage {
	source := []any{"api", str(dialectOf(from).rules().stored), "provider", str(vendor)}
	model, id := message.Model(body), first(body, "id", "responseId")
	switch from {
	case Anthropic:
		if rawjson.Text(rawjson.Field(body, "role")) != "assistant" || !listed(rawjson.Field(body, "content")) {
			return nil
		}
		return []json.RawMessage{with(body, source...)}
	case OpenAIChat:
		choice := element(rawjson.Field(body, "choices"))
		m := message.Object(choice, "message")
		if m == nil {
			return nil
		}
		return []json.RawMessage{with(m, append(source, "model", model, "responseId", id,
			"usage", message.Object(body, "usage"), "finish_reason", rawjson.Field(choice, "finish_reason"))...)}
	case Gemini:
		choice := element(rawjson.Field(body, "candidates"))
		m := message.Object(choice, "content")
		if m == nil || !listed(rawjson.Field(m, "parts")) {
			return nil
		}
		if rawjson.Field(m, "role") == nil {
			m = rawjson.WithField(m, "role", str("model"))
		}
		return []json.RawMessage{with(m, append(source, "model", model, "responseId", id,
			"usageMetadata", message.Object(body, "usageMetadata"),
			"finishReason", rawjson.Field(choice, "finishReason"))...)}
	case OpenAIResponses:
	}
	var list []json.RawMessage
	for m := rawjson.Walk(rawjson.Field(body, "output")); m.Closing == ']' && m.Next(); {
		if braced(m.Val) {
			list = append(list, with(m.Val, source...))
		}
	}
	if len(list) > 0 {
		last := &list[len(list)-1]
		*last = with(*last, "model", model, "responseId", id,
			"usage", message.Object(body, "usage"), "stopReason", incomplete(body))
	}
	return list
}

// incomplete returns pi's word for why a response of OpenAI's is not complete; nil = it is.
func incomplete(body []byte) []byte {
	switch rawjson.Text(rawjson.Field(body, "status")) {
	case "incomplete":
		if rawjson.Text(rawjson.Field(rawjson.Field(body, "incomplete_details"), "reason")) == "max_output_tokens" {
			return str(string(StopLength))
		}
		return str(string(StopError))
	case "failed", "cancelled":
		return str(string(StopError))
	}
	return nil
}

// with returns a message with more fields; nil values are left out.
func with(m []byte, pairs ...any) json.RawMessage {
	for i := 0; i < len(pairs); i += 2 {
		if val, _ := pairs[i+1].([]byte); val != nil {
			m = rawjson.WithField(m, pairs[i].(string), val)
		}
	}
	return m
}

// str returns text as JSON.
func str[T string | []byte](s T) []byte { return rawjson.AppendString(nil, s) }

func listed(val []byte) bool { return len(val) > 0 && val[0] == '[' }

// element returns the first element of a list; nil = there is none.
func element(list []byte) []byte {
	if m := rawjson.Walk(list); m.Closing == ']' && m.Next() {
		return m.Val
	}
	return nil
}

// UsageOf returns the usage in a stored message, in any provider's words. false: it has none.
func UsageOf(m json.RawMessage) (Usage, bool) {
	u := message.UsageOf(m)
	return Usage{
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, CacheHour: u.Hour,
		Reasoning: u.Reasoning, Total: u.Total,
	}, u.Raw != nil && !u.Nothing()
}

// StopOf returns why the model stopped in a stored message, and the provider's own word for it; "" = it has none. Of a
// message without it, the reason follows from whether it calls tools.
func StopOf(m json.RawMessage) (reason StopReason, raw string) {
	return stopOf(m, len(transcript.Inspect(m).Calls) > 0)
}

func stopOf(m []byte, calls bool) (reason StopReason, raw string) {
	for _, name := range []string{"rawStopReason", "stop_reason", "finish_reason", "finishReason", "status"} {
		if raw == "" {
			raw = rawjson.Text(rawjson.Field(m, name))
		}
	}
	word, _, _ := message.Stop(m, calls)
	return StopReason(word), raw
}
