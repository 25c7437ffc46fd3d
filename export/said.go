package export

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// said is the content of an entry: parts in order.
type said struct {
	Who   string // user, assistant, tool, summary, note, or the role in the message
	Parts []part
	Model string // model of the answer; "" = unknown
}

// part is one part of an entry's content, in displayable form.
type part struct {
	Kind   kind
	Text   string // text, thinking or error; arguments of a call; text of a result
	Name   string // of a call or a result: the tool; "" = unknown
	Call   string // of a call or a result: ID of the call; "" = unknown
	Failed bool   // of a result: the tool failed
	Source bool   // of text: shown unchanged, not as Markdown
	Image  image
	File   message.Media
}

type kind string

const (
	kindWords    kind = "words"
	kindInserted kind = "inserted" // of a user message: a program wrote it
	kindThoughts kind = "thoughts"
	kindCall     kind = "call"
	kindResult   kind = "result"
	kindImage    kind = "image"
	kindFile     kind = "file"
	kindFailure  kind = "failure" // the model stopped with an error
	kindRaw      kind = "raw"     // a message of unknown form
)

type image struct{ Mime, Data string } // Data is valid base64

// briefMost is the length of the arguments in a call's folded line, in runes.
const briefMost = 90

// Brief returns the text on one line, shortened.
func (p part) Brief() string {
	line := []rune(strings.Join(strings.Fields(p.Text), " "))
	if len(line) > briefMost {
		return string(line[:briefMost-1]) + "…"
	}
	return string(line)
}

// reader converts entries. It remembers the tools of recent calls, for the names in results.
type reader struct{ tools map[string]string } // by id of the call

// toolsMost bounds the calls that are remembered. Results follow soon after their calls.
const toolsMost = 4096

func (r *reader) remember(id, tool string) {
	if r.tools == nil || len(r.tools) >= toolsMost {
		r.tools = map[string]string{}
	}
	r.tools[id] = tool
}

// of converts an entry. Fields of wrong types count as absent.
func (r *reader) of(e transcript.Entry) said {
	entryMessage, ok := e.Message()
	if !ok {
		return aside(e)
	}
	m := message.Decode(entryMessage.Raw)
	s := said{Who: first(m.Role, "message")}
	if m.Speaker == message.Assistant {
		s.Model = message.Name(m.Raw)
	}
	for i := range m.Blocks {
		r.block(&s, &m, &m.Blocks[i])
	}
	s.Who = authorOf(&s, &m)
	if stopped := m.Stopped(); stopped != nil {
		s.add(part{Kind: kindFailure, Text: plain(rawjson.Text(stopped))})
	}
	if len(s.Parts) == 0 {
		s.add(part{Kind: kindRaw, Text: plain(string(m.Raw))})
	}
	for i := range s.Parts {
		s.Parts[i].Source = s.Who == "user" || m.Speaker == message.Program
	}
	return s
}

// who returns the author of a message.
func authorOf(s *said, m *message.Message) string {
	switch {
	case m.Role == "bashExecution", m.Role == "pythonExecution":
		return "user"
	case m.Speaker == message.Program && m.Role == "user":
		return "note"
	case m.Speaker == message.Tool:
		return "tool"
	case m.Role == "" && m.Speaker == message.Assistant && s.has(kindCall):
		return "assistant" // one of OpenAI's items
	case s.has(kindResult) && !s.has(kindWords) && !s.has(kindCall) && m.Role != "assistant":
		return "tool"
	}
	return s.Who
}

func (s *said) add(p part) { s.Parts = append(s.Parts, p) }

// lone returns the result of a message that has just one and no other part of a tool or a person, or nil.
func (s *said) lone() (out *part) {
	for i, p := range s.Parts {
		switch p.Kind {
		case kindResult:
			if out != nil {
				return nil
			}
			out = &s.Parts[i]
		case kindImage, kindFile:
		default:
			return nil
		}
	}
	if s.Who != "tool" {
		return nil
	}
	return out
}

func (s *said) has(k kind) bool {
	return slices.ContainsFunc(s.Parts, func(p part) bool { return p.Kind == k })
}

