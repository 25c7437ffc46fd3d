package export

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/transcript"
)

// said is what an entry says: parts in their order.
type said struct {
	Who   string // user, assistant, tool, summary, note, or what the message calls itself
	Parts []part
	Model string // that answered; "" = it is not said
}

// part is one part of what an entry says, as a page can show it.
type part struct {
	Kind   kind
	Text   string // of words, thoughts, an error, a call its arguments, a result what it says
	Name   string // of a call or a result: the tool; "" = not known
	Call   string // of a call or a result: the id of the call; "" = not said
	Failed bool   // of a result: the tool did
	Source bool   // of words: they are shown as they were written, and are no Markdown
	Image  image
	File   message.File
}

type kind string

const (
	kindWords    kind = "words"
	kindThoughts kind = "thoughts"
	kindCall     kind = "call"
	kindResult   kind = "result"
	kindImage    kind = "image"
	kindFile     kind = "file"
	kindFailure  kind = "failure" // the model broke off
	kindRaw      kind = "raw"     // a message in which nothing was understood
)

type image struct{ Mime, Data string } // Data is base64 that was checked

// briefMost is how much of a call's arguments its folded line shows, in runes.
const briefMost = 90

// Brief is the text on one line, cut.
func (p part) Brief() string {
	line := []rune(strings.Join(strings.Fields(p.Text), " "))
	if len(line) > briefMost {
		return string(line[:briefMost-1]) + "…"
	}
	return string(line)
}

// reader reads entries; it knows the tools that were called a while ago, so that results can name theirs.
type reader struct{ tools map[string]string } // by id of the call

// toolsMost bounds the calls that are remembered. Results come soon after their calls.
const toolsMost = 4096

func (r *reader) remember(id, tool string) {
	if r.tools == nil || len(r.tools) >= toolsMost {
		r.tools = map[string]string{}
	}
	r.tools[id] = tool
}

// of reads an entry. Fields of other types than they should be count as absent.
func (r *reader) of(e transcript.Entry) said {
	m, ok := e.Message()
	if !ok {
		return aside(e)
	}
	shape, apart := transcript.Inspect(m.Raw), message.Parse(m.Raw)
	s := said{Who: shape.Role}
	if message.ByModel(shape.Role, m.Raw) {
		s.Model = message.Name(m.Raw)
	}
	if s.Who == "" {
		s.Who = "message"
	}
	for _, c := range shape.Calls {
		r.remember(c.ID, c.Name)
	}
	switch {
	case s.Who == "bashExecution" || s.Who == "pythonExecution":
		s.command(m.Raw)
	case len(shape.Results) > 0 && !answers(apart):
		s.Who = "tool"
		s.add(part{
			Kind: kindResult, Name: first(apart.Tool, r.tools[shape.Results[0]]), Call: shape.Results[0],
			Text: plain(shape.Text), Failed: apart.Failed,
		})
		s.files(apart.Blocks)
	default:
		r.blocks(&s, apart)
		s.settle(shape)
	}
	if apart.Stopped != "" {
		s.add(part{Kind: kindFailure, Text: plain(apart.Stopped)})
	}
	if len(s.Parts) == 0 {
		s.add(part{Kind: kindRaw, Text: plain(string(m.Raw))})
	}
	for i := range s.Parts {
		s.Parts[i].Source = s.Who == "user"
	}
	return s
}

func (s *said) add(p part) { s.Parts = append(s.Parts, p) }

// lone is the result of a message that holds just one, and nothing else of a tool's or a person's; nil: it does not.
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
	for _, p := range s.Parts {
		if p.Kind == k {
			return true
		}
	}
	return false
}

// answers reports that a message has results among its parts, and is not one as a whole.
func answers(m message.Parts) bool {
	for _, b := range m.Blocks {
		if _, ok := b.Result(); ok {
			return true
		}
	}
	return false
}

