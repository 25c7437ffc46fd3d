package entry_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// Text that is not valid UTF-8 is refused with its offset, in every kind of draft. It was stored as U+FFFD where it
// was a Go string, and as it is where it was JSON.
func TestTextIsUTF8(t *testing.T) {
	const bad = "caf\xe9"
	raw := json.RawMessage(`{"a":"` + bad + `"}`)
	for _, tt := range []struct {
		what  string
		draft transcript.Draft
	}{
		{"message.content", entry.User(bad)},
		{"block.text", entry.User(bad, entry.Image("image/png", nil))},
		{"block.text", entry.Assistant("fine", entry.Block{Type: "text", Text: bad})},
		{"block.name", entry.Assistant("fine", entry.Call("c", bad, nil))},
		{"arguments.a", entry.Assistant("fine", entry.Call("c", "t", map[string]string{"a": bad}))},
		{"arguments", entry.Assistant("fine", entry.Call("c", "t", raw))},
		{"message.toolName", entry.ToolResult("c", bad, "fine", false)},
		{"message", entry.Message(raw)},
		{"message.x", entry.Message(map[string]any{"x": bad, "fine": "\ufffd"})},
		{"body.customType", entry.Custom(bad, 1)},
		{"body.data.cwd", entry.Move(bad)},
		{"body.content", entry.CustomMessage("k", bad, true)},
		{"body.summary", entry.Compaction(bad, "", 0)},
		{"body.firstKeptEntryId", entry.Compaction("fine", bad, 0)},
		{"body.modelId", entry.Model("p", bad)},
		{"body.thinkingLevel", entry.Thinking(bad)},
		{"body.name", entry.Title(bad)},
		{"line", entry.Line([]byte(`{"type":"x","id":"` + bad + `"}`))},
		{"type", transcript.Draft{Type: bad}},
		{"body", transcript.Draft{Type: "x", Body: raw}},
	} {
		line, err := tt.draft.Line("id", "", time.Unix(0, 0))
		text, refused := errors.AsType[*codec.TextError](err)
		if !refused || text.What != tt.what || line != nil {
			t.Errorf("%s: %s, %v", tt.what, line, err)
		}
	}
	if _, err := (transcript.Draft{Type: "x"}).Line("id", bad, time.Unix(0, 0)); !errors.Is(err, transcript.ErrLine) {
		t.Errorf("parent: %v", err)
	}
}
