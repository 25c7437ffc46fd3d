package codex

import (
	"bytes"
	"errors"
	"io"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// wholeHead is the number of bytes that Detect expects of a longer file.
const wholeHead = 64 << 10

// Detect reports whether a file, compressed or not, is a Codex rollout, by its first bytes. Its last line may be
// incomplete.
func Detect(head []byte) bool {
	if bytes.HasPrefix(head, zstdMagic) {
		packed := len(head)
		if head = unpacked(head); len(head) == 0 {
			return packed >= wholeHead // not one block is complete; only Codex compresses
		}
	}
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	const lines = 100
	for range lines {
		line, rest, whole := bytes.Cut(head, []byte{'\n'})
		line = bytes.Trim(line, " \t\r\x00")
		if len(line) > 0 && line[0] == '{' {
			l := readRolloutLine(line)
			if string(l.Type) == `"session"` || string(l.Type) == `"title"` || string(l.Type) == `"metadata"` {
				return false // pi's family
			}
			if l.Form == formEnvelope || l.Form == formHead || l.Form == formBare {
				return true
			}
			if !whole && rawjson.IsString(l.Stamp) && isEnvelopeType(l.Type) {
				return true
			}
		}
		if head = rest; len(head) == 0 {
			break
		}
	}
	return false
}

// unpacked returns the start of a compressed file's content.
func unpacked(head []byte) []byte {
	z, err := unpack(bytes.NewReader(head))
	if err != nil {
		return nil
	}
	defer z.Close()
	out := make([]byte, wholeHead)
	n, err := io.ReadFull(z, out)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && n == 0 {
		return nil
	}
	return out[:n]
}
