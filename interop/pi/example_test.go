package pi_test

import (
	"fmt"
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
	r := pi.NewReader(strings.NewReader(file), time.Time{}, strings.NewReader(strings.Repeat("x", 64)))
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
