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

// LostStub is the kind of loss where an import kept a stub instead of a line.
const LostStub = "entries that were over the limit when they were imported: a stub of each, the rest is only in " +
	"the file that they came from"

// Preparer gets entries ready for a Target; its fields are what that has a place for.
type Preparer struct {
	Audio bool // blocks of type "audio" in what users and models say
	Blobs bool // references to images in omp's folder
}

// Target returns t with a Convert that gets entries ready. It is for one file: Convert is called with its entries in
// their order, as often as one likes.
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

// withIDs returns an entry whose calls and results have ids.
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

// IsStub reports whether an import kept only the head of an entry, or the entry replaces a line that it
// could not keep.
func IsStub(l transcript.Line) bool {
	if !bytes.Contains(l.Raw, []byte(`"stub"`)) {
		return false
	}
	if l.Type == "custom" && rawjson.Field(l.Raw, "stub") == nil {
		return HasStub(rawjson.Field(l.Raw, "data"))
	}
	return HasStub(l.Raw)
}

// HasStub reports whether an object has the field that an import writes in place of what it left out.
func HasStub(object []byte) bool {
	stub := rawjson.Field(object, "stub")
	return rawjson.IsNumber(rawjson.Field(stub, "bytes")) && rawjson.IsNumber(rawjson.Field(stub, "limit"))
}

// ready returns an entry whose blocks the target has words for.
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

// Existing is a file after which entries are written, where its entries are not the session's line by
// line. nil = they are.
type Existing struct {
	See   func(l transcript.Line)        // is shown the entries that the file has
	Fit   func(l transcript.Line) []byte // returns what is to be written of another one
	Place func(id string) string         // returns the file's entry for one of the session's
}

// Append writes what was added to a session after a file of it, as AppendEntries does. entries are all
// of the session's in their order, the first known of which came from the file; head is where it is to
// be opened, "" = before the first. A head where an import puts it adds nothing: at the last entry, or
// where that leads if it is of type leaf.
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
					t.Convert(l, func(string) {}) // which notes its calls
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
			o.At = head // a leaf entry that leads nowhere
		}
		if file.Place != nil {
			o.At, o.Head = file.Place(o.At), file.Place(head)
		}
	}
	return AppendEntries(w, added, o, t)
}

// headID begins the id of a line that leads to the head; a number that no other of the session has follows.
const headID = "coppice-head."

func headNumber(id string) int {
	digits, ok := strings.CutPrefix(id, headID)
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n > math.MaxInt32 {
		return 0
	}
	return n
}

// opensAt returns the entry at which a file that ends with one is opened, "" = at none.
func opensAt(l transcript.Line) string {
	if l.Type == "leaf" {
		return rawjson.Text(rawjson.Field(l.Raw, "targetId"))
	}
	return l.ID
}

// rawLineOf returns the line of a draft that has one.
func rawLineOf(d transcript.Draft) (transcript.Line, bool) {
	raw := d.Raw
	if n := len(raw); n > 0 && raw[n-1] == '\n' {
		raw = raw[:n-1]
	}
	l, err := transcript.ParseLine(raw)
	return l, err == nil && d.Err == nil && l.Type != "" && l.ID != ""
}