// block adds a block of a message.
func (r *reader) block(s *said, m *message.Message, b *message.Block) {
	switch b.Kind {
	case message.Text:
		for _, p := range m.Pieces(b.Text) {
			kind := kindWords
			if p.Inserted {
				kind = kindInserted
			}
			if p.Text != "" {
				s.add(part{Kind: kind, Text: plain(p.Text)})
			}
		}
	case message.Thinking:
		if t := b.Thought(); t.Text != "" {
			s.add(part{Kind: kindThoughts, Text: plain(t.Text)})
		}
	case message.Call, message.Unread:
		name, key := b.Called(), rawjson.Text(b.Key())
		if name == "" && (b.Kind == message.Unread || key == "") {
			return
		}
		if b.Kind == message.Call {
			r.remember(key, name)
		}
		s.add(part{Kind: kindCall, Name: name, Call: key, Text: plain(indented(b.ArgumentText()))})
	case message.Result:
		key, text := rawjson.Text(b.Key()), output(b)
		name := r.tools[key]
		if m.Speaker == message.Tool {
			name = first(rawjson.Text(b.Name), name)
		} else {
			text = indented(text)
		}
		s.add(part{Kind: kindResult, Name: name, Call: key, Text: plain(text), Failed: b.Failed})
		for c := b.Content(); c.Next(); {
			s.file(&c.Block)
		}
	case message.Command:
		tool := strings.TrimSuffix(s.Who, "Execution")
		s.add(part{Kind: kindCall, Name: tool, Text: plain(rawjson.Text(b.Text))})
		s.add(part{Kind: kindResult, Name: tool, Text: plain(rawjson.Text(b.Body)), Failed: b.Failed})
	case message.Attached:
		s.file(b)
	}
}

// output returns the output of a tool: its texts, the results of a search, or other content as JSON.
func output(b *message.Block) string {
	var lines []string
	for c := b.Content(); c.Next(); {
		in := &c.Block
		text := func(name string) string { return rawjson.Text(rawjson.Field(in.Raw, name)) }
		switch {
		case len(in.Text) > 2:
			lines = append(lines, rawjson.Text(in.Text))
		case in.Kind == message.Unread && text("url") != "" && text("title") != "":
			lines = append(lines, text("title")+"\n"+text("url"))
		}
	}
	return strings.Join(lines, "\n")
}

// file adds an image, or a document or image that a page cannot show.
func (s *said) file(b *message.Block) {
	if b.Kind != message.Attached {
		return
	}
	m := b.Media()
	if pictures[m.Mime] && validBase64(m.Data) {
		s.add(part{Kind: kindImage, Image: image{m.Mime, m.Data}})
		return
	}
	s.add(part{Kind: kindFile, File: m})
}

// pictures are the image types that a page shows; others could contain active content.
var pictures = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

func validBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil && s != ""
}

// indented indents a JSON object; other text stays unchanged.
func indented(text string) string {
	var b bytes.Buffer
	if !strings.HasPrefix(text, "{") || json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}

// aside converts an entry that is not a message.
func aside(e transcript.Entry) said {
	var f struct {
		Content  json.RawMessage `json:"content"`
		Summary  string          `json:"summary"`
		Name     string          `json:"name"`
		Kind     string          `json:"customType"`
		Model    string          `json:"modelId"`
		Provider string          `json:"provider"`
	}
	if err := e.Decode(&f); err != nil {
		f.Content = nil // the fields before the invalid one are set
	}
	s := said{Who: e.Type}
	text := strings.TrimSpace(strings.Join([]string{f.Kind, f.Name, f.Provider, f.Model}, " "))
	switch e.Type {
	case "compaction":
		s.Who, text = "summary", f.Summary
	case "branch_summary":
		s.Who, text = "summary of another branch", f.Summary
	case "custom_message":
		s.Who, text = "note", message.ContentText(f.Content)
		if message.UserSent(e.Raw) != nil {
			s.Who = "user"
		}
	}
	if text != "" {
		s.add(part{Kind: kindWords, Text: plain(text)})
	}
	if e.Type == "custom_message" {
		for c := message.Content(f.Content); c.Next(); {
			s.file(&c.Block)
		}
	}
	return s
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
