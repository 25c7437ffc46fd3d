package omp_test

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/omp"
	"github.com/coppice-go/coppice/transcript"
)

// A session's title is in omp's header, and the model is one string.
func ExampleWrite() {
	entries := func(yield func(transcript.Draft, error) bool) {
		yield(transcript.Draft{Raw: []byte(`{"type":"model_change","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","provider":"p","modelId":"m"}`)}, nil)
	}
	if _, err := omp.Write(os.Stdout, interop.Header{ID: "s1", Title: "First steps"}, entries, "a"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"type":"session","version":3,"id":"s1","timestamp":"1970-01-01T00:00:00.000Z","cwd":"","title":"First steps","titleSource":"user"}
	// {"type":"model_change","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","model":"p/m"}
}

// The first entry came from a file: what was added since is printed, to go after its last line.
func ExampleExtend() {
	entries := transcript.Drafts(
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}`,
		`{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","content":"Hello."}}`,
	)
	losses, err := omp.Extend(os.Stdout, interop.Header{ID: "s1"}, 1, entries, "b")
	fmt.Println(losses, err)
	// Output:
	// {"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","timestamp":1767323100000,"content":[{"type":"text","text":"Hello."}],"api":"unknown","provider":"unknown","model":"unknown","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop"}}
	// map[messages that lack what the format needs, or are in another provider's shape: rewritten:1] <nil>
}

// Any reader is used so: what the file is, its header, its entries as lines of pi's format.
func ExampleReader() {
	file := `{"type":"title","v":1,"title":"First steps"}
{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/home/me"}
{"type":"model_change","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","model":"p/m"}
`
	fmt.Println("detected:", omp.Detect([]byte(file)))
	r := omp.NewReader(interop.Bytes("s1.jsonl", file), interop.Options{})
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
		fmt.Println(string(d.Raw))
	}
	fmt.Println("verbatim:", r.Verbatim(), "- bad lines:", r.BadLines())
	// Output:
	// detected: true
	// s1 First steps
	// {"type":"model_change","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","model":"p/m"}
	// verbatim: false - bad lines: 0
}
