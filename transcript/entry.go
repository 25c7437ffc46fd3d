package transcript

import (
	"encoding/json"

	"github.com/coppice-go/coppice/internal/entries"
	"github.com/coppice-go/coppice/transcript/tree"
)

// The errors of this package.
var (
	// ErrLine is wrapped by every error about a line that cannot be an entry: no JSON object, nested too
	// deeply, or without what an entry needs.
	ErrLine = entries.ErrLine
	// ErrNotFound is what looking an id up in a tree can say; it is also fs.ErrNotExist.
	ErrNotFound = tree.ErrNotFound
	// ErrAmbiguous is the other: more than one entry has an id that starts so.
	ErrAmbiguous = tree.ErrAmbiguous
)

type (
	// Line is the head of one JSONL line: what the tree is made of. Everything else of the line stays in Raw.
	Line = entries.Line
	// Entry is one line of the transcript: a node of the tree, or an annotation. It never changes.
	Entry = entries.Entry
	// Message is one message as its provider gave it: a JSON object, byte for byte.
	Message = entries.Message
	// Shape is what could be found in a message, whatever provider it comes from.
	Shape = entries.Shape
	// ToolCall is one call of a tool: the entry that holds it, the call's id and the tool's name.
	ToolCall = entries.ToolCall
	// Settings are what a path says about how the model is run: the last word of the settings entries on it.
	Settings = entries.Settings
)

// ParseLine reads the head of a line. The line must be one JSON object, nested to at most 512 levels;
// where a name occurs twice the last one counts. Names are case sensitive. It reads every byte once,
// allocates the ids only, and agrees with encoding/json about what is JSON. Errors wrap ErrLine.
func ParseLine(raw []byte) (Line, error) { return entries.ParseLine(raw) }

// Inspect finds role, text, calls and results of a message in the shapes of pi, Anthropic, OpenAI (chat
// completions and responses), Gemini and Bedrock. Of any other message it finds the role, or nothing: it
// stays opaque and still works. It never fails; what is no JSON has an empty shape.
func Inspect(message json.RawMessage) Shape { return entries.Inspect(message) }
