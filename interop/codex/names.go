package codex

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Bounds of the search for a thread's name, in bytes.
const (
	maxIndex     = 8 << 20 // of the file that is read: its end, or its beginning if there is no going to the end
	maxIndexLine = 1 << 16 // of a line: a longer one is passed over
	maxTitle     = 1 << 10 // of a name: a longer one is cut
)

// indexes are where the names of threads stand, from the folder of a day and from that of archived sessions.
var indexes = []string{"../../../../session_index.jsonl", "../session_index.jsonl"}

// threadName gives the name that a thread has in Codex's list of sessions; "" = none.
func (r *Reader) threadName(id string) string {
	if r.src.Beside == nil {
		return ""
	}
	for _, name := range indexes {
		title, err := r.nameIn(name, id)
		if err == nil {
			return title
		}
		if !errors.Is(err, fs.ErrNotExist) {
			r.diag.Add("", 0, diag.Noted, fmt.Sprintf("names of threads are not read from %s: %s", name, err))
			return title
		}
	}
	return ""
}

// nameIn reads one list: lines of id, thread_name and updated_at, the last one that names the thread counts.
func (r *Reader) nameIn(name, id string) (title string, err error) {
	f, err := r.src.Beside(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if s, ok := f.(io.Seeker); ok {
		if _, err := s.Seek(-maxIndex, io.SeekEnd); err != nil { // it is shorter
			if _, err := s.Seek(0, io.SeekStart); err != nil {
				return "", err
			}
		}
	}
	in := bufio.NewReaderSize(io.LimitReader(f, maxIndex), maxIndexLine)
	quoted := rawjson.AppendString(nil, id)
	for whole := true; ; {
		line, err := in.ReadSlice('\n')
		if whole && bytes.Contains(line, quoted) {
			if n := nameOf(line, id); n != "" {
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

// nameOf gives the name that a line gives to a thread; a line that is cut off at its end gives none.
func nameOf(line []byte, id string) string {
	if textField(line, "id") != id {
		return ""
	}
	if end, err := rawjson.ValueEnd(line, 0, rawjson.MaxDepth); err != nil || rawjson.Space(line, end) != len(line) {
		return ""
	}
	title := strings.TrimSpace(textField(line, "thread_name"))
	if len(title) > maxTitle {
		title = strings.ToValidUTF8(title[:maxTitle], "")
	}
	return title
}
