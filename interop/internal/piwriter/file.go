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

// Target is a program whose files are written.
type Target struct {
	// Convert returns the lines that an entry becomes, as the target has them but for their ids and
	// parents: the first one's are the entry's own, in the target's fields. None = the entry is left out.
	// lose counts what could not be said.
	Convert func(l transcript.Line, lose func(kind string)) [][]byte
	// Count returns the number of lines that Convert returns; nil = Convert is called to count them.
	Count func(l transcript.Line) int
	// Head makes a line that leads to an entry ("" = to no entry: a new root comes next). last is the id of
	// the line before; after a file that is there, of the entry at which it would be opened.
	Head func(id, head, last string, at time.Time) []byte
	// Title makes an entry that names the session; nil = the header does.
	Title func(id, title, parent string, at time.Time) []byte
	// Parent is the name of the field of a parent's id.
	Parent string
	// Leaves: the target has entries that move the head.
	Leaves bool
}

// Kinds of losses that every target has.
const (
	lostDuplicate = "entries whose id another one has: they got one of their own"
	lostOrphan    = "entries whose parent is not in the session: they start a root"
	lostCycle     = "entries whose parents led back to them: they start a root"
	LostEntry     = "lines that are no entries: left out"
)

// ErrSequence is the error for a sequence of entries that yields others when it is walked again.
var ErrSequence = errors.New("the entries were others when they were asked for again")

// WriteFile writes the header, then all entries; the last line leads to the head, "" = before the first entry. title
// is for a target that has it among the entries, where no entry says one. entries is walked twice and must give
// the same each time.
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
	last, leads, at := "", "", time.Time{} // leads: the entry at which a file that ended here would open
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

// Opening says of a file after which entries are written where it is opened, and where it is to be opened. Append
// reads it after the last entry: it may be filled in while they are walked.
type Opening struct {
	At     string    // the entry at which the file is opened as it is; "" = before the first
	Time   time.Time // of its last entry
	Head   string    // the entry at which it is to be opened; "" = before the first
	ID     string    // for the line that leads there
	Always bool      // that line is there, wherever the last entry leads
}

// AppendEntries writes entries to be appended to a file: each hangs on an entry of the file, or on
// one before it. It walks them once. Where the file would then be opened at another entry than it is to be, a line
// after them leads there.
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

// lead writes the line that leads to the head, where the lines before it lead elsewhere.
func (p *plan) lead(out *lineWriter, leads string, o *Opening, t Target) {
	to := o.Head
	if tail, ok := p.tails[to]; ok {
		to = tail
	}
	if o.Always || leads != to {
		out.put(t.Head(o.ID, to, leads, o.Time))
	}
}

// LineOf returns the line of a draft; false: it is no entry.
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

// isCommit reports whether a line is a commit record of the session, which is no entry for readers.
func isCommit(l transcript.Line) bool {
	return l.Type == "custom" && string(rawjson.Field(l.Raw, "customType")) == `"coppice.commit"`
}

// withPlace sets the id and the parent of a line. A line that has them already stays as it is.
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
