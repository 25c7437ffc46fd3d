package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// API names the API that a request is for.
type API string

// The APIs.
const (
	Anthropic       API = "anthropic"        // Messages
	OpenAIChat      API = "openai-chat"      // Chat Completions, and the many servers that speak it
	OpenAIResponses API = "openai-responses" // Responses
	Gemini          API = "gemini"           // generateContent
)

// APIs returns all of them.
func APIs() []API { return []API{Anthropic, OpenAIChat, OpenAIResponses, Gemini} }

// ErrAPI is wrapped by the error for an API that does not exist.
var ErrAPI = errors.New("provider: no such API")

// ErrImage is wrapped by the errors of Convert about images that Options.Blob could not read.
var ErrImage = errors.New("provider: image")

// OpenCalls is what is done with calls of tools that have no result: no API takes a request with one.
type OpenCalls int

// What can become of them.
const (
	Answer OpenCalls = iota // a result is made, an error: the tool was interrupted
	Omit                    // the call is left out
)

// Thinking is what is done with thinking that the API does not accept: what another provider or another model
// thought, or what has no signature.
type Thinking int

// What can become of it.
const (
	Drop   Thinking = iota // it is left out
	AsText                 // it becomes text of the model's answer
)

// Interrupted is the text of the results that Answer makes, unless Options has another.
const Interrupted = "The tool was interrupted before it gave a result. Check what it has done before you repeat it."

// DefaultMaxImage bounds one image in bytes, and DefaultMaxImages all that one Convert reads through Options.Blob.
const (
	DefaultMaxImage  = 20 << 20
	DefaultMaxImages = 64 << 20
)

// Options are the choices of Convert. nil is the zero Options.
type Options struct {
	// Model is the id of the model that the request is for, as responses name it. Signed thinking of another model is
	// not sent to it. "" = every model of the provider takes it.
	Model string
	// Provider is who runs the API, as messages name it in their field "provider": thinking that another one signed is
	// not sent. "" = the company whose API it is.
	Provider    string
	OpenCalls   OpenCalls
	Thinking    Thinking
	Interrupted string // the text of results that Answer makes; "" = the constant of this name
	// Blob reads an image that the context only refers to, by the SHA-256 of its bytes in 64 lower-case hex digits.
	// Session.Context has put images back already; what is left are images whose bytes the session does not have, as
	// in an import from omp without its folder of blobs. An error that is fs.ErrNotExist puts words in the place
	// of the image; any other fails the Convert. nil = words in the place of each.
	Blob      func(ctx context.Context, sha256 string) ([]byte, error)
	MaxImage  int // bytes of one image that Blob may return; 0 = DefaultMaxImage. A larger one is named in words
	MaxImages int // bytes of all of them together; 0 = DefaultMaxImages
}

// Request is the conversation in the form of one API.
type Request struct {
	API API
	// System is the value of the request's "system" (Anthropic: a list of text blocks) or "systemInstruction" (Gemini).
	// nil = the context has no instructions, or the API has them among the messages (OpenAI).
	System json.RawMessage
	// Messages are the elements of "messages" (Anthropic, OpenAI Chat), "input" (OpenAI Responses) or "contents"
	// (Gemini). Empty, not nil, if the context holds nothing to send.
	Messages []json.RawMessage
	Lost     []Loss // in order of the messages; at most MaxLosses
	MoreLost int    // losses past that bound
}

// Body returns the members of the request's body that hold the conversation, under the names of the API.
func (r Request) Body() json.RawMessage {
	list := make([][]byte, len(r.Messages))
	for i, m := range r.Messages {
		list[i] = m
	}
	switch r.API {
	case Anthropic:
		return rawjson.Object("system", []byte(r.System), "messages", rawjson.List(list))
	case OpenAIResponses:
		return rawjson.Object("input", rawjson.List(list))
	case Gemini:
		return rawjson.Object("systemInstruction", []byte(r.System), "contents", rawjson.List(list))
	case OpenAIChat:
	}
	return rawjson.Object("messages", rawjson.List(list))
}

// MaxLosses bounds Request.Lost (I15).
const MaxLosses = 1000

// LossKind is a kind of loss.
type LossKind string

// The kinds of losses.
const (
	LostThinking  LossKind = "thinking"      // thinking that the API does not accept: left out, or text now
	LostText      LossKind = "text"          // halves of surrogate pairs, or bytes that are not UTF-8: U+FFFD now
	LostImage     LossKind = "image"         // an image that the API does not take, or whose bytes are not there: words
	LostBlock     LossKind = "block"         // a block that the API has no form for: words, or left out
	LostMessage   LossKind = "message"       // a message without anything that can be sent: left out
	LostFailed    LossKind = "failed-turn"   // an answer of the model that failed or was aborted: left out
	LostRole      LossKind = "role"          // a message of a role that no API has: the user's text now
	LostCall      LossKind = "open-call"     // a call without a result: answered with an error, or left out
	LostResult    LossKind = "orphan-result" // a result without a call, or a second one: the user's text now
	LostOrder     LossKind = "order"         // results or instructions that are sent at another place
	LostName      LossKind = "name"          // a tool's name that the API does not take: changed
	LostArguments LossKind = "arguments"     // arguments that are no JSON object: the member "input" of one
	LostFlag      LossKind = "error-flag"    // a result is an error, for which the API has no field: see its text
	LostMark      LossKind = "cache-mark"    // a cache_control past the four that Anthropic takes
	LostStart     LossKind = "start"         // the context does not begin with the user: a line before it states that
)

