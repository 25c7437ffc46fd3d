package draw

import (
	"github.com/coppice-go/coppice/transcript"
)

// Said gives what a person would read of an entry, as plain text, and the role of who said it; "" = the
// entry says nothing.
func Said(e transcript.Entry) (text, role string) {
	if m, ok := e.Message(); ok {
		shape := transcript.Inspect(m.Raw)
		text, role = shape.Text, shape.Role
		for _, c := range calls(m.Raw, shape) {
			text += "\n" + c.name + " " + c.arg
		}
		return text, role
	}
	f := fieldsOf(e)
	switch e.Type {
	case "compaction", "branch_summary":
		return f.Summary, ""
	case "custom_message":
		return transcript.Inspect(wrapContent(f.Content)).Text, ""
	case "label":
		return f.Label, ""
	case "session_info":
		return f.Name, ""
	}
	return "", ""
}
