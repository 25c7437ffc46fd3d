package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// answer is the answer to a request.
type answer struct {
	status   int    // 0 = 200
	etag     string // without quotes; "" = none
	lasting  bool   // never changes: to be kept for ever
	repeated bool   // of a creation: it was made before
	location string
	doc      any // the JSON document; nil = none
	list     *list
	stream   func(http.ResponseWriter, *http.Request) error // writes all but ETag and Cache-Control
}

// write sends an answer. An error that it returns came before anything was sent.
func (a answer) write(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	if a.list != nil { // what may fail comes first
		h.Add("Vary", "Accept") // one ETag, as JSON and as NDJSON
		if err := a.list.begin(); err != nil {
			return err
		}
		defer a.list.stop()
		if a.list.age != nil {
			h.Set("Age", strconv.Itoa(*a.list.age))
		}
	}
	if a.etag != "" {
		h.Set("ETag", quoteTag(a.etag))
	}
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "private, no-cache")
		if a.lasting {
			h.Set("Cache-Control", "private, max-age=31536000, immutable")
		}
	}
	if a.location != "" {
		h.Set("Location", r.PathValue("prefix")+a.location)
	}
	if a.etag != "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		matches(r.Header.Values("If-None-Match"), a.etag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	switch status := max(a.status, http.StatusOK); {
	case a.stream != nil:
		return a.stream(w, r)
	case a.list != nil:
		a.list.write(w, status)
		return nil
	case a.doc != nil:
		raw, err := api.Marshal(a.doc)
		if err != nil {
			return err
		}
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(append(raw, '\n')) // a client that left reads nothing
	default:
		w.WriteHeader(status)
	}
	return nil
}

// headOnly writes the headers of an answer, and ends what would make its body.
type headOnly struct {
	http.ResponseWriter
	begun bool
}

// errHead is the error of writing a body in the answer to HEAD.
var errHead = errors.New("the answer has no body")

func (w *headOnly) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *headOnly) Write([]byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return 0, errHead
}

// list is an answer of many items, which are written while they are read: {"name":[...],"next":"...","prev":"..."},
// or with ndjson a line for each item and, if there are other pages, a last line {"next":"...","prev":"..."}. An error
// after the first item is the last member "error" of the document, and the last line as {"error":{...}}.
type list struct {
	name   string
	items  iter.Seq2[any, error]
	more   func() (next, prev string)             // asked after the last item; "" = absent
	also   func() (name string, v any, err error) // a member that is asked for after the last item; nil = none
	ndjson bool
	age    *int // of the catalogue that answers, in seconds; nil = the list is exact

	pull    func() (any, error, bool)
	stop    func()
	first   any
	hasMore bool
}

// begin reads the first item, so that an error of it can still be the answer.
func (l *list) begin() (err error) {
	l.pull, l.stop = iter.Pull2(l.items)
	if l.first, err, l.hasMore = l.pull(); err != nil {
		l.stop()
		return err
	}
	return nil
}

// write writes the document. What cannot be written any more ends it: the client sees that it is cut.
func (l *list) write(w http.ResponseWriter, status int) {
	if l.ndjson {
		w.Header().Set("Content-Type", "application/x-ndjson")
	} else {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	out := bufio.NewWriterSize(w, 32<<10)
	defer func() { _ = out.Flush() }()
	if !l.ndjson {
		_, _ = fmt.Fprintf(out, "{%q:[", l.name)
	}
	item, err := l.first, error(nil)
	var raw []byte
	for n := 0; l.hasMore; n++ {
		if err == nil {
			raw, err = appendItem(raw[:0], item)
		}
		if err != nil {
			break
		}
		switch {
		case l.ndjson:
			raw = append(raw, '\n')
		case n > 0:
			_ = out.WriteByte(',')
		}
		if _, werr := out.Write(raw); werr != nil {
			return
		}
		item, err, l.hasMore = l.pull()
	}
	l.close(out, err)
}

// appendItem appends the JSON of an item. A line of an entry is JSON, and is not parsed again.
func appendItem(dst []byte, item any) ([]byte, error) {
	if line, ok := item.(json.RawMessage); ok {
		return rawjson.AppendCompact(dst, line), nil
	}
	raw, err := api.Marshal(item)
	return append(dst, raw...), err
}

func (l *list) close(out *bufio.Writer, err error) {
	if err != nil {
		raw, _ := api.Marshal(problemOf(err).Problem)
		if l.ndjson {
			_, _ = fmt.Fprintf(out, "{\"error\":%s}\n", raw)
			return
		}
		_, _ = fmt.Fprintf(out, "],\"error\":%s}\n", raw)
		return
	}
	var next, prev string
	if l.more != nil {
		next, prev = l.more()
	}
	if l.ndjson {
		if next != "" || prev != "" {
			raw, _ := api.Marshal(pages{next, prev})
			_, _ = out.Write(append(raw, '\n'))
		}
		return
	}
	_ = out.WriteByte(']')
	if l.also != nil {
		name, v, err := l.also()
		raw, merr := api.Marshal(v)
		if err = errors.Join(err, merr); err != nil {
			name = "error"
			raw, _ = api.Marshal(problemOf(err).Problem)
		}
		_, _ = fmt.Fprintf(out, ",%q:%s", name, raw)
	}
	if l.age != nil {
		_, _ = fmt.Fprintf(out, ",\"age\":%d", *l.age)
	}
	for _, c := range []struct{ name, value string }{{"next", next}, {"prev", prev}} {
		if c.value != "" {
			_, _ = fmt.Fprintf(out, ",%q:%q", c.name, c.value)
		}
	}
	_, _ = out.WriteString("}\n")
}

// pages is the last line of a list of lines: the cursors of the pages after and before it.
type pages struct {
	Next string `json:"next,omitempty"`
	Prev string `json:"prev,omitempty"`
}

// wantsNDJSON reports whether a client asks for one item a line.
func wantsNDJSON(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			kind, params, err := mime.ParseMediaType(part)
			if err != nil || kind != "application/x-ndjson" {
				continue
			}
			q, err := strconv.ParseFloat(params["q"], 64)
			return params["q"] == "" || err == nil && q > 0 // 0 = not this one
		}
	}
	return false
}
