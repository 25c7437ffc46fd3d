// Package outward makes entries ready for a target of package emit, where a target sees too little of them to do it
// itself: the names of tools, which results of most providers do not say, come from the calls on their way; documents
// and recordings are named in words, for their bytes as text would fill the model's context; what an import left out
// of a line over its limit, and images of which only a reference is there, are counted.
//
// Bounds (I15): about 150 bytes an entry below the first call of a tool, and each call's id and name; 4,096 turns
// with calls are looked at for the name of one.
package outward

import (
	"bytes"
	"io"
	"iter"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/pi/emit"
	"github.com/coppice-go/coppice/transcript"
)

// LostStub is the kind of loss where an import kept a stub instead of a line.
const LostStub = "entries that were over the limit when they were imported: a stub of each, the rest is only in the file that they came from"

// Format is what a target has a place for.
type Format struct {
	Audio bool // blocks of type "audio" in what users and models say
	Blobs bool // references to images in omp's folder
}

// Target is a target that gets its entries ready. It is for one file: of its entries, in their order, Convert is
// asked, as often as one likes.
func (f Format) Target(t emit.Target) emit.Target {
	convert, count, named := t.Convert, t.Count, names{}
	t.Convert = func(l transcript.Line, lose func(kind string)) [][]byte {
		if isStub(l) {
			lose(LostStub)
		}
		lines := convert(f.ready(l, lose), lose)
		named.pass(l, lines)
		return lines
	}
	if count != nil {
		t.Count = func(l transcript.Line) int { return count(f.ready(l, func(string) {})) }
	}
	return t
}

// isStub tells an entry of which an import kept its head alone, or that stands for a line that it could not keep.
func isStub(l transcript.Line) bool {
	if !bytes.Contains(l.Raw, []byte(`"stub"`)) {
		return false
	}
	stub := rawjson.Field(l.Raw, "stub")
	if stub == nil && l.Type == "custom" {
		stub = rawjson.Field(rawjson.Field(l.Raw, "data"), "stub")
	}
	return rawjson.IsNumber(rawjson.Field(stub, "bytes")) && rawjson.IsNumber(rawjson.Field(stub, "limit"))
}

// ready gives an entry whose blocks the target has words for.
func (f Format) ready(l transcript.Line, lose func(kind string)) transcript.Line {
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

// same reports that a value was not touched.
func same(is, was []byte) bool {
	return len(is) == len(was) && (len(is) == 0 || &is[0] == &was[0])
}

// Append writes what was added to a session behind a file of it, as emit.Append does. entries are all of the session's
// in their order, the first known of which came from the file. see is shown those, and fit the others, of which it
// gives what is to be written; either may be nil.
func (f Format) Append(w io.Writer, known int, entries iter.Seq2[transcript.Draft, error], t emit.Target, see func(l transcript.Line), fit func(l transcript.Line) []byte) (interop.Losses, error) {
	t = f.Target(t)
	added := func(yield func(transcript.Draft, error) bool) {
		n := 0
		for d, err := range entries {
			n++
			if l, ok := lineOf(d); err == nil && ok {
				switch {
				case n <= known:
					t.Convert(l, func(string) {}) // which notes its calls
					if see != nil {
						see(l)
					}
				case fit != nil:
					d.Raw = fit(l)
				}
			}
			if n <= known && err == nil {
				continue
			}
			if !yield(d, err) {
				return
			}
		}
	}
	return emit.Append(w, added, t)
}

// lineOf gives the line of a draft that has one.
func lineOf(d transcript.Draft) (transcript.Line, bool) {
	raw := d.Raw
	if n := len(raw); n > 0 && raw[n-1] == '\n' {
		raw = raw[:n-1]
	}
	l, err := transcript.ParseLine(raw)
	return l, err == nil && d.Err == nil && l.Type != "" && l.ID != ""
}
