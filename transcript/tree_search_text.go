package transcript

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// shownText returns all that an entry shows: of a message its texts, those of results, the calls with their
// arguments, and an error; of another entry the strings that it holds itself, links to entries left out. Thoughts,
// images and what extensions keep as data are not shown. It is at most as long as the entry's line.
func shownText(e Entry) string {
	var b strings.Builder
	if e.Type == "message" {
		addMessage(&b, rawjson.Field(e.Raw, "message"))
		return b.String()
	}
	m := rawjson.Walk(e.Raw)
	for m.Next() {
		switch string(m.Key) {
		case "type", "id", "parentId", "timestamp", "targetId", "firstKeptEntryId", "fromId":
		case "content":
			var p messageParts
			p.addContent(m.Val)
			addLiterals(&b, p.Texts...)
		default:
			if rawjson.IsString(m.Val) {
				addLiterals(&b, m.Val)
			}
		}
	}
	return b.String()
}

func addMessage(b *strings.Builder, raw []byte) {
	p := readParts(raw)
	addLiterals(b, p.Texts...)
	addLiterals(b, p.ResultTexts...)
	for _, c := range p.Calls {
		b.WriteString("\n" + rawjson.Text(c.Name))
		addArguments(b, c.Args)
	}
	addLiterals(b, p.ErrorText)
}

// addArguments adds what is in the arguments of a call, names left out.
func addArguments(b *strings.Builder, args []byte) {
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
			addLiterals(b, args[i:end])
		}
		i = end
	}
}

// addLiterals adds JSON strings, each on a line of its own, so that no word is found across two of them.
func addLiterals(b *strings.Builder, literals ...[]byte) {
	for _, lit := range literals {
		if text := rawjson.Text(lit); text != "" {
			b.WriteString("\n" + text)
		}
	}
}
