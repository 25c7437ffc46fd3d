package claudecode

import (
	"bytes"
	"errors"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// maxPreamble bounds the lines before the first line of the conversation.
const maxPreamble = 1000

// after returns the line after which a file begins, and the time of its first line, for a session that continued in
// another folder. It reads only files whose name is a session ID.
func after(src interop.Source) (line string, begun time.Time, err error) {
	if !isUUID(strings.TrimSuffix(path.Base(filepath.ToSlash(src.Name)), fileExtension)) {
		return "", begun, nil
	}
	in, err := src.Open()
	if err != nil {
		return "", begun, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for r := jsonl.NewLineReader(in); r.Number() < maxPreamble; {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			return "", begun, nil
		}
		if err != nil {
			return "", begun, err
		}
		h := readLineHead(bytes.TrimSpace(l.Bytes))
		if !rawjson.IsString(h.UUID) || rawjson.IsTrue(h.Side) {
			continue
		}
		begun, _ = jsonl.Stamp(h.Stamp)
		if line = rawjson.Text(h.Parent); line == "" {
			line = rawjson.Text(h.Logical) // of a compaction
		}
		return line, begun, nil
	}
	return "", begun, nil
}

// upto returns the size of the file up to the end of a line.
func upto(src interop.Source, line string) (size int64, lines int, err error) {
	in, err := src.Open()
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for r := jsonl.NewLineReader(in); ; {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			return 0, 0, nil
		}
		if err != nil {
			return 0, 0, err
		}
		if bytes.Contains(l.Bytes, []byte(line)) &&
			rawjson.Text(rawjson.Field(bytes.TrimSpace(l.Bytes), "uuid")) == line {
			return l.Offset + l.Size, l.Number, nil
		}
	}
}
