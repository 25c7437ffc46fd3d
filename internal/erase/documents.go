package erase

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/segment"
)

// Target is what an erasure takes away: entries, and of the documents of all commits values within states, by JSON
// pointers (RFC 6901; "" = all of the state), and small documents by name.
type Target struct {
	Entries, States, Docs []string

	// Everywhere has Calls.Elsewhere erase it too. The pending object records that until it is done: whatever completes
	// the erasure has the same reach.
	Everywhere bool

	// Imported are entries of other sessions, whose lines may be in the imported file of this one: that of a family
	// of sessions is kept with one of them.
	Imported []Gone
}

// maxPointer bounds a JSON pointer, in bytes.
const maxPointer = 1 << 10

func (t *Target) empty() bool {
	return len(t.Entries)+len(t.States)+len(t.Docs) == 0
}

// check refuses a target that no session can have.
func (t *Target) check() error {
	if n := len(t.Entries) + len(t.States) + len(t.Docs); n > MaxEntries {
		return layout.TooLarge("entries to erase at once", MaxEntries, n)
	}
	for _, at := range t.States {
		switch {
		case len(at) > maxPointer:
			return layout.TooLarge("pointer", maxPointer, len(at))
		case at != "" && at[0] != '/':
			return layout.BadInput("pointer %q into the state: want one that begins with a slash", at)
		}
	}
	for _, name := range t.Docs {
		if err := checkpoint.CheckDocName(name); err != nil {
			return layout.BadInput("%v", err)
		}
	}
	return nil
}

// documents are those of the newest line that was read: as it was, and without what goes.
type documents struct{ was, now []byte }

// follow takes the document of the next line, and reports whether something goes out of it.
func (e *eraser) follow(d *documents, rec *checkpoint.Record) (changed bool, err error) {
	if d.was, err = state.DocumentAfter(d.was, rec); err != nil {
		return false, err
	}
	d.now, err = e.redact(d.was)
	return !bytes.Equal(d.was, d.now), err
}

// inside takes what goes out of the document of a commit line, if there is anything.
func (e *eraser) inside(d *documents, rec *checkpoint.Record) error {
	before := d.now
	same := bytes.Equal(d.was, d.now)
	changed, err := e.follow(d, rec)
	if err != nil || same && !changed {
		return err
	}
	if changed {
		rec.Digest = "" // which a guess at the state could be held against
	}
	whole := rec.Doc != nil
	rec.Doc, rec.Patch, rec.Sorted, rec.DocCRC = nil, nil, false, codec.CRC(d.now)
	if !whole && bytes.Equal(before, d.now) {
		return nil
	}
	if patch, sorted, ok := checkpoint.MakePatch(before, d.now); ok && !whole {
		rec.Patch, rec.Sorted = patch, sorted
	} else {
		rec.Doc = d.now
	}
	return nil
}

// brings reports whether a line may have, or change, something of an entry within a document.
func brings(rec *checkpoint.Record) bool {
	mark := []byte(`"entry":`)
	return bytes.Contains(rec.Doc, mark) || bytes.Contains(rec.Patch, mark)
}

// lookInside notes whether something goes out of the documents of the commits of a segment, the first of which has its
// document whole.
func (e *eraser) lookInside(f *facts, lines []segment.Line) error {
	var recs []checkpoint.Record
	needed := len(e.what.States)+len(e.what.Docs) > 0
	for _, l := range lines {
		if l.Commit {
			rec, err := checkpoint.VerifiedRecord(l.Raw)
			if err != nil {
				return err
			}
			recs, needed = append(recs, rec), needed || brings(&rec)
		}
	}
	if !needed {
		return nil
	}
	var d documents
	for i := range recs {
		changed, err := e.follow(&d, &recs[i])
		if err != nil {
			return err
		}
		f.documents = f.documents || changed
	}
	return nil
}

// redact returns an encoded document without what goes: null in the place of a value within the state. The message
// that an item of the explicit context brings along of an entry goes with the entry; readers take the stub.
func (e *eraser) redact(raw []byte) ([]byte, error) {
	d, err := checkpoint.DecodeDocument(raw)
	if err != nil {
		return nil, err
	}
	changed := false
	d.Context = slices.Clone(d.Context)
	for i := range d.Context {
		if it := &d.Context[i]; it.Message != nil && (e.ids[it.Entry] || e.bare[it.Entry]) {
			it.Message, changed = nil, true
		}
	}
	for _, at := range e.what.States {
		now, had := without(d.State, at)
		if had && !bytes.Equal(now, d.State) {
			d.State, changed = now, true
			e.states[at] = true
		}
	}
	d.Docs = maps.Clone(d.Docs)
	for _, name := range e.what.Docs {
		if _, had := d.Docs[name]; had {
			delete(d.Docs, name)
			changed, e.docs[name] = true, true
		}
	}
	if len(d.Docs) == 0 {
		d.Docs = nil
	}
	if !changed {
		return raw, nil
	}
	return d.Encode()
}

// without returns JSON with null in the place of the value to which a pointer leads; nil = none of it is left. had:
// there is a value. Of members with one name all go.
func without(val []byte, at string) (now []byte, had bool) {
	if at == "" || len(val) == 0 {
		return nil, len(val) > 0
	}
	return replaced(val, strings.Split(at[1:], "/"))
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

func replaced(val []byte, path []string) (now []byte, had bool) {
	if len(path) == 0 {
		return []byte("null"), true
	}
	m, name := rawjson.Walk(val), unescaped.Replace(path[0])
	end := m.Closing // 0 once the walk has ended
	if end == 0 {
		return val, false
	}
	now = append(make([]byte, 0, len(val)), val[0])
	for i := 0; m.Next(); i++ {
		if i > 0 {
			now = append(now, ',')
		}
		here := end == ']' && strconv.Itoa(i) == name
		if end == '}' {
			now, here = rawjson.AppendKey(now, m.Key), string(m.Key) == name
		}
		part, got := m.Val, false
		if here {
			part, got = replaced(m.Val, path[1:])
		}
		now, had = append(now, part...), had || got
	}
	return append(now, end), had
}

// sorted returns the members of a set in order.
func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// quotesMark reports whether the place at which a reader of a grown file can go on has something of an entry: titles,
// or hashes of texts.
func quotesMark(s *checkpoint.Source) bool {
	return s != nil && s.Resume != nil && s.Resume.State != ""
}

// source is a source without such a place, if entries go: no file of their session is read on.
func (e *eraser) source(s *checkpoint.Source) *checkpoint.Source {
	if len(e.found.erased) > 0 && quotesMark(s) {
		return s.Whole()
	}
	return s
}
