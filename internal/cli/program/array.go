package program

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
)

// Array writes a JSON document of the form {"name":[item,item,...]} while its items are still being
// read. An error on the way becomes the field "error" behind the items, so that the document is whole
// either way.
type Array struct {
	a     *App
	w     *bufio.Writer
	head  string
	count int
	err   error
}

// Array begins a document with a list of this name. Nothing is written before the first item.
func (a *App) Array(name string) *Array { return a.ArrayAfter(nil, name) }

// ArrayAfter is Array for a document that begins with the fields of an object: they stand before the list.
func (a *App) ArrayAfter(fields any, name string) *Array {
	arr := &Array{a: a, w: bufio.NewWriterSize(a.Out, 1<<16), head: "{"}
	if fields != nil {
		raw, err := marshal(fields)
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

// Add writes one more item.
func (arr *Array) Add(item any) error {
	if arr.err != nil {
		return arr.err
	}
	raw, err := marshal(item)
	if err != nil {
		return err
	}
	sep := ","
	if arr.count == 0 {
		arr.a.spoke = true
		sep = arr.head
	}
	arr.count++
	arr.text(sep)
	arr.text(string(raw))
	return arr.err
}

// End completes the document. With an error it has that as its last field, or, where nothing was written
// yet, leaves the document to whoever reports the error. The error comes back, for the exit code.
func (arr *Array) End(err error) error {
	switch {
	case arr.err != nil:
		return arr.err
	case err != nil && arr.count == 0:
		return err
	case arr.count == 0:
		arr.a.spoke = true
		arr.text(arr.head)
	}
	arr.text("]")
	if err != nil {
		problem, _ := Describe(err)
		raw, merr := marshal(problem)
		if merr != nil {
			return merr
		}
		arr.text(`,"error":` + string(raw))
	}
	arr.text("}\n")
	if ferr := arr.w.Flush(); ferr != nil && arr.err == nil {
		arr.err = fmt.Errorf("write the answer: %w", ferr)
	}
	if arr.err != nil || err == nil {
		return arr.err
	}
	return Reported(err)
}

func (arr *Array) text(s string) {
	if arr.err == nil {
		if _, err := arr.w.WriteString(s); err != nil {
			arr.err = fmt.Errorf("write the answer: %w", err)
		}
	}
}

// marshal is json.Marshal without the escapes of HTML.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("make the answer: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
