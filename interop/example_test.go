package interop_test

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/pi"
)

// Every reader is used in the same way: the header first, then the entries until io.EOF.
func Example() {
	file := `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/home/me"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}
{"type":"message","id":"b","parentId":"a","times`
	src := interop.Bytes("session.jsonl", file)
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

	var r interop.Reader = pi.Open(src, interop.Options{Now: now})
	defer r.Close()
	h, err := r.Header()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("session", h.ID, "in", h.Cwd)
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(d.Raw[:31]))
	}
	for _, d := range r.Diagnostics() {
		fmt.Printf("line %d: %s\n", d.Ordinal, d.Kind)
	}
	// Output:
	// session s1 in /home/me
	// {"type":"message","id":"a","par
	// line 3: torn-line
}
