package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
)

// maxDepth bounds how deep the JSON of a body is nested: below the 512 of a line in the log, in which what the body
// holds is a few levels deeper.
const maxDepth = 500

// It does not compile where the engine takes less.
const _ = uint(checkpoint.MaxItemDepth - maxDepth)

// body reads the body of a request, JSON of at most Options.MaxBody bytes.
func body(r *http.Request) ([]byte, error) {
	if t := r.Header.Get("Content-Type"); t != "" {
		if kind, _, err := mime.ParseMediaType(t); err != nil || kind != "application/json" {
			return nil, newProblem(http.StatusUnsupportedMediaType, "usage", "send application/json",
				fmt.Errorf("a body of the type %.80q; nothing was stored", t))
		}
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, err
		}
		if errors.Is(err, errSlow) {
			return nil, err
		}
		return nil, badInput("the body", err)
	}
	return raw, nil
}

// bounded returns an error unless raw is one JSON value that is nested at most maxDepth deep. It takes no memory for
// what it reads.
func bounded(raw []byte) error {
	depth, text := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("JSON that is nested more than %d deep", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	if !json.Valid(raw) {
		return errors.New("not one JSON value")
	}
	return nil
}

// decode reads the JSON body of a request.
func decode(r *http.Request, into any) error {
	raw, err := body(r)
	if err != nil {
		return err
	}
	return unmarshal(raw, into)
}

// unmarshal decodes a body, a JSON object. Fields that are not known are refused: a misspelled one would change
// nothing, unsaid.
func unmarshal(raw []byte, into any) error {
	if err := bounded(raw); err != nil {
		return badInput("the body", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return badInput("the body", err)
	}
	if dec.More() {
		return badInput("the body", errors.New("more than one JSON value"))
	}
	if err := complete(raw, into); err != nil {
		return badInput("the body", err)
	}
	return nil
}

// complete returns an error unless a body is an object with the fields that its description requires: those without
// omitempty, which with minLength are not empty either. A field that is missing would be taken for one that is empty on
// purpose.
func complete(raw []byte, into any) error {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); raw[0] != '{' {
		return errors.New("not a JSON object")
	}
	var fields map[string]json.RawMessage
	v := reflect.ValueOf(into).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if options == "omitempty" { // of a commit, whose body may be long, all are
			continue
		}
		if fields == nil {
			if err := json.Unmarshal(raw, &fields); err != nil {
				return err
			}
		}
		if _, there := fields[name]; !there || f.Tag.Get("minLength") != "" && v.Field(i).IsZero() {
			return fmt.Errorf("want %q", name)
		}
	}
	return nil
}

// bodyRate is how many bytes of a body have to come in a second, once Options.ReadTimeout is used up.
const bodyRate = 64 << 10

// errSlow is the error of a body that takes too long.
var errSlow = errors.New("the body came too slowly; nothing was stored")

// timedBody is the body of a request, for which its client has a limited time.
type timedBody struct {
	io.ReadCloser
	conn *http.ResponseController
	due  time.Time
}

// timed bounds how long the body of a request may take. That holds from the beginning, for bodies too that no operation
// reads: the connection waits for their rest before the answer is sent. Without a body nothing is bounded, for what is
// read then is whether the client is still there.
func (s *Server) timed(w http.ResponseWriter, r *http.Request) io.ReadCloser {
	if r.Body == nil || r.Body == http.NoBody {
		return r.Body
	}
	now := time.Now() //nolint:forbidigo // connections go by the machine's clock
	b := &timedBody{r.Body, http.NewResponseController(w), now.Add(s.o.ReadTimeout)}
	_ = b.conn.SetReadDeadline(b.due) // a recorder has none
	return b
}

// Read moves the deadline by what came, and ends it with the body.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		_ = b.conn.SetReadDeadline(time.Time{})
	case err == nil:
		b.due = b.due.Add(time.Duration(n) * (time.Second / bodyRate))
		_ = b.conn.SetReadDeadline(b.due)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSlow
	}
	return n, err
}
