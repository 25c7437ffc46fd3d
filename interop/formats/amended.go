package formats

import (
	"bytes"
	"iter"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// lostAmendment is the loss of an amendment of an entry in the original, whose bytes do not change.
const lostAmendment = "amendments of entries that the imported file has: its bytes stay as they are"

// lines are the entries of a session, for several passes.
type lines = iter.Seq2[transcript.Draft, error]

// amended holds the amendments among the lines of a session: the newest one for each entry, and the IDs around hidden
// entries.
type amended struct {
	known  int                             // number of first lines that do not change
	says   map[string]transcript.Amendment // newest amendment by entry ID
	at     map[string]int                  // the line of that amendment
	hidden map[string]string               // parents of hidden entries
	kept   map[string]string               // by compaction whose first kept entry is hidden: the first shown one
	lost   int                             // number of amendments of lines that do not change
}

// readAmendments reads the amendments. It makes more than one pass only if there are any.
func readAmendments(entries lines, known int) (*amended, error) {
	a := &amended{known: known, says: map[string]transcript.Amendment{}, at: map[string]int{}}
	err := each(entries, func(i int, e transcript.Entry) {
		if says, ok := e.Amendment(); ok {
			a.says[says.Target], a.at[says.Target] = says, i
		}
	})
	if err != nil || len(a.says) == 0 {
		return nil, err
	}
	a.hidden = map[string]string{}
	cut := false
	err = each(entries, func(i int, e transcript.Entry) {
		if a.applies(i, e.ID) && i < known {
			a.lost++
		} else if a.hides(i, e.ID) {
			a.hidden[e.ID] = e.ParentID
		}
		cut = cut || keeps(e) != ""
	})
	if err != nil || len(a.hidden) == 0 || !cut {
		return a, err
	}
	return a, a.readKept(entries)
}

// each calls f with every line and its index.
func each(entries lines, f func(i int, e transcript.Entry)) error {
	i := 0
	for d, err := range entries {
		if err != nil {
			return err
		}
		if e, ok := entryOf(d); ok {
			f(i, e)
		}
		i++
	}
	return nil
}

func entryOf(d transcript.Draft) (transcript.Entry, bool) {
	l, err := transcript.ParseLine(bytes.TrimSuffix(d.Raw, []byte("\n")))
	return l.Entry(0), err == nil
}

// applies reports whether a later line amends line i.
func (a *amended) applies(i int, id string) bool { return id != "" && i < a.at[id] }

func (a *amended) hides(i int, id string) bool {
	return i >= a.known && a.applies(i, id) && a.says[id].Body == nil
}

// keeps returns the first entry that a compaction keeps; "" = none, or e is not a compaction.
func keeps(e transcript.Entry) string {
	if e.Type != "compaction" {
		return ""
	}
	return rawjson.Text(rawjson.Field(e.Raw, "firstKeptEntryId"))
}

// readKept finds, for each compaction whose first kept entry is hidden, the first entry after it on the path to the
// compaction.
func (a *amended) readKept(entries lines) error {
	a.kept = map[string]string{}
	parents, cuts := map[string]string{}, map[string]string{}
	err := each(entries, func(_ int, e transcript.Entry) {
		if parents[e.ID] = e.ParentID; keeps(e) != "" {
			cuts[e.ID] = keeps(e)
		}
	})
	for id, first := range cuts {
		if _, gone := a.hidden[first]; !gone {
			continue
		}
		next := id
		for up, n := parents[id], 0; up != "" && up != first && n < len(parents); up, n = parents[up], n+1 {
			if _, gone := a.hidden[up]; !gone {
				next = up
			}
		}
		a.kept[id] = next
	}
	return err
}

// shown returns the nearest entry on the path from id to the root that is not hidden; "" = none.
func (a *amended) shown(id string) string {
	for range len(a.hidden) + 1 {
		up, gone := a.hidden[id]
		if !gone {
			return id
		}
		id = up
	}
	return ""
}

// lines returns the lines with the amendments applied. Amendments, hidden entries and their labels are dropped;
// children of a hidden entry become children of its parent.
func (a *amended) lines(entries lines) lines {
	return func(yield func(transcript.Draft, error) bool) {
		i := -1
		for d, err := range entries {
			i++
			if err == nil && i >= a.known {
				var ok bool
				if d, ok = a.line(i, d); !ok {
					continue
				}
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// line returns one line with its amendment applied, or false if it is dropped.
func (a *amended) line(i int, d transcript.Draft) (transcript.Draft, bool) {
	e, ok := entryOf(d)
	if !ok {
		return d, true
	}
	if _, amends := e.Amendment(); amends || a.hides(i, e.ID) {
		return d, false
	}
	if e.Type == "label" && a.shown(rawjson.Text(rawjson.Field(e.Raw, "targetId"))) !=
		rawjson.Text(rawjson.Field(e.Raw, "targetId")) {
		return d, false
	}
	raw := e.Raw
	if a.applies(i, e.ID) {
		raw = e.Amended(a.says[e.ID]).Raw
	}
	if up := a.shown(e.ParentID); up != e.ParentID {
		val := []byte("null")
		if up != "" {
			val = rawjson.AppendString(nil, up)
		}
		raw = rawjson.WithField(raw, "parentId", val)
	}
	if kept, ok := a.kept[e.ID]; ok {
		raw = rawjson.WithField(raw, "firstKeptEntryId", rawjson.AppendString(nil, kept))
	}
	if len(raw) == len(e.Raw) && &raw[0] == &e.Raw[0] {
		return d, true
	}
	d.Raw = raw
	return d, true
}

// amend prepares lines for a format whose program has no amendments.
func amend(entries lines, head string, known int) (_ lines, at string, lost int, err error) {
	a, err := readAmendments(entries, known)
	if err != nil || a == nil {
		return entries, head, 0, err
	}
	return a.lines(entries), a.shown(head), a.lost, nil
}

// continued is amend for a file that is continued. A file in pi's form keeps amendments as lines.
func continued(t Format, entries lines, head string, known int) (_ lines, at string, lost int, err error) {
	if t.amends {
		return entries, head, 0, nil
	}
	return amend(entries, head, known)
}
