package codex_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/codex"
	"github.com/coppice-go/coppice/transcript"
)

// An event that repeats an item is dropped and counted.
func ExampleReader() {
	file := `{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"s1","cwd":"/home/me","model_provider":"openai"}}
{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}
{"timestamp":"2026-01-02T03:04:06.000Z","type":"event_msg","payload":{"type":"user_message","message":"hi"}}
`
	src := interop.Bytes("rollout.jsonl", file)
	r := codex.NewReader(src, interop.Options{})
	defer r.Close()
	for d, err := r.Next(); !errors.Is(err, io.EOF); d, err = r.Next() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(d.Raw))
	}
	for _, d := range r.Diagnostics() {
		fmt.Println(d.Detail)
	}
	// Output:
	// {"type":"custom","id":"cx-1","parentId":null,"timestamp":"2026-01-02T03:04:05.000Z","customType":"codex.session_meta","data":{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"s1","cwd":"/home/me","model_provider":"openai"}}}
	// {"type":"message","id":"cx-2","parentId":"cx-1","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1767323046000}}
	// events that repeat an item, left out: 1
}

// entries are a question and its answer; the first of them is known from a rollout.
func entries(yield func(transcript.Draft, error) bool) {
	for _, line := range []string{
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}`,
		`{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Hello."}]}}`,
	} {
		if !yield(transcript.Draft{Raw: []byte(line)}, nil) {
			return
		}
	}
}

// A session as a rollout, under the id by which `codex resume` finds it.
func ExampleWrite() {
	h := interop.Header{ID: "s1", Cwd: "/home/me", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	var file bytes.Buffer
	losses, err := codex.Write(&file, h, entries, "b")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(codex.SessionID(h), codex.Detect(file.Bytes()))
	fmt.Println(losses)
	for line := range strings.Lines(file.String()) {
		var l struct {
			Type    string
			Payload struct{ Type string }
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(strings.TrimSpace(l.Type + " " + l.Payload.Type))
	}
	// Output:
	// f16f6328-e482-582d-bc5d-9eea9f686fef true
	// map[messages that lack what the format needs, or are in another provider's shape: rewritten:2]
	// session_meta
	// event_msg task_started
	// response_item message
	// event_msg user_message
	// response_item message
	// event_msg agent_message
	// event_msg task_complete
}

// An imported rollout continues: the original bytes, then the lines that were added.
func ExampleContinue() {
	file := `{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"s1","cwd":"/home/me"}}
{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}
`
	r := codex.NewReader(interop.Bytes("rollout.jsonl", file), interop.Options{})
	defer r.Close()
	h, err := r.Header()
	if err != nil {
		fmt.Println(err)
		return
	}
	var imported []transcript.Draft
	head := ""
	for d, err := r.Next(); !errors.Is(err, io.EOF); d, err = r.Next() {
		if err != nil {
			fmt.Println(err)
			return
		}
		l, err := transcript.ParseLine(d.Raw)
		if err != nil {
			fmt.Println(err)
			return
		}
		imported, head = append(imported, d), l.ID
	}
	fmt.Println("the original is kept:", !r.Verbatim(), "- bad lines:", r.BadLines())

	answer := transcript.Draft{Type: "message", Body: []byte(`{"message":{"role":"assistant","content":[{"type":"text","text":"Hello."}]}}`)}
	line, err := answer.Line("b", head, time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC))
	if err != nil {
		fmt.Println(err)
		return
	}
	all := transcript.Drafts(append(imported, transcript.Draft{Raw: line})...)
	var longer bytes.Buffer
	losses, err := codex.Continue(&longer, strings.NewReader(file), h, len(imported), all, "b")
	added, ok := strings.CutPrefix(longer.String(), file)
	fmt.Println("the file is kept:", ok, "- says the answer:", strings.Contains(added, "Hello."), losses, err)
	// Output:
	// the original is kept: true - bad lines: 0
	// the file is kept: true - says the answer: true map[messages that lack what the format needs, or are in another provider's shape: rewritten:1] <nil>
}

// A file that grew is read on from a line before which nothing was under way.
func ExampleReader_Mark() {
	file := `{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"s1","cwd":"/home/me"}}
{"timestamp":"2026-01-02T03:04:06.000Z","type":"event_msg","payload":{"type":"task_complete"}}
`
	r := codex.NewReader(interop.Bytes("rollout.jsonl", file), interop.Options{})
	for _, err := r.Next(); err == nil; _, err = r.Next() { // to its end
	}
	at := r.Mark()
	fmt.Println("line", at.Line+1, "entry", at.Entry)
	// Output: line 2 entry cx-2
}
