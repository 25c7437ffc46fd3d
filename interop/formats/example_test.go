package formats_test

import (
	"fmt"

	"github.com/coppice-go/coppice/interop/formats"
)

func ExampleDetect() {
	for _, head := range []string{
		`{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":""}`,
		`{"type":"session_meta","timestamp":"2026-01-02T03:04:05.000Z","payload":{"id":"s1"}}`,
		`{"type":"custom-title","sessionId":"s1","customTitle":"First steps"}`,
		`{"level":"info","msg":"started"}`,
	} {
		fmt.Printf("%q\n", formats.Detect([]byte(head), ""))
	}
	// Output:
	// "pi"
	// "codex"
	// "claude-code"
	// ""
}
