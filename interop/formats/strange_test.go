package formats_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
)

// inUTF16 encodes a text, without a mark at its beginning.
func inUTF16(text string, order binary.AppendByteOrder) string {
	var out []byte
	for _, u := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, u)
	}
	return string(out)
}

// A file that is not a session is described by its actual type.
func TestStrange(t *testing.T) {
	t.Parallel()
	const session = `{"type":"session","version":3,"id":"s","timestamp":"2026-03-02T10:00:00Z","cwd":"/a"}` + "\n"
	for name, c := range map[string]struct {
		file   string
		format interop.Format
		want   string
	}{
		"empty":        {"", "", "it is empty"},
		"blank":        {"\n  \r\n", "", "it is empty but for blank lines"},
		"mark alone":   {"\xef\xbb\xbf", "", "it is empty"},
		"zeros":        {strings.Repeat("\x00", 4096), "", "zero bytes alone"},
		"windows":      {"\xff\xfe" + inUTF16(session, binary.LittleEndian), "", "text in UTF-16: save it as UTF-8"},
		"utf16 le":     {inUTF16(session, binary.LittleEndian), "", "text in UTF-16"},
		"utf16 be":     {"\xfe\xff" + inUTF16(session, binary.BigEndian), "", "text in UTF-16"},
		"env":          {"PATH=/bin\nHOME=/home/mara\n", "", "NAME=VALUE, as env writes them"},
		"exports":      {"export A_1=b\n", "", "NAME=VALUE"},
		"database":     {"SQLite format 3\x00\x10\x00\x01\x01", "", "a database of SQLite"},
		"gzip":         {"\x1f\x8b\x08\x00abc", "", "compressed with gzip: unpack it first"},
		"gzip, forced": {"\x1f\x8b\x08\x00abc", interop.ClaudeCode, "compressed with gzip"},
		"zstd":         {"\x28\xb5\x2f\xfd\x04", "", "compressed with zstd, and holds no session of Codex"},
		"image":        {"\x89PNG\r\n\x1a\nabc", "", "it is an image"},
		"binary":       {"a\x00b\xffcdefghijklm\xfe\xfd", "", "binary data"},
		"latin 1":      {"caf\xe9 is long enough to be text in another encoding", "", "it is text, and none"},
		"list":         {`[{"role":"user"}]`, "", "a list of JSON"},
		"indented":     {"{\n  \"messages\": []\n}\n", "", "one JSON object over several lines"},
		"torn":         {`{"a":`, "", "its first line is no complete JSON"},
		"chat":         {`{"role":"user","content":"hi"}` + "\n", "", "JSON objects with role, content, and none"},
		"many fields":  {`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}`, "", "with a, b, c, d, e, …, and none"},
		"bare":         {"{}\n", "", "its lines are JSON objects, and none"},
		"page":         {"<!DOCTYPE html>\n<html>", "", "HTML or XML"},
		"prose":        {"# A title\n\nAnd prose.\n", "", "it is text, and none of its lines is JSON"},
		"another's":    {session, interop.Codex, "it is a session file of pi"},
		"its own":      {session, interop.Pi, ""},
		"a session":    {session, "", ""},
	} {
		src := interop.Bytes("f", []byte(c.file))
		got := formats.Strange(src, c.format)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
