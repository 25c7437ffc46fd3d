package claudecode_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/claudecode"
	"github.com/coppice-go/coppice/transcript"
)

// Lines without content are kept as custom entries.
func ExampleReader() {
	file := `{"type":"user","uuid":"11111111-1111-4111-8111-111111111111","parentUuid":null,"sessionId":"s1","cwd":"/home/me","timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"hi"}}
{"type":"custom-title","sessionId":"s1","customTitle":"First steps"}
`
	src := interop.Bytes("s1.jsonl", file)
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

// question is a session file of one line; entries are that line and one more.
const question = `{"type":"user","uuid":"11111111-1111-4111-8111-111111111111","parentUuid":null,"sessionId":"s1","cwd":"/home/me","timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"hi"}}
`

func entries(yield func(transcript.Draft, error) bool) {
	for _, line := range []string{
		`{"type":"message","id":"11111111-1111-4111-8111-111111111111","parentId":null,"timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"hi"}}`,
		`{"type":"message","id":"22222222-2222-4222-8222-222222222222","parentId":"11111111-1111-4111-8111-111111111111","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"user","content":"are you there?"}}`,
	} {
		if !yield(transcript.Draft{Raw: []byte(line)}, nil) {
			return
		}
	}
}

// A session as a file of Claude Code's, under the name by which it finds it.
func ExampleWrite() {
	h := interop.Header{ID: "s1", Cwd: "/home/me"}
	fmt.Println(claudecode.SessionID(h) + ".jsonl")
	var file bytes.Buffer
	losses, err := claudecode.Write(&file, h, entries)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(file.String())
	fmt.Println(claudecode.Detect(file.Bytes()), losses)
	// Output:
	// f63d86a7-0437-5945-827e-2a2ff17791e7.jsonl
	// {"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/home/me","version":"2.1.0","gitBranch":"","sessionId":"f63d86a7-0437-5945-827e-2a2ff17791e7","type":"user","message":{"role":"user","content":"hi"},"uuid":"11111111-1111-4111-8111-111111111111","timestamp":"2026-01-02T03:04:05.000Z"}
	// {"parentUuid":"11111111-1111-4111-8111-111111111111","isSidechain":false,"userType":"external","cwd":"/home/me","version":"2.1.0","gitBranch":"","sessionId":"f63d86a7-0437-5945-827e-2a2ff17791e7","type":"user","message":{"role":"user","content":"are you there?"},"uuid":"22222222-2222-4222-8222-222222222222","timestamp":"2026-01-02T03:05:00.000Z"}
	// true map[]
}

// The first entry was imported: what was added since is printed, to go after the file's last line.
func ExampleAppend() {
	h := interop.Header{ID: "s1", Cwd: "/home/me"}
	losses, err := claudecode.Append(os.Stdout, h, 1, entries, "22222222-2222-4222-8222-222222222222")
	fmt.Println(losses, err)
	// Output:
	// {"parentUuid":"11111111-1111-4111-8111-111111111111","isSidechain":false,"userType":"external","cwd":"/home/me","version":"2.1.0","gitBranch":"","sessionId":"f63d86a7-0437-5945-827e-2a2ff17791e7","type":"user","message":{"role":"user","content":"are you there?"},"uuid":"22222222-2222-4222-8222-222222222222","timestamp":"2026-01-02T03:05:00.000Z"}
	// map[] <nil>
}

// Sidechains in the file are sessions of their own: work of agents that the session began.
func ExampleReader_Children() {
	file := question +
		`{"type":"user","isSidechain":true,"uuid":"33333333-3333-4333-8333-333333333333","parentUuid":null,"sessionId":"s1","cwd":"/home/me","timestamp":"2026-01-02T03:06:00.000Z","message":{"role":"user","content":"Look it up."}}
`
	r := claudecode.NewReader(interop.Bytes("s1.jsonl", file), interop.Options{})
	defer r.Close()
	if _, err := r.Header(); err != nil {
		fmt.Println(err)
		return
	}
	n := 0
	for _, err := r.Next(); !errors.Is(err, io.EOF); _, err = r.Next() {
		if err != nil {
			fmt.Println(err)
			return
		}
		n++
	}
	fmt.Println(n, "entries - bad lines:", r.BadLines(), "- the original is kept:", !r.Verbatim())
	for child, err := range r.Children() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("a child of", child.Header.Parent)
		for d, err := range child.Entries {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(strings.Contains(string(d.Raw), "Look it up."))
		}
	}
	// Output:
	// 2 entries - bad lines: 0 - the original is kept: true
	// a child of s1
	// false
	// true
}

// A reader of a grown file resumes at a message that continues the conversation.
func ExampleReader_Mark() {
	file := question + `{"type":"assistant","uuid":"22222222-2222-4222-8222-222222222222",` +
		`"parentUuid":"11111111-1111-4111-8111-111111111111","sessionId":"s1","timestamp":"2026-01-02T03:04:06.000Z",` +
		`"message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Hello."}]}}` + "\n"
	r := claudecode.NewReader(interop.Bytes("s1.jsonl", file), interop.Options{})
	for _, err := r.Next(); err == nil; _, err = r.Next() { // to its end
	}
	at := r.Mark()
	fmt.Println("line", at.Line+1, "entry", at.Entry)
	// Output: line 2 entry 22222222-2222-4222-8222-222222222222
}
