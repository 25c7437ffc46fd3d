package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// textf writes a line for people to the standard output.
func (c *cli) textf(format string, args ...any) error {
	_, err := fmt.Fprintf(c.stdout, format+"\n", args...)
	return err
}

// notef writes a remark for people to the standard error, without the name of the program: that marks errors.
func (c *cli) notef(format string, args ...any) {
	_, _ = fmt.Fprintf(c.stderr, format+"\n", args...) // a remark that cannot be written fails no command
}

// failed reports an error that does not end the command.
func (c *cli) failed(message string) {
	_, _ = fmt.Fprintf(c.stderr, "%s%s\n", c.stderr.Paint(term.Red, "coppice: "), term.Line(message))
}

// writeJSON writes v as the one JSON document. Raw messages within v keep their bytes.
func (c *cli) writeJSON(v any) error {
	c.wroteJSON = true
	enc := json.NewEncoder(c.stdout)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// jsonArray writes a JSON document of the form {"name":[item,item,...]} while its items are still
// being read. An error on the way becomes the field "error" after the items, so that the document
// is always complete.
type jsonArray struct {
	c     *cli
	w     *bufio.Writer
	head  string
	after map[string]any // fields after the list
	count int
	err   error
}

// array begins a document with one list. Nothing is written before the first item.
func (c *cli) array(name string) *jsonArray { return c.arrayAfter(nil, name) }

// arrayAfter is array for a document that has the fields of an object before the list.
func (c *cli) arrayAfter(fields any, name string) *jsonArray {
	arr := &jsonArray{c: c, w: bufio.NewWriterSize(c.stdout, 1<<16), head: "{"}
	if fields != nil {
		raw, err := api.Marshal(fields)
		if err != nil {
			arr.err = err
			return arr
		}
		if raw = bytes.TrimSuffix(raw, []byte("}")); len(raw) > 1 {
			arr.head = string(raw) + ","
		}
	}
	arr.head += fmt.Sprintf("%q:[", name)
	return arr
}

// add writes one more item.
func (arr *jsonArray) add(item any) error {
	if arr.err != nil {
		return arr.err
	}
	raw, err := api.Marshal(item)
	if err != nil {
		return err
	}
	sep := ","
	if arr.count == 0 {
		arr.c.wroteJSON = true
		sep = arr.head
	}
	arr.count++
	arr.text(sep)
	arr.text(string(raw))
	return arr.err
}

// end completes the document. An error becomes its last field; if nothing was written yet, the
// document is left to the caller that reports the error. end returns the error, for the exit code.
func (arr *jsonArray) end(err error) error {
	switch {
	case arr.err != nil:
		return arr.err
	case err != nil && arr.count == 0:
		return err
	case arr.count == 0:
		arr.c.wroteJSON = true
		arr.text(arr.head)
	}
	arr.text("]")
	for _, name := range slices.Sorted(maps.Keys(arr.after)) {
		raw, merr := api.Marshal(arr.after[name])
		if merr != nil {
			return merr
		}
		arr.text(fmt.Sprintf(",%q:", name) + string(raw))
	}
	if err != nil {
		raw, merr := api.Marshal(api.Describe(err).Problem())
		if merr != nil {
			return merr
		}
		arr.text(`,"error":` + string(raw))
	}
	arr.text("}\n")
	if ferr := arr.w.Flush(); ferr != nil && arr.err == nil {
		arr.err = fmt.Errorf("write the output: %w", ferr)
	}
	if arr.err != nil || err == nil {
		return arr.err
	}
	return reported(err)
}

// flush writes what was added so far.
func (arr *jsonArray) flush() error {
	if err := arr.w.Flush(); err != nil && arr.err == nil {
		arr.err = fmt.Errorf("write the answer: %w", err)
	}
	return arr.err
}

func (arr *jsonArray) text(s string) {
	if arr.err != nil {
		return
	}
	if _, err := arr.w.WriteString(s); err != nil {
		arr.err = fmt.Errorf("write the output: %w", err)
	}
}

// found ends a command that showed n things: it completes the document, or notes for people that
// there are more or none.
func (arr *jsonArray) found(n int, more bool, err error) error {
	switch {
	case arr.c.json:
		return arr.end(err)
	case err != nil:
		return err
	case more:
		arr.c.notef("there are more results; raise --limit to see them")
	case n == 0:
		arr.c.notef("nothing found")
	}
	return nil
}

// listingBar returns functions that draw a progress bar for a listing of sessions and remove it. On
// anything but a terminal they do nothing.
func (c *cli) listingBar() (update func(looked, total int), remove func()) {
	bar := c.stderr.Progress("reading sessions", -1, false, c.now)
	return func(looked, total int) { bar.Reach(int64(looked), int64(total)) }, bar.Close
}

// orNull returns nil, which is null in JSON, for the empty string.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// orList returns an empty list for nil, which would be null in JSON.
func orList[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

// titleOf returns the name of a session on one line: the same in every command.
func titleOf(s checkpoint.Summary) string { return term.Cut(term.Line(s.Name()), 60) }

// costText describes the requests to the backend in words.
func costText(io backend.IO) string {
	parts := []string{term.Count(io.Get, "read", "reads") + " of " + term.Size(io.BytesRead)}
	for _, n := range []struct {
		count     int
		one, many string
	}{
		{io.List, "listing", "listings"},
		{io.Stat, "stat", "stats"},
		{io.Put, "put", "puts"},
		{io.Append, "append", "appends"},
		{io.Delete, "delete", "deletes"},
	} {
		if n.count > 0 {
			parts = append(parts, term.Count(n.count, n.one, n.many))
		}
	}
	return strings.Join(parts, ", ")
}
