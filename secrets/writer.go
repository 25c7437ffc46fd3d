package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// maxLineBytes bounds what a Writer holds: a longer line is looked at in pieces.
const maxLineBytes = 64 << 20

// ErrFound means that a text was to leave and has credentials. It is always a *FoundError.
var ErrFound = errors.New("credentials found")

// FoundError is what was found in a text that was to leave. Nothing of it left.
type FoundError struct {
	What string         // the text, such as "session s"
	By   map[string]int // how many, by the id of the rule
}

func (e *FoundError) Error() string {
	n := 0
	var rules []string
	for _, rule := range slices.Sorted(maps.Keys(e.By)) {
		n += e.By[rule]
		rules = append(rules, fmt.Sprintf("%s %d", rule, e.By[rule]))
	}
	credentials := "credentials"
	if n == 1 {
		credentials = "credential"
	}
	return fmt.Sprintf("%s has %d %s (%s): nothing was written", e.What, n, credentials, strings.Join(rules, ", "))
}

// Is reports whether an error is ErrFound.
func (e *FoundError) Is(err error) bool { return err == ErrFound }

// A Writer passes lines on without their credentials: each is JSON or else a text. What is longer than 64 MiB is looked
// at in pieces. Close writes the last line. Not safe for concurrent use.
type Writer struct {
	By map[string]int // how many credentials were replaced, by the id of the rule
	// Each receives what was replaced in a line, which it counts from 1; its error ends the writing. May be nil.
	Each func(line uint64, found []Place) error

	w    io.Writer
	line []byte
	n    uint64 // of lines
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{By: map[string]int{}, w: w} }

func (w *Writer) Write(p []byte) (n int, err error) {
	for n < len(p) {
		part := p[n:min(len(p), n+maxLineBytes)]
		i := bytes.IndexByte(part, '\n')
		if i >= 0 {
			part = part[:i+1]
		}
		w.line = append(w.line, part...)
		n += len(part)
		if i >= 0 || len(w.line) >= maxLineBytes {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// Close writes the rest. It does not close what is below.
func (w *Writer) Close() error { return w.flush() }

func (w *Writer) flush() error {
	body := bytes.TrimSuffix(w.line, []byte("\n"))
	out, found := RedactJSON(body)
	w.n++
	w.Count(found)
	end := w.line[len(body):]
	w.line = w.line[:0]
	if len(found) > 0 && w.Each != nil {
		if err := w.Each(w.n, found); err != nil {
			return err
		}
	}
	if len(out)+len(end) == 0 {
		return nil
	}
	if _, err := w.w.Write(out); err != nil || len(end) == 0 {
		return err
	}
	_, err := w.w.Write(end)
	return err
}

// Count adds what was replaced elsewhere.
func (w *Writer) Count(found []Place) {
	for _, p := range found {
		w.By[p.Rule]++
	}
}