// blocks takes over the parts of a message.
func (r *reader) blocks(s *said, m message.Parts) {
	for _, b := range m.Blocks {
		if b.Thinking != "" {
			s.add(part{Kind: kindThoughts, Text: plain(b.Thinking)})
		}
		if text, ok := b.Speech(); ok {
			s.add(part{Kind: kindWords, Text: plain(text)})
		}
		if name, args, ok := b.Call(); ok {
			s.add(part{Kind: kindCall, Name: name, Call: b.Key(), Text: plain(pretty(args))})
		}
		if res, ok := b.Result(); ok {
			s.add(part{
				Kind: kindResult, Name: r.tools[res.Call], Call: res.Call, Text: plain(indented(res.Text)),
				Failed: res.Failed,
			})
			s.files(res.Blocks)
		}
		s.files([]message.Block{b})
	}
}

// settle holds the parts against what the message says as a whole, which knows more shapes, and names who speaks.
func (s *said) settle(shape transcript.Shape) {
	var text strings.Builder
	for _, p := range s.Parts {
		if p.Kind == kindWords {
			text.WriteString(p.Text)
		}
	}
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
	spoken := text.Len() > 0 || !s.has(kindResult)
	if whole := plain(shape.Text); spoken && squeeze(whole) != squeeze(text.String()) {
		kept := []part{{Kind: kindWords, Text: whole}}
		for _, p := range s.Parts {
			if p.Kind != kindWords {
				kept = append(kept, p)
			}
		}
		if s.Parts = kept; whole == "" {
			s.Parts = kept[1:]
		}
	}
	if !s.has(kindCall) {
		for _, c := range shape.Calls {
			s.add(part{Kind: kindCall, Name: c.Name, Call: c.ID})
		}
	}
	if s.has(kindResult) && !s.has(kindWords) && !s.has(kindCall) && s.Who != "assistant" {
		s.Who = "tool"
	}
}

// files takes over images, and lists the documents and images that a page does not show.
func (s *said) files(blocks []message.Block) {
	for _, b := range blocks {
		if mime, data, ok := b.Image(); ok && pictures[mime] && validBase64(data) {
			s.add(part{Kind: kindImage, Image: image{mime, data}})
		} else if f, ok := b.File(); ok {
			s.add(part{Kind: kindFile, File: f})
		}
	}
}

// command takes over a command that the user ran.
func (s *said) command(raw json.RawMessage) {
	var f struct {
		Command, Code, Output string
		ExitCode              int
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		f.ExitCode = 0 // what was read before the odd field is there
	}
	tool := strings.TrimSuffix(s.Who, "Execution")
	s.add(part{Kind: kindCall, Name: tool, Text: plain(f.Command + f.Code)})
	s.add(part{Kind: kindResult, Name: tool, Text: plain(f.Output), Failed: f.ExitCode != 0})
	s.Who = "user"
}

// pictures are the kinds of images that a page shows; others could be documents with a life of their own.
var pictures = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

func validBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil && s != ""
}

// pretty indents arguments; a string that holds JSON counts as that.
func pretty(raw json.RawMessage) string { return indented(string(message.Arguments(raw))) }

// indented indents an object of JSON; other text stays as it is.
func indented(text string) string {
	var b bytes.Buffer
	if !strings.HasPrefix(text, "{") || json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}

// aside reads an entry that is no message.
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
		f.Content = nil // what was read before the odd field is there
	}
	s := said{Who: e.Type}
	var attached []message.Block
	text := strings.TrimSpace(strings.Join([]string{f.Kind, f.Name, f.Provider, f.Model}, " "))
	switch e.Type {
	case "compaction":
		s.Who, text = "summary", f.Summary
	case "branch_summary":
		s.Who, text = "summary of another branch", f.Summary
	case "custom_message":
		wrapped := message.Wrap("custom", f.Content)
		s.Who, text = "note", transcript.Inspect(wrapped).Text
		attached = message.Parse(wrapped).Blocks
	}
	if text != "" {
		s.add(part{Kind: kindWords, Text: plain(text)})
	}
	s.files(attached)
	return s
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
