package operator_test

import (
	"bytes"
	"fmt"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/operator"
	"github.com/coppice-go/coppice/transcript"
)

const (
	question = `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z",` +
		`"message":{"role":"user","content":"hi"}}`
	answer = `{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z",` +
		`"message":{"role":"assistant","content":"Hello."}}`
)

// A session becomes a file, what follows is appended to it, and the file is read as any other.
func Example() {
	h := interop.Header{ID: "s1", Cwd: "/home/me", Title: "First steps"}
	var file bytes.Buffer
	losses, err := operator.Write(&file, h, transcript.Drafts(question), "a")
	fmt.Println(losses, err)
	losses, err = operator.Extend(&file, h, 1, transcript.Drafts(question, answer), "b")
	fmt.Println(losses, err)
	fmt.Print(file.String())
	fmt.Println("detected:", operator.Detect(file.Bytes()))

	r := operator.NewReader(interop.Bytes("s1.jsonl", file.String()+"torn"), interop.Options{})
	defer r.Close()
	h, err = r.Header()
	fmt.Println(h.ID, h.Cwd, err)
	n := 0
	for _, err = r.Next(); err == nil; _, err = r.Next() {
		n++
	}
	fmt.Println(n, "entries - verbatim:", r.Verbatim(), "- bad lines:", r.BadLines(), "-", err)
	// Output:
	// map[messages that lack what the format needs, or are in another provider's shape: rewritten:1] <nil>
	// map[messages that lack what the format needs, or are in another provider's shape: rewritten:1] <nil>
	// {"type":"session","version":3,"id":"s1","timestamp":0.0,"cwd":"/home/me"}
	// {"type":"message","id":"a","parent_id":null,"timestamp":1767323046.0,"message":{"role":"user","contents":[{"type":"text","content":"hi"}],"timestamp":1767323046.0}}
	// {"type":"session_info","id":"title.1","parent_id":"a","timestamp":1767323046.0,"name":"First steps"}
	// {"type":"message","id":"b","parent_id":"a","timestamp":1767323100.0,"message":{"role":"assistant","contents":[{"type":"text","content":"Hello."}],"usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"cost":{"input":0,"output":0,"cache_read":0,"cache_write":0,"total":0}},"stop_reason":"stop","provider":"unknown","model":"unknown","timestamp":1767323100.0}}
	// detected: true
	// s1 /home/me <nil>
	// 3 entries - verbatim: false - bad lines: 1 - EOF
}