// Loss is something of a context that is not in the request, or not as it was.
type Loss struct {
	Message int      `json:"message"`         // the message's index in Context.Messages; -1 = none
	Entry   string   `json:"entry,omitempty"` // the entry that holds it; "" = inline, or made from a summary
	Kind    LossKind `json:"kind"`
	Detail  string   `json:"detail,omitempty"` // one line for people
}

// Convert returns the messages of a context in the form of an API. It fails on an API that does not exist (ErrAPI), on
// an image that Options.Blob cannot read (ErrImage), and when ctx is done; whatever the messages hold, it is converted
// or named in Request.Lost.
func Convert(ctx context.Context, c transcript.Context, to API, o *Options) (Request, error) {
	d := dialectOf(to)
	if d == nil {
		return Request{}, fmt.Errorf("%w: %q: want one of %q", ErrAPI, to, APIs())
	}
	w := converter{api: d, rules: d.rules()}
	if o != nil {
		w.opts = *o
	}
	for i, m := range c.Messages {
		if err := w.read(ctx, i, m); err != nil {
			return Request{}, err
		}
	}
	w.lift()
	w.match()
	w.dropFailed()
	w.closeCalls()
	w.prune()
	w.place()
	w.settleIDs()
	w.begin()
	w.fitImages()
	w.trimMarks()
	r := Request{API: to, Messages: []json.RawMessage{}}
	w.render(&r)
	slices.SortStableFunc(w.lost, func(a, b Loss) int { return a.Message - b.Message })
	r.Lost, r.MoreLost = w.lost, w.more
	return r, nil
}

// dialectOf returns what is peculiar to an API; nil = there is none of that name.
func dialectOf(a API) dialect {
	switch a {
	case Anthropic:
		return anthropic{}
	case OpenAIChat:
		return chat{}
	case OpenAIResponses:
		return responses{}
	case Gemini:
		return gemini{}
	}
	return nil
}

// dialect is what is peculiar to an API.
type dialect interface {
	rules() rules
	// whole returns a message as the API takes it, without what was stored with it; nil = it is in another shape.
	whole(t *turn, message []byte) json.RawMessage
	// own reports a block that the API takes as it is.
	own(c *converter, t *turn, b *block) bool
	// takes reports thinking in another shape that can be written for the API, with its signature.
	takes(c *converter, t *turn, b *block) bool
	// write returns the messages that turns of one speaker become, which follow each other.
	write(c *converter, turns []*turn) []json.RawMessage
	// instructions returns the value of the request's field for them, if they are not among the messages.
	instructions(blocks []*block) json.RawMessage
}

// rules are those that differ only in their numbers.
type rules struct {
	adjacent  bool   // results follow directly after their calls
	userFirst bool   // the first message is the user's
	noSystem  bool   // instructions are not among the messages
	global    bool   // ids of calls are unique in a request; else in an answer
	anyID     bool   // of whatever characters
	maxID     int    // bytes; 0 = the API needs no ids
	maxName   int    // bytes
	wordFirst bool   // names begin with a letter or "_"
	maxMarks  int    // of blocks whose prefix is to be cached; 0 = there are none
	signer    string // is in the field "api" of a message whose thinking is this API's
	vendor    string // begins the field "provider" of such a message
	family    string // is in the names of the models of this API; "" = they have any names
	unsigned  bool   // thinking has no signature, and goes to any host of the API
	stored    string // the field "api" of the messages that ReadReply returns
	images    message.ImageLimits
	secure    bool // addresses of images are https
	noAddress bool // and there are none
	// thinking may be the whole of an answer; it is never after the text of the answer
	onlyThinking, thinkingFirst bool
}

// converter is one call of Convert.
type converter struct {
	api      dialect
	rules    rules
	opts     Options
	turns    []*turn
	system   []*turn // if they are not among the messages
	lost     []Loss
	more     int
	images   int  // bytes read
	size     int  // bytes of the messages without their images
	unpaired bool // an item of OpenAI's that was thought was left out: those after it must not name it
}

// render writes the turns: those that follow each other of one speaker together.
func (c *converter) render(r *Request) {
	for i := 0; i < len(c.turns); {
		from := i
		for i < len(c.turns) && c.turns[i].who == c.turns[from].who {
			i++
		}
		r.Messages = append(r.Messages, c.api.write(c, c.turns[from:i])...)
	}
	var blocks []*block
	for _, t := range c.system {
		blocks = append(blocks, t.blocks...)
	}
	if len(blocks) > 0 {
		r.System = c.api.instructions(blocks)
	}
}

// chunks divides turns that follow each other into those that become one message: the first head of them, then each
// that goes as it is, and the others as they follow each other.
func chunks(turns []*turn, head int) (list [][]*turn) {
	if head > 0 {
		list = append(list, turns[:head])
	}
	for i := head; i < len(turns); {
		from := i
		for i++; i < len(turns) && turns[from].raw == nil && turns[i].raw == nil; i++ {
		}
		list = append(list, turns[from:i])
	}
	return list
}

func (c *converter) lose(t *turn, kind LossKind, detail string) {
	if len(c.lost) == MaxLosses {
		c.more++
		return
	}
	l := Loss{Message: -1, Kind: kind, Detail: detail}
	if t != nil {
		l.Message, l.Entry = t.at, t.entry
	}
	c.lost = append(c.lost, l)
}
