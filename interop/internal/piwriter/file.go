package piwriter

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// Target is a program for which files are written.
type Target struct {
	// Convert returns the lines of an entry in the target's form except for IDs and parents. The first line's are those
	// of the entry, in the target's fields. No lines = the entry is dropped. lose counts losses.
	Convert func(l transcript.Line, lose func(kind string)) [][]byte
	// Count returns the number of lines that Convert returns; nil = Convert is called to count them.
	Count func(l transcript.Line) int
	// Head makes a line that moves the program to an entry ("" = to no entry: a new root follows). last is the ID of
	// the line before, or, for an existing file, of the entry at which it would be opened.
	Head func(id, head, last string, at time.Time) []byte
	// Title makes an entry with the session's title; nil = the header has it.
	Title func(id, title, parent string, at time.Time) []byte
	// Parent is the name of the field with the parent's ID.
	Parent string
	// Leaves reports whether the target has entries that move the head.
	Leaves bool
}

// Losses of every target.
const (
	lostDuplicate = "entries whose id another one has: they got one of their own"
	lostOrphan    = "entries whose parent is not in the session: they start a root"
	lostCycle     = "entries whose parents led back to them: they start a root"
	LostEntry     = "lines that are no entries: left out"
)

// ErrSequence is the error for entries that differ between two passes.
var ErrSequence = errors.New("the entries were others when they were asked for again")

// WriteFile writes the header, then all entries. The last line moves the program to the head, "" = before the first
// entry. title is written as an entry if the target has titles in entries and no entry has one. entries is iterated
// twice, and both passes must yield the same lines.
func WriteFile(
	w io.Writer, header []byte, title string, entries iter.Seq2[transcript.Draft, error], head string, t Target,
) (interop.Losses, error) {
	losses := interop.Losses{}
	p, err := newPlan(entries, t, losses)
	if err != nil {
		return nil, err
	}
	to, err := p.headOf(head)
	if err != nil {
		return nil, err
	}
	out := &lineWriter{w: bufio.NewWriterSize(w, 1<<16)}
	out.put(header)
	last, leads, at := "", "", time.Time{} // leads is the entry at which a file that ended here would open
	i := 0
	for d, err := range entries {
		l, ok, err := LineOf(d, err)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if i >= len(p.lines) || p.lines[i].ID != l.ID {
			return nil, ErrSequence
		}
		if id := p.write(out, i, l, t, losses); id != "" {
			last, at = id, l.Time
			if leads = id; t.Leaves && l.Type == "leaf" {
				leads = p.first(string(p.lines[i].Raw))
			}
		}
		if i++; out.err != nil {
			return nil, out.err
		}
	}
	if i != len(p.lines) {
		return nil, ErrSequence
	}
	if title != "" && !p.titled && t.Title != nil && to != "" {
		id := p.fresh("title")
		out.put(t.Title(id, title, to, at))
		leads, to = id, id
	}
	if leads != to {
		out.put(t.Head(p.fresh("head"), to, last, at))
	}
	return losses, out.flush()
}

// Opening is the entry at which an existing file opens, and the one at which it must open. AppendEntries reads it after
// the last entry, so it may be completed during the iteration.
type Opening struct {
	At     string    // entry at which the file opens unchanged; "" = before the first
	Time   time.Time // of its last entry
	Head   string    // entry at which it must open; "" = before the first
	ID     string    // of the line that moves the program there
	Always bool      // write that line in any case
}

// AppendEntries writes entries for appending to a file. The parent of each is in the file, or is an entry before it. It
// iterates once. If the file would then open at another entry than required, a last line moves the program there.
func AppendEntries(
	w io.Writer, entries iter.Seq2[transcript.Draft, error], o *Opening, t Target,
) (interop.Losses, error) {
	losses := interop.Losses{}
	p := &plan{tails: map[string]string{}}
	out := &lineWriter{w: bufio.NewWriterSize(w, 1<<16)}
	leads, wrote := "", false
	for d, err := range entries {
		l, ok, err := LineOf(d, err)
		if err != nil {
			return nil, err
		}
		if !ok {
			losses[LostEntry]++
			continue
		}
		parent := l.ParentID
		if tail, ok := p.tails[parent]; ok {
			parent = tail
		}
		if isCommit(l) {
			p.tails[l.ID] = parent
			continue
		}
		raws := t.Convert(l, func(kind string) { losses[kind]++ })
		last := parent
		for k, raw := range raws {
			id := l.ID
			if k > 0 {
				id = l.ID + "." + strconv.Itoa(k)
			}
			out.put(withPlace(raw, l, id, last, t.Parent, k == 0))
			last = id
			if leads, wrote, o.Time = id, true, l.Time; t.Leaves && l.Type == "leaf" {
				leads = rawjson.Text(rawjson.Field(l.Raw, "targetId"))
			}
		}
		if len(raws) != 1 {
			p.tails[l.ID] = last
		}
		if out.err != nil {
			return nil, out.err
		}
	}
	if !wrote {
		leads = o.At
	}
	p.lead(out, leads, o, t)
	return losses, out.flush()
}

// lead writes a line that moves the program to the head, if the lines before it end elsewhere.
func (p *plan) lead(out *lineWriter, leads string, o *Opening, t Target) {
	to := o.Head
	if tail, ok := p.tails[to]; ok {
		to = tail
	}
	if o.Always || leads != to {
		out.put(t.Head(o.ID, to, leads, o.Time))
	}
}

// LineOf returns the line of a draft, or false if it is not an entry.
func LineOf(d transcript.Draft, err error) (transcript.Line, bool, error) {
	if err != nil {
		return transcript.Line{}, false, err
	}
	raw := bytes.TrimSuffix(d.Raw, []byte("\n"))
	if d.Raw == nil || d.Err != nil {
		if raw, err = d.Line(d.ID, d.Parent, d.Time); err != nil && !errors.Is(err, transcript.ErrLine) {
			return transcript.Line{}, false, err
		}
	}
	l, err := transcript.ParseLine(raw)
	return l, err == nil && l.Type != "" && l.ID != "" && l.Type != "session" && bytes.IndexByte(raw, '\n') < 0, nil
}

// isCommit reports whether a line is a commit record, which is not an entry for readers.
func isCommit(l transcript.Line) bool {
	return l.Type == "custom" && string(rawjson.Field(l.Raw, "customType")) == `"coppice.commit"`
}

// withPlace sets ID and parent of a line. A line that has both stays unchanged.
func withPlace(raw []byte, l transcript.Line, id, parent, field string, first bool) []byte {
	if first && id == l.ID && parent == l.ParentID && (parent != "" || string(rawjson.Field(raw, field)) == "null") {
		return raw
	}
	return rawjson.WithField(rawjson.WithField(raw, "id", rawjson.AppendString(nil, id)), field, OrNull(parent))
}

// lineWriter writes lines until the first error.
type lineWriter struct {
	w   *bufio.Writer
	err error
}

func (o *lineWriter) put(raw []byte) {
	if o.err != nil {
		return
	}
	if _, err := o.w.Write(raw); err != nil {
		o.err = fmt.Errorf("write: %w", err)
		return
	}
	if err := o.w.WriteByte('\n'); err != nil {
		o.err = fmt.Errorf("write: %w", err)
	}
}

func (o *lineWriter) flush() error {
	if o.err == nil {
		if err := o.w.Flush(); err != nil {
			o.err = fmt.Errorf("write: %w", err)
		}
	}
	return o.err
}
