package pi_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/pi"
	"github.com/coppice-go/coppice/transcript"
)

// A file of version 1 has no ids and no parents: its entries become a chain of version 3.
func ExampleReader() {
	file := `{"type":"session","id":"s1","timestamp":"2025-01-02T03:04:05.000Z","cwd":"/home/me"}
{"type":"message","timestamp":"2025-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}
`
	r := pi.NewReader(strings.NewReader(file), time.Time{})
	defer r.Close()
	h, err := r.Header()
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := r.Next()
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := transcript.ParseLine(d.Raw)
	fmt.Println("read as version", h.Version, "- an entry with an id:", l.ID != "", err)
	// Output: read as version 1 - an entry with an id: true <nil>
}

// What pi has no type for is written as a custom entry, and counted.
func ExampleWrite() {
	entries := func(yield func(transcript.Draft, error) bool) {
		yield(transcript.Draft{Raw: []byte(`{"type":"mode_change","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","mode":"plan"}`)}, nil)
	}
	losses, err := pi.Write(os.Stdout, interop.Header{ID: "s1", Cwd: "/home/me"}, entries, "a")
	if err != nil {
		fmt.Println(err)
		return
	}
	for kind, n := range losses {
		fmt.Println(n, kind)
	}
	// Output:
	// {"type":"session","version":3,"id":"s1","timestamp":"1970-01-01T00:00:00.000Z","cwd":"/home/me"}
	// {"type":"custom","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","customType":"coppice.entry","data":{"type":"mode_change","mode":"plan"}}
	// 1 entries of types that the format does not have: kept as custom entries
}

// The first entry came from a file: what was added since is printed, to go after its last line.
func ExampleExtend() {
	entries := transcript.Drafts(
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}`,
		`{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","content":"Hello."}}`,
	)
	losses, err := pi.Extend(os.Stdout, interop.Header{ID: "s1"}, 1, entries, "b")
	fmt.Println(losses, err)
	// Output:
	// {"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","timestamp":1767323100000,"content":[{"type":"text","text":"Hello."}],"api":"unknown","provider":"unknown","model":"unknown","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop"}}
	// map[messages that lack what the format needs, or are in another provider's shape: rewritten:1] <nil>
}

// A program of pi's family that has lines of its own is read as a dialect.
func ExampleOpenDialect() {
	file := `{"type":"title","title":"First steps"}
{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/home/me"}
{"type":"prompt","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","text":"hi"}
{"type":"mess`
	dialect := pi.Dialect{Slots: true, Entry: func(l transcript.Line, say func(kind, detail string)) []byte {
		if l.Type != "prompt" {
			return l.Raw
		}
		say(transcript.DiagConverted, "a prompt became a message")
		return []byte(`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}`)
	}}
	r := pi.OpenDialect(interop.Bytes("s1.jsonl", file), interop.Options{}, dialect)
	defer r.Close()
	for d, err := r.Next(); !errors.Is(err, io.EOF); d, err = r.Next() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(d.Raw))
	}
	fmt.Println("the original is kept:", !r.Verbatim(), "- bad lines:", r.BadLines())
	// Output:
	// {"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}
	// the original is kept: true - bad lines: 1
}

// A file that grew is read on from its last line.
func ExampleReader_Mark() {
	file := `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/home/me"}
{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}
`
	r := pi.NewReader(strings.NewReader(file), time.Time{})
	for _, err := r.Next(); err == nil; _, err = r.Next() { // to its end
	}
	at := r.Mark()
	fmt.Println("line", at.Line+1, "entry", at.Entry)
	file += `{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"?"}}` + "\n"
	on := pi.Open(interop.Bytes("the end", file[at.Offset:]), interop.Options{From: at})
	for d, err := on.Next(); err == nil; d, err = on.Next() {
		l, err := transcript.ParseLine(d.Raw)
		fmt.Println(l.ID, err)
	}
	// Output:
	// line 2 entry a
	// a <nil>
	// b <nil>
}
