package entry_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// show prints the line that a draft becomes; a session does this in Append.
func show(d transcript.Draft) {
	line, err := d.Line("id-1", "id-0", time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC))
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Printf("%s\n", line)
}

// A provider's reply is appended as it came: every field, every digit.
func ExampleMessage() {
	reply := json.RawMessage(`{"role":"assistant","content":[{"type":"text","text":"Hello."}],"cost":0.10}`)
	show(entry.Message(reply))
	show(entry.Message("Hello.")) // a mistake: not an object
	// Output:
	// {"type":"message","id":"id-1","parentId":"id-0","timestamp":"2026-01-02T15:04:05.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Hello."}],"cost":0.10}}
	// error: make a message entry: string: not a JSON object
}

func ExampleUser() {
	show(entry.User("What does this do?"))
	// Output:
	// {"type":"message","id":"id-1","parentId":"id-0","timestamp":"2026-01-02T15:04:05.000Z","message":{"role":"user","content":"What does this do?"}}
}

func ExampleToolResult() {
	call := entry.Call("call-1", "read", map[string]string{"path": "main.go"})
	show(entry.Assistant("I look at it.", call))
	show(entry.ToolResult(call.ID, call.Name, "package main", false))
	// Output:
	// {"type":"message","id":"id-1","parentId":"id-0","timestamp":"2026-01-02T15:04:05.000Z","message":{"role":"assistant","content":[{"type":"text","text":"I look at it."},{"type":"toolCall","id":"call-1","name":"read","arguments":{"path":"main.go"}}],"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"toolUse"}}
	// {"type":"message","id":"id-1","parentId":"id-0","timestamp":"2026-01-02T15:04:05.000Z","message":{"role":"toolResult","toolCallId":"call-1","toolName":"read","content":[{"type":"text","text":"package main"}],"isError":false}}
}

// A program's own data stays in the transcript and out of the context.
func ExampleCustom() {
	show(entry.Custom("deploy", map[string]string{"host": "eu-1"}))
	// Output:
	// {"type":"custom","id":"id-1","parentId":"id-0","timestamp":"2026-01-02T15:04:05.000Z","customType":"deploy","data":{"host":"eu-1"}}
}

// A foreign line keeps its bytes, its id and its parent.
func ExampleLine() {
	show(entry.Line([]byte(`{"type":"message", "id":"8a3f01bc", "parentId":null, "message":{"role":"user","content":"hi"}}`)))
	// Output:
	// {"type":"message", "id":"8a3f01bc", "parentId":null, "message":{"role":"user","content":"hi"}}
}

// A message of the program to the model outside of the conversation, with an image.
func ExampleCustomMessage() {
	show(entry.CustomMessage("screen", []entry.Block{entry.Image("image/png", []byte("PNG"))}, false))
	// Output:
	// {"type":"custom_message","id":"id-1","parentId":"id-0","timestamp":"2026-01-02T15:04:05.000Z","customType":"screen","content":[{"type":"image","data":"UE5H","mimeType":"image/png"}],"display":false}
}

// Entries that are no messages: the session's name, its working directory and how the model is run from here on.
func ExampleTitle() {
	show(entry.Title("High water at Brest"))
	show(entry.Move("/srv/tides"))
	show(entry.Model("anthropic", "claude-x"))
	show(entry.Thinking("high"))
	// Output:
	// {"type":"session_info","id":"id-1","parentId":"id-0","timestamp":"2026-01-02T15:04:05.000Z","name":"High water at Brest"}
	// {"type":"custom","id":"id-1","parentId":"id-0","timestamp":"2026-01-02T15:04:05.000Z","customType":"coppice.move","data":{"cwd":"/srv/tides"}}
	// {"type":"model_change","id":"id-1","parentId":"id-0","timestamp":"2026-01-02T15:04:05.000Z","provider":"anthropic","modelId":"claude-x"}
	// {"type":"thinking_level_change","id":"id-1","parentId":"id-0","timestamp":"2026-01-02T15:04:05.000Z","thinkingLevel":"high"}
}
