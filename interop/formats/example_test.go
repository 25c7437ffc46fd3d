package formats_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

func ExampleDetect() {
	for _, head := range []string{
		`{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":""}`,
		`{"type":"session_meta","timestamp":"2026-01-02T03:04:05.000Z","payload":{"id":"s1"}}`,
		`{"type":"custom-title","sessionId":"s1","customTitle":"First steps"}`,
		`{"level":"info","msg":"started"}`,
	} {
		fmt.Printf("%q\n", formats.Detect([]byte(head), ""))
		src := interop.Bytes("", head)
		if is := formats.Strange(src, ""); is != "" {
			fmt.Println(is)
		}
	}
	// Output:
	// "pi"
	// "codex"
	// "claude-code"
	// ""
	// its lines are JSON objects with level, msg, and none is an entry of a session
}

// A file of one program is written as a file of another.
func ExampleWrite() {
	file := `{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"s1","cwd":"/home/me","model_provider":"openai"}}
{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}
`
	src := interop.Bytes("rollout.jsonl", file)
	format, err := formats.Told(src)
	if err != nil {
		fmt.Println(err)
		return
	}
	stable, err := formats.Stable(format, src, 0)
	fmt.Printf("a file of %s, of which %d of %d bytes are final, %v\n", format, stable, len(file), err)
	unknown, err := formats.Unknown(format, src)
	fmt.Printf("%d types of lines are unknown, %v\n", len(unknown), err)

	r, err := formats.Open(src, format, interop.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	header, err := r.Header()
	if err != nil {
		fmt.Println(err)
		return
	}
	var entries []transcript.Draft
	head := ""
	for d, err := r.Next(); !errors.Is(err, io.EOF); d, err = r.Next() {
		if err != nil {
			fmt.Println(err)
			return
		}
		l, err := transcript.ParseLine(d.Raw)
		if err != nil {
			fmt.Println(err)
			return
		}
		entries, head = append(entries, d), l.ID
	}
	all := transcript.Drafts(entries...)
	losses, err := formats.Write(os.Stdout, interop.ClaudeCode, header, all, head)
	fmt.Println(losses, err)
	// Output:
	// a file of codex, of which 281 of 281 bytes are final, <nil>
	// 0 types of lines are unknown, <nil>
	// {"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/home/me","version":"2.1.0","gitBranch":"","sessionId":"f63d86a7-0437-5945-827e-2a2ff17791e7","type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}]},"uuid":"0e66ed34-3c44-5cd4-b087-166541bd23a6","timestamp":"2026-01-02T03:04:06.000Z"}
	// map[entries of programs (custom):1] <nil>
}

// An imported file continues: its unchanged bytes, then the lines that were added.
func ExampleContinue() {
	file := `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/home/me"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}
`
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(file)), nil }
	entries := func(yield func(transcript.Draft, error) bool) {
		header := true
		for d, err := range formats.Reread(open) { // the header line first
			if !header && !yield(d, err) {
				return
			}
			header = false
		}
		yield(transcript.Draft{Raw: []byte(`{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","content":"Hello."}}`)}, nil)
	}
	losses, err := formats.Continue(os.Stdout, interop.Pi, strings.NewReader(file), interop.Header{ID: "s1"}, 1, entries, "b")
	fmt.Println(losses, err)
	// Output:
	// {"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/home/me"}
	// {"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}
	// {"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","timestamp":1767323100000,"content":[{"type":"text","text":"Hello."}],"api":"unknown","provider":"unknown","model":"unknown","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop"}}
	// map[messages that lack what the format needs, or are in another provider's shape: rewritten:1] <nil>
}

// What is known of a format is a row of one table: which rules build its program's contexts, and where the program
// keeps its files.
func ExampleAll() {
	env := interop.Env{Getenv: func(string) string { return "" }, Home: "/home/me", Temp: "/tmp"}
	for _, f := range formats.All() {
		if f.Program != nil {
			fmt.Println(f.Name, f.Profile, f.Program.Name, f.Program.Folders(env)[0])
		}
	}
	row, err := formats.Of(interop.Codex)
	fmt.Println(row.Program.Command("ID", "FILE"), err)
	// Output:
	// pi pi pi /home/me/.pi/agent/sessions
	// claude-code  Claude Code /home/me/.claude/projects
	// omp omp omp /home/me/.omp/agent/sessions
	// codex  Codex /home/me/.codex/sessions
	// [codex resume ID] <nil>
}
