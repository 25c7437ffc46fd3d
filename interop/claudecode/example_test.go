package claudecode_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/claudecode"
)

// Lines that say nothing are kept as custom entries beside the conversation.
func ExampleReader() {
	file := `{"type":"user","uuid":"11111111-1111-4111-8111-111111111111","parentUuid":null,"sessionId":"s1","cwd":"/home/me","timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"hi"}}
{"type":"custom-title","sessionId":"s1","customTitle":"First steps"}
`
	src := interop.Source{Name: "s1.jsonl", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(file)), nil
	}}
	r := claudecode.NewReader(src, interop.Options{})
	defer r.Close()
	h, err := r.Header()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(h.ID, h.Title)
	for d, err := r.Next(); !errors.Is(err, io.EOF); d, err = r.Next() {
		if err != nil {
			fmt.Println(err)
			return
		}
		kind, _, _ := strings.Cut(string(d.Raw), ",")
		fmt.Println(kind)
	}
	// Output:
	// s1 First steps
	// {"type":"custom"
	// {"type":"message"
	// {"type":"session_info"
}
