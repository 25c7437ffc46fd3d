package codex

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Bounds of the search for a thread's name, in bytes.
const (
	maxIndexSize = 8 << 20 // of the file's end that is read, or of its beginning if the file is not seekable
	maxIndexLine = 1 << 16 // of a line; longer ones are skipped
	maxTitleSize = 1 << 10 // of a name; longer ones are cut
)

// indexFiles are the paths of the list of names, from the folder of a day and from that of archived sessions.
var indexFiles = []string{"../../../../session_index.jsonl", "../session_index.jsonl"}

// threadTitle returns the name of a thread; "" = none. open opens a file by its path relative to the session's folder.
func threadTitle(open func(name string) (io.ReadCloser, error), id string) (title string, err error) {
	for _, name := range indexFiles {
		title, err := titleInIndex(open, name, id)
		if err == nil {
			return title, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return title, fmt.Errorf("names of threads are not read from %s: %w", name, err)
		}
	}
	return "", nil
}

// titleInIndex reads one list: lines of id, thread_name and updated_at. The last line for the thread counts.
func titleInIndex(open func(name string) (io.ReadCloser, error), name, id string) (title string, err error) {
	f, err := open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if s, ok := f.(io.Seeker); ok {
		if _, err := s.Seek(-maxIndexSize, io.SeekEnd); err != nil { // the file is shorter
			if _, err := s.Seek(0, io.SeekStart); err != nil {
				return "", err
			}
		}
	}
	list := bufio.NewReaderSize(io.LimitReader(f, maxIndexSize), maxIndexLine)
	quoted := rawjson.AppendString(nil, id)
	for whole := true; ; {
		line, err := list.ReadSlice('\n')
		if whole && bytes.Contains(line, quoted) {
			if n := titleInLine(line, id); n != "" {
				title = n
			}
		}
		if whole = !errors.Is(err, bufio.ErrBufferFull); err != nil && whole {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return title, err
		}
	}
}

// titleInLine returns the name of a thread in a line, or "". A truncated line has none.
func titleInLine(line []byte, id string) string {
	if rawjson.Text(rawjson.Field(line, "id")) != id {
		return ""
	}
	if end, err := rawjson.ValueEnd(line, 0, rawjson.MaxDepth); err != nil || rawjson.Space(line, end) != len(line) {
		return ""
	}
	return cleanTitle(rawjson.Field(line, "thread_name"))
}

// cleanTitle returns a name for display. val is JSON.
func cleanTitle(val []byte) string {
	title := strings.TrimSpace(rawjson.Text(val))
	if len(title) > maxTitleSize {
		title = strings.ToValidUTF8(title[:maxTitleSize], "")
	}
	return title
}
