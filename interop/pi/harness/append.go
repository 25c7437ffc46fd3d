package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// lostHarness is the loss of an entry for which the harness has no write.
const lostHarness = "entries that the harness has no form for: kept as custom entries"

// piProgram converts a session's entries to lines of pi, from which writes are made.
var piProgram = piwriter.Program{Types: []string{"usage", "context_edit", "active_tools_change", "leaf"}}

// Append writes the entries added to a session as transactions to append to its file. entries are all of the session's
// in order; the first known of them came from the file. They are iterated twice, and both passes must yield the same
// lines. Afterwards the lane "main" ends at head, "" = before the first entry. If no entry was added, and the head is
// where an import puts it, Append writes nothing: that may be the tip of another lane.
func (e *End) Append(
	w io.Writer, known int, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	a := &appender{
		End: e, w: bufio.NewWriterSize(w, 1<<16), losses: interop.Losses{}, tails: map[string][]string{},
		kept: map[string][][]byte{},
	}
	if err := a.plan(known, entries); err != nil {
		return nil, err
	}
	if a.total <= known && (head == a.opens || head == a.last) {
		return a.losses, nil
	}
	if head == a.last {
		head = a.opens
	}
	t := piProgram.Target()
	t.Head = leafEntry
	losses, err := piwriter.AppendEntries(a, a.added(known, entries),
		&piwriter.Opening{Head: head, ID: "head", Always: true}, t)
	for kind, n := range losses {
		a.losses[kind] += n
	}
	if err != nil {
		return a.losses, err
	}
	if a.err != nil {
		return a.losses, a.err
	}
	return a.losses, a.w.Flush()
}

// leafEntry makes the line of a move of the head, as in version 3.
func leafEntry(id, head, last string, at time.Time) []byte {
	stamp := rawjson.AppendString(nil, at.UTC().Format(time.RFC3339Nano))
	return rawjson.Object("type", []byte(`"leaf"`), "id", piwriter.OrNull(id), "parentId", piwriter.OrNull(last),
		"timestamp", stamp, "targetId", piwriter.OrNull(head))
}

// appender converts lines of pi's version 3, which it receives as an io.Writer, to writes.
type appender struct {
	*End
	w      *bufio.Writer
	losses interop.Losses
	part   []byte              // incomplete line
	tails  map[string][]string // by ID of an added compaction: the entries that it keeps, in order
	kept   map[string][][]byte // by ID: the messages of these entries
	total  int                 // number of entries of the session
	last   string              // ID of the last entry
	opens  string              // entry at which a file opens that ends with the last entry
	err    error
}

// plan finds the entries that compactions keep.
func (a *appender) plan(known int, entries iter.Seq2[transcript.Draft, error]) error {
	parents := map[string]string{}
	for d, err := range entries {
		if err != nil {
			return err
		}
		a.total++
		l, err := transcript.ParseLine(bytes.TrimSuffix(d.Raw, []byte("\n")))
		if err != nil {
			continue
		}
		parents[l.ID] = l.ParentID
		if a.last, a.opens = l.ID, l.ID; l.Type == "leaf" {
			a.opens = rawjson.Text(rawjson.Field(l.Raw, "targetId"))
		}
		if a.total <= known || l.Type != "compaction" {
			continue
		}
		first := rawjson.Text(rawjson.Field(l.Raw, "firstKeptEntryId"))
		var way []string
		for at := l.ParentID; at != "" && len(way) < len(parents); at = parents[at] {
			if way = append(way, at); at == first {
				slices.Reverse(way)
				a.tails[l.ID] = way
				for _, id := range way {
					a.kept[id] = nil
				}
				break
			}
		}
	}
	return nil
}

// added returns the entries that the file does not have, and records the kept messages of the others.
func (a *appender) added(known int, entries iter.Seq2[transcript.Draft, error]) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		n := 0
		for d, err := range entries {
			if n++; n <= known && err == nil && len(a.kept) > 0 {
				if l, err := transcript.ParseLine(bytes.TrimSuffix(d.Raw, []byte("\n"))); err == nil {
					a.keep(l.ID, l)
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
}

// keep records the message of an entry, or of a part of one, if a compaction keeps it.
func (a *appender) keep(id string, l transcript.Line) {
	have, wanted := a.kept[id]
	if m := messageOf(l); wanted && m != nil {
		a.kept[id] = append(have, m)
	}
}

// Write receives lines of pi's version 3.
func (a *appender) Write(p []byte) (int, error) {
	n := len(p)
	for a.err == nil {
		line, rest, whole := bytes.Cut(p, []byte{'\n'})
		if !whole {
			a.part = append(a.part, p...)
			break
		}
		if len(a.part) > 0 {
			line, a.part = append(a.part, line...), nil
		}
		a.line(line)
		p = rest
	}
	return n, a.err
}

func (a *appender) line(raw []byte) {
	l, err := transcript.ParseLine(raw)
	if err != nil {
		a.err = fmt.Errorf("an entry that was added: %w", err)
		return
	}
	parent := a.at(l.ParentID)
	at := strconv.AppendInt(nil, max(l.Time.UnixMilli(), 0), 10)
	if body := a.body(l); body != nil {
		whole, _, _ := strings.Cut(l.ID, ".") // a split entry has several IDs with this prefix
		a.keep(whole, l)
		a.entry(l, parent, at, body)
		return
	}
	a.place[l.ID] = parent // its children become the parent's
	if !a.setting(l, at) {
		a.losses[lostHarness]++
	}
}
