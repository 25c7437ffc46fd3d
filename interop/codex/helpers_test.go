package codex

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
)

var now = readtest.Now

func source(text string) interop.Source { return interop.Bytes("rollout.jsonl", []byte(text)) }

func reader(text string) *Reader {
	return NewReader(source(text), interop.Options{Now: now})
}

type session = readtest.Session

var kinds = readtest.Kinds

func collect(t fataler, r *Reader) session {
	t.Helper()
	return readtest.Read(t, r)
}

const meta = `{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","originator":"codex_cli","cli_version":"0.104.0","model_provider":"openai"}}` + "\n"

func wrap(typ, payload string) string {
	return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:01.000Z","type":%q,"payload":%s}`+"\n", typ, payload)
}

func item(payload string) string  { return wrap("response_item", payload) }
func event(payload string) string { return wrap("event_msg", payload) }

func user(text string) string {
	return item(fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}`, text))
}

func said(text string) string {
	return item(fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}`, text))
}

func calls(id string) string {
	return item(fmt.Sprintf(`{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":%q}`, id))
}

func output(id, text string) string {
	return item(fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%q}`, id, text))
}

const tokens = `{"type":"token_count","info":{"last_token_usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":5,"reasoning_output_tokens":2,"total_tokens":15}}}`

// with puts a text that needs no escapes, and may be long, in the place of the mark in a line.
func with(line, text string) string { return strings.Replace(line, "@", text, 1) }

// quoted returns a JSON string in which < and > are not escaped, as Codex writes it.
func quoted(text string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
