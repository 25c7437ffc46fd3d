package export

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/coppice-go/coppice/transcript"
)

// said is what an entry says, in parts that a page can show.
type said struct {
	Who      string // user, assistant, tool, summary, note, or what the message calls itself
	Text     string
	Thoughts string
	Calls    []call
	Images   []image
	Tool     string // of a result: the tool
	Failed   bool
	Raw      string // of a message in which nothing was understood
}

type call struct{ Name, Args string }

// briefMost is how much of a call's arguments its folded line shows, in runes.
const briefMost = 90

// Brief is the arguments on one line, cut.
func (c call) Brief() string {
	line := []rune(strings.Join(strings.Fields(c.Args), " "))
	if len(line) > briefMost {
		return string(line[:briefMost-1]) + "…"
	}
	return string(line)
}

type image struct{ Mime, Data string } // Data is base64 that was checked

// block is what the providers' ways to write parts of a message have in common.
type block struct {
	Type         string          `json:"type"`
	Name         string          `json:"name"`
	Arguments    json.RawMessage `json:"arguments"` // pi; OpenAI: a string that holds them
	Input        json.RawMessage `json:"input"`     // Anthropic
	Args         json.RawMessage `json:"args"`      // Gemini
	FunctionCall *block          `json:"functionCall"`
	Function     *block          `json:"function"`
	Thinking     string          `json:"thinking"`
	Data         string          `json:"data"` // pi's images
	Mime         string          `json:"mimeType"`
	Source       *struct {
		Data string `json:"data"`
		Mime string `json:"media_type"`
	} `json:"source"` // Anthropic's
}

// message is the outside of a message of any provider.
type message struct {
	Content  json.RawMessage `json:"content"`
	Parts    []block         `json:"parts"`
	Calls    []block         `json:"tool_calls"`
	Tool     string          `json:"toolName"`
	Failed   bool            `json:"isError"`
	Summary  string          `json:"summary"`
	Name     string          `json:"name"`
	Kind     string          `json:"customType"`
	Model    string          `json:"modelId"`
	Provider string          `json:"provider"`
}

// of reads an entry. Fields of other types than they should be count as absent.
func of(e transcript.Entry) said {
	m, ok := e.Message()
	if !ok {
		return aside(e)
	}
	shape := transcript.Inspect(m.Raw)
	outside, parts := takeApart(m.Raw)
	s := said{Who: shape.Role, Text: shape.Text, Tool: outside.Tool, Failed: outside.Failed}
	switch {
	case len(shape.Results) > 0:
		s.Who = "tool"
	case s.Who == "":
		s.Who = "message"
	}
	for _, b := range parts {
		s.add(b)
	}
	if len(s.Calls) == 0 {
		for _, c := range shape.Calls {
			s.Calls = append(s.Calls, call{Name: c.Name})
		}
	}
	if s.Text == "" && s.Thoughts == "" && len(s.Calls)+len(s.Images)+len(shape.Results) == 0 {
		s.Raw = string(m.Raw)
	}
	return s
}

// takeApart takes a message apart.
func takeApart(raw json.RawMessage) (message, []block) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil && m.Content == nil {
		return m, nil // what was read before the odd field is there
	}
	var parts []block
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		parts = nil // plain text
	}
	return m, append(append(parts, m.Parts...), m.Calls...)
}

func (s *said) add(b block) {
	if b.Thinking != "" {
		s.Thoughts = strings.TrimPrefix(s.Thoughts+"\n\n"+b.Thinking, "\n\n")
	}
	if src := b.Source; src != nil && b.Data == "" {
		b.Data, b.Mime = src.Data, src.Mime
	}
	if b.Type == "image" && pictures[b.Mime] && validBase64(b.Data) {
		s.Images = append(s.Images, image{b.Mime, b.Data})
	}
	for _, inner := range []*block{b.FunctionCall, b.Function} {
		if inner != nil {
			b = *inner
		}
	}
	for _, args := range []json.RawMessage{b.Arguments, b.Input, b.Args} {
		if b.Name != "" && len(args) > 0 {
			s.Calls = append(s.Calls, call{b.Name, pretty(args)})
			break
		}
	}
}

// pictures are the kinds of images that a page shows; others could be documents with a life of their own.
var pictures = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

func validBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil && s != ""
}

// pretty indents arguments; a string that holds JSON counts as that.
func pretty(raw json.RawMessage) string {
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		raw = json.RawMessage(inner)
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// aside reads an entry that is no message.
func aside(e transcript.Entry) said {
	var f message
	if err := e.Decode(&f); err != nil {
		f.Content = nil // what was read before the odd field is there
	}
	switch e.Type {
	case "compaction":
		return said{Who: "summary", Text: f.Summary}
	case "branch_summary":
		return said{Who: "summary of another branch", Text: f.Summary}
	case "custom_message":
		s := said{Who: "note"}
		if len(f.Content) > 0 {
			s.Text = transcript.Inspect(append(append(json.RawMessage(`{"role":"custom","content":`), f.Content...), '}')).Text
		}
		return s
	}
	return said{Who: e.Type, Text: strings.TrimSpace(strings.Join([]string{f.Kind, f.Name, f.Provider, f.Model}, " "))}
}
