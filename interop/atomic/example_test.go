package atomic_test

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/atomic"
	"github.com/coppice-go/coppice/transcript"
)

func ExampleDetect() {
	fmt.Println(atomic.Detect([]byte(`{"type":"session_summary","id":"a","parentId":null,"summary":"Done."}`)))
	fmt.Println(atomic.Detect([]byte(`{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}`)))
	// Output:
	// true
	// false
}

// The first entry came from a file: what was added since is printed, to go after its last line.
func ExampleExtend() {
	entries := transcript.Drafts(
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}`,
		`{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","content":"Hello."}}`,
	)
	losses, err := atomic.Extend(os.Stdout, interop.Header{ID: "s1"}, 1, entries, "b")
	fmt.Println(losses, err)
	// Output:
	// {"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","timestamp":1767323100000,"content":[{"type":"text","text":"Hello."}],"api":"unknown","provider":"unknown","model":"unknown","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop"}}
	// map[messages that lack what the format needs, or are in another provider's shape: rewritten:1] <nil>
}

// A file that atomic opens.
func ExampleWrite() {
	entries := transcript.Drafts(
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}`,
		`{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","content":"Hello."}}`,
	)
	losses, err := atomic.Write(os.Stdout, interop.Header{ID: "s1", Cwd: "/home/me", Title: "First steps"}, entries, "b")
	fmt.Println(losses, err)
	// Output:
	// {"type":"session","version":3,"id":"s1","timestamp":"1970-01-01T00:00:00.000Z","cwd":"/home/me"}
	// {"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","timestamp":1767323046000,"content":"hi"}}
	// {"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","timestamp":1767323100000,"content":[{"type":"text","text":"Hello."}],"api":"unknown","provider":"unknown","model":"unknown","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop"}}
	// {"type":"session_info","id":"title.1","parentId":"b","timestamp":"2026-01-02T03:05:00.000Z","name":"First steps"}
	// map[messages that lack what the format needs, or are in another provider's shape: rewritten:2] <nil>
}

// Any reader is used so: what the file is, its header, its entries as lines of pi's format.
func ExampleReader() {
	file := `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/home/me"}
{"type":"session_summary","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","summary":"Done."}
`
	fmt.Println("detected:", atomic.Detect([]byte(file)))
	r := atomic.NewReader(interop.Bytes("s1.jsonl", file), interop.Options{})
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
	// {"type":"session_summary","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","summary":"Done."}
	// verbatim: true - bad lines: 0
}
