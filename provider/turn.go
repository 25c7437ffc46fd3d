package provider

import (
	"encoding/json"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
)

// speaker is the author of a turn.
type speaker int

const (
	user speaker = iota // results of tools too
	model
	system
)

// turn is a message of the context, taken apart.
type turn struct {
	at     int // its index in the context; -1 = it was made here
	entry  string
	who    speaker
	raw    json.RawMessage // the message as the API takes it; nil = it is rewritten from the blocks
	whole  bool            // the message came in the API's shape
	blocks []*block
	// of an answer of the model, where the message names it
	api, vendor, model string
	failed             bool // it broke off
}

// touch marks a turn to be rewritten: it is not what it was.
func (t *turn) touch() { t.raw = nil }

// answers reports that the turn holds nothing but results.
func (t *turn) answers() bool {
	for _, b := range t.blocks {
		if b.kind != result {
			return false
		}
	}
	return len(t.blocks) > 0
}

// kind is what a block is.
type kind int

const (
	text kind = iota
	thinking
	call
	result
	image
	other // of one API alone: it goes there as it is, elsewhere in words
)

// block is a part of a message.
type block struct {
	kind    kind
	raw     []byte // as the message has it; nil = it was made here
	typ     string // its type, as stored
	asIs    bool   // the API takes raw
	text    string // of text, thinking, and the words for an image or another block
	mark    []byte // what the provider wants back with a text or a call, a JSON string; nil = nothing
	thought message.Thought
	field   string // of thinking outside of the content: the field of the message that holds it
	call    *toolCall
	result  *toolResult
	image   *picture
}

// blank reports an empty block.
func (b *block) blank() bool {
	return b.kind == text && strings.TrimSpace(b.text) == "" && b.mark == nil
}

// toolCall is a call of a tool.
type toolCall struct {
	turn   *turn
	block  *block
	id     string // as the message has it; "" = it has none
	item   string // the id of OpenAI's item; the call has its own
	name   string
	args   []byte // JSON
	answer *block // the result; nil = none yet
	sentID string
}

// key is what a result names the call by.
func (c *toolCall) key() string {
	if c.id == "" {
		return c.name
	}
	return c.id
}

// toolResult is the result of a call.
type toolResult struct {
	turn    *turn
	id      string // the id of the call; "" = it names the tool only
	name    string // of the tool; "" = not known
	content []*block
	failed  bool
	call    *toolCall // nil = none before it
}

// picture is an image: its bytes in base64 or where they are.
type picture struct {
	mime, data, url string
	size            message.ImageSize // of bytes
}

// textBlock returns a block of text.
func textBlock(s string) *block { return &block{kind: text, text: s} }
