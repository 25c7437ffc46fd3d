package codex

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func source(text string) interop.Source {
	return interop.Source{Name: "rollout.jsonl", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

func reader(text string) *Reader {
	return NewReader(source(text), interop.Options{Now: now})
}

type session struct {
	header  interop.Header
	entries []transcript.Entry
	byID    map[string]int
}

// collect reads all entries and checks what holds for all: whole lines, ids that are there once, parents first.
func collect(t fataler, r *Reader) session {
	t.Helper()
	h, err := r.Header()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transcript.ParseLine(h.Raw); err != nil {
		t.Fatalf("header %s: %v", h.Raw, err)
	}
	s := session{header: h, byID: map[string]int{}}
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			return s
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := d.Line("", "", now)
		if err != nil {
			t.Fatalf("%v: %.300s", err, d.Raw)
		}
		l, err := transcript.ParseLine(raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.byID[l.ID]; ok {
			t.Fatalf("id %s twice", l.ID)
		}
		if _, ok := s.byID[l.ParentID]; !ok && len(s.entries) > 0 && l.ParentID != "" {
			t.Fatalf("%s comes before its parent", l.ID)
		}
		s.byID[l.ID] = len(s.entries)
		s.entries = append(s.entries, l.Entry(uint64(len(s.entries))))
	}
}

func (s *session) path(id string) []transcript.Entry {
	if id == "" && len(s.entries) > 0 {
		id = s.entries[len(s.entries)-1].ID
	}
	var out []transcript.Entry
	for id != "" {
		e := s.entries[s.byID[id]]
		out = append(out, e)
		id = e.ParentID
	}
	slices.Reverse(out)
	return out
}

// talk writes the context at an id: a word for each message.
func (s *session) talk(id string) string {
	var words []string
	for _, m := range transcript.BuildContext(s.path(id), transcript.Coppice).Messages {
		sh := transcript.Inspect(m.Raw)
		w := map[string]string{"user": "u", "assistant": "a", "toolResult": "r", "custom": "m", "compactionSummary": "C"}[m.Role]
		w += ":" + strings.ReplaceAll(sh.Text, "\n", "|")
		for _, c := range sh.Calls {
			w += "+" + c.ID
		}
		if len(sh.Results) > 0 {
			w += "=" + strings.Join(sh.Results, ",")
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func kinds(diags []transcript.Diagnostic) string {
	var out []string
	for _, d := range diags {
		out = append(out, d.Kind)
	}
	return strings.Join(out, " ")
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

// quoted gives a text as JSON has it; < and > as they are, as Codex writes them.
func quoted(text string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
