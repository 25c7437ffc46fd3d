package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// settleIDs chooses the id under which each call is sent: its own if the API takes it, else one made of it. The same
// context has the same ids every time, so that what a provider has cached counts.
func (c *converter) settleIDs() {
	used := map[string]int{} // by id, the number of those that were made of it
	for i, t := range c.turns {
		if t.who != model {
			continue
		}
		if !c.rules.global && (i == 0 || c.turns[i-1].who != model) {
			used = map[string]int{} // a map that was large once takes as long to clear
		}
		for _, b := range t.blocks {
			if b.kind == call {
				c.settleID(t, b, used)
			}
		}
	}
}

func (c *converter) settleID(t *turn, b *block, used map[string]int) {
	k := b.call
	if c.rules.maxID == 0 {
		c.settleName(k)
		return
	}
	id := c.acceptable(k.id, b.asIs)
	k.sentID = id
	for used[k.sentID] > 0 { // ends: the numbers of an id are taken in their order, and each call takes one
		used[id]++
		tail := "_" + strconv.Itoa(used[id])
		k.sentID = id[:min(len(id), c.rules.maxID-len(tail))] + tail
	}
	used[k.sentID]++
	a, same := k.answer, k.sentID == k.id
	switch {
	case !same, isHosted(b) && (!a.asIs || a.typ != b.typ+"_output"): // a text is no result of OpenAI's own tools
		b.asIs = false
	}
	if !same || strings.HasSuffix(a.typ, "_output") && a.typ != outputOf(b) {
		a.asIs = false
	}
	if !b.asIs {
		t.touch()
	}
	if !a.asIs {
		a.result.turn.touch()
	}
}

// isHosted reports a call of a tool of OpenAI's own, which the caller runs.
func isHosted(b *block) bool {
	return strings.HasSuffix(b.typ, "_call") && b.typ != "function_call" && b.typ != "custom_tool_call" &&
		b.typ != "tool_call"
}

// outputOf returns the type of the item that answers a call of OpenAI's.
func outputOf(b *block) string {
	if b.asIs {
		return b.typ + "_output"
	}
	return "function_call_output"
}

// settleName sees to it that a result names its call where the API goes by the names of tools. An id is sent if the
// call came with one.
func (c *converter) settleName(k *toolCall) {
	if inner := message.Object(k.block.raw, "functionCall"); k.block.asIs && inner != nil {
		k.sentID = rawjson.Text(first(inner, "id"))
	}
	a := k.answer
	inner := message.Object(a.raw, "functionResponse")
	if a.asIs && (a.result.name != c.nameOf(k) || rawjson.Text(first(inner, "id")) != k.sentID) {
		a.asIs = false
		a.result.turn.touch()
	}
}

// acceptable returns an id that the API takes: of one in characters that it does not take these are replaced, of one
// that is too long the end is a digest. Of pi's pairs, a call's and an item's, it is the call's.
func (c *converter) acceptable(id string, own bool) string {
	if !own {
		id, _, _ = strings.Cut(id, "|")
	}
	fit := id
	if !own || !c.rules.anyID {
		fit = replaced(id)
	}
	if fit == "" {
		fit = "call"
	}
	if len(fit) > c.rules.maxID {
		const digits = 16
		sum := sha256.Sum256([]byte(id))
		fit = fit[:c.rules.maxID-digits-1] + "_" + hex.EncodeToString(sum[:])[:digits]
	}
	return fit
}

// replaced returns text in which every byte that is no letter, digit, "_" or "-" is "_".
func replaced(s string) string {
	out := []byte(s)
	for i, b := range out {
		if !plain(b) {
			out[i] = '_'
		}
	}
	return string(out)
}

func plain(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-'
}

// fits reports text of at most so many plain bytes, and at least one.
func fits(s string, most int) bool { return s != "" && len(s) <= most && s == replaced(s) }

// toolName returns the name under which a call is sent.
func (c *converter) toolName(k *toolCall) string {
	name := c.nameOf(k)
	if name != k.name {
		c.lose(k.turn, LostName, fmt.Sprintf("tool %q: sent as %q", k.name, name))
	}
	return name
}

// nameOf returns a name of a tool that the API takes: its own, or one made of it.
func (c *converter) nameOf(k *toolCall) string {
	name := replaced(k.name)
	switch {
	case name == "":
		return "unknown"
	case c.rules.wordFirst && (name[0] == '-' || name[0] >= '0' && name[0] <= '9'):
		name = "_" + name
	}
	return name[:min(len(name), c.rules.maxName)]
}

// arguments returns the arguments of a call, an object.
func (c *converter) arguments(k *toolCall) []byte {
	switch {
	case len(k.args) == 0 || string(k.args) == "null":
		return []byte("{}")
	case k.args[0] == '{':
		return k.args
	}
	c.lose(k.turn, LostArguments, fmt.Sprintf("call %q of %q: sent as the member \"input\"", k.id, k.name))
	return rawjson.Object("input", k.args)
}
