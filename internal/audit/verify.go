package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Report is what Verify found.
type Report struct {
	Lines int    // whole ones
	Torn  int    // of these, how many mark bytes that a crash left
	Open  int    // acts without an end, up to maxOpen
	Head  string // SHA-256 of the last line; an anchor, if it is kept elsewhere
	Ends  bool   // false = bytes of a line that was not written to its end follow the last line
}

// Broken is the error of a log that was changed.
type Broken struct {
	Line   int // from 1, of the file
	Reason string
}

func (b *Broken) Error() string { return fmt.Sprintf("line %d: %s", b.Line, b.Reason) }

// Verify reads a log and compares each line with the hash in the next one. anchor is the hash of a line that has to be
// there, "" = none is known. An error that is a *Broken names the first line that does not fit. What Verify cannot
// find: that the last lines were removed or replaced, from any line on, unless the anchor is that of one of them.
func Verify(r io.Reader, anchor string) (rep Report, err error) {
	v := verifier{last: hashOf(nil), open: map[string]bool{}, anchor: anchor}
	lines := bufio.NewReaderSize(r, maxLine)
	for err == nil {
		var p []byte
		if p, err = readLine(lines); err != nil && !errors.Is(err, io.EOF) {
			return v.Report, err
		}
		if len(p) == 0 {
			break
		}
		if berr := v.line(p); berr != nil {
			return v.Report, berr
		}
	}
	return v.end()
}

// readLine reads a line with its end, of at most window bytes.
func readLine(r *bufio.Reader) (p []byte, err error) {
	for len(p) < window {
		piece, err := r.ReadSlice('\n')
		p = append(p, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return p, err
		}
	}
	return p, nil // too long for a line: it is none
}

// maxOpen bounds the acts without an end that Verify remembers; of more it counts only these.
const maxOpen = 1 << 16

// verifier is the state between two lines.
type verifier struct {
	Report
	n      int    // lines that were read
	last   string // hash of the last whole line
	rest   []byte // of no whole line
	began  int    // the line with which rest begins
	cut    bool   // the last whole line has no end
	anchor string
	found  bool
	open   map[string]bool // acts that began
}

func (v *verifier) broken(line int, reason string) error { return &Broken{Line: line, Reason: reason} }

// line takes a line with its end; the last one of a file may have none.
func (v *verifier) line(p []byte) error {
	v.n++
	text, whole := bytes.CutSuffix(p, []byte("\n"))
	l, ok := parse(text)
	switch {
	case !ok:
		if len(v.rest) == 0 {
			v.began = v.n
		}
		if v.rest = append(v.rest, p...); len(v.rest) > window {
			return v.broken(v.began, "it is no line of an audit log")
		}
		return nil
	case l.Prev != v.last:
		return v.broken(max(v.n-1, 1), "it, or the line after it, was changed, or lines between them are missing")
	case len(v.rest) == 0 && l.Torn != "":
		return v.broken(v.n, "it marks bytes that are not there")
	case len(v.rest) > 0 && l.Torn != hashOf(v.rest) && l.Torn != hashOf(bytes.TrimSuffix(v.rest, []byte("\n"))):
		return v.broken(v.began, "it is no line of an audit log, and no crash left it")
	}
	if l.Torn != "" {
		v.Torn++
	}
	v.rest, v.cut = nil, !whole
	v.last = hashOf(text)
	v.Lines++
	v.Head = v.last
	v.found = v.found || v.anchor == v.last
	if l.Result == Begun && len(v.open) < maxOpen {
		v.open[v.last] = true
	}
	delete(v.open, l.Of)
	return nil
}

func (v *verifier) end() (Report, error) {
	v.Ends, v.Open = len(v.rest) == 0 && !v.cut, len(v.open)
	if v.anchor != "" && !v.found {
		return v.Report, v.broken(v.n, "no line up to this one has the hash of the anchor")
	}
	return v.Report, nil
}

// parse returns a line; false = it is none.
func parse(p []byte) (l Line, ok bool) {
	if len(p) == 0 || p[0] != '{' {
		return l, false
	}
	return l, json.Unmarshal(p, &l) == nil && len(l.Prev) == len(hashOf(nil)) && l.Result != ""
}
