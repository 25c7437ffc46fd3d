package codex_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/codex"
)

// An event that repeats what an item says is left out and counted.
func ExampleReader() {
	file := `{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"s1","cwd":"/home/me","model_provider":"openai"}}
{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}
{"timestamp":"2026-01-02T03:04:06.000Z","type":"event_msg","payload":{"type":"user_message","message":"hi"}}
`
	src := interop.Source{Name: "rollout.jsonl", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(file)), nil
	}}
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
	// 1 events say again what an item says: left out
}
