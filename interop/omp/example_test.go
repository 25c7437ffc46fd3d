package omp_test

import (
	"bytes"
	"fmt"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/omp"
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
	losses, err := omp.Write(&file, h, transcript.Drafts(question), "a")
	fmt.Println(losses, err)
	losses, err = omp.Extend(&file, h, 1, transcript.Drafts(question, answer), "b")
	fmt.Println(losses, err)
	fmt.Print(file.String())
	fmt.Println("detected:", omp.Detect(file.Bytes()))

	r := omp.NewReader(interop.Bytes("s1.jsonl", file.String()+"torn"), interop.Options{})
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
	// {"type":"session","version":3,"id":"s1","timestamp":"1970-01-01T00:00:00.000Z","cwd":"/home/me","title":"First steps","titleSource":"user"}
	// {"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","timestamp":1767323046000,"content":"hi"}}
	// {"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","timestamp":1767323100000,"content":[{"type":"text","text":"Hello."}],"api":"unknown","provider":"unknown","model":"unknown","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop"}}
	// detected: true
	// s1 /home/me <nil>
	// 2 entries - verbatim: false - bad lines: 1 - EOF
}
