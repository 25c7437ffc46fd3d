package demostore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
)

// The words of a step of a plan.
const (
	stepDoing  = "doing"
	stepDone   = "done"
	stepFailed = "failed"
)

// maxStep bounds the text of a step and of a goal, in bytes.
const maxStep = 72

// state is what an agent of the demo commits with each turn. All of it is derived from the messages before.
type state struct {
	Goal   string          `json:"goal"`
	Plan   []step          `json:"plan"`
	Todo   []string        `json:"todo"` // calls of tools without a result
	Files  map[string]file `json:"files"`
	Tests  *tests          `json:"tests,omitempty"` // of the last run
	Tokens tokens          `json:"tokens"`
	Cost   float64         `json:"cost"` // in dollars
}

// step is one request of the user, and how far it is.
type step struct {
	Step   string `json:"step"`
	Status string `json:"status"`
}

// file is what the agent knows of a file: Hash is the start of the SHA-256 of its text, in hex.
type file struct {
	Lines int    `json:"lines"`
	Hash  string `json:"hash"`
}

// tests counts packages.
type tests struct {
	OK     int `json:"ok"`
	Failed int `json:"failed"`
}

type tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
}

// message is what is read of a message in pi's form.
type message struct {
	Role, StopReason, ToolCallID string
	Content                      json.RawMessage
	IsError                      bool
	Usage                        struct {
		tokens
		Cost struct{ Total float64 }
	}
}

// block is a block of a message's content.
type block struct {
	Type, Text, ID, Name string
	Arguments            json.RawMessage
}

// arguments are those of the tools that read and write files, and run commands.
type arguments struct {
	Path, Content, OldText, NewText, Command, Pattern, Task string
	Offset                                                  int
}

// progress is the state after some messages, and what is needed to derive the next one.
type progress struct {
	state
	texts map[string]string // of files, as far as the messages show them
	calls []block           // without a result, in order
}

func newProgress() progress {
	return progress{state: state{Files: map[string]file{}}, texts: map[string]string{}}
}

// clone returns a copy that goes its own way.
func (p progress) clone() progress {
	p.Plan, p.Todo, p.calls = slices.Clone(p.Plan), slices.Clone(p.Todo), slices.Clone(p.calls)
	p.Files, p.texts = maps.Clone(p.Files), maps.Clone(p.texts)
	return p
}

// json returns the state as it is committed.
func (p progress) json() (json.RawMessage, error) {
	p.Plan, p.Todo = append([]step{}, p.Plan...), append([]string{}, p.Todo...) // [] and not null
	return json.Marshal(p.state)
}

// note moves the state on by one message.
func (p *progress) note(raw json.RawMessage) error {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	var blocks []block
	if len(m.Content) > 0 && m.Content[0] == '[' {
		if err := json.Unmarshal(m.Content, &blocks); err != nil {
			return err
		}
	}
	text := textOf(blocks)
	switch m.Role {
	case "user":
		p.end(stepDone)
		if p.Goal == "" {
			p.Goal = clip(text)
		}
		p.Plan = append(p.Plan, step{clip(text), stepDoing})
	case "assistant":
		return p.answered(m, blocks)
	case "toolResult":
		return p.result(m, text)
	}
	return nil
}

// end says how the step that is being done ended.
func (p *progress) end(status string) {
	if n := len(p.Plan); n > 0 && p.Plan[n-1].Status == stepDoing {
		p.Plan[n-1].Status = status
	}
}

// answered notes a message of the model: what it cost, and the calls that it makes.
func (p *progress) answered(m message, blocks []block) error {
	p.Tokens.Input += m.Usage.Input
	p.Tokens.Output += m.Usage.Output
	p.Tokens.CacheRead += m.Usage.CacheRead
	p.Tokens.CacheWrite += m.Usage.CacheWrite
	p.Cost = math.Round((p.Cost+m.Usage.Cost.Total)*1e6) / 1e6
	for _, b := range blocks {
		if b.Type != "toolCall" {
			continue
		}
		var a arguments
		if err := json.Unmarshal(b.Arguments, &a); err != nil {
			return err
		}
		p.calls = append(p.calls, b)
		p.Todo = append(p.Todo, clip(b.Name+" "+first(a.Path, a.Command, a.Pattern, a.Task)))
	}
	switch m.StopReason {
	case "stop":
		p.end(stepDone)
	case "error":
		p.end(stepFailed)
	}
	return nil
}

// result notes the result of a tool.
func (p *progress) result(m message, text string) error {
	i := slices.IndexFunc(p.calls, func(b block) bool { return b.ID == m.ToolCallID })
	if i < 0 {
		return nil
	}
	call := p.calls[i]
	p.calls, p.Todo = slices.Delete(p.calls, i, i+1), slices.Delete(p.Todo, i, i+1)
	var a arguments
	if err := json.Unmarshal(call.Arguments, &a); err != nil || m.IsError {
		return err
	}
	switch call.Name {
	case "read":
		if a.Offset == 0 && text != "" {
			p.holds(a.Path, text)
		}
	case "write":
		p.holds(a.Path, a.Content)
	case "edit":
		was := p.texts[a.Path]
		if is := strings.Replace(was, a.OldText, a.NewText, 1); is != was {
			p.holds(a.Path, is)
			break
		}
		p.holds(a.Path, was+a.NewText) // the messages do not show what was edited: enough to say that it changed
	case "bash":
		p.ran(text)
	}
	return nil
}

// holds notes the text of a file.
func (p *progress) holds(path, text string) {
	sum := sha256.Sum256([]byte(text))
	p.texts[path] = text
	p.Files[path] = file{strings.Count(text, "\n"), hex.EncodeToString(sum[:6])}
}

// ran notes what a run of tests printed, if it was one.
func (p *progress) ran(text string) {
	var t tests
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "ok  \t"):
			t.OK++
		case strings.HasPrefix(line, "FAIL\t"):
			t.Failed++
		}
	}
	if t != (tests{}) {
		p.Tests = &t
	}
}

func textOf(blocks []block) string {
	var text []string
	for _, b := range blocks {
		if b.Type == "text" {
			text = append(text, b.Text)
		}
	}
	return strings.Join(text, "\n")
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// clip returns the first line of a text, cut at a word to at most maxStep bytes.
func clip(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if len(text) <= maxStep {
		return text
	}
	cut := strings.LastIndexByte(text[:maxStep], ' ')
	if cut < 0 {
		cut = maxStep
	}
	return strings.ToValidUTF8(text[:cut], "") + "…"
}
