package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/transcript"
)

// DiffEntries writes each entry as one line after a sign, "-" or "+".
func DiffEntries(s *Screen, sign string, entries []transcript.Entry, short func(string) string, width int) error {
	style := Red
	if sign == "+" {
		style = Green
	}
	for _, e := range entries {
		role, preview := "", ""
		if l, err := transcript.ParseLine(e.Raw); err == nil {
			row := transcript.RowOf(l, -1)
			role, preview = row.Role, row.Preview
		}
		l := newLine(s)
		l.add(style, "  "+sign+" ")
		l.add(Dim, fmt.Sprintf("%-*s ", width, Line(short(e.ID))))
		l.add(Plain, fmt.Sprintf("%-9s %s", Speaker(e.Type, role), Line(preview)))
		if _, err := fmt.Fprintln(s, l.String()); err != nil {
			return fmt.Errorf("show the difference: %w", err)
		}
	}
	return nil
}

// change is one operation of RFC 6902.
type change struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	From  string          `json:"from"`
	Value json.RawMessage `json:"value"`
}

// DiffState writes a patch of the state as lines: added, removed and replaced values. before is the state to which the
// patch applies.
func DiffState(s *Screen, patch, before json.RawMessage) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(patch, &raw); err != nil {
		return fmt.Errorf("read the change of state: %w", err)
	}
	for i, op := range raw {
		if i == maxChanges {
			_, err := fmt.Fprintln(s, s.Paint(Dim, "  … "+Count(len(raw)-i, "more change", "more changes")))
			return err
		}
		var c change
		if err := json.Unmarshal(op, &c); err != nil {
			return fmt.Errorf("read the change of state: %w", err)
		}
		name := c.Path
		if name == "" {
			name = "(all)"
		}
		l := newLine(s)
		switch c.Op {
		case "add":
			l.add(Green, "  + "+Line(name))
			l.add(Plain, "  "+brief(c.Value))
		case "remove":
			l.add(Red, "  - "+Line(name))
			l.add(Dim, "  was "+brief(lookUp(before, c.Path)))
		case "replace":
			l.add(Yellow, "  ~ "+Line(name))
			l.add(Plain, "  "+brief(lookUp(before, c.Path))+" → "+brief(c.Value))
		case "move", "copy":
			l.add(Yellow, "  ~ "+Line(name))
			l.add(Plain, "  "+c.Op+" of "+Line(c.From))
		default:
			continue // a test changes nothing
		}
		if _, err := fmt.Fprintln(s, l.String()); err != nil {
			return fmt.Errorf("show the difference: %w", err)
		}
		before = apply(before, op)
	}
	return nil
}

// maxChanges bounds the displayed changes of state.
const maxChanges = 200

// apply returns the state after one operation, so that the next one finds its old value although list indexes shift. If
// it fails it returns nil, and old values are not shown.
func apply(state, op json.RawMessage) json.RawMessage {
	if len(state) == 0 {
		return nil
	}
	next, err := checkpoint.ApplyPatch(state, slices.Concat([]byte("["), op, []byte("]")), false)
	if err != nil {
		return nil
	}
	return next
}

// maxBrief is the maximum width of a displayed value, in columns.
const maxBrief = 60

// brief returns a JSON value on one short line.
func brief(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "?"
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // numbers keep their digits
	var v any
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if dec.Decode(&v) != nil || enc.Encode(v) != nil {
		return "?"
	}
	return Cut(Line(out.String()), maxBrief)
}

// lookUp returns the value at a JSON pointer; nil = none.
func lookUp(doc json.RawMessage, pointer string) json.RawMessage {
	if pointer == "" {
		return doc
	}
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var object map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case json.Unmarshal(doc, &object) == nil:
			doc = object[step]
		case json.Unmarshal(doc, &list) == nil:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(list) {
				return nil
			}
			doc = list[i]
		default:
			return nil
		}
	}
	return doc
}
