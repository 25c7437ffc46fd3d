package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// maxDepth bounds how deep the JSON of a body is nested: below the 512 of a line in the log, in which what the body
// holds is a few levels deeper.
const maxDepth = 500

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
