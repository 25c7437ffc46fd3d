package checkpoint

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
	"github.com/coppice-go/coppice/checkpoint/internal/patch"
	"github.com/coppice-go/coppice/transcript"
)

// Document is what a commit stores in addition to its entries. State and Manager are any JSON; nil = none.
type Document struct {
	State, Manager json.RawMessage
	Context        []transcript.Item // the explicit context; nil = derived from the path
	Branch         string
	Settings       transcript.Settings
	Docs           map[string]json.RawMessage // small documents by name; never empty, nil = none
}

// lostState replaces a state that could not be restored.
const lostState = `{"coppice.lost":"state"}`

// StateLost reports whether a repair rebuilt the commit without its state: State then only records the loss.
func (d Document) StateLost() bool { return string(d.State) == lostState }

// WithoutState returns the document of a commit whose own document is lost, derived from the previous one: the state is
// unknown.
func (d Document) WithoutState() Document {
	d.State = json.RawMessage(lostState)
	return d
}

// Encode returns d as one line of JSON without white space:
//
//	{"state":..,"manager":..,"context":[{"entry":".."},{"message":{..}}],"branch":"..","settings":{..},
//	"docs":{"name":..}}
//
// Fields that are nil, zero or empty are absent. Docs are in ascending order of their names, at most MaxDocs of at most
// MaxDoc bytes each and MaxDocsTotal together. State, Manager, Docs and messages keep their bytes, except for white
// space, so equal documents produce equal bytes. Errors: a *codec.LimitError (MaxState, MaxStateDepth, MaxDocDepth,
// MaxItemDepth, those of Docs), or one that wraps codec.ErrFormat for invalid JSON.
func (d Document) Encode() ([]byte, error) {
	size := 96 + len(d.State) + len(d.Manager) + len(d.Branch)
	for _, it := range d.Context {
		size += 32 + len(it.Entry) + len(it.Message)
	}
	dst := append(make([]byte, 0, size), '{')
	var err error
	if len(d.State) > 0 {
		if dst, err = canon.AppendJSON(append(dst, `"state":`...), d.State, "state", MaxStateDepth); err != nil {
			return nil, err
		}
	}
	if len(d.Manager) > 0 {
		dst = append(canon.Comma(dst), `"manager":`...)
		if dst, err = canon.AppendJSON(dst, d.Manager, "manager", MaxStateDepth); err != nil {
			return nil, err
		}
	}
	if d.Context != nil {
		if dst, err = appendItems(append(canon.Comma(dst), `"context":[`...), d.Context); err != nil {
			return nil, err
		}
	}
	if d.Branch != "" {
		dst = canon.AppendString(append(canon.Comma(dst), `"branch":`...), d.Branch)
	}
	if s := d.Settings; s != (transcript.Settings{}) {
		dst = append(canon.Comma(dst), `"settings":{`...)
		for _, f := range settingsFields(&s) {
			if *f.Value != "" {
				dst = canon.AppendString(append(canon.Comma(dst), f.Name...), *f.Value)
			}
		}
		dst = append(dst, '}')
	}
	if len(d.Docs) > 0 {
		if dst, err = appendDocs(dst, d.Docs); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// partialName is a field that earlier releases wrote last: partial output. It is ignored.
const partialName = `"partial":`

func settingsFields(s *transcript.Settings) [3]canon.Field {
	return [...]canon.Field{
		{Name: `"model":`, Value: &s.Model},
		{Name: `"thinkingLevel":`, Value: &s.ThinkingLevel},
		{Name: `"mode":`, Value: &s.Mode},
	}
}

func appendItems(dst []byte, items []transcript.Item) ([]byte, error) {
	for i, it := range items {
		dst = append(canon.Comma(dst), '{')
		if it.Entry != "" {
			dst = canon.AppendString(append(dst, `"entry":`...), it.Entry)
		}
		if len(it.Message) > 0 {
			var err error
			dst = append(canon.Comma(dst), `"message":`...)
			if dst, err = canon.AppendJSON(dst, it.Message, "message", MaxItemDepth); err != nil {
				return nil, fmt.Errorf("context item %d: %w", i, err)
			}
		}
		if dst[len(dst)-1] == '{' {
			return nil, canon.Malformed("context item %d: neither entry nor message", i)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']'), nil
}

// CheckState refuses a state, or a manager's state, that is too deep for Encode. raw is valid JSON.
func CheckState(what string, raw []byte) error { return canon.Nested(raw, what, MaxStateDepth) }

// CheckItem refuses a message of an explicit context that is too deep for Encode. raw is valid JSON.
func CheckItem(raw []byte) error { return canon.Nested(raw, "message", MaxItemDepth) }

// DiffState returns the RFC 6902 patch from the state of d to that of another document, for people and programs that
// read history. If only one side has a state the patch adds or removes the whole; equal states produce [].
func (d Document) DiffState(to Document) (json.RawMessage, error) {
	return patch.Diff(d.State, to.State)
}

// DecodeDocument decodes the output of Encode, and nothing else: Encode of the result returns the same bytes. There are
// two exceptions, written by earlier releases: JSON that is too deep for Encode, up to MaxDepth, and the field partial,
// which is ignored. The raw parts of the result alias p.
func DecodeDocument(p []byte) (Document, error) {
	var d Document
	var partial json.RawMessage
	c := canon.Read(p, 0)
	c.Want("{")
	first := true
	next := func(name string) bool {
		at := c.At
		if !first && !c.Has(",") || !c.Has(name) {
			c.At = at
			return false
		}
		first = false
		return true
	}
	if next(`"state":`) {
		d.State = c.Value(MaxDepth)
	}
	if next(`"manager":`) {
		d.Manager = c.Value(MaxDepth)
	}
	if next(`"context":[`) {
		d.Context = readItems(c)
	}
	if next(`"branch":`) {
		d.Branch = c.Name()
	}
	if next(`"settings":{`) {
		d.Settings = readSettings(c)
	}
	if next(`"docs":{`) {
		d.Docs = readDocs(c)
	}
	if next(partialName) {
		partial = c.Value(MaxDepth)
	}
	c.Want("}")
	if err := canon.AtMost("state", len(d.State), MaxState); err != nil {
		return Document{}, err
	}
	if err := canon.AtMost("manager", len(d.Manager), MaxState); err != nil {
		return Document{}, err
	}
	if err := canon.AtMost("partial", len(partial), MaxPartial); err != nil {
		return Document{}, err
	}
	if !c.Done() {
		return Document{}, canon.Malformed("document: unexpected bytes at %d of %d", c.At, len(p))
	}
	return d, nil
}

func readItems(c *canon.Cursor) []transcript.Item {
	items := []transcript.Item{}
	for !c.Has("]") && c.OK {
		if len(items) > 0 {
			c.Want(",")
		}
		var it transcript.Item
		c.Want("{")
		if c.Has(`"entry":`) {
			it.Entry = c.Name()
			if c.Has(`,"message":`) {
				it.Message = c.Value(MaxDepth)
			}
		} else {
			c.Want(`"message":`)
			it.Message = c.Value(MaxDepth)
		}
		if len(it.Message) > MaxState {
			c.Fail()
		}
		c.Want("}")
		items = append(items, it)
	}
	return items
}

func readSettings(c *canon.Cursor) (s transcript.Settings) {
	first := true
	for _, f := range settingsFields(&s) {
		at := c.At
		if !first && !c.Has(",") || !c.Has(f.Name) {
			c.At = at
			continue
		}
		first = false
		*f.Value = c.Name()
	}
	if first {
		c.Fail()
	}
	c.Want("}")
	return s
}
