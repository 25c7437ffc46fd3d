package piwriter

import (
	"bytes"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// LostStub is the loss of a line of which an import kept only a stub.
const LostStub = "entries that were over the limit when they were imported: a stub of each, the rest is only in " +
	"the file that they came from"

// Preparer prepares entries for a Target. Its fields are optional features of the target.
type Preparer struct {
	Audio bool // blocks of type "audio" in messages of users and models
	Blobs bool // references to images in omp's folder
}

// Target returns t with a Convert that prepares entries first. It serves one file: entries must be passed to Convert in
// order, in any number of passes.
func (f Preparer) Target(t Target) Target {
	convert, ids, named := t.Convert, CallIDs{}, toolNames{}
	t.Convert = func(l transcript.Line, lose func(kind string)) [][]byte {
		if IsStub(l) {
			lose(LostStub)
		}
		lines := convert(f.ready(withIDs(ids, l), lose), lose)
		named.pass(l, lines)
		return lines
	}
	return t
}

// withIDs returns an entry with IDs added to calls and results.
func withIDs(ids CallIDs, l transcript.Line) transcript.Line {
	var was []byte
	if l.Type == "message" {
		was = rawjson.Field(l.Raw, "message")
	}
	if is := ids.Message(l.ID, l.ParentID, was); !same(is, was) {
		l.Raw = rawjson.WithField(l.Raw, "message", is)
	}
	return l
}

// IsStub reports whether an import kept only the head of an entry, or made the entry in place of a line that it could
// not keep.
func IsStub(l transcript.Line) bool {
	if !bytes.Contains(l.Raw, []byte(`"stub"`)) {
		return false
	}
	if l.Type == "custom" && rawjson.Field(l.Raw, "stub") == nil {
		return HasStub(rawjson.Field(l.Raw, "data"))
	}
	return HasStub(l.Raw)
}

// HasStub reports whether an object has the field that an import writes in place of the data it dropped.
func HasStub(object []byte) bool {
	stub := rawjson.Field(object, "stub")
	return rawjson.IsNumber(rawjson.Field(stub, "bytes")) && rawjson.IsNumber(rawjson.Field(stub, "limit"))
}

// ready returns an entry with all blocks in a form that the target supports.
func (f Preparer) ready(l transcript.Line, lose func(kind string)) transcript.Line {
	if !mayHold(l.Raw) {
		return l
	}
	switch l.Type {
	case "message":
		was := rawjson.Field(l.Raw, "message")
		if is := f.message(was, lose); !same(is, was) {
			l.Raw = rawjson.WithField(l.Raw, "message", is)
		}
	case "custom_message":
		was := rawjson.Field(l.Raw, "content")
		f.Audio = false
		if is := f.blocks(was, lose); !same(is, was) {
			l.Raw = rawjson.WithField(l.Raw, "content", is)
		}
	}
	return l
}

// Existing is a file to which entries are appended and whose entries differ from the session's lines. nil = they are
// the same.
type Existing struct {
	See   func(l transcript.Line)        // receives the entries of the file
	Fit   func(l transcript.Line) []byte // returns the line to write for another entry
	Place func(id string) string         // returns the file's entry for one of the session
}

// Append writes the entries added to a session after its file, like AppendEntries. entries are all of the session's in
// order; the first known of them came from the file. head is where the file must open, "" = before the first entry. If
// the head is where an import puts it (the last entry, or its target if that is of type leaf), no line is added for it.
func (f Preparer) Append(
	w io.Writer, known int, entries iter.Seq2[transcript.Draft, error], head string, t Target, file Existing,
) (interop.Losses, error) {
	t = f.Target(t)
	o := &Opening{Head: head}
	added := func(yield func(transcript.Draft, error) bool) {
		n, heads, last := 0, 0, ""
		for d, err := range entries {
			n++
			l, ok := rawLineOf(d)
			if err == nil && ok {
				heads = max(heads, headNumber(l.ID))
				switch {
				case n <= known:
					t.Convert(l, func(string) {}) // records its calls
					last, o.At, o.Time = l.ID, opensAt(l), l.Time
					if file.See != nil {
						file.See(l)
					}
				case file.Fit != nil:
					d.Raw = file.Fit(l)
				}
			}
			if n <= known && err == nil {
				continue
			}
			if !yield(d, err) {
				return
			}
		}
		o.ID = headID + strconv.Itoa(heads+1)
		if head == last {
			o.At = head // a leaf entry without a target
		}
		if file.Place != nil {
			o.At, o.Head = file.Place(o.At), file.Place(head)
		}
	}
	return AppendEntries(w, added, o, t)
}

// headID begins the ID of a line that moves the program to the head; a number makes it unique in the session.
const headID = "coppice-head."

func headNumber(id string) int {
	digits, ok := strings.CutPrefix(id, headID)
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n > math.MaxInt32 {
		return 0
	}
	return n
}

// opensAt returns the entry at which a file opens whose last entry is l, "" = at none.
func opensAt(l transcript.Line) string {
	if l.Type == "leaf" {
		return rawjson.Text(rawjson.Field(l.Raw, "targetId"))
	}
	return l.ID
}

// rawLineOf returns the line of a draft with Raw.
func rawLineOf(d transcript.Draft) (transcript.Line, bool) {
	raw := d.Raw
	if n := len(raw); n > 0 && raw[n-1] == '\n' {
		raw = raw[:n-1]
	}
	l, err := transcript.ParseLine(raw)
	return l, err == nil && d.Err == nil && l.Type != "" && l.ID != ""
}
