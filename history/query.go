package history

import (
	"github.com/coppice-go/coppice/history/internal/lines"
	"github.com/coppice-go/coppice/history/internal/query"
	"github.com/coppice-go/coppice/transcript"
)

// MaxText bounds what is indexed of one entry's text, in bytes.
const MaxText = query.MaxText

// ErrQuery is wrapped by the error about an expression behind "re:" that is none.
var ErrQuery = query.ErrQuery

// Query says what is looked for. The zero Query finds everything.
type Query = query.Query

// Parse reads a query as people type it: words that must all be there, anywhere and whatever their case,
// parts of words too; "words in quotes" in this order with any white space between; or re: and a regular
// expression (RE2, whatever the case). Nothing that is typed is an error but an expression that is none.
func Parse(text string) (Query, error) { return query.Parse(text) }

// Words makes a query of words that must all be there; one with spaces is a phrase.
func Words(words ...string) Query { return query.Words(words...) }

// Lines knows which branches of a session reach an entry.
type Lines = lines.Lines

// NewLines takes the lines of a session out of its tree.
func NewLines(t *transcript.Tree) *Lines { return lines.New(t) }

// Said gives what an entry can be found by, and the role of who said it: the text of a message, the names
// and arguments of its calls, the words of summaries, labels and titles. Thinking is not in it. Control
// characters and broken UTF-8 are taken out. "" = the entry says nothing.
func Said(e transcript.Entry) (text, role string) {
	text, role, _ = query.Said(e)
	return text, role
}
