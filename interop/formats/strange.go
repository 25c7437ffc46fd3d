package formats

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
)

// Strange describes a file that a reader refused, by its beginning: "it is a database of SQLite". It returns "" if the
// file has the format after all, or cannot be read.
func Strange(src interop.Source, f interop.Format) string {
	head, err := readHead(src)
	if err != nil {
		return ""
	}
	switch is := Detect(head, src.Name); {
	case is == "":
		return strange(head)
	case f != "" && f != is:
		return "it is a session file of " + string(is)
	}
	return ""
}

// magic are the first bytes of other file types.
var magic = [][2]string{
	{"SQLite format 3\x00", "a database of SQLite"},
	{"\x1f\x8b", "compressed with gzip: unpack it first"},
	{"\x28\xb5\x2f\xfd", "compressed with zstd, and holds no session of Codex"},
	{"PK\x03\x04", "an archive of zip: unpack it first"},
	{"BZh", "compressed with bzip2: unpack it first"},
	{"\xfd7zXZ\x00", "compressed with xz: unpack it first"},
	{"\x89PNG\r\n\x1a\n", "an image"},
	{"\xff\xd8\xff", "an image"},
	{"GIF8", "an image"},
	{"%PDF-", "a PDF document"},
	{"\x7fELF", "a program"},
	{"\xff\xfe", utf16},
	{"\xfe\xff", utf16},
}

const utf16 = "text in UTF-16: save it as UTF-8"

// setting matches a line of the output of env.
var setting = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(export )?[A-Za-z_][A-Za-z0-9_]*=`) })

// strange describes the beginning of a file of unknown format.
func strange(head []byte) string {
	for _, m := range magic {
		if bytes.HasPrefix(head, []byte(m[0])) {
			return "it is " + m[1]
		}
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return "it is an archive of tar: unpack it first"
	}
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	text := bytes.TrimSpace(head)
	zero := bytes.Count(head, []byte{0})
	switch {
	case len(head) == 0:
		return "it is empty"
	case len(text) == 0:
		return "it is empty but for blank lines"
	case zero == len(head):
		return "it has zero bytes alone: perhaps it was not written to the disk before a crash"
	case zero > 0 && zero >= len(head)/4 && zero <= len(head)/2+1:
		return "it is " + utf16
	case zero > 0 || !mostlyText(head):
		return "it is binary data"
	case text[0] == '{' || text[0] == '[':
		return strangeJSON(text)
	case text[0] == '<':
		return "it is HTML or XML"
	case setting().Match(text):
		return "its lines are NAME=VALUE, as env writes them"
	}
	return "it is text, and none of its lines is JSON"
}

// mostlyText reports whether a text is UTF-8 except for a few bytes.
func mostlyText(p []byte) bool {
	bad := 0
	for rest := p; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		rest = rest[n:]
	}
	return bad <= len(p)/20
}

// strangeJSON describes JSON without entries.
func strangeJSON(text []byte) string {
	line, _, more := bytes.Cut(text, []byte{'\n'})
	whole := json.Valid(line)
	switch {
	case text[0] == '[':
		return "it is a list of JSON: a session file has an object on each line"
	case !whole && more && len(bytes.TrimSpace(line)) < 3:
		return "it is one JSON object over several lines: a session file has an object on each line"
	case !whole:
		return "its first line is no complete JSON"
	}
	names := fieldNames(line)
	if names == "" {
		return "its lines are JSON objects, and none is an entry of a session"
	}
	return "its lines are JSON objects with " + names + ", and none is an entry of a session"
}

// fieldNames returns the names of an object's first fields for a message.
func fieldNames(object []byte) string {
	const most, longest = 5, 40
	var names []string
	for m := rawjson.Walk(object); m.Next(); {
		name := string(m.Key)
		plain := func(r rune) bool { return r < ' ' || !unicode.IsPrint(r) }
		if len(name) > longest || strings.ContainsFunc(name, plain) {
			continue
		}
		if len(names) == most {
			names = append(names, "…")
			break
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
