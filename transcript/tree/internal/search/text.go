package search

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript/internal/entries"
	"github.com/coppice-go/coppice/transcript/internal/shape"
)

// Text gives all that an entry shows: of a message its texts, those of results, the calls with their arguments, and
// an error; of another entry the strings that it holds itself, links to entries left out. Thoughts, images and what
// extensions keep as data are not shown. It is at most as long as the entry's line.
func Text(e entries.Entry) string {
	var b strings.Builder
	if e.Type == "message" {
		message(&b, rawjson.Field(e.Raw, "message"))
		return b.String()
	}
	m := rawjson.Walk(e.Raw)
	for m.Next() {
		switch string(m.Key) {
		case "type", "id", "parentId", "timestamp", "targetId", "firstKeptEntryId", "fromId":
		case "content":
			var p shape.Parts
			p.AddContent(m.Val)
			add(&b, p.Texts...)
		default:
			if rawjson.IsString(m.Val) {
				add(&b, m.Val)
			}
		}
	}
	return b.String()
}

func message(b *strings.Builder, raw []byte) {
	p := shape.Inspect(raw)
	add(b, p.Texts...)
	add(b, p.ResultTexts...)
	for _, c := range p.Calls {
		b.WriteString("\n" + c.Name)
		arguments(b, c.Args)
	}
	add(b, p.ErrorText)
}

// arguments adds what stands in the arguments of a call, names left out.
func arguments(b *strings.Builder, args []byte) {
	if rawjson.IsString(args) { // a text, or with OpenAI the object as one
		text := strings.TrimSpace(rawjson.Text(args))
		if !strings.HasPrefix(text, "{") {
			b.WriteString("\n" + text)
			return
		}
		args = []byte(text)
	}
	for i := 0; i < len(args); {
		if args[i] != '"' {
			i++
			continue
		}
		end, _, err := rawjson.StringEnd(args, i)
		if err != nil {
			return
		}
		if next := rawjson.Space(args, end); next >= len(args) || args[next] != ':' {
			add(b, args[i:end])
		}
		i = end
	}
}

// add adds JSON strings, each on a line of its own, so that no word is found across two of them.
func add(b *strings.Builder, literals ...[]byte) {
	for _, lit := range literals {
		if text := rawjson.Text(lit); text != "" {
			b.WriteString("\n" + text)
		}
	}
}
