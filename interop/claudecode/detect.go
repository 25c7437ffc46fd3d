package claudecode

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Detect reports whether a file is one of Claude Code's, by its first bytes. The last line may be incomplete.
func Detect(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	found := false
	const lines = 1000
	for range lines {
		line, rest, _ := bytes.Cut(head, []byte{'\n'})
		line = bytes.Trim(line, " \t\r\x00")
		if len(line) > 0 && line[0] == '{' {
			h := readLineHead(line)
			if string(h.Type) == `"session"` || string(h.Type) == `"session_meta"` {
				return false // pi's family, or Codex
			}
			torn := len(rest) == 0 && h.Parent != nil && rawjson.Field(line, "isSidechain") != nil && h.Session != nil
			found = found || h.Known() || torn
		}
		if head = rest; len(head) == 0 {
			break
		}
	}
	return found
}
