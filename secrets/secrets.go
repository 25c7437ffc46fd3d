// Package secrets finds credentials in texts: keys and tokens of known services, private keys, passwords in addresses
// and what is assigned to names such as api_key. The rules are those of gitleaks, at a release that tools/secretrules
// pins, and a few of this project.
//
// RedactDraft is a hook for coppice.Hooks.BeforeAppend: it replaces credentials before anything is stored.
// RedactJSON does the same for the JSON of a state or a document before it is committed.
//
// A rule is a pattern. It misses passwords that look like words, and what is encoded, and takes some harmless
// values for credentials: docs/secrets.md has figures. Functions are safe for concurrent use, and take time in
// proportion to the text; the first call reads the rules, and a rule's pattern is compiled when its keyword first
// occurs.
package secrets

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// Finding is a credential in a text.
type Finding struct {
	Rule       string // id of the rule, such as "github-pat"
	Start, End int    // of the credential, in bytes
}

// Stub returns the text that takes the place of a credential that a rule found.
func Stub(rule string) string { return "[secret: " + rule + "]" }

// engine is the rules, read at the first call.
var engine = sync.OnceValue(load)

// Find returns the credentials in a text, in their order; none overlaps another. Where rules overlap, a rule about a
// known form counts before one about a name.
func Find(text string) []Finding { return engine().find(text) }

// Redact replaces each credential in a text by its Stub, and returns what it replaced. A text without credentials comes
// back as it is.
func Redact(text string) (string, []Finding) {
	found := Find(text)
	return replace(text, found), found
}

func replace(text string, found []Finding) string {
	if len(found) == 0 {
		return text
	}
	var out strings.Builder
	at := 0
	for _, f := range found {
		out.WriteString(text[at:f.Start])
		out.WriteString(Stub(f.Rule))
		at = f.End
	}
	out.WriteString(text[at:])
	return out.String()
}

// preview returns a credential for people, by which its owner knows it: the first characters, at most four and a
// quarter of it, and its length in bytes.
func preview(secret string) string {
	n := min(4, len(secret)/4)
	for n > 0 && !utf8.RuneStart(secret[n]) {
		n--
	}
	return fmt.Sprintf("%s… (%d bytes)", secret[:n], len(secret))
}
