package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
)

// Limits of Document.Docs.
const (
	MaxDocs      = 64        // documents of one session at the same time
	MaxDoc       = 64 << 10  // bytes of one, as JSON without white space
	MaxDocsTotal = 256 << 10 // bytes of all, as JSON with their names
	MaxDocName   = 128       // bytes of a name
)

const docNameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/-"

// CheckDocName refuses an invalid name of a document: names are 1 to 128 of A-Z, a-z, 0-9, '.', '_', ':', '/' and '-'.
func CheckDocName(name string) error {
	if err := canon.AtMost(fmt.Sprintf("name of document %q", name), len(name), MaxDocName); err != nil {
		return err
	}
	if name == "" || strings.Trim(name, docNameChars) != "" || strings.ContainsFunc(name, notInDocName) {
		return canon.Malformed("name of document %q: want A-Z, a-z, 0-9, '.', '_', ':', '/' and '-'", name)
	}
	return nil
}

func notInDocName(r rune) bool { return !strings.ContainsRune(docNameChars, r) }

// CheckDoc refuses a document that is too large or too deep. raw is valid JSON, or empty.
func CheckDoc(name string, raw []byte) error {
	return errors.Join(checkDocSize(name, raw), canon.Nested(raw, fmt.Sprintf("document %q", name), MaxDocDepth))
}

func checkDocSize(name string, raw []byte) error {
	return errors.Join(CheckDocName(name), canon.AtMost(fmt.Sprintf("document %q", name), len(raw), MaxDoc))
}

// appendDocs adds the documents of a session, names ascending.
func appendDocs(dst []byte, docs map[string]json.RawMessage) ([]byte, error) {
	if err := canon.AtMost("documents", len(docs), MaxDocs); err != nil {
		return nil, err
	}
	dst = append(canon.Comma(dst), `"docs":{`...)
	start := len(dst) - 1
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		if err := CheckDocName(name); err != nil {
			return nil, err
		}
		dst = append(canon.AppendString(canon.Comma(dst), name), ':')
		at := len(dst)
		var err error
		if dst, err = canon.AppendJSON(dst, docs[name], fmt.Sprintf("document %q", name), MaxDocDepth); err != nil {
			return nil, err
		}
		if err := checkDocSize(name, dst[at:]); err != nil {
			return nil, err
		}
	}
	dst = append(dst, '}')
	return dst, canon.AtMost("documents together", len(dst)-start, MaxDocsTotal)
}

// readDocs reads the output of appendDocs after the opening brace.
func readDocs(c *canon.Cursor) map[string]json.RawMessage {
	docs, start, last := map[string]json.RawMessage{}, c.At-1, ""
	for c.OK {
		name := c.Name()
		c.Want(":")
		raw := c.Value(MaxDepth)
		if !c.OK || name <= last || len(docs) == MaxDocs || checkDocSize(name, raw) != nil {
			c.Fail()
			return nil
		}
		docs[name], last = raw, name
		if c.Has("}") {
			if c.At-start > MaxDocsTotal {
				c.Fail()
			}
			return docs
		}
		c.Want(",")
	}
	return nil
}
