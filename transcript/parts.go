package transcript

import (
	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// messageParts are the parts of a message that rows, contexts and searches need. Values are bytes of the message.
type messageParts struct {
	Role        string
	Texts       [][]byte // strings
	Calls       []callParts
	Results     [][]byte // strings: ids of calls
	ResultTexts [][]byte // strings inside results, of a message that is not a result as a whole
	Failed      bool     // the answer or a result
	ErrorText   []byte   // a string
	Tool        bool     // the message is a result as a whole
	Broken      bool     // the message is an answer that failed, or was aborted, without a word or a call
	Typed       bool     // of a user's message: a person wrote some of it
	Attached    bool     // it has an image or a document
}

// callParts is one call of a tool.
type callParts struct {
	ID, Name []byte // strings
	Args     []byte // an object, or a string that holds one
}

// Speech returns what a person would read: the texts; of a message of nothing but results, theirs.
func (p *messageParts) Speech() [][]byte {
	if len(p.Texts) == 0 && len(p.Calls) == 0 {
		return p.ResultTexts
	}
	return p.Texts
}

// OnlyResults reports whether the message has nothing but results, as when Anthropic's user hands in results of tools.
func (p *messageParts) OnlyResults() bool {
	return p.Tool || len(p.Results) > 0 && len(p.Texts) == 0 && len(p.Calls) == 0
}

// ToolCalls returns the calls, with their arguments as the message has them.
func (p *messageParts) ToolCalls() (calls []ToolCall) {
	for _, c := range p.Calls {
		calls = append(calls, ToolCall{ID: rawjson.Text(c.ID), Name: rawjson.Text(c.Name), Arguments: c.Args})
	}
	return calls
}

// texts returns what JSON strings hold.
func texts(literals [][]byte) (list []string) {
	for _, lit := range literals {
		list = append(list, rawjson.Text(lit))
	}
	return list
}

// readParts reads a message of any known shape.
func readParts(raw []byte) (p messageParts) {
	var c message.Cursor
	m := message.Scan(raw, &c)
	p.Role, p.Failed, p.ErrorText, p.Tool = m.Role, m.Failed, m.Error, m.Speaker == message.Tool
	for c.Next() {
		b := &c.Block
		p.Typed = p.Typed || m.Typed(b)
		switch b.Kind {
		case message.Text:
			p.Texts = addText(p.Texts, b.Text)
		case message.Command:
			p.Texts = addText(addText(p.Texts, b.Text), b.Body)
		case message.Call:
			if p.Role == "" && m.Speaker == message.Assistant {
				p.Role = "assistant" // one of OpenAI's items
			}
			if key := b.Key(); key != nil {
				p.Calls = append(p.Calls, callParts{ID: key, Name: b.Name, Args: b.Body})
			}
		case message.Result:
			if p.Role == "" && p.Tool {
				p.Role = "tool"
			}
			p.result(b)
		case message.Attached:
			p.Attached = true
		case message.Unread, message.Thinking:
		}
	}
	p.Broken = m.Failed && m.Speaker == message.Assistant && len(p.Texts)+len(p.Calls) == 0
	return p
}

// result adds a result and its texts. Those of a message that is a result as a whole are its own, as are results in it.
func (p *messageParts) result(b *message.Block) {
	texts := &p.ResultTexts
	if p.Tool {
		texts = &p.Texts
	}
	if p.answer(b); len(b.Body) > 0 && b.Body[0] == '{' {
		return // of a function: it is data
	}
	for c := b.Content(); c.Next(); {
		switch {
		case c.Block.Kind == message.Text, c.Block.Kind == message.Unread:
			*texts = addText(*texts, c.Block.Text)
		case c.Block.Kind == message.Result && p.Tool:
			p.answer(&c.Block)
			for in := c.Block.Content(); in.Next(); {
				*texts = addText(*texts, in.Block.Text)
			}
		}
	}
}

// answer adds the id of the call that a result answers.
func (p *messageParts) answer(b *message.Block) {
	id := b.ID
	if id == nil && &b.Inner[0] != &b.Raw[0] {
		id = b.Name // Gemini names the function only
	}
	if len(id) > 2 {
		p.Results = append(p.Results, id)
	}
	p.Failed = p.Failed || b.Failed
}

// addContent adds the texts of bare content, as custom messages have it.
func (p *messageParts) addContent(val []byte) {
	for c := message.Content(val); c.Next(); {
		if c.Block.Kind == message.Text {
			p.Texts = addText(p.Texts, c.Block.Text)
		}
	}
}

func addText(dst [][]byte, val []byte) [][]byte {
	if len(val) > 2 {
		return append(dst, val)
	}
	return dst
}
