package operator_test

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/operator"
	"github.com/coppice-go/coppice/transcript"
)

// Operator writes fields in snake case and times in seconds.
func ExampleWrite() {
	entries := func(yield func(transcript.Draft, error) bool) {
		yield(transcript.Draft{Raw: []byte(`{"type":"label","id":"b","parentId":null,"timestamp":"2026-01-02T03:04:06.250Z","label":"here","targetId":"a"}`)}, nil)
	}
	if _, err := operator.Write(os.Stdout, interop.Header{ID: "s1", Cwd: "/home/me"}, entries, "b"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"type":"session","version":3,"id":"s1","timestamp":0.0,"cwd":"/home/me"}
	// {"type":"label","id":"b","parent_id":null,"timestamp":1767323046.25,"label":"here","target_id":"a"}
}

// The first entry came from a file: what was added since is printed, to go after its last line.
func ExampleExtend() {
	entries := transcript.Drafts(
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}`,
		`{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","content":"Hello."}}`,
	)
	losses, err := operator.Extend(os.Stdout, interop.Header{ID: "s1"}, 1, entries, "b")
	fmt.Println(losses, err)
	// Output:
	// {"type":"message","id":"b","parent_id":"a","timestamp":1767323100.0,"message":{"role":"assistant","contents":[{"type":"text","content":"Hello."}],"usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"cost":{"input":0,"output":0,"cache_read":0,"cache_write":0,"total":0}},"stop_reason":"stop","provider":"unknown","model":"unknown","timestamp":1767323100.0}}
	// map[messages that lack what the format needs, or are in another provider's shape: rewritten:1] <nil>
}

// Any reader is used so: what the file is, its header, its entries as lines of pi's format.
func ExampleReader() {
	file := `{"type":"session","version":3,"id":"s1","timestamp":1767323045.0,"cwd":"/home/me"}
{"type":"message","id":"a","parent_id":null,"timestamp":1767323046.0,"message":{"role":"user","content":"hi"}}
{"type":"mess
`
	fmt.Println("detected:", operator.Detect([]byte(file)))
	r := operator.NewReader(interop.Bytes("s1.jsonl", file), interop.Options{})
	defer r.Close()
	h, err := r.Header()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(h.ID, h.Cwd)
	for d, err := r.Next(); !errors.Is(err, io.EOF); d, err = r.Next() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(d.Raw))
	}
	fmt.Println("verbatim:", r.Verbatim(), "- bad lines:", r.BadLines())
	// Output:
	// detected: true
	// s1 /home/me
	// {"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}
	// verbatim: false - bad lines: 1
}
